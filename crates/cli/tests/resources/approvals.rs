//! Calls that somebody is asked about first, by their risk.

use crate::stage::{PATIENCE, Stage, event, outcome};
use crate::{AGENT, call, data, play};
use greenroom_protocol::{RunStatus, TranscriptItem, TranscriptRole};
use greenroom_testkit::http::Request;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};

pub(crate) async fn made_event(stage: &Stage) -> Value {
    let input = json!({"title": "Sync", "start_at": "2026-04-21T10:00:00+08:00",
        "end_at": "2026-04-21T12:00:00+08:00"});
    play(stage, "ann", "c1", vec![call("made", "calendar", "create", input)]).await;
    data(stage, "made").await["id"].clone()
}

pub(crate) async fn asked(stage: &Stage) -> Value {
    wait_for("a question", PATIENCE, async || {
        let page = stage.api.get("/v1/approvals?status=pending").await;
        page["items"].as_array().unwrap().first().cloned()
    })
    .await
}

pub(crate) async fn answer(stage: &Stage, question: &Value, decision: &str) {
    let id = question["approval_id"].as_str().unwrap();
    let body = json!({"decision": decision, "nonce": question["nonce"]}).to_string();
    let answered = stage.api.json(Request::post(format!("/v1/approvals/{id}"), body)).await;
    assert_eq!(answered.unwrap().0, 200);
}

pub(crate) async fn tool_items(stage: &Stage, conversation: &str) -> Vec<TranscriptItem> {
    let items = stage.api.history(conversation).await.into_iter();
    items.filter(|item| item.role == TranscriptRole::Tool).collect()
}

/// The call that a tool's item shows: its id, and how it ended.
fn shown(item: &TranscriptItem) -> (&str, &str) {
    let output = &item.metadata["tool_agent_output"];
    let code = output["error"]["code"].as_str().unwrap_or("");
    (output["tool_call_id"].as_str().unwrap(), code)
}

/// Plays steps as `ann` and answers the one question that they lead to.
async fn decided(stage: &Stage, conversation: &str, steps: Value, decision: &str) {
    let mut sent = event("clerk", conversation, &steps.to_string());
    sent["actor"]["actor_id"] = "ann".into();
    let run_id = stage.send(&sent).await;
    answer(stage, &asked(stage).await, decision).await;
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{run:?}");
}

async fn questions(stage: &Stage) -> usize {
    stage.api.get("/v1/approvals").await["items"].as_array().unwrap().len()
}

#[tokio::test]
async fn a_call_that_was_decided_about_is_answered_as_before_and_nobody_is_asked_again() {
    let stage = Stage::open(AGENT).await;
    let id = made_event(&stage).await;
    for (number, decision) in ["deny", "allow"].into_iter().enumerate() {
        let delete = call(decision, "calendar", "delete", json!({"event_id": id}));
        let mut again = delete.clone();
        again[3] = format!("{decision} again").into();
        let mut other = call(decision, "calendar", "delete", json!({"event_id": "another"}));
        other[3] = format!("{decision} other").into();
        decided(&stage, decision, json!([delete, again, other, ["end"]]), decision).await;
        let told = stage.told(decision).await;
        assert_eq!(stage.told(&format!("{decision} again")).await, told, "{decision}");
        let refused = &stage.told(&format!("{decision} other")).await["error"]["data"];
        let reason = (&refused["code"], &refused["details"]["reason"]);
        assert_eq!(reason, (&json!("invalid_argument"), &json!("repeated_id")), "{decision}");
        assert_eq!(questions(&stage).await, number + 1, "{decision}");
        assert_eq!(tool_items(&stage, decision).await.len(), 1, "{decision}");
    }
}

#[tokio::test]
async fn an_id_that_waits_for_an_answer_is_taken() {
    let stage = Stage::open(AGENT).await;
    let delete = call("first", "calendar", "delete", json!({"event_id": "e"}));
    let mut other = call("first", "calendar", "delete", json!({"event_id": "another"}));
    other[3] = "second".into();
    let mut first = delete.clone();
    first[0] = "start_call".into();
    let steps = json!([first, ["gate", "go"], other, ["mark", "tried"], ["gate", "end"], ["end"]]);
    let run_id = stage.send(&event("clerk", "c1", &steps.to_string())).await;
    let question = asked(&stage).await;
    stage.pass("go");
    stage.marked("tried").await;
    let refused = &stage.told("second").await["error"]["data"];
    assert_eq!(refused["details"]["reason"], "under_way");
    assert_eq!(questions(&stage).await, 1);
    answer(&stage, &question, "deny").await;
    assert_eq!(stage.told("first").await["error"]["data"]["details"]["reason"], "denied");
    stage.pass("end");
    stage.api.ended_run(&run_id).await;
    assert_eq!(tool_items(&stage, "c1").await.len(), 1);
}

#[tokio::test]
async fn every_call_that_something_was_decided_about_is_in_the_conversation_once() {
    let config = AGENT.replace("grant = {", "grant = { risk = { write = \"never\" },");
    let stage = Stage::open(&config).await;
    let never = call("never", "memory", "update", json!({"set": {"a": 1}}));
    let invalid = call("invalid", "memory", "read", json!({"nonsense": 1}));
    let deny = call("deny", "calendar", "delete", json!({"event_id": "e"}));
    // What the runner tells of them as well changes nothing.
    let tell = |id: &str| {
        let data = json!({"tool_call_id": id, "tool_name": "project_cli", "result": null,
            "error": "refused"});
        json!(["result", "tool.call.completed", data])
    };
    let steps =
        json!([never, tell("never"), invalid, tell("invalid"), deny, tell("deny"), ["end"]]);
    decided(&stage, "c1", steps, "deny").await;
    let items = tool_items(&stage, "c1").await;
    let shown: Vec<_> = items.iter().map(shown).collect();
    assert_eq!(
        shown,
        [("never", "DENIED"), ("invalid", "INVALID_ACTION_INPUT"), ("deny", "DENIED")]
    );
    let denied = &items[2].metadata["tool_agent_output"];
    assert_eq!(
        (&denied["status"], &denied["error"]["reason"]),
        (&json!("failure"), &json!("denied"))
    );
    assert_eq!(denied["tool_call_args"]["method"], "delete");
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_any_more_is_over_and_was_not_carried_out() {
    let mut stage = Stage::open(AGENT).await;
    let id = made_event(&stage).await;
    for end in ["cancel", "give_up", "kill"] {
        let mut delete = call(end, "calendar", "delete", json!({"event_id": id}));
        delete[0] = "start_call".into();
        let steps = json!([delete, ["gate", end], ["give_up", end], ["hang"]]);
        let mut sent = event("clerk", end, &steps.to_string());
        sent["actor"]["actor_id"] = "ann".into();
        let run_id = stage.send(&sent).await;
        asked(&stage).await;
        match end {
            "give_up" => stage.pass(end),
            "cancel" => drop(stage.cancel(&run_id).await),
            _ => {
                stage.host.kill();
                stage.host.start_again().await;
                stage.api = stage.host.api();
            }
        }
        let items = wait_for("the call's item", PATIENCE, async || {
            Some(tool_items(&stage, end).await).filter(|items| !items.is_empty())
        })
        .await;
        let code = if end == "kill" { "INTERRUPTED" } else { "CANCELLED" };
        assert_eq!(items.iter().map(shown).collect::<Vec<_>>(), [(end, code)]);
        let message = items[0].metadata["tool_agent_output"]["error"]["message"].as_str().unwrap();
        assert!(message.ends_with("nothing was done"), "{message}");
        if end == "give_up" {
            stage.cancel(&run_id).await;
        }
        let pending = stage.api.get("/v1/approvals?status=pending").await;
        assert_eq!(pending["items"], json!([]), "{end}");
    }
    let day = json!({"mode": "day", "date": "2026-04-21", "timezone": "Asia/Shanghai"});
    play(&stage, "ann", "c1", vec![call("left", "calendar", "read", day)]).await;
    assert_eq!(data(&stage, "left").await["count"], 1);
}

#[tokio::test]
async fn what_cannot_be_brought_back_is_done_only_once_it_is_allowed() {
    let stage = Stage::open(AGENT).await;
    let id = made_event(&stage).await;
    for (decision, left) in [("deny", 1), ("allow", 0)] {
        let delete = call(decision, "calendar", "delete", json!({"event_id": id}));
        let steps = json!([delete, ["end"]]).to_string();
        let mut sent = event("clerk", "c1", &steps);
        sent["actor"]["actor_id"] = "ann".into();
        let run_id = stage.send(&sent).await;
        let question = asked(&stage).await;
        assert_eq!(
            (&question["action"], &question["run_id"]),
            (&json!("tool.call"), &json!(run_id))
        );
        assert_eq!(question["target"]["tool_name"], "project_cli");
        assert_eq!(question["target"]["risk"], "destructive");
        assert_eq!(question["payload"]["method"], "delete");
        answer(&stage, &question, decision).await;
        let run = stage.api.ended_run(&run_id).await;
        assert_eq!(outcome(&run), (RunStatus::Completed, ""));
        let name = format!("left_{decision}");
        let day = json!({"mode": "day", "date": "2026-04-21", "timezone": "Asia/Shanghai"});
        play(&stage, "ann", "c1", vec![call(&name, "calendar", "read", day)]).await;
        assert_eq!(data(&stage, &name).await["count"], left, "{decision}");
    }
    let denied = stage.told("deny").await;
    assert_eq!(denied["error"]["data"]["code"], "unauthorized");
    assert_eq!(denied["error"]["data"]["details"]["reason"], "denied");
    data(&stage, "allow").await;
}

#[tokio::test]
async fn a_question_shows_what_its_actor_may_see_of_the_record_and_nothing_of_others() {
    let stage = Stage::open(AGENT).await;
    let id = made_event(&stage).await;
    let known = json!({"records": [{"id": id, "title": "Sync",
        "start_at": "2026-04-21T10:00:00+08:00", "end_at": "2026-04-21T12:00:00+08:00"}]});
    let unknown = json!({"records": [{"id": id}]});
    for (actor, expected) in [("ann", &known), ("mallory", &unknown)] {
        let delete = call(actor, "calendar", "delete", json!({"event_id": id}));
        let mut sent = event("clerk", actor, &json!([delete, ["end"]]).to_string());
        sent["actor"]["actor_id"] = actor.into();
        let run_id = stage.send(&sent).await;
        let question = asked(&stage).await;
        assert_eq!(&question["subject"], expected, "{actor}");
        answer(&stage, &question, "deny").await;
        stage.api.ended_run(&run_id).await;
    }
    let settled = stage.api.get("/v1/approvals?status=denied").await;
    assert_eq!(settled["items"][1]["subject"], known, "it stays with the approval");
}

#[tokio::test]
async fn a_grant_may_forbid_or_ask_about_any_risk() {
    let config =
        AGENT.replace("grant = {", "grant = { risk = { read = \"ask\", write = \"never\" },");
    let stage = Stage::open(&config).await;
    let update = call("update", "memory", "update", json!({"set": {"a": 1}}));
    let read = call("read", "memory", "read", json!({}));
    let run_id =
        stage.send(&event("clerk", "c1", &json!([update, read, ["end"]]).to_string())).await;
    let question = asked(&stage).await;
    assert_eq!(question["target"]["risk"], "read");
    answer(&stage, &question, "allow").await;
    stage.api.ended_run(&run_id).await;
    let refused = stage.told("update").await;
    assert_eq!(refused["error"]["data"]["code"], "unauthorized");
    assert_eq!(refused["error"]["data"]["details"]["reason"], "not_granted");
    assert_eq!(data(&stage, "read").await["count"], 0);
}
