//! A database that was made new and one that was upgraded from the first version are equal.

use super::*;
use crate::drivers::{PostgresDriver, SqliteDriver};
use crate::store::Sync;
use greenroom_testkit::postgres::Database;

/// Everything about tables, columns and indexes that two databases can differ in, without the words of the scripts.
const SQLITE_CATALOG: &str = "
    SELECT 'table ' || name || ' ' || type || ' ' || wr || strict FROM pragma_table_list
        WHERE schema = 'main'
    UNION ALL
    SELECT 'column ' || t.name || ' ' || c.cid || ' ' || c.name || ' ' || c.type || ' ' || c.\"notnull\"
        || ' ' || coalesce(c.dflt_value, '-') || ' ' || c.pk
        FROM pragma_table_list AS t, pragma_table_xinfo(t.name) AS c WHERE t.schema = 'main'
    UNION ALL
    SELECT 'index ' || t.name || ' ' || i.name || ' ' || i.\"unique\" || i.partial || ' ' || x.seqno || ' '
        || coalesce(x.name, '-') || ' ' || x.desc || ' ' || x.coll
        FROM pragma_table_list AS t, pragma_index_list(t.name) AS i, pragma_index_xinfo(i.name) AS x
        WHERE t.schema = 'main'
    UNION ALL
    SELECT 'where ' || name || ' ' || substr(sql, instr(sql, 'WHERE')) FROM sqlite_master
        WHERE type = 'index' AND instr(sql, 'WHERE') > 0
    UNION ALL
    SELECT 'virtual ' || sql FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%'";

const POSTGRES_CATALOG: &str = "
    SELECT concat_ws(' ', 'column', table_name, ordinal_position, column_name, data_type, udt_name, is_nullable,
        coalesce(column_default, '-'), coalesce(collation_name, '-'), is_identity)
        FROM information_schema.columns WHERE table_schema = current_schema()
    UNION ALL
    SELECT 'index ' || indexdef FROM pg_indexes WHERE schemaname = current_schema()
    UNION ALL
    SELECT concat_ws(' ', 'constraint', conrelid::regclass, conname, pg_get_constraintdef(oid))
        FROM pg_constraint WHERE connamespace = current_schema()::regnamespace
    UNION ALL
    SELECT concat_ws(' ', 'statistics', attrelid::regclass, attname, attstattarget) FROM pg_attribute
        WHERE attrelid::regclass::text = 'search' AND attnum > 0";

fn catalog(driver: &mut dyn Driver, sql: &'static str) -> Vec<String> {
    let rows = driver.query(sql, &[]).unwrap();
    let words = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut rows: Vec<String> =
        rows.into_iter().map(|mut row| words(row.text().unwrap())).collect();
    rows.sort();
    rows
}

fn assert_upgraded_equals_new(
    mut upgraded: Box<dyn Driver>,
    mut new: Box<dyn Driver>,
    sql: &'static str,
) {
    create_at(&mut *upgraded, 1).unwrap();
    prepare(&mut *upgraded).unwrap();
    prepare(&mut *new).unwrap();
    let expected = catalog(&mut *new, sql);
    assert!(expected.len() > 200, "{expected:#?}");
    assert_eq!(catalog(&mut *upgraded, sql), expected);
    for driver in [&mut upgraded, &mut new] {
        let version = version(&mut **driver).unwrap();
        assert_eq!(version, Some(SchemaVersion { found: newest(), known: newest() }));
    }
}

#[test]
fn an_upgraded_sqlite_database_equals_a_new_one() {
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str| -> Box<dyn Driver> {
        Box::new(SqliteDriver::writer(&folder.path().join(name), Sync::Normal).unwrap())
    };
    assert_upgraded_equals_new(open("upgraded.db"), open("new.db"), SQLITE_CATALOG);
}

#[test]
fn an_upgraded_postgres_database_equals_a_new_one() {
    let (upgraded, new) = (Database::fresh(), Database::fresh());
    let open = |database: &Database| -> Box<dyn Driver> {
        Box::new(PostgresDriver::writer(&database.url).unwrap())
    };
    assert_upgraded_equals_new(open(&upgraded), open(&new), POSTGRES_CATALOG);
}

/// Runs of version 3: with an error, with one whose code PostgreSQL cannot keep as it is, and without.
const RUNS_OF_VERSION_3: &str = r#"
    INSERT INTO runs (workspace_id, run_id, event_seq, event_id, agent, runner_id, queue, status, attempt, epoch,
        on_interrupt, deadline_ms, last_seq, reserved_seq, effects, cancel_requested, steers, created_at, error)
    SELECT 'w', column1, 1, 'e', 'a', 'r', 'serial', 'failed', 1, 1, 'fail', 1, 1, 1, 0, 0, 0, 1, column2
    FROM (VALUES ('1', '{"code":"desk.\"closed\"","message":"{\"code\":\"no\"}","retryable":false}'),
        ('2', '{"code":"nul\u0000","message":"\u0000","retryable":false}'), ('3', NULL)) AS old"#;

#[test]
fn the_codes_of_older_errors_are_filled_in() {
    let (folder, database) = (tempfile::tempdir().unwrap(), Database::fresh());
    let sqlite = SqliteDriver::writer(&folder.path().join("old.db"), Sync::Normal).unwrap();
    let postgres = PostgresDriver::writer(&database.url).unwrap();
    let drivers: [Box<dyn Driver>; 2] = [Box::new(sqlite), Box::new(postgres)];
    for mut driver in drivers {
        create_at(&mut *driver, 3).unwrap();
        driver.run_script(RUNS_OF_VERSION_3).unwrap();
        prepare(&mut *driver).unwrap();
        let rows = driver.query("SELECT error_code FROM runs ORDER BY run_id", &[]).unwrap();
        let codes: Vec<_> = rows.into_iter().map(|mut row| row.opt_text().unwrap()).collect();
        let expected = [Some("desk.\"closed\"".to_owned()), Some("nul\u{fffd}".to_owned()), None];
        assert_eq!(codes, expected);
    }
}

/// A record of version 4 that is shared.
const RECORDS_OF_VERSION_4: &str = r#"
    INSERT INTO records (workspace_id, module, record_id, owner, version, updated_at, body)
        VALUES ('w', 'calendar', 'rec_1', 'ann', 3, 1, '{"title":"dinner"}');
    INSERT INTO record_links (workspace_id, module, record_id, actor, status, updated_at)
        VALUES ('w', 'calendar', 'rec_1', 'bob', 'accepted', 2)"#;

#[test]
fn older_records_and_invitations_keep_their_owner() {
    let (folder, database) = (tempfile::tempdir().unwrap(), Database::fresh());
    let sqlite = SqliteDriver::writer(&folder.path().join("old.db"), Sync::Normal).unwrap();
    let postgres = PostgresDriver::writer(&database.url).unwrap();
    let drivers: [Box<dyn Driver>; 2] = [Box::new(sqlite), Box::new(postgres)];
    for mut driver in drivers {
        create_at(&mut *driver, 4).unwrap();
        driver.run_script(RECORDS_OF_VERSION_4).unwrap();
        prepare(&mut *driver).unwrap();
        let sql = "SELECT source || '|' || owner || '|' || record_id || '|' || body FROM records
            UNION ALL SELECT source || '|' || owner || '|' || record_id || '|' || actor FROM record_links";
        let rows = driver.query(sql, &[]).unwrap();
        let rows: Vec<String> = rows.into_iter().map(|mut row| row.text().unwrap()).collect();
        assert_eq!(rows, [r#"|ann|rec_1|{"title":"dinner"}"#, "|ann|rec_1|bob"]);
    }
}

/// Facts of version 4 in a conversation with a thread `t` of a bot `b`, and in one without either.
const FACTS_OF_VERSION_4: &str = r#"
    INSERT INTO events (workspace_id, source, event_id, body_hash, event_type, conversation_id, conversation_seq,
        run_id, body, created_at)
    SELECT 'w', column1, column2, {empty}, 'message.received', column3, column4, column5, column6, 1
    FROM (VALUES
        ('api', 'e1', 'c', 1, 'r1', '{"trigger":"api","event":{"bot_id":"b","thread_id":"t","data":{"x":"\u0000"}}}'),
        ('api', 'e2', 'c', 2, 'r2', '{"trigger":"api","event":{"data":{"thread_id":"no"}}}'),
        ('api', 'e3', 'd', 1, 'r3', '{"trigger":"api","event":{}}'),
        ('host', 'r1.1', 'c', NULL, 'r1', '{"run_id":"r1"}')) AS old;
    INSERT INTO runs (workspace_id, run_id, event_seq, event_id, agent, runner_id, conversation_id, queue, status,
        attempt, epoch, on_interrupt, deadline_ms, last_seq, reserved_seq, effects, cancel_requested, steers, created_at)
    SELECT 'w', run_id, seq, event_id, 'a', 'r', conversation_id, 'serial', 'completed', 1, 1, 'fail', 1, 1, 1, 0, 0, 0, 1
    FROM events WHERE source = 'api';
    INSERT INTO transcript (workspace_id, conversation_id, event_seq, seq, item_id, thread_id, role, event_id, body,
        created_at)
    SELECT 'w', column1, column2, column3, column4, column5, 'user', column6, '{}', 1
    FROM (VALUES ('c', 1, 1, 'i1', 't', 'e1'), ('c', 2, 2, 'i2', NULL, 'e2'), ('d', 1, 1, 'i3', NULL, 'e3'),
        ('c', 3, 3, 'i4', 'gone', 'removed')) AS old;
    INSERT INTO artifacts (workspace_id, artifact_id, sha256, size, mime_type, conversation_id, run_id, metadata,
        created_at)
    SELECT 'w', column1, 'h', 1, 'm', 'c', column2, '{}', 1
    FROM (VALUES ('a1', 'r1'), ('a2', 'r2'), ('a3', NULL)) AS old;
    INSERT INTO state (workspace_id, owner, name, size, version, updated_at, value)
    SELECT 'w', column1, 'k', 2, 1, 1, '1'
    FROM (VALUES ('["conversation","a","r","c"]'), ('["conversation","a","r","d"]'), ('["actor","a","r","c"]')) AS old;
    INSERT INTO usage (workspace_id, kind, owner, bytes, entries)
    SELECT workspace_id, 'state', owner, 2, 1 FROM state"#;

#[test]
fn older_facts_get_their_session_and_every_session_a_copy_of_the_state() {
    let (folder, database) = (tempfile::tempdir().unwrap(), Database::fresh());
    let sqlite = SqliteDriver::writer(&folder.path().join("old.db"), Sync::Normal).unwrap();
    let postgres = PostgresDriver::writer(&database.url).unwrap();
    let drivers: [(Box<dyn Driver>, &str); 2] =
        [(Box::new(sqlite), "x''"), (Box::new(postgres), "''::bytea")];
    for (mut driver, empty) in drivers {
        create_at(&mut *driver, 4).unwrap();
        driver.run_script(&FACTS_OF_VERSION_4.replace("{empty}", empty)).unwrap();
        prepare(&mut *driver).unwrap();
        let mut texts = |sql: &'static str| -> Vec<String> {
            let rows = driver.query(sql, &[]).unwrap().into_iter();
            rows.map(|mut row| row.text().unwrap().replace('\u{1f}', "|")).collect()
        };
        let events = texts("SELECT event_id || ' ' || session FROM events ORDER BY event_id");
        assert_eq!(events, ["e1 b|t", "e2 ", "e3 ", "r1.1 b|t"]);
        let runs = texts("SELECT run_id || ' ' || session FROM runs ORDER BY run_id");
        assert_eq!(runs, ["r1 b|t", "r2 ", "r3 "]);
        let items = texts("SELECT item_id || ' ' || session FROM transcript ORDER BY item_id");
        assert_eq!(items, ["i1 b|t", "i2 ", "i3 ", "i4 |gone"]);
        let files =
            texts("SELECT artifact_id || ' ' || session FROM artifacts ORDER BY artifact_id");
        assert_eq!(files, ["a1 b|t", "a2 ", "a3 "]);
        let owners = [
            r#"["actor","a","r","c"]"#,
            r#"["conversation","a","r","c"]"#,
            r#"["conversation","a","r","c"]b|t"#,
            r#"["conversation","a","r","d"]"#,
        ];
        assert_eq!(texts("SELECT owner FROM state WHERE value = '1' ORDER BY owner"), owners);
        assert_eq!(texts("SELECT owner FROM usage WHERE bytes = 2 ORDER BY owner"), owners);
    }
}

/// A migration that has landed never changes: data folders have run it.
#[test]
fn migrations_are_frozen() {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = |script: &str| format!("{:016x}", script.bytes().fold(0xcbf2_9ce4_8422_2325, step));
    let frozen = [
        "fa5e3c0987bef090",
        "2393374cc4fcd657",
        "ec0d95f947644371",
        "c05ca32bb4f5743e",
        "d9682685daa31283",
        "6a7a729f49f0d6e0",
    ];
    let hashes: Vec<String> = MIGRATIONS.iter().copied().map(hash).collect();
    assert_eq!(hashes, frozen, "a new migration adds its hash; one that has landed keeps its own");
}
