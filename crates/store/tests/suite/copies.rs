//! Copies: every fact of one database in another, of either kind.

use super::search::{ask, index_all, say, whole};
use super::support::*;
use greenroom_store::copy::{
    CopyError, Loading, Snapshot, Sum, Table, clear_moved, mark_moved, read_line,
};
use greenroom_store::sql::{Cell, Tx};
use greenroom_store::{Location, Store, StoreError};
use std::collections::BTreeMap;

/// A text that every format has to escape.
const ODD: &str = "a\t\\N\\. \"b\"\r\n\\x 𝄞 键 {}";

/// The lines of every table.
type Dump = BTreeMap<String, Vec<String>>;

/// Work that blocks, on a thread where it may.
fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

fn lines(snapshot: &mut Snapshot) -> Dump {
    let mut dump = Dump::new();
    for table in snapshot.tables() {
        let mut lines = Vec::new();
        let each = &mut |_: &[Cell], line: &str| {
            lines.push(line.to_owned());
            Ok(())
        };
        let sum = snapshot.read(&table, each).unwrap();
        assert_eq!(sum.rows, lines.len() as u64);
        dump.insert(table.name, lines);
    }
    dump
}

fn dump(ground: &Ground) -> Dump {
    apart(|| lines(&mut Snapshot::open(ground.location()).unwrap()))
}

/// Copies one database into another, by way of lines.
fn copy(from: &Ground, to: &Ground) {
    apart(|| {
        let mut source = Snapshot::open(from.location()).unwrap();
        let mut target = Loading::create(to.location(), source.schema()).unwrap();
        for table in source.tables() {
            let (mut written, mut read) = (None, None);
            read.replace(
                target
                    .load(&table, &mut |sink| {
                        let each = &mut |_: &[Cell], line: &str| sink(&read_line(&table, line)?);
                        written.replace(source.read(&table, each)?);
                        Ok(())
                    })
                    .unwrap(),
            );
            assert_eq!(written, read);
        }
        let mut checked = 0;
        target.finish(source.epoch() + 1, &mut |_: &Table, _: &Sum| checked += 1).unwrap();
        assert_eq!(checked, source.tables().len());
    });
}

async fn close(store: Store) {
    tokio::task::spawn_blocking(move || store.close()).await.unwrap();
}

/// Name, type and whether it may be null, of every column of every table.
async fn catalog(store: &Store) -> Vec<(String, String, String, bool)> {
    let read = |tx: &mut dyn Tx| {
        let sql = match tx.dialect() {
            greenroom_store::sql::Dialect::Sqlite => {
                "SELECT m.name, c.name, c.type, 1 - (c.\"notnull\" OR c.pk > 0)
                 FROM sqlite_master m, pragma_table_info(m.name) c
                 WHERE m.type = 'table' AND m.name NOT LIKE 'search%' ORDER BY m.name, c.cid"
            }
            greenroom_store::sql::Dialect::Postgres => {
                "SELECT CAST(table_name AS TEXT), CAST(column_name AS TEXT), CAST(data_type AS TEXT),
                        CASE is_nullable WHEN 'YES' THEN 1 ELSE 0 END
                 FROM information_schema.columns
                 WHERE table_schema = current_schema() AND table_name <> 'search'
                 ORDER BY table_name COLLATE \"C\", ordinal_position"
            }
        };
        let rows = tx.query(sql, &[])?.into_iter();
        rows.map(|mut row| Ok((row.text()?, row.text()?, row.text()?, row.int()? == 1))).collect()
    };
    store.read(read).await.unwrap()
}

pub(crate) async fn a_copy_has_every_table_with_every_column(ground: Ground) {
    let store = ground.open();
    let known: Vec<(String, String)> =
        catalog(&store).await.into_iter().map(|(table, column, ..)| (table, column)).collect();
    let mut tables = apart(|| Snapshot::open(ground.location()).unwrap().tables());
    tables.sort_by(|one, other| one.name.cmp(&other.name));
    let copied: Vec<(String, String)> = tables
        .iter()
        .flat_map(|table| table.columns.iter().map(|column| (table.name.clone(), column.clone())))
        .collect();
    assert_eq!(copied, known);
    assert!(tables.len() > 20 && tables.iter().all(|table| !table.key.is_empty()));
}

pub(crate) async fn any_row_survives_a_copy_to_either_database(ground: Ground) {
    let store = ground.open();
    let mut columns: BTreeMap<String, Vec<(String, String, bool)>> = BTreeMap::new();
    for (table, column, kind, nullable) in catalog(&store).await {
        columns.entry(table).or_default().push((column, kind.to_lowercase(), nullable));
    }
    close(store).await;
    columns.remove("meta");
    for (table, columns) in &columns {
        for row in 1..=3 {
            let value = |(column, kind, nullable): &(String, String, bool)| match kind.as_str() {
                _ if *nullable && row == 2 => "NULL".to_owned(),
                "text" => format!("'{row}{column}{}'", ODD.replace('\'', "''")),
                "blob" => format!("x'00ff{row:02}'"),
                "bytea" => format!("'\\x00ff{row:02}'"),
                _ => format!("{}", i64::MAX - row),
            };
            let values: Vec<String> = columns.iter().map(value).collect();
            ground.execute(&format!("INSERT INTO {table} VALUES ({})", values.join(", ")));
        }
    }
    let before = dump(&ground);
    assert!(before.iter().all(|(table, lines)| lines.len() == 3 || table == "meta"), "{before:?}");
    for first in [Ground::sqlite(), Ground::postgres()] {
        // Loading behind the largest number there is has no next one.
        let loaded = apart(|| try_copy_rows(&ground, &first));
        assert_eq!(loaded, before);
    }
}

/// Loads every table and reads it back before the load is finished.
fn try_copy_rows(from: &Ground, to: &Ground) -> Dump {
    let mut source = Snapshot::open(from.location()).unwrap();
    let mut target = Loading::create(to.location(), source.schema()).unwrap();
    let mut dump = Dump::new();
    for table in source.tables() {
        let mut lines = Vec::new();
        let feed = &mut |sink: greenroom_store::copy::Sink<'_>| {
            source.read(&table, &mut |cells, _| sink(cells)).map(drop)
        };
        let sum = target.load(&table, feed).unwrap();
        let read = target.read_back(&table, &mut |_, line| {
            lines.push(line.to_owned());
            Ok(())
        });
        assert_eq!(read.unwrap(), sum);
        dump.insert(table.name.clone(), lines);
    }
    dump
}

pub(crate) async fn a_host_goes_on_with_a_copy(ground: Ground) {
    let store = ground.open();
    for n in 0..250 {
        say(&store, &format!("c{}", n % 25), &format!("word{n} {ODD}")).await;
    }
    index_all(&store).await;
    say(&store, "c0", "not indexed when it is copied").await;
    let (key, epoch) = (store.cursor_key().to_owned(), store.epoch());
    close(store).await;
    let before = dump(&ground);
    for first in [Ground::sqlite(), Ground::postgres()] {
        copy(&ground, &first);
        for second in [Ground::sqlite(), Ground::postgres()] {
            copy(&first, &second);
            assert_eq!(dump(&first), before);
            assert_eq!(dump(&second), before);
            let store = second.open();
            assert_eq!(store.cursor_key(), key);
            assert!(store.epoch() > epoch, "what the old host still writes is told apart");
            assert_eq!(store.index_some(1000).await.unwrap(), 0, "the index is whole");
            assert_eq!(whole(&store, ask("word217")).await, [format!("word217 {ODD}")]);
            assert_eq!(whole(&store, ask("when it is copied")).await.len(), 1);
            say(&store, "c0", "after the copy").await;
            assert_eq!(whole(&store, ask("after the copy")).await, ["after the copy"]);
            close(store).await;
        }
    }
}

pub(crate) async fn a_copy_is_one_moment_of_a_database_that_is_written_to(ground: Ground) {
    let store = ground.open();
    say(&store, "c", "before").await;
    let mut snapshot = apart(|| Snapshot::open(ground.location()).unwrap());
    say(&store, "c", "after").await;
    let seen = apart(move || {
        let seen = lines(&mut snapshot);
        drop(snapshot);
        seen
    });
    assert_eq!((seen["events"].len(), seen["runs"].len(), seen["transcript"].len()), (1, 1, 1));
    assert_eq!(dump(&ground)["events"].len(), 2);
}

pub(crate) async fn a_database_that_is_not_empty_is_not_loaded(ground: Ground) {
    close(ground.open()).await;
    let refused = apart(|| Loading::create(ground.location(), 1).err());
    assert!(matches!(refused, Some(CopyError::NotEmpty(_))), "{refused:?}");
    let newer = Ground::sqlite();
    let refused = apart(|| Loading::create(newer.location(), 1_000).err());
    let is_newer =
        matches!(&refused, Some(CopyError::Store(StoreError::NewerSchema { found: 1_000, .. })));
    assert!(is_newer, "{refused:?}");
    ground.open();
}

pub(crate) async fn a_load_that_is_not_finished_leaves_no_database(ground: Ground) {
    let from = Ground::sqlite();
    let store = from.open();
    say(&store, "c", "a fact").await;
    close(store).await;
    apart(|| {
        let mut source = Snapshot::open(from.location()).unwrap();
        let mut target = Loading::create(ground.location(), source.schema()).unwrap();
        let tables = source.tables();
        let feed = &mut |sink: greenroom_store::copy::Sink<'_>| {
            source.read(&tables[0], &mut |cells, _| sink(cells)).map(drop)
        };
        target.load(&tables[0], feed).unwrap();
    });
    let refused = apart(|| Snapshot::open(ground.location()).err());
    assert!(matches!(refused, Some(CopyError::NoDatabase(_))), "{refused:?}");
    // All but one table is no copy either.
    let refused = apart(|| {
        let source = Snapshot::open(from.location()).unwrap();
        let target = Loading::create(ground.location(), source.schema()).unwrap();
        target.finish(1, &mut |_, _| ()).err()
    });
    assert!(matches!(refused, Some(CopyError::OtherTable(_))), "{refused:?}");
    copy(&from, &ground);
    assert_eq!(dump(&ground), dump(&from));
}

pub(crate) async fn a_database_whose_facts_were_moved_is_not_opened(ground: Ground) {
    let store = ground.open();
    say(&store, "c", "a fact").await;
    let busy = apart(|| Snapshot::open_alone(ground.location()).err());
    assert!(matches!(busy, Some(CopyError::Store(StoreError::Lost(_)))), "{busy:?}");
    close(store).await;
    let to = Location::Postgres("postgres://me:secret@db/facts?password=x".to_owned());
    apart(|| mark_moved(Snapshot::open_alone(ground.location()).unwrap(), &to).unwrap());
    let Err(refused) = ground.try_open() else { panic!("it was opened") };
    assert_eq!(
        refused.to_string(),
        "the data of this database was moved to postgres://me@db/facts"
    );
    let refused = apart(|| Snapshot::open(ground.location()).err());
    assert!(matches!(refused, Some(CopyError::Store(StoreError::Moved { .. }))), "{refused:?}");
    let was = apart(|| clear_moved(ground.location()).unwrap());
    assert_eq!(was.as_deref(), Some("postgres://me@db/facts"));
    assert_eq!(rows(&ground.open()).await[0], ("events".to_owned(), 1));
}
