//! Artifacts: whose they are, and which bytes are still needed.

use crate::audit::record;
use crate::support::{Ground, W, accept, apply, completed, event, results};
use greenroom_store::commands::{
    AcceptEvent, Accepted, ApplyResults, ArtifactWritten, CreateArtifact, RemoveArtifacts, RunFence,
};
use greenroom_store::reads::audit::AuditFilter;
use greenroom_store::types::{ArtifactRow, NewArtifact};
use greenroom_store::{Store, reads};

const HASH: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const OTHER_HASH: &str = "bb7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

fn artifact(artifact_id: &str) -> NewArtifact {
    NewArtifact {
        artifact_id: artifact_id.to_owned(),
        sha256: HASH.to_owned(),
        size: 3,
        name: Some("报告.txt".to_owned()),
        mime_type: "text/plain".to_owned(),
        conversation_id: None,
        session: String::new(),
        run_id: None,
        agent: None,
        metadata: r#"{"a":1}"#.to_owned(),
        expires_at: None,
    }
}

fn upload(artifact: NewArtifact) -> CreateArtifact {
    CreateArtifact { workspace_id: W.to_owned(), artifact, run: None, audit: None, now_ms: 1_000 }
}

async fn create(store: &Store, artifact: NewArtifact) {
    let written = store.commit(upload(artifact)).await.unwrap();
    assert_eq!(written, ArtifactWritten::Created);
}

async fn get(store: &Store, artifact_id: &str) -> Option<ArtifactRow> {
    let id = artifact_id.to_owned();
    store.read(move |tx| reads::artifacts::get(tx, W, &id, 5_000)).await.unwrap()
}

/// Conversation, run and agent.
async fn owner(store: &Store, artifact_id: &str) -> [Option<String>; 3] {
    let row = get(store, artifact_id).await.unwrap();
    [row.conversation_id, row.run_id, row.agent]
}

fn owned<const N: usize>(by: [Option<&str>; N]) -> [Option<String>; N] {
    by.map(|part| part.map(str::to_owned))
}

pub(crate) async fn an_artifact_comes_back_and_is_its_workspaces_own(ground: Ground) {
    let store = ground.open();
    create(&store, artifact("a")).await;
    let expected = ArtifactRow {
        workspace_id: W.to_owned(),
        artifact_id: "a".to_owned(),
        sha256: HASH.to_owned(),
        size: 3,
        name: Some("报告.txt".to_owned()),
        mime_type: "text/plain".to_owned(),
        conversation_id: None,
        session: String::new(),
        run_id: None,
        agent: None,
        metadata: r#"{"a":1}"#.to_owned(),
        created_at: 1_000,
        expires_at: None,
    };
    assert_eq!(get(&store, "a").await, Some(expected));
    // A repeated command changes nothing.
    create(&store, NewArtifact { size: 4, ..artifact("a") }).await;
    assert_eq!(get(&store, "a").await.unwrap().size, 3);
    assert_eq!(get(&store, "b").await, None);
    let elsewhere = store.read(|tx| reads::artifacts::get(tx, "other", "a", 5_000)).await.unwrap();
    assert_eq!(elsewhere, None);
}

pub(crate) async fn a_run_creates_artifacts_only_while_it_is_under_way(ground: Ground) {
    let store = ground.open();
    let run = accept(&store, event("c", "a")).await;
    let command = |id: &str, run: RunFence| CreateArtifact {
        run: Some(run),
        audit: Some(record("artifacts.create", "ok", 2_000)),
        ..upload(artifact(id))
    };
    let written = store.commit(command("mine", run.fence())).await.unwrap();
    assert_eq!(written, ArtifactWritten::Created);
    for late in [
        RunFence { attempt: 2, ..run.fence() },
        RunFence { epoch: 9, ..run.fence() },
        RunFence { run_id: "run-none".to_owned(), ..run.fence() },
    ] {
        let written = store.commit(command("late", late)).await.unwrap();
        assert_eq!(written, ArtifactWritten::Stale);
    }
    apply(&store, completed(&run, 1)).await;
    let written = store.commit(command("late", run.fence())).await.unwrap();
    assert_eq!(written, ArtifactWritten::Stale);
    assert_eq!(get(&store, "late").await, None);
    let filter = AuditFilter { run_id: Some("run-a".to_owned()), ..AuditFilter::default() };
    let page = store.read(move |tx| reads::audit::page(tx, W, &filter, None, 10)).await.unwrap();
    let codes: Vec<_> = page.entries.iter().map(|entry| entry.record.code.as_str()).collect();
    assert_eq!(codes, ["unauthorized", "unauthorized", "unauthorized", "ok"]);
}

pub(crate) async fn artifacts_come_with_results_and_with_events(ground: Ground) {
    let store = ground.open();
    let with_event = NewArtifact { conversation_id: Some("c".to_owned()), ..artifact("of-event") };
    let run = accept(&store, AcceptEvent { artifacts: vec![with_event], ..event("c", "a") }).await;
    assert_eq!(
        owner(&store, "of-event").await,
        owned([Some("c"), Some("run-a"), Some("assistant")])
    );
    let with_result = NewArtifact { run_id: Some("run-a".to_owned()), ..artifact("of-result") };
    let command = ApplyResults { artifacts: vec![with_result], ..completed(&run, 1) };
    apply(&store, command).await;
    assert!(get(&store, "of-result").await.is_some());
    let late = ApplyResults { artifacts: vec![artifact("late")], ..results(&run) };
    store.commit(late).await.unwrap();
    assert_eq!(get(&store, "late").await, None);
    // An event that is refused or repeated leaves none behind.
    let repeated = AcceptEvent { artifacts: vec![artifact("twice")], ..event("c", "a") };
    let repeated = AcceptEvent { run: None, ..repeated };
    assert!(matches!(store.commit(repeated).await.unwrap(), Accepted::Repeated { .. }));
    assert_eq!(get(&store, "twice").await, None);
}

pub(crate) async fn an_upload_belongs_to_the_event_that_names_it(ground: Ground) {
    let store = ground.open();
    create(&store, artifact("free")).await;
    create(&store, NewArtifact { conversation_id: Some("c".to_owned()), ..artifact("for-c") })
        .await;
    create(&store, NewArtifact { conversation_id: Some("d".to_owned()), ..artifact("for-d") })
        .await;
    create(&store, NewArtifact { run_id: Some("run-x".to_owned()), ..artifact("of-run") }).await;
    let uploads = ["free", "for-c", "for-d", "of-run", "none"].map(str::to_owned).to_vec();
    accept(&store, AcceptEvent { uploads, ..event("c", "a") }).await;
    let adopted = owned([Some("c"), Some("run-a"), Some("assistant")]);
    assert_eq!(owner(&store, "free").await, adopted);
    assert_eq!(owner(&store, "for-c").await, adopted);
    assert_eq!(owner(&store, "for-d").await, owned([Some("d"), None, None]));
    assert_eq!(owner(&store, "of-run").await, owned([None, Some("run-x"), None]));
    // Nobody takes it over.
    let uploads = vec!["free".to_owned()];
    accept(&store, AcceptEvent { uploads, ..event("d", "b") }).await;
    assert_eq!(owner(&store, "free").await, adopted);
}

pub(crate) async fn an_expired_artifact_is_gone_before_it_is_removed(ground: Ground) {
    let store = ground.open();
    for (id, expires_at) in
        [("a", Some(5_000)), ("b", Some(4_000)), ("c", Some(5_001)), ("d", None)]
    {
        create(&store, NewArtifact { expires_at, ..artifact(id) }).await;
    }
    let mut there = Vec::new();
    for id in ["a", "b", "c", "d"] {
        there.push(get(&store, id).await.is_some());
    }
    assert_eq!(there, [false, false, true, true]);
    let read = |limit| store.read(move |tx| reads::artifacts::expired(tx, 5_000, limit));
    let of = |id: &str| (W.to_owned(), id.to_owned());
    assert_eq!(read(1).await.unwrap(), [of("b")]);
    let expired = read(10).await.unwrap();
    assert_eq!(expired, [of("b"), of("a")]);
    assert!(store.commit(RemoveArtifacts { artifacts: expired.clone() }).await.unwrap());
    assert!(!store.commit(RemoveArtifacts { artifacts: expired }).await.unwrap());
    assert_eq!(read(10).await.unwrap(), []);
    let old = store.read(|tx| reads::artifacts::made_before(tx, 1_001, 1)).await.unwrap();
    assert_eq!(old.len(), 1);
    let old = store.read(|tx| reads::artifacts::made_before(tx, 1_000, 9)).await.unwrap();
    assert_eq!(old, []);
}

pub(crate) async fn bytes_are_referred_to_until_the_last_artifact_is_removed(ground: Ground) {
    let store = ground.open();
    create(&store, artifact("a")).await;
    let foreign = CreateArtifact { workspace_id: "other".to_owned(), ..upload(artifact("a")) };
    store.commit(foreign).await.unwrap();
    create(&store, NewArtifact { sha256: OTHER_HASH.to_owned(), ..artifact("b") }).await;
    let hashes = |digits| store.read(move |tx| reads::artifacts::hashes(tx, digits));
    assert_eq!(hashes("ba").await.unwrap(), [HASH]);
    assert_eq!(hashes("bb").await.unwrap(), [OTHER_HASH]);
    assert_eq!(hashes("b").await.unwrap(), [HASH, OTHER_HASH]);
    assert_eq!(hashes("00").await.unwrap(), Vec::<String>::new());
    let sizes = store.read(|tx| reads::sizes::sizes(tx)).await.unwrap();
    assert_eq!(sizes.artifact_bytes, 9);
    let referred = || store.read(|tx| reads::artifacts::is_referred_to(tx, HASH));
    for (workspace, still) in [(W, true), ("other", false)] {
        assert!(referred().await.unwrap());
        let artifacts = vec![(workspace.to_owned(), "a".to_owned())];
        store.commit(RemoveArtifacts { artifacts }).await.unwrap();
        assert_eq!(referred().await.unwrap(), still);
    }
}

pub(crate) async fn artifacts_are_listed_by_age(ground: Ground) {
    use greenroom_store::reads::artifacts::{
        ArtifactFilter, ArtifactPosition, ArtifactSpan, Mime, floor, page,
    };
    let store = ground.open();
    for (artifact_id, now_ms, mime_type, conversation) in [
        ("a", 10, "text/plain", "c1"),
        ("c", 20, "image/png", "c2"),
        ("b", 20, "text/plain; charset=utf-8", "c2"),
        ("d", 30, "imagery/x", "c2"),
    ] {
        let artifact = NewArtifact {
            mime_type: mime_type.to_owned(),
            conversation_id: Some(conversation.to_owned()),
            ..artifact(artifact_id)
        };
        store.commit(CreateArtifact { now_ms, ..upload(artifact) }).await.unwrap();
    }
    let gone = NewArtifact { expires_at: Some(40), ..artifact("e") };
    store.commit(CreateArtifact { now_ms: 35, ..upload(gone) }).await.unwrap();
    let ids = async |filter: ArtifactFilter, before: Option<(i64, &str)>, limit| {
        let mut span = ArtifactSpan::whole(limit, 50);
        if let Some((created_at, id)) = before {
            span.before = ArtifactPosition { created_at, artifact_id: id.to_owned() };
        }
        let rows = store.read(move |tx| page(tx, W, &filter, &span)).await.unwrap();
        rows.into_iter().map(|row| row.artifact_id).collect::<Vec<_>>()
    };
    let all = ArtifactFilter::default;
    assert_eq!(ids(all(), None, 9).await, ["d", "c", "b", "a"]);
    assert_eq!(ids(all(), Some((20, "c")), 1).await, ["b"]);
    let of = |mime| ArtifactFilter { mime: Some(mime), ..all() };
    assert_eq!(ids(of(Mime::Exactly("text/plain".to_owned())), None, 9).await, ["b", "a"]);
    assert_eq!(ids(of(Mime::Family("image".to_owned())), None, 9).await, ["c"]);
    let second = ArtifactFilter { conversation_id: Some("c2".to_owned()), ..all() };
    assert_eq!(ids(second.clone(), None, 9).await, ["d", "c", "b"]);
    assert!(
        ids(ArtifactFilter { run_id: Some("r".to_owned()), ..second }, None, 9).await.is_empty()
    );
    let end = ArtifactPosition { created_at: i64::MAX, artifact_id: String::new() };
    let seen = store.read(move |tx| floor(tx, W, &end, 3)).await.unwrap();
    assert_eq!(seen.map(|at| at.artifact_id).as_deref(), Some("c"));
}
