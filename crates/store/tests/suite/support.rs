//! Fixtures: a database per case, and short forms of commands.

use greenroom_protocol::{Role, RunStatus};
use greenroom_store::chunk::{ChunkBuilder, Delta};
use greenroom_store::commands::{
    AcceptEvent, Accepted, Applied, ApplyResults, NewRun, RunFence, Terminal,
};
use greenroom_store::types::{Chunk, GrantDoc, NewItem, OnInterrupt, Queue, ResultRecord, RunRow};
use greenroom_store::{Location, Options, SchemaVersion, Store, StoreError, Sync, reads};
use greenroom_testkit::postgres::Database;
use std::path::Path;

pub(crate) const W: &str = "default";

/// A database that can be opened again and again.
pub(crate) struct Ground {
    options: Options,
    _folder: Option<tempfile::TempDir>,
    _database: Option<Database>,
}

impl Ground {
    pub(crate) fn sqlite() -> Ground {
        Self::sqlite_with(Sync::Full)
    }

    pub(crate) fn sqlite_with(sync: Sync) -> Ground {
        let folder = tempfile::tempdir().unwrap();
        let options = sqlite_options(&folder.path().join("greenroom.db"), sync);
        Ground { options, _folder: Some(folder), _database: None }
    }

    pub(crate) fn postgres() -> Ground {
        let database = std::thread::spawn(Database::fresh).join().unwrap();
        let options = postgres_options(&database.url);
        Ground { options, _folder: None, _database: Some(database) }
    }

    /// The file of an SQLite database.
    pub(crate) fn path(&self) -> &Path {
        match &self.options.location {
            Location::Sqlite(path) => path,
            Location::Postgres(_) => panic!("PostgreSQL has no file"),
        }
    }

    pub(crate) fn location(&self) -> &Location {
        &self.options.location
    }

    pub(crate) fn try_open(&self) -> Result<Store, StoreError> {
        Store::open(&self.options)
    }

    pub(crate) fn version(&self) -> Result<Option<SchemaVersion>, StoreError> {
        Store::version(&self.options)
    }

    pub(crate) fn open(&self) -> Store {
        self.try_open().unwrap()
    }

    /// Changes the database behind the store's back.
    pub(crate) fn execute(&self, sql: &str) {
        match &self.options.location {
            Location::Sqlite(path) => {
                rusqlite::Connection::open(path).unwrap().execute_batch(sql).unwrap();
                // What another program writes would look like damage.
                for suffix in ["-mark", "-sums"] {
                    let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
                }
            }
            Location::Postgres(url) => std::thread::scope(|scope| {
                let connect = || postgres::Client::connect(url, postgres::NoTls).unwrap();
                scope.spawn(move || connect().batch_execute(sql).unwrap()).join().unwrap();
            }),
        }
    }
}

pub(crate) fn sqlite_options(path: &Path, sync: Sync) -> Options {
    Options { location: Location::Sqlite(path.to_owned()), sync }
}

pub(crate) fn postgres_options(url: &str) -> Options {
    Options { location: Location::Postgres(url.to_owned()), sync: Sync::Full }
}

/// An event `name` with a serial run `run-NAME` and a transcript item `item-NAME`.
pub(crate) fn event(conversation: &str, name: &str) -> AcceptEvent {
    AcceptEvent {
        workspace_id: W.to_owned(),
        source: "api".to_owned(),
        limited_to: None,
        event_id: name.to_owned(),
        body_hash: [7; 32],
        event_type: "message.received".to_owned(),
        conversation_id: Some(conversation.to_owned()),
        body: format!(r#"{{"input":{{"text":"{name}"}}}}"#),
        run: Some(NewRun {
            run_id: format!("run-{name}"),
            agent: "assistant".to_owned(),
            runner_id: "plugin:greenroom/echo/default".to_owned(),
            queue: Queue::Serial,
            replaces: greenroom_protocol::Replaces::default(),
            lane_length_max: 100,
            grant: Some(grant("g1")),
            on_interrupt: OnInterrupt::Retry,
            deadline_ms: 60_000,
            surface: None,
            reserved_seq: 64,
            epoch: 1,
            steers: false,
            steering_length_max: Some(3),
        }),
        item: Some(item(&format!("item-{name}"), "user", name)),
        artifacts: Vec::new(),
        uploads: Vec::new(),
        sent_by: None,
        now_ms: 1_000,
    }
}

pub(crate) fn grant(hash: &str) -> GrantDoc {
    GrantDoc { hash: hash.to_owned(), body: format!(r#"{{"grant":"{hash}"}}"#) }
}

pub(crate) fn with_queue(mut event: AcceptEvent, queue: Queue) -> AcceptEvent {
    event.run.as_mut().unwrap().queue = queue;
    event
}

pub(crate) fn with_lane_max(mut event: AcceptEvent, lane_length_max: i64) -> AcceptEvent {
    event.run.as_mut().unwrap().lane_length_max = lane_length_max;
    event
}

pub(crate) fn item(item_id: &str, role: &'static str, text: &str) -> NewItem {
    NewItem {
        item_id: item_id.to_owned(),
        thread_id: None,
        session: String::new(),
        role,
        event_id: None,
        run_id: None,
        actor_id: None,
        text: Some(text.to_owned()),
        body: "{}".to_owned(),
    }
}

/// A run in its first attempt and epoch.
pub(crate) fn fence(run_id: &str) -> RunFence {
    RunFence { workspace_id: W.to_owned(), run_id: run_id.to_owned(), attempt: 1, epoch: 1 }
}

/// Results of a run in its own attempt and epoch that change nothing yet.
pub(crate) fn results(run: &RunRow) -> ApplyResults {
    ApplyResults {
        fence: run.fence(),
        epoch_now: run.epoch,
        conversation_id: run.conversation_id.clone(),
        chunk: None,
        reserved_seq: 0,
        effects: false,
        isolation: None,
        state: Vec::new(),
        items: Vec::new(),
        deliveries: Vec::new(),
        artifacts: Vec::new(),
        approvals: Vec::new(),
        approvals_pending_max: 10,
        diagnostics: Vec::new(),
        log: Vec::new(),
        terminal: None,
        now_ms: 2_000,
    }
}

/// The end of a run as `run.completed` with the given number.
pub(crate) fn completed(run: &RunRow, sequence: i64) -> ApplyResults {
    let terminal = Terminal { status: RunStatus::Completed, error: None, usage: None };
    ApplyResults {
        chunk: Some(result_chunk(sequence, "run.completed", "{}")),
        terminal: Some(terminal),
        ..results(run)
    }
}

pub(crate) fn result_chunk(sequence: i64, kind: &'static str, data: &str) -> Chunk {
    let mut builder = ChunkBuilder::default();
    builder.push(&ResultRecord {
        sequence,
        kind: kind.into(),
        data: serde_json::value::RawValue::from_string(data.to_owned()).unwrap(),
        at_ms: 1,
        runner_sequence: None,
        runner_timestamp: None,
        usage: None,
    });
    builder.take().unwrap()
}

/// One delta per text, numbered from `first` on.
pub(crate) fn delta_chunk(first: i64, texts: &[&str]) -> Chunk {
    let mut builder = ChunkBuilder::default();
    for (sequence, text) in (first..).zip(texts) {
        let (role, message_id, at_ms) = (Role::Assistant, None, 1);
        builder.push_delta(Delta {
            sequence,
            role,
            message_id,
            text,
            at_ms,
            runner_sequence: None,
            runner_timestamp: None,
        });
    }
    builder.take().unwrap()
}

/// Accepts an event that has to be new and returns its run.
pub(crate) async fn accept(store: &Store, event: AcceptEvent) -> RunRow {
    match store.commit(event).await.unwrap() {
        Accepted::New { run: Some(run), .. } => run,
        other => panic!("not a new run: {other:?}"),
    }
}

/// Applies results that must not be stale and returns the id of the run that started with them.
pub(crate) async fn apply(store: &Store, command: ApplyResults) -> Option<String> {
    match store.commit(command).await.unwrap() {
        Applied::Done { next, .. } => next.map(|run| run.run_id),
        Applied::Stale => panic!("stale"),
    }
}

pub(crate) async fn run(store: &Store, run_id: &str) -> RunRow {
    let id = run_id.to_owned();
    let found = store.read(move |tx| reads::runs::get(tx, W, &id)).await.unwrap();
    found.unwrap_or_else(|| panic!("no run `{run_id}`"))
}

pub(crate) async fn status(store: &Store, run_id: &str) -> RunStatus {
    run(store, run_id).await.status
}

/// How many rows each table holds, `meta` left out.
pub(crate) async fn rows(store: &Store) -> Vec<(String, i64)> {
    let count = |tx: &mut dyn greenroom_store::sql::Tx| {
        let found = tx.query(
            "SELECT 'events', count(*) FROM events
             UNION ALL SELECT 'conversations', count(*) FROM conversations
             UNION ALL SELECT 'runs', count(*) FROM runs
             UNION ALL SELECT 'grants', count(*) FROM grants
             UNION ALL SELECT 'results', count(*) FROM results
             UNION ALL SELECT 'diagnostics', count(*) FROM diagnostics
             UNION ALL SELECT 'transcript', count(*) FROM transcript
             UNION ALL SELECT 'state', count(*) FROM state
             UNION ALL SELECT 'outbox', count(*) FROM outbox
             UNION ALL SELECT 'approvals', count(*) FROM approvals
             UNION ALL SELECT 'steering', count(*) FROM steering",
            &[],
        )?;
        found.into_iter().map(|mut row| Ok((row.text()?, row.int()?))).collect()
    };
    store.read(count).await.unwrap()
}

/// The transcript of a conversation as `seq role text`.
pub(crate) async fn transcript(store: &Store, conversation: &str) -> Vec<String> {
    use reads::conversations::{Span, history};
    let conversation = conversation.to_owned();
    let span = Span::whole(reads::Direction::Forward, 10_000);
    let items = store.read(move |tx| history(tx, W, &conversation, &span)).await.unwrap();
    let line = |item: &greenroom_store::types::ItemRow| {
        format!("{} {} {}", item.seq, item.role, item.text.as_deref().unwrap_or("-"))
    };
    items.iter().map(line).collect()
}

/// Everything an owner has.
pub(crate) fn all_state() -> reads::state::StateSpan {
    let (prefix, after) = (String::new(), String::new());
    reads::state::StateSpan { prefix, after, values_max: 100, bytes_max: i64::MAX }
}
