//! `greenroom move`: the same answers from another database, and never two living copies.

use crate::answers::{Answers, all, assert_equal};
use crate::scene::{Told, back_up, config, event, prepare, restore, run, run_with, upload};
use greenroom_testkit::api::PATIENCE;
use greenroom_testkit::host::{Started, TestHost};
use greenroom_testkit::http::Request;
use greenroom_testkit::postgres::Database;
use greenroom_testkit::receiver::Receiver;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};

/// Facts of every kind: runs that ended in every way, deliveries, approvals, state, artifacts, refusals.
async fn fill(host: &TestHost) {
    let api = host.api();
    for n in 0..12 {
        let sent = event("echo", &format!("talk-{}", n % 2), &format!("word word{n} 键\t\"{n}\""));
        api.ended_run(&api.send_event(&sent).await.run_id.unwrap()).await;
    }
    let (_, kept) = api.json(upload(b"a report\0\xff".to_vec())).await.unwrap();
    assert!(kept["artifact_id"].is_string());
    let steps = [
        json!([["say", "waiting "], ["message", "waiting done"], ["end"]]),
        json!([["result", "state.updated", {"scope": "conversation", "key": "k", "value": {"n": 1}}], ["end"]]),
        json!([["call", "artifacts.create", {"content_base64": "aGVsbG8=", "name": "report.txt"}, "made"], ["end"]]),
        json!([["call", "state.set", {"scope": "conversation", "key": "s", "value": [1, null]}, "set"], ["end"]]),
        json!([["call", "storage.set", {"scope": "plugin", "key": "b", "value_base64": "AP8="}, "put"], ["end"]]),
        json!([["call", "history.page", {"conversation_id": "talk-0"}, "refused"], ["end"]]),
        json!([["result", "no.such.result", {}], ["end"]]),
        json!([["error", -32000, "it did not work"]]),
    ];
    for (n, steps) in steps.iter().enumerate() {
        let sent = event("puppet", &format!("puppet-{n}"), &steps.to_string());
        api.ended_run(&api.send_event(&sent).await.run_id.unwrap()).await;
    }
    for (n, decision) in ["allow", "deny"].into_iter().enumerate() {
        let asks = json!({"action": "message.send", "payload": {"text": decision}});
        let steps = json!([
            ["call", "platform.request_action", asks, format!("asked{n}")],
            ["message", "asked"],
            ["end"]
        ]);
        let sent = event("asking", &format!("asking-{n}"), &steps.to_string());
        let run_id = api.send_event(&sent).await.run_id.unwrap();
        let approval = wait_for("an approval", PATIENCE, async || {
            let page = api.get("/v1/approvals?status=pending").await;
            page["items"].get(0).cloned()
        })
        .await;
        let body = json!({"decision": decision, "nonce": approval["nonce"]});
        let target = format!("/v1/approvals/{}", approval["approval_id"].as_str().unwrap());
        api.json(Request::post(target, body.to_string())).await.unwrap();
        api.ended_run(&run_id).await;
        wait_for("its deliveries", PATIENCE, async || {
            let run = api.get(&format!("/v1/runs/{run_id}")).await;
            let open = |delivery: &Value| {
                delivery["status"] == "pending" || delivery["status"] == "claimed"
            };
            (!run["deliveries"].as_array()?.iter().any(open)).then_some(())
        })
        .await;
    }
}

async fn answers_after_start(host: &mut TestHost) -> Answers {
    host.start_again().await;
    let answers = all(&host.api()).await;
    assert!(host.stop().await.success());
    answers
}

async fn move_to(host: &TestHost, to: &str) -> Told {
    move_with(host, &["--to", to], None).await
}

async fn move_with(host: &TestHost, more: &[&str], fault: Option<&str>) -> Told {
    let (data, file) = (host.data(), host.folder().join("greenroom.toml"));
    let paths = ["--data", data.to_str().unwrap(), "--config", file.to_str().unwrap(), "--json"];
    run_with(["move"].into_iter().chain(more.iter().copied()).chain(paths), fault).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_to_postgresql_and_back_changes_no_answer() {
    let receiver = Receiver::start().await;
    let database = tokio::task::spawn_blocking(Database::fresh).await.unwrap();
    let mut host = prepare(&config("", &receiver.url()));
    host.start_again().await;
    fill(&host).await;
    assert!(host.stop().await.success());
    let before = answers_after_start(&mut host).await;
    assert!(before.len() > 60, "{:?}", before.keys());

    let told = move_to(&host, &database.url).await;
    assert!(told.json()["rows"].as_u64().unwrap() > 100, "{told:?}");
    assert!(told.err.contains("read back and verified") && told.err.contains("hint: "), "{told:?}");
    // Whoever forgets to change the configuration is told so, and does not begin a second copy.
    assert!(matches!(host.try_start().await, Started::Died(_)));
    assert!(host.log().contains("the data of this database was moved to postgres://"));
    host.configure(&config(&format!("url = \"{}\"", database.url), &receiver.url()));
    assert_equal(&before, &answers_after_start(&mut host).await);

    let back = host.folder().join("back.db");
    let told = move_to(&host, &format!("sqlite:{}", back.display())).await;
    assert_eq!(told.code, 0, "{told:?}");
    host.configure(&config(&format!("url = \"sqlite:{}\"", back.display()), &receiver.url()));
    assert_equal(&before, &answers_after_start(&mut host).await);
    // It goes on working, with numbers behind those that were copied.
    host.start_again().await;
    let api = host.api();
    let sent = event("echo", "talk-0", "after the move");
    api.ended_run(&api.send_event(&sent).await.run_id.unwrap()).await;
    assert_eq!(api.answers("talk-0").await.last().unwrap(), "after the move");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_restored_into_the_other_database_gives_the_same_answers() {
    let receiver = Receiver::start().await;
    let database = tokio::task::spawn_blocking(Database::fresh).await.unwrap();
    let mut host = prepare(&config("", &receiver.url()));
    host.start_again().await;
    fill(&host).await;
    assert!(host.stop().await.success());
    let before = answers_after_start(&mut host).await;
    let first = back_up(&host, "first.tar").await;

    let mut on_postgres = prepare(&config(&format!("url = \"{}\"", database.url), &receiver.url()));
    let told = restore(&first, &on_postgres, &["--store", &database.url]).await;
    assert!(told.json()["notes"].to_string().contains("store.url"), "{told:?}");
    assert_equal(&before, &answers_after_start(&mut on_postgres).await);
    let second = back_up(&on_postgres, "second.tar").await;

    let mut again = prepare(&config("", &receiver.url()));
    assert_eq!(restore(&second, &again, &[]).await.json()["rows"], told.json()["rows"]);
    assert_equal(&before, &answers_after_start(&mut again).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_is_refused_while_a_host_runs_and_into_what_is_not_empty() {
    let mut host = prepare("");
    let (elsewhere, taken) = (host.folder().join("new.db"), host.folder().join("taken.db"));
    let (elsewhere, to_taken) =
        (format!("sqlite:{}", elsewhere.display()), format!("sqlite:{}", taken.display()));
    host.start_again().await;
    move_to(&host, &elsewhere).await.refused("another host uses the data folder");
    assert!(host.stop().await.success());
    std::fs::write(&taken, "something").unwrap();
    move_to(&host, &to_taken).await.refused("is not empty");
    assert_eq!(std::fs::read_to_string(&taken).unwrap(), "something");
    let wrong = move_to(&host, "mysql://db").await;
    assert_eq!(wrong.code, 2, "{wrong:?}");
    host.start_again().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_can_be_undone_or_leave_the_old_database_alone() {
    let mut host = prepare("");
    host.start_again().await;
    assert!(host.stop().await.success());
    let to = |name: &str| format!("sqlite:{}", host.folder().join(name).display());
    let told = move_with(&host, &["--to", &to("copy.db"), "--keep"], None).await;
    assert_eq!(told.json()["kept"], true, "{told:?}");
    assert_eq!(move_to(&host, &to("moved.db")).await.code, 0);
    move_to(&host, &to("once-more.db")).await.refused("was moved to sqlite:");
    let create = run(crate::scene::create(&host, &host.folder().join("stale.tar"))).await;
    assert_eq!(create.code, 1, "{create:?}");
    assert!(create.err.contains("was moved to sqlite:"), "{create:?}");
    for options in [&["--keep"][..], &[], &["--undo", "--keep"]] {
        let told = move_with(&host, options, None).await;
        assert_eq!(told.code, 2, "nothing is undone unless asked: {options:?} {told:?}");
    }
    let undone = move_with(&host, &["--undo"], None).await.json();
    assert_eq!(undone["moved_to"], to("moved.db"));
    host.start_again().await;
}

#[cfg(feature = "faults")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_that_is_killed_leaves_the_old_database_in_use_and_the_new_one_empty() {
    let database = tokio::task::spawn_blocking(Database::fresh).await.unwrap();
    let mut host = prepare("");
    host.start_again().await;
    let api = host.api();
    let sent = event("echo", "c", "kept");
    api.ended_run(&api.send_event(&sent).await.run_id.unwrap()).await;
    assert!(host.stop().await.success());
    let file = format!("sqlite:{}", host.folder().join("new.db").display());
    for to in [&file, &database.url] {
        for fault in ["after_table_loaded:3", "before_load_committed:1"] {
            let told = move_with(&host, &["--to", to], Some(fault)).await;
            assert_eq!(told.code, -1, "{told:?}");
            host.start_again().await;
            assert_eq!(host.api().answers("c").await, ["kept"]);
            assert!(host.stop().await.success());
        }
    }
    for to in [&file, &database.url] {
        let told = move_with(&host, &["--to", to, "--keep"], None).await;
        assert_eq!(told.code, 0, "what was left is in the way: {told:?}");
    }
}
