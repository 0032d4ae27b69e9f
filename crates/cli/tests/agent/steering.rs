//! What happens to a run from outside: more messages, a cancellation, a question to somebody.

use crate::checks::{is_paired, kinds};
use crate::scene::{Scene, Setting};
use crate::stage::{PATIENCE, event, outcome};
use crate::yard::{FOLDER, at_gate, notes, open_gate, yard};
use greenroom_protocol::{RunStatus, TranscriptItem, TranscriptRole};
use greenroom_testkit::http::Request;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Waits at a gate, then says what it has heard.
const GATE: &str = r#"
[[rule]]
when = { text = "silence" }
answer = [{ text = "Once upon " }, { silence = true }]
[[rule]]
when = { text = "slowly" }
answer = [{ text = "Once upon " }, { wait_ms = 1500 }, { text = "a time." }]
[[rule]]
when = { text = "wait", round = 1 }
answer = [{ text = "I wait." }, { call = "yard_gate", args = { name = "g" }, id = "c1" }]
[[rule]]
when = { text = "hold", round = 1 }
answer = [{ call = "yard_hold", args = { name = "g" }, id = "c1" }]
[[rule]]
when = { text = "write", round = 1 }
answer = [{ call = "yard_write", args = { name = "one" }, id = "c1" }]
[[rule]]
answer = "You said: {{text}}"
"#;

async fn gate(agent: &str, grant: &str) -> Scene {
    let more = yard(0);
    let grant = format!("tools = [\"yard.*\"]{grant}");
    let setting = Setting {
        script: GATE,
        more: &more,
        grant: &grant,
        agent,
        files: &[FOLDER],
        ..Setting::default()
    };
    setting.open().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_during_a_tool_call_is_taken_into_the_one_answer() {
    let scene = gate("queue = \"steer\"", "").await;
    let run_id = scene.stage.send(&event("agent", "c1", "wait")).await;
    at_gate(&scene, "g").await;
    let (_, second) = scene.stage.api.post_event(&event("agent", "c1", "and bread")).await.unwrap();
    assert_eq!((second.status.as_str(), second.run_id.as_deref()), ("steered", Some(&*run_id)));
    open_gate(&scene, "g");
    let run = scene.stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    assert_eq!(scene.stage.api.answers("c1").await, ["I wait.", "You said: and bread"]);
    assert_eq!(scene.stage.api.runs().await.len(), 1);
    let asked = scene.asked();
    asked.iter().for_each(|messages| is_paired(messages));
    let roles: Vec<&Value> = asked[1].iter().map(|message| &message["role"]).collect();
    assert_eq!(roles[roles.len() - 4..], ["user", "assistant", "tool", "user"]);
    // The next run reads the same of it.
    scene.answer("c1", "and now?").await;
    is_paired(scene.asked().last().unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn several_messages_are_taken_in_in_their_order() {
    let scene = gate("queue = \"steer\"", "").await;
    let run_id = scene.stage.send(&event("agent", "c1", "wait")).await;
    at_gate(&scene, "g").await;
    for text in ["one", "two"] {
        scene.stage.api.post_event(&event("agent", "c1", text)).await.unwrap();
    }
    open_gate(&scene, "g");
    scene.stage.api.ended_run(&run_id).await;
    let said = scene.asked()[1].iter().filter(|message| message["role"] == "user").count();
    assert_eq!(said, 3, "both were taken in, in their order");
    assert_eq!(scene.stage.api.answers("c1").await.pop().unwrap(), "You said: two");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_message_has_caused_stands_behind_it_in_the_conversation() {
    let scene = gate("queue = \"steer\"", "").await;
    let run_id = scene.stage.send(&event("agent", "c1", "wait")).await;
    at_gate(&scene, "g").await;
    scene.stage.api.post_event(&event("agent", "c1", "write")).await.unwrap();
    open_gate(&scene, "g");
    let run = scene.stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    let items = scene.history("c1").await;
    let at = |found: &dyn Fn(&TranscriptItem) -> bool| items.iter().position(found).unwrap();
    let message = at(&|item| item.text.as_deref() == Some("write"));
    let call = at(&|item| item.metadata.get("tool_name") == Some(&"yard.write".into()));
    let answer = at(&|item| item.text.as_deref() == Some("You said: write"));
    assert!(message < call && call < answer, "{message} {call} {answer}");
}

/// Waits until a run has shown its first words.
async fn first_words(scene: &Scene, run_id: &str) {
    wait_for("the first words", PATIENCE, async || {
        let results = scene.stage.api.get(&format!("/v1/runs/{run_id}/results")).await;
        results.to_string().contains("Once").then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_comes_during_the_last_answer_is_answered_by_the_same_run() {
    let scene = gate("queue = \"steer\"", "").await;
    let run_id = scene.stage.send(&event("agent", "c1", "slowly")).await;
    first_words(&scene, &run_id).await;
    let (_, second) = scene.stage.api.post_event(&event("agent", "c1", "and bread")).await.unwrap();
    assert_eq!((second.status.as_str(), second.run_id.as_deref()), ("steered", Some(&*run_id)));
    let run = scene.stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{run:?}");
    assert_eq!(scene.stage.api.answers("c1").await, ["Once upon a time.", "You said: and bread"]);
    assert_eq!(scene.stage.api.runs().await.len(), 1);
    kinds(&scene, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_that_comes_as_a_message_ends_the_run_at_once_and_no_model_reads_it() {
    // During an answer, a call that changes something, and one that only reads; no gate is opened.
    for (text, at, command, told) in [
        ("tell me of silence", None, "/cancel", "Cancelled."),
        ("hold", Some("g"), "/cancel", "Cancelled."),
        ("wait", Some("g"), "/取消", "已取消。"),
    ] {
        let scene = gate("queue = \"steer\"", "").await;
        let run_id = scene.stage.send(&event("agent", "c1", text)).await;
        match at {
            Some(gate) => at_gate(&scene, gate).await,
            None => first_words(&scene, &run_id).await,
        }
        let began = Instant::now();
        scene.stage.api.post_event(&event("agent", "c1", command)).await.unwrap();
        let run = scene.stage.api.ended_run(&run_id).await;
        assert_eq!(outcome(&run).1, "cancelled", "{text}: {run:?}");
        assert_eq!(run.error.as_ref().unwrap().message, told);
        assert!(began.elapsed() < Duration::from_secs(8), "{text}: {:?}", began.elapsed());
        assert_eq!(scene.requests().len(), 1, "the model is not asked again");
        kinds(&scene, &run).await;
        assert_eq!(scene.answer("c1", "hello again").await, "You said: hello again");
        let last = scene.asked().pop().unwrap();
        is_paired(&last);
        assert!(!json!(last).to_string().contains(command), "{last:#?}");
        assert_eq!(scene.stage.api.runs().await.len(), 2, "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_cancelled_in_the_middle_of_an_answer() {
    let scene = gate("", "").await;
    let run_id = scene.stage.send(&event("agent", "c1", "tell me of silence")).await;
    first_words(&scene, &run_id).await;
    let began = Instant::now();
    let run = scene.stage.cancel(&run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Cancelled, "cancelled"));
    assert!(began.elapsed() < Duration::from_secs(5));
    kinds(&scene, &run).await;
    assert_eq!(scene.answer("c1", "go on").await, "You said: go on");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_cancelled_in_the_middle_of_a_tool_call_and_the_history_stays_whole() {
    // What may have changed something is kept with its one result; what only read is forgotten.
    for (text, is_kept) in [("hold", true), ("wait", false)] {
        let scene = gate("", "").await;
        let run_id = scene.stage.send(&event("agent", "c1", text)).await;
        at_gate(&scene, "g").await;
        let run = scene.stage.cancel(&run_id).await;
        assert_eq!(outcome(&run), (RunStatus::Cancelled, "cancelled"));
        kinds(&scene, &run).await;
        let cancelled = |line: &String| line.starts_with("cancel ");
        wait_for("word to the tool", PATIENCE, async || {
            notes(&scene).iter().any(cancelled).then_some(())
        })
        .await;
        if is_kept {
            let item = wait_for("an output", PATIENCE, async || {
                let items = scene.history("c1").await;
                items.into_iter().find(|item| item.role == TranscriptRole::Tool)
            });
            let output = item.await.metadata["tool_agent_output"].clone();
            assert_eq!(output["error"]["code"], "CANCELLED");
        }
        // The conversation goes on with a history that any provider takes.
        assert_eq!(scene.answer("c1", "hello again").await, "You said: hello again");
        let last = scene.asked().pop().unwrap();
        is_paired(&last);
        let told = last.iter().any(|message| message["tool_call_id"] == "c1");
        assert_eq!(told, is_kept, "{last:#?}");
    }
}

pub(crate) async fn question(scene: &Scene) -> Value {
    wait_for("a question", PATIENCE, async || {
        let page = scene.stage.api.get("/v1/approvals?status=pending").await;
        page["items"].as_array().unwrap().first().cloned()
    })
    .await
}

pub(crate) async fn decide(scene: &Scene, question: &Value, decision: &str) {
    let id = question["approval_id"].as_str().unwrap();
    let body = json!({"decision": decision, "nonce": question["nonce"]}).to_string();
    let answered = scene.stage.api.json(Request::post(format!("/v1/approvals/{id}"), body)).await;
    assert_eq!(answered.unwrap().0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_is_a_pause_that_resumes_even_after_the_deadline_would_have_passed() {
    let scene = impatient().await;
    let run_id = scene.stage.send(&event("agent", "c1", "write")).await;
    let asked = question(&scene).await;
    let began = Instant::now();
    assert_eq!(asked["target"]["tool_name"], "yard.write");
    wait_for("the deadline", PATIENCE, async || {
        (began.elapsed() > Duration::from_secs(4)).then_some(())
    })
    .await;
    assert_eq!(scene.stage.api.run(&run_id).await.status, RunStatus::Running);
    assert_eq!(notes(&scene), [""; 0], "nothing is done before it is allowed");
    decide(&scene, &asked, "allow").await;
    let run = scene.stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{run:?}");
    assert_eq!(notes(&scene), ["begin one", "end one"]);
    assert_eq!(scene.stage.api.answers("c1").await, ["You said: write"]);
}

/// An agent that has three seconds, and asks before it writes.
async fn impatient() -> Scene {
    let setting = Setting {
        script: GATE,
        more: &yard(0),
        grant: "tools = [\"yard.*\"], risk = { write = \"ask\" }",
        deadline_s: 3,
        files: &[FOLDER],
        ..Setting::default()
    };
    setting.open().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_call_is_told_to_the_model_and_never_made() {
    let scene = gate("", ", risk = { write = \"ask\" }").await;
    let run_id = scene.stage.send(&event("agent", "c1", "write")).await;
    let asked = question(&scene).await;
    decide(&scene, &asked, "deny").await;
    let run = scene.stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    assert_eq!(notes(&scene), [""; 0]);
    let messages = scene.asked().pop().unwrap();
    is_paired(&messages);
    let told = &crate::checks::results(&messages)[0]["error"];
    assert_eq!(
        (&told["code"], &told["details"]["reason"]),
        (&json!("unauthorized"), &json!("denied"))
    );
    assert!(told["hint"].is_string(), "{told}");
}
