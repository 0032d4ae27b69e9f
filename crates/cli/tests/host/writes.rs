//! The host is killed at random moments while a runner writes state and storage as fast as it can.
//!
//! `GREENROOM_SEED` brings a failure's choices back.

use crate::stage::{PATIENCE, event, runners};
use crate::{PROGRAM, setting};
use greenroom_store::sql::Tx;
use greenroom_store::{Location, Options, Store, StoreError, Sync};
use greenroom_testkit::host::TestHost;
use greenroom_testkit::postgres::Database;
use greenroom_testkit::random::Random;
use greenroom_testkit::wait::wait_for;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const KILLS: u64 = 6;
const KILLS_ON_POSTGRESQL: u64 = 3;
/// Most milliseconds that a host lives once its runner writes.
const LIFE_MS_MAX: u64 = 400;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_write_survives_a_kill_and_every_value_is_whole() {
    survive(None, KILLS).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_write_survives_a_kill_on_postgresql() {
    let database = tokio::task::spawn_blocking(Database::fresh).await.unwrap();
    survive(Some(&database.url), KILLS_ON_POSTGRESQL).await;
}

async fn survive(postgres: Option<&str>, kills: u64) {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap();
    let seed = setting("GREENROOM_SEED").unwrap_or(now.as_secs());
    eprintln!("GREENROOM_SEED={seed}");
    let mut random = Random::from_seed(seed);
    let mut host = TestHost::prepare(PROGRAM, &config(postgres));
    let notes = host.folder().join("scribe");
    std::fs::create_dir(&notes).unwrap();
    for life in 1..=kills {
        host.start_again().await;
        let before = Notes::read(&notes).kept;
        let written = event("scribe", &format!("life-{life}"), &life.to_string());
        host.api().send_event(&written).await;
        wait_for("the runner to write", PATIENCE, async || {
            (Notes::read(&notes).kept > before + 20).then_some(())
        })
        .await;
        // The moment is what the seed decides; nothing is waited for.
        tokio::time::sleep(Duration::from_millis(random.below(LIFE_MS_MAX))).await;
        host.kill();
    }
    // Recovered and collected; then nobody else has the store.
    host.start_again().await;
    assert!(host.stop().await.success(), "{}", host.log());
    let location = match postgres {
        Some(url) => Location::Postgres(url.to_owned()),
        None => Location::Sqlite(host.data().join("greenroom.db")),
    };
    let store = Store::open(&Options { location, sync: Sync::Normal }).unwrap();
    let stored = store.read(|tx| Stored::read(tx)).await.unwrap();
    store.close();
    check(&Notes::read(&notes), stored);
}

fn config(postgres: Option<&str>) -> String {
    let url = postgres.map(|url| format!("url = \"{url}\"")).unwrap_or_default();
    let scribe = runners().join("scribe.py");
    format!(
        r#"
[store]
sync = "normal"
{url}
[limits]
calls_per_s_run = 10_000_000
calls_per_s_plugin = 10_000_000
[runners.scribe]
command = ["python3", "{}"]
dir = "scribe"
[agents.scribe]
runner = "plugin:test/scribe/main"
events = []
"#,
        scribe.display()
    )
}

/// What the runner wrote down, outside of the host.
#[derive(Default)]
struct Notes {
    kept: usize,
    tried: usize,
    /// By key: the last write that was acknowledged, if any, and those that were tried after it.
    possible: BTreeMap<String, Vec<Option<u64>>>,
}

impl Notes {
    fn read(folder: &Path) -> Self {
        let mut notes = Notes::default();
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        for log in files.filter(|file| file.extension().is_some_and(|it| it == "log")) {
            if log.ends_with("wire.log") {
                continue;
            }
            let text = std::fs::read_to_string(log).unwrap();
            // The last line may be on its way.
            let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
            whole.lines().for_each(|line| notes.take(line));
        }
        notes
    }

    fn take(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        let [word, key, number] = words[..] else { panic!("{line}") };
        let number = Some(number.parse().unwrap());
        // Nothing at all, before the first.
        let possible = self.possible.entry(key.to_owned()).or_insert_with(|| vec![None]);
        match word {
            "tried" => {
                self.tried += 1;
                possible.push(number);
            }
            "kept" => {
                self.kept += 1;
                *possible = vec![number];
            }
            _ => panic!("{line}"),
        }
    }
}

/// What the store holds.
#[derive(Default)]
struct Stored {
    values: BTreeMap<String, String>,
    /// By kind and owner: bytes and entries, as they are and as they are counted.
    summed: BTreeMap<(String, String), (usize, usize)>,
    counted: BTreeMap<(String, String), (usize, usize)>,
    /// Calls that have a record.
    recorded: usize,
}

impl Stored {
    fn read(tx: &mut dyn Tx) -> Result<Self, StoreError> {
        let mut stored = Stored::default();
        for mut row in tx.query("SELECT owner, name, size, value FROM state", &[])? {
            let (owner, name, size, value) = (row.text()?, row.text()?, row.int()?, row.text()?);
            let taken = name.len() + value.len();
            assert_eq!(size, i64::try_from(taken).unwrap(), "{name}");
            stored.take(&[("state", &owner)], &name, taken);
            stored.values.insert(name, serde_json::from_str(&value).unwrap());
        }
        for mut row in tx.query("SELECT owner, name, size, value FROM storage", &[])? {
            let (owner, name, size, value) = (row.text()?, row.text()?, row.int()?, row.blob()?);
            assert_eq!(size, i64::try_from(value.len()).unwrap(), "{name}");
            let taken = name.len() + value.len();
            stored.take(&[("storage", &owner), ("storage", "")], &name, taken);
            stored.values.insert(name, String::from_utf8(value).unwrap());
        }
        for mut row in tx.query("SELECT kind, owner, bytes, entries FROM usage", &[])? {
            let owner = (row.text()?, row.text()?);
            let sums = [row.int()?, row.int()?].map(|sum| usize::try_from(sum).unwrap());
            stored.counted.insert(owner, sums.into());
        }
        for mut row in tx.query("SELECT calls FROM audit", &[])? {
            stored.recorded += usize::try_from(row.int()?).unwrap();
        }
        Ok(stored)
    }

    fn take(&mut self, owners: &[(&str, &str)], name: &str, taken: usize) {
        assert!(!self.values.contains_key(name), "{name} is there twice");
        for (kind, owner) in owners {
            let owner = (kind.to_string(), owner.to_string());
            let (bytes, entries) = self.summed.entry(owner).or_default();
            *bytes += taken;
            *entries += 1;
        }
    }
}

fn check(notes: &Notes, mut stored: Stored) {
    eprintln!("{} writes tried, {} acknowledged", notes.tried, notes.kept);
    for (key, possible) in &notes.possible {
        let found = stored.values.remove(key);
        let fits = possible.iter().any(|number| found == value(*number));
        let start = found.as_ref().map(|text| text.trim_end_matches('.'));
        assert!(fits, "{key} holds {start:?}, possible are {possible:?}");
    }
    assert_eq!(stored.values, BTreeMap::new(), "nobody wrote this");
    stored.counted.retain(|_, sums| *sums != (0, 0));
    assert_eq!(stored.counted, stored.summed, "what is counted is what is there");
    // Each acknowledged write has its record, and nothing has one that was not even tried.
    let fits = (notes.kept..=notes.tried).contains(&stored.recorded);
    assert!(fits, "{} records, {} to {}", stored.recorded, notes.kept, notes.tried);
}

/// What a write leaves: every seventh takes its key away.
fn value(number: Option<u64>) -> Option<String> {
    let number = number.filter(|number| !number.is_multiple_of(7))?;
    let dots = usize::try_from(number * 7919 % 20_000).unwrap();
    Some(format!("{number}{}", ".".repeat(dots)))
}
