//! How many runs the store takes per second: `cargo run --release -p greenroom-store --example throughput`.
//!
//! Each run is one accepted event and one batch of results with its terminal, as the host writes them. An
//! argument is a PostgreSQL URL; without one a SQLite file in a temporary folder is used, in both modes.

use greenroom_protocol::RunStatus;
use greenroom_store::chunk::ChunkBuilder;
use greenroom_store::commands::{AcceptEvent, Accepted, ApplyResults, NewRun, Terminal};
use greenroom_store::types::{GrantDoc, NewItem, OnInterrupt, Queue, ResultRecord, RunRow};
use greenroom_store::{Location, Options, Store, Sync};
use std::time::{Duration, Instant};

const TIME: Duration = Duration::from_secs(3);

fn main() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let folder = tempfile::tempdir().expect("a folder");
    for sync in [Sync::Normal, Sync::Full] {
        let location = match std::env::args().nth(1) {
            Some(url) => Location::Postgres(url),
            None => Location::Sqlite(folder.path().join(format!("{sync:?}.db"))),
        };
        let store = Store::open(&Options { location, sync }).expect("an open store");
        for senders in [1, 64] {
            let started = Instant::now();
            let sending = (0..senders).map(|sender| send(&store, senders, sender, started));
            let counts = runtime.block_on(futures_util::future::join_all(sending));
            let rate = f64::from(counts.iter().sum::<u32>()) / started.elapsed().as_secs_f64();
            eprintln!("{sync:?}, {senders} senders: {rate:.0} runs/s");
        }
        store.close();
    }
}

async fn send(store: &Store, senders: u32, sender: u32, started: Instant) -> u32 {
    let mut count = 0;
    while started.elapsed() < TIME {
        let name = format!("{}-{senders}-{sender}-{count:08}", store.epoch());
        let accepted = store.commit(event(&format!("c{sender}"), &name)).await;
        let Ok(Accepted::New { run: Some(run), .. }) = accepted else {
            panic!("not accepted: {accepted:?}")
        };
        store.commit(end(&run)).await.expect("applied results");
        count += 1;
    }
    count
}

fn event(conversation: &str, name: &str) -> AcceptEvent {
    AcceptEvent {
        workspace_id: "default".to_owned(),
        source: "api".to_owned(),
        limited_to: None,
        event_id: name.to_owned(),
        body_hash: [7; 32],
        event_type: "message.received".to_owned(),
        conversation_id: Some(conversation.to_owned()),
        body: format!(r#"{{"event_type":"message.received","input":{{"text":"{name}"}}}}"#),
        run: Some(NewRun {
            run_id: format!("run-{name}"),
            agent: "assistant".to_owned(),
            runner_id: "plugin:greenroom/echo/default".to_owned(),
            queue: Queue::Serial,
            replaces: greenroom_protocol::Replaces::default(),
            lane_length_max: 100,
            grant: Some(GrantDoc { hash: "g1".to_owned(), body: "{}".to_owned() }),
            on_interrupt: OnInterrupt::Fail,
            deadline_ms: 60_000,
            surface: None,
            reserved_seq: 64,
            epoch: 1,
            steers: false,
            steering_length_max: None,
        }),
        item: Some(item(name, "user")),
        artifacts: Vec::new(),
        uploads: Vec::new(),
        sent_by: None,
        now_ms: 1_000,
    }
}

fn item(name: &str, role: &'static str) -> NewItem {
    NewItem {
        item_id: format!("{role}-{name}"),
        thread_id: None,
        session: String::new(),
        role,
        event_id: Some(name.to_owned()),
        run_id: None,
        actor_id: None,
        text: Some("hello".to_owned()),
        body: "{}".to_owned(),
    }
}

fn end(run: &RunRow) -> ApplyResults {
    let mut builder = ChunkBuilder::default();
    for (sequence, kind) in (1..).zip(["message.delta", "message.completed", "run.completed"]) {
        builder.push(&ResultRecord {
            sequence,
            kind: kind.into(),
            data: serde_json::value::RawValue::NULL.to_owned(),
            at_ms: 1,
            runner_sequence: None,
            runner_timestamp: None,
            usage: None,
        });
    }
    ApplyResults {
        fence: run.fence(),
        epoch_now: run.epoch,
        conversation_id: run.conversation_id.clone(),
        chunk: builder.take(),
        reserved_seq: 0,
        effects: false,
        isolation: None,
        state: Vec::new(),
        items: vec![item(&run.event_id, "assistant")],
        deliveries: Vec::new(),
        artifacts: Vec::new(),
        approvals: Vec::new(),
        approvals_pending_max: 0,
        diagnostics: Vec::new(),
        log: Vec::new(),
        terminal: Some(Terminal { status: RunStatus::Completed, error: None, usage: None }),
        now_ms: 2_000,
    }
}
