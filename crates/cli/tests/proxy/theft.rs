//! Things that are not one's own: names, runs, request ids, artifacts, cursors, paths.
//!
//! Invariant: what is stolen is real and works for its owner, which is shown beside the theft.

mod cursors;
mod names;
mod paths;

use crate::calls::Target;
use crate::facts::{MARK, seed, seen_by};
use crate::stage::{ALL, PATIENCE, Stage, agent, event};
use crate::wire::{Reply, with_run};
use greenroom_protocol::ErrorCode::{self, InvalidArgument, NotFound, Unauthorized};
use greenroom_testkit::http::Request;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};

const ALPHA: &str = "plugin:test/alpha/main";
const BETA: &str = "plugin:test/beta/main";

fn agents() -> String {
    agent("full", ALPHA, "queue = \"parallel\"", ALL)
        + &agent("other", BETA, "queue = \"parallel\"", ALL)
}

async fn open() -> Stage {
    Stage::open(&["alpha", "beta"], "", &agents()).await
}

#[track_caller]
fn refused(reply: &Reply) -> ErrorCode {
    match reply {
        Err(error) => error.code,
        Ok(served) => panic!("it was served: {served}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn results_for_a_stolen_run_are_dropped() {
    let mut stage = open().await;
    let (alpha, beta) = (stage.connect("alpha").await, stage.connect("beta").await);
    let seeds = seed(&stage, &beta, &event("other", "c")).await;
    let victim = stage.start(&beta, &event("other", "c")).await;
    let own = stage.start(&alpha, &event("full", "c")).await;
    let update = json!({"scope": "conversation", "key": "intruder", "value": 1});
    alpha.result(&victim, "state.updated", update).await;
    alpha
        .result(
            &victim,
            "message.completed",
            json!({"message": {"role": "assistant", "content": "intruder"}}),
        )
        .await;
    alpha.complete(&victim).await;
    alpha.let_go(&victim).await;
    // An answer to a later line: the ones before it have been read.
    alpha.call_for(&own.id, "state.list", json!({"scope": "actor"})).await.unwrap();
    assert_eq!(seen_by(&stage, &beta, &victim).await, seeds.facts);
    assert!(stage.api.run(&victim.id).await.status.is_open());
    let said = stage.api.results(&victim.id).await;
    assert!(said.is_empty(), "{said:?}");
    stage.assert_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_run_of_a_process_that_is_gone_is_not_inherited_by_the_next() {
    let mut stage = open().await;
    let alpha = stage.connect("alpha").await;
    let seeds = seed(&stage, &alpha, &event("full", "c")).await;
    let lost = stage.start(&alpha, &event("full", "c")).await;
    drop(alpha);
    let crashed = stage.api.ended_run(&lost.id).await;
    assert_eq!(crashed.error.unwrap().code, "runner.crashed");
    let alpha = stage.connect("alpha").await;
    let run = stage.start(&alpha, &event("full", "c")).await;
    for method in ["state.set", "state.get", "storage.delete", "artifacts.create"] {
        let reply = alpha.call_for(&lost.id, method, seeds.target().params(method)).await;
        assert_eq!(refused(&reply), Unauthorized, "{method}");
    }
    assert_eq!(seen_by(&stage, &alpha, &run).await, seeds.facts);
    stage.assert_sound();
}

async fn pending_approvals(stage: &Stage) -> Vec<Value> {
    let approvals = stage.api.get("/v1/approvals?status=pending").await;
    approvals["items"].as_array().unwrap().clone()
}

async fn allow(stage: &Stage, approval: &Value) {
    let path = format!("/v1/approvals/{}", approval["approval_id"].as_str().unwrap());
    let answer = json!({"decision": "allow", "nonce": approval["nonce"]});
    assert_eq!(stage.api.json(Request::post(path, answer.to_string())).await.unwrap().0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_id_that_is_in_use_is_refused_and_one_that_was_is_a_new_call() {
    let mut stage = open().await;
    let alpha = stage.connect("alpha").await;
    let run = stage.start(&alpha, &event("full", "c")).await;
    let react = Target { action: "message.react", ..Target::made_up() };
    let react = with_run(react.params("platform.request_action"), &run.id);
    let first = alpha.call_as(json!("same"), "platform.request_action", react.clone()).await;
    let pending = wait_for("the question", PATIENCE, async || {
        Some(pending_approvals(&stage).await).filter(|pending| !pending.is_empty())
    })
    .await;
    // The answer to the second call takes the place of the first one's here; the first one's comes as a stray.
    drop(first);
    for (method, params) in [
        ("platform.request_action", react.clone()),
        ("state.set", with_run(json!({"scope": "actor", "key": "k", "value": 1}), &run.id)),
    ] {
        let reply = alpha.call_as(json!("same"), method, params).await.reply().await;
        assert_eq!(refused(&reply), InvalidArgument, "{method}");
    }
    assert_eq!(pending_approvals(&stage).await, pending);
    allow(&stage, &pending[0]).await;
    let answered = wait_for("the first answer", PATIENCE, async || alpha.stray().pop()).await;
    assert_eq!((&answered["id"], &answered["result"]["status"]), (&json!("same"), &json!("done")));
    assert_eq!(stage.receiver.received().len(), 1);
    // Replayed after its answer: asked anew, and nothing is done that nobody allows.
    let again = alpha.call_as(json!("same"), "platform.request_action", react).await;
    let asked = wait_for("another question", PATIENCE, async || {
        Some(pending_approvals(&stage).await).filter(|asked| !asked.is_empty())
    })
    .await;
    assert_ne!(asked[0]["approval_id"], pending[0]["approval_id"]);
    assert_eq!(stage.receiver.received().len(), 1);
    stage.cancel(&run.id).await;
    assert_eq!(refused(&again.reply().await), Unauthorized);
    stage.assert_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn artifacts_of_others_and_guessed_ones_look_the_same() {
    let mut stage = open().await;
    let (alpha, beta) = (stage.connect("alpha").await, stage.connect("beta").await);
    let elsewhere = seed(&stage, &alpha, &event("full", "elsewhere")).await;
    let theirs = seed(&stage, &beta, &event("other", "theirs")).await;
    let mut there = event("full", "c");
    there["workspace_id"] = "w2".into();
    let there = seed(&stage, &alpha, &there).await;
    let uploaded = stage.upload("name=loose.txt", &format!("a loose {MARK}")).await;
    let mine = seed(&stage, &alpha, &event("full", "c")).await;
    let run = stage.start(&alpha, &event("full", "c")).await;
    let own = alpha.call_for(&run.id, "artifacts.metadata", json!({"artifact_id": mine.artifact}));
    let own = own.await.unwrap();
    let (sha, id) = (own["sha256"].as_str().unwrap(), mine.artifact.as_str());
    let mut guesses: Vec<String> =
        [&elsewhere, &theirs, &there].map(|it| it.artifact.clone()).into();
    guesses.extend([uploaded, sha.to_owned(), format!("sha256:{sha}"), id.to_uppercase()]);
    guesses.extend(
        [
            &id[..id.len() - 1],
            &format!("{id}0"),
            &format!("{id}%00"),
            &format!("{id}/"),
            &format!("./{id}"),
            "../greenroom.toml",
            "*",
            "%",
            "_",
            "art_",
            "' OR '1'='1",
        ]
        .map(str::to_owned),
    );
    let mut answers = Vec::new();
    for guess in &guesses {
        for method in ["artifacts.metadata", "artifacts.read_range", "artifacts.open_stream"] {
            let reply = alpha.call_for(&run.id, method, json!({"artifact_id": guess})).await;
            assert_eq!(refused(&reply), NotFound, "{method} {guess}");
            answers.push(reply.unwrap_err());
        }
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "nothing tells what exists: {answers:?}");
    for odd in ["", "art\u{0}", "a\nb", &"x".repeat(100_000)] {
        let reply =
            alpha.call_for(&run.id, "artifacts.metadata", json!({"artifact_id": odd})).await;
        assert_eq!(refused(&reply), InvalidArgument);
    }
    stage.assert_sound();
}
