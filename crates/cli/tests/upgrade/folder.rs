//! A recorded folder, unpacked where a host of this version opens it.
//!
//! Invariant: what is checked in is never written to; every test has a copy of its own.

use crate::PROGRAM;
use greenroom_testkit::api::Api;
use greenroom_testkit::host::TestHost;
use greenroom_testkit::postgres::Database;
use greenroom_testkit::receiver::Receiver;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
}

/// One checked-in folder.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    pub(crate) kind: Kind,
    /// `tests/folders/X.Y.Z`
    pub(crate) path: PathBuf,
}

/// A host on a copy of it.
pub(crate) struct Opened {
    pub(crate) host: TestHost,
    pub(crate) api: Api,
    pub(crate) receiver: Receiver,
    /// What the earlier version answered.
    pub(crate) expected: Value,
    pub(crate) database: Option<Database>,
}

/// Every version that was recorded.
pub(crate) fn all(kind: Kind) -> Vec<Recorded> {
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/folders");
    let folders =
        folders.canonicalize().unwrap().read_dir().unwrap().map(|one| one.unwrap().path());
    let mut found: Vec<Recorded> = folders
        .filter(|path| path.join("greenroom.toml").exists() && path.join("sqlite.tar.xz").exists())
        .map(|path| Recorded { kind, path })
        .collect();
    found.sort_by(|one, other| one.path.cmp(&other.path));
    assert!(!found.is_empty(), "no folder is recorded");
    found
}

impl Recorded {
    /// Unpacks the folder and starts a host of this version on it.
    pub(crate) async fn open(&self) -> Opened {
        let mut opened = self.prepare().await;
        opened.host.start_again().await;
        opened
    }

    /// Everything but the start.
    pub(crate) async fn prepare(&self) -> Opened {
        eprintln!("{} on {:?}", self.path.display(), self.kind);
        let receiver = Receiver::start().await;
        let host = TestHost::prepare(PROGRAM, "");
        let folder = host.folder().to_owned();
        for name in ["player", "shed"] {
            std::fs::create_dir(folder.join(name)).unwrap();
        }
        std::fs::copy(self.path.join("script.toml"), folder.join("script.toml")).unwrap();
        let archive = match self.kind {
            Kind::Sqlite => "sqlite.tar.xz",
            Kind::Postgres => "postgres.tar.xz",
        };
        unpack(&self.path.join(archive), &folder);
        let database = match self.kind {
            Kind::Sqlite => None,
            Kind::Postgres => Some(restored(folder.join("dump.sql")).await),
        };
        let store = match &database {
            None => format!("sqlite:{}/data/greenroom.db", folder.display()),
            Some(database) => database.url.clone(),
        };
        host.configure(&self.config(&store, &receiver));
        let expected = std::fs::read(folder.join("expected.json")).unwrap();
        let expected = serde_json::from_slice(&expected).unwrap();
        let api = host.api();
        Opened { host, api, receiver, expected, database }
    }

    /// The configuration of that version, with the places of this one.
    fn config(&self, store: &str, receiver: &Receiver) -> String {
        let template = std::fs::read_to_string(self.path.join("greenroom.toml")).unwrap();
        let runner = self.path.join("runner.py");
        let url = receiver.url();
        template
            .replace("@store@", store)
            .replace("@runner@", runner.to_str().unwrap())
            .replace("@receiver@", url.strip_suffix("/hook").unwrap())
            .replace("@expires_s@", "604800")
    }
}

impl Opened {
    pub(crate) fn name(&self, name: &str) -> &Value {
        self.expected["names"].get(name).unwrap_or_else(|| panic!("nothing is called {name}"))
    }

    pub(crate) fn run_id(&self, name: &str) -> &str {
        self.name(name)["run_id"].as_str().unwrap()
    }

    /// Waits until everything that was open has come to its end.
    pub(crate) async fn settle(&self) {
        for run in self.api.runs().await {
            self.api.ended_run(&run.run_id).await;
        }
    }
}

/// With the Python that runners of tests need anyway: not every machine has `xz`.
#[expect(clippy::disallowed_methods, reason = "a test unpacks what it starts from")]
fn unpack(archive: &Path, into: &Path) {
    let mut command = Command::new("python3");
    command.args(["-m", "tarfile", "-e"]).arg(archive).arg(into);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A database that the SQL at this path has filled.
async fn restored(dump: PathBuf) -> Database {
    let restore = move || {
        let database = Database::fresh();
        let sql = std::fs::read_to_string(dump).unwrap();
        greenroom_testkit::postgres::execute(&database.url, &sql);
        database
    };
    tokio::task::spawn_blocking(restore).await.unwrap()
}
