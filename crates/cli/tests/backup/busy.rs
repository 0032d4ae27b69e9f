//! A backup of a host that is written to all the time: what was acknowledged before the command is in it.

use crate::scene::{back_up, contact, contact_of, event, prepare, restore, run, upload};
use crate::setting;
use greenroom_testkit::api::Api;
use greenroom_testkit::http::Request;
use serde_json::Value;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::task::JoinSet;

/// What a host has acknowledged, in order.
#[derive(Default)]
struct Acknowledged {
    /// Ids of events with their runs.
    events: Mutex<Vec<(String, String)>>,
    /// Ids of artifacts with their bytes.
    artifacts: Mutex<Vec<(String, Vec<u8>)>>,
    /// Ids of contacts.
    contacts: Mutex<Vec<String>>,
    stop: AtomicBool,
}

impl Acknowledged {
    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn counts(&self) -> [usize; 3] {
        let (events, artifacts) = (self.events.lock().unwrap(), self.artifacts.lock().unwrap());
        [events.len(), artifacts.len(), self.contacts.lock().unwrap().len()]
    }
}

/// Sends without a pause until it is told to stop.
fn keep_busy(api: &Api, done: &Arc<Acknowledged>) -> JoinSet<()> {
    let mut senders = JoinSet::new();
    for sender in 0..3 {
        let (api, done) = (api.clone(), Arc::clone(done));
        senders.spawn(async move {
            for n in 0.. {
                if done.is_over() {
                    return;
                }
                let sent = event("echo", &format!("c{sender}-{}", n % 7), &format!("text {n}"));
                let run_id = api.send_event(&sent).await.run_id.unwrap();
                let id = sent["event_id"].as_str().unwrap().to_owned();
                done.events.lock().unwrap().push((id, run_id));
            }
        });
    }
    let (uploader, uploaded) = (api.clone(), Arc::clone(done));
    senders.spawn(async move {
        for n in 0_usize.. {
            if uploaded.is_over() {
                return;
            }
            let bytes: Vec<u8> = format!("bytes {n} ").into_bytes().repeat(1 + n % 40_000);
            let (_, answer) = uploader.json(upload(bytes.clone())).await.unwrap();
            let id = answer["artifact_id"].as_str().unwrap().to_owned();
            uploaded.artifacts.lock().unwrap().push((id, bytes));
        }
    });
    let (writer, written) = (api.clone(), Arc::clone(done));
    senders.spawn(async move {
        for n in 0.. {
            if written.is_over() {
                return;
            }
            let id = format!("con_{n}");
            writer.json(contact(&id, &format!("Contact {n}"))).await.unwrap();
            written.contacts.lock().unwrap().push(id);
        }
    });
    senders
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_acknowledged_before_a_backup_of_a_busy_host_is_in_it() {
    let rounds = setting("GREENROOM_BACKUPS").unwrap_or(3);
    let config = "[store]\nsync = \"normal\"\n";
    let mut host = prepare(config);
    host.start_again().await;
    let api = host.api();
    let done = Arc::new(Acknowledged::default());
    let mut senders = keep_busy(&api, &done);
    let mut backups = Vec::new();
    for round in 0..rounds {
        let seen = done.counts();
        greenroom_testkit::wait::wait_for("more facts", crate::busy::PATIENCE, async || {
            let now = done.counts();
            now.iter().zip(seen).all(|(now, seen)| *now > seen + 5).then_some(())
        })
        .await;
        let acknowledged = done.counts();
        let file = back_up(&host, &format!("backup-{round}.tar")).await;
        backups.push((acknowledged, file));
    }
    let busy = done.counts();
    done.stop.store(true, Ordering::Relaxed);
    while let Some(sender) = senders.join_next().await {
        sender.unwrap();
    }
    host.kill();
    for (round, (acknowledged, file)) in backups.iter().enumerate() {
        eprintln!("backup {round}: {acknowledged:?} acknowledged before it");
        assert!(busy.iter().zip(acknowledged).all(|(end, before)| end > before));
        check(file, *acknowledged, &done, config).await;
        std::fs::remove_file(file).unwrap();
    }
}

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// Restores a backup, starts a host with it and looks for what was acknowledged before.
async fn check(file: &Path, counts: [usize; 3], done: &Acknowledged, config: &str) {
    let listed = run(["backup", "list", "--verify", "--json", file.to_str().unwrap()]).await.json();
    assert_eq!(listed["items"][0]["state"], "verified", "{listed}");
    let mut host = prepare(config);
    let told = restore(file, &host, &[]).await;
    assert!(told.json()["rows"].as_u64().unwrap() > 0);
    let database = rusqlite::Connection::open(host.data().join("greenroom.db")).unwrap();
    let whole: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(whole, "ok");
    drop(database);
    host.start_again().await;
    let api = host.api();
    let runs: Vec<(String, String)> = api
        .runs()
        .await
        .into_iter()
        .map(|run| (run.event_id.clone(), run.run_id.clone()))
        .collect();
    let known: Vec<String> = api.events().await.iter().map(id_of).collect();
    for sent in &done.events.lock().unwrap()[..counts[0]] {
        assert!(runs.contains(sent) && known.contains(&sent.0), "{sent:?} is not in the backup");
    }
    for run in api.runs().await {
        api.ended_run(&run.run_id).await;
    }
    let artifacts = done.artifacts.lock().unwrap()[..counts[1]].to_vec();
    for (id, bytes) in artifacts {
        let answer = api.send(Request::get(format!("/v1/artifacts/{id}"))).await.unwrap();
        assert_eq!(answer.status, 200, "{id}");
        assert!(answer.body().await.unwrap() == bytes, "{id} has other bytes");
    }
    let contacts = done.contacts.lock().unwrap()[..counts[2]].to_vec();
    for id in contacts {
        let (status, _) = api.json(contact_of(&id)).await.unwrap();
        assert_eq!(status, 200, "{id}");
    }
}

fn id_of(event: &Value) -> String {
    event["event_id"].as_str().unwrap().to_owned()
}
