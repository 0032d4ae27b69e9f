//! How runs of a plugin go and end: whole, streamed, empty, malformed, failed, stopped, late, killed.

use crate::stage::{PATIENCE, SDK, Stage, agent, event, outcome};
use greenroom_protocol::RunStatus;
use greenroom_testkit::http::Request;
use greenroom_testkit::wait::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

fn agents() -> String {
    let names = ["plain", "streaming", "odd", "big", "slow", "greeter"];
    let agents = names.map(|name| agent(name, "basics", name, ""));
    agents.concat() + &agent("late", "basics", "slow", "deadline_s = 1")
}

#[tokio::test]
async fn a_plugin_is_a_runner_with_its_manifest_and_answers() {
    let stage = Stage::open(&["basics"], &agents()).await;
    let runner = stage.api.ready_runner("basics").await;
    assert_eq!(runner["plugin"], "greenroom-tests/basics");
    let isolation = runner["isolation"].as_str().unwrap();
    assert!(isolation.starts_with("landlock:") || isolation == "unavailable", "{isolation}");
    let manifests = runner["runners"].as_array().unwrap();
    let plain = manifests.iter().find(|manifest| manifest["name"] == "plain").unwrap();
    assert_eq!(plain["id"], "plugin:greenroom-tests/basics/plain");
    assert_eq!(plain["label"]["zh_Hans"], "Plain answer");
    assert_eq!(
        plain["metadata"],
        json!({"wire": "langbot", "dialect": "Runner", "sdk_version": SDK, "usages": ["agent"]})
    );
    let run = stage.play("plain", "c1", "hello").await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{}", stage.host.log());
    assert_eq!(stage.api.answers("c1").await, ["Received: hello"]);
    let usage = run.usage.unwrap();
    assert_eq!((&usage["input_tokens"], &usage["total_tokens"]), (&json!(3), &json!(7)));
}

#[tokio::test]
async fn a_plugin_whose_code_is_saved_is_started_anew() {
    let stage = Stage::open(&["basics"], &agents()).await;
    assert_eq!(stage.answer("plain", "c1", "hello").await, "Received: hello");
    let file = stage.host.folder().join("basics/components/runner/plain.py");
    let code = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, code.replace("Received:", "Got:")).unwrap();
    wait_for("the new code", PATIENCE, async || {
        (stage.answer("plain", "c2", "hello").await == "Got: hello").then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_plugin_whose_new_code_does_not_load_goes_on_as_it_was() {
    let stage = Stage::open(&["basics"], &agents()).await;
    let pid = stage.api.ready_runner("basics").await["pid"].clone();
    let code = stage.host.folder().join("basics/components/runner/plain.py");
    let written = std::fs::read_to_string(&code).unwrap();
    std::fs::write(&code, format!("{written}\ndef broken(:\n")).unwrap();
    let told = wait_for("the mistake", PATIENCE, async || {
        stage.api.runner("basics").await["last_error"].as_str().map(str::to_owned)
    })
    .await;
    assert!(told.contains("goes on as it was") && told.contains("SyntaxError"), "{told}");
    let line = stage.listed("basics");
    assert!(line.contains(" ready ") && line.contains("SyntaxError"), "{line}");
    assert_eq!(stage.answer("plain", "c1", "hello").await, "Received: hello");
    assert_eq!(stage.api.runner("basics").await["pid"], pid);

    std::fs::write(&code, written.replace("Received: ", "Now received: ")).unwrap();
    wait_for("the new code", PATIENCE, async || {
        (stage.answer("plain", "c1", "hello").await == "Now received: hello").then_some(())
    })
    .await;
    let runner = stage.api.ready_runner("basics").await;
    assert_eq!((&runner["last_error"], &runner["restarts"]), (&Value::Null, &json!(0)));
    assert_ne!(runner["pid"], pid);
}

#[tokio::test]
async fn a_plugin_with_a_description_that_cannot_be_read_goes_on_as_it_was() {
    let stage = Stage::open(&["basics"], &agents()).await;
    stage.api.ready_runner("basics").await;
    let description = stage.host.folder().join("basics/components/runner/plain.yaml");
    let written = std::fs::read_to_string(&description).unwrap();
    std::fs::write(&description, format!("{written}\n  bad: [\n")).unwrap();
    let told = wait_for("the mistake", PATIENCE, async || {
        stage.api.runner("basics").await["last_error"].as_str().map(str::to_owned)
    })
    .await;
    assert!(told.contains("goes on as it was"), "{told}");
    assert!(told.contains("components/runner/plain.yaml cannot be read: "), "{told}");
    assert_eq!(stage.answer("plain", "c1", "hello").await, "Received: hello");
    std::fs::write(&description, written).unwrap();
    wait_for("the mended description", PATIENCE, async || {
        stage.api.runner("basics").await["last_error"].is_null().then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_runner_is_told_who_speaks_where_and_to_whom() {
    let more = agents()
        + "[agents.configured]\nrunner = \"plugin:greenroom-tests/basics/plain\"\n\
        events = []\nconfig = { tone = \"calm\" }\n";
    let stage = Stage::open(&["basics"], &more).await;
    let mut group = event("configured", "c1", "who");
    group["bot_id"] = "b1".into();
    group["subject"] = json!({"subject_type": "group", "subject_id": "g1"});
    group["input"]["contents"] = json!([{"type": "image", "url": "https://example.com/a.png"}]);
    let run_id = stage.api.send_event(&group).await.run_id.unwrap();
    stage.api.ended_run(&run_id).await;
    let answer = stage.api.answers("c1").await.pop().unwrap();
    let told: Value = serde_json::from_str(answer.strip_prefix("Received: ").unwrap()).unwrap();
    assert_eq!(
        told,
        json!({"launcher": ["group", "g1"], "sender": "u1", "session": "group_g1", "bot": "b1",
            "event": ["MessageReceivedEvent", "who[Image]", "u1"], "config": {"tone": "calm"},
            "attachments": [{"type": "image", "source": "url", "url": "https://example.com/a.png"}],
            "reply": true,
            "contents": [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]})
    );
}

#[tokio::test]
async fn words_are_streamed_as_they_come_and_a_log_line_is_kept() {
    let stage = Stage::open(&["basics"], &agents()).await;
    let run = stage.play("streaming", "c1", "one two three").await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{}", stage.host.log());
    let results = stage.results(&run).await;
    let kinds: Vec<&str> = results.iter().map(|result| result.kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "processor.log",
            "message.delta",
            "message.delta",
            "message.delta",
            "message.completed",
            "run.completed"
        ]
    );
    assert_eq!(
        Value::Object(results[0].data.clone()),
        json!({"text": "3 words", "level": "debug"})
    );
    assert_eq!(results[2].data["chunk"], json!({"role": "assistant", "content": " two"}));
    assert_eq!(stage.api.answers("c1").await, ["one two three"]);
    assert_eq!(stage.diagnostics(&run.run_id).await, Vec::<String>::new());
}

#[tokio::test]
async fn a_run_ends_in_its_own_way_and_says_so() {
    let stage = Stage::open(&["basics"], &agents()).await;
    let run = stage.play("odd", "empty", "empty").await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{}", stage.host.log());
    assert_eq!(stage.api.answers("empty").await, Vec::<String>::new());

    let run = stage.play("odd", "controlled", "controlled").await;
    assert_eq!(outcome(&run), (RunStatus::Failed, "acme.quota"));
    let error = run.error.unwrap();
    assert_eq!((error.message.as_str(), error.retryable), ("the quota is used up", true));

    let run = stage.play("odd", "middle", "raises").await;
    assert_eq!(outcome(&run), (RunStatus::Failed, "runner.exception"));
    assert!(run.error.unwrap().message.contains("broke in the middle"));
    assert_eq!(stage.api.answers("middle").await, ["so far "]);
    let log = stage.host.log();
    assert!(log.contains("odd.py") && log.contains("ValueError: broke in the middle"), "{log}");
    let run = stage.play("odd", "wordless", "says nothing").await;
    assert!(run.error.unwrap().message.ends_with("ValueError"));
    // It is not the run's own time that is over.
    let run = stage.play("odd", "vain", "waits in vain").await;
    assert_eq!(outcome(&run), (RunStatus::Failed, "runner.exception"));
    assert!(run.error.unwrap().message.ends_with("TimeoutError"));

    let run = stage.play("odd", "malformed", "malformed").await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    assert_eq!(stage.api.answers("malformed").await, ["still here"]);
    assert_eq!(stage.diagnostics(&run.run_id).await, ["invalid_result", "invalid_result"]);
}

#[tokio::test]
async fn text_on_standard_output_harms_nobody_and_is_in_the_log() {
    let stage = Stage::open(&["basics"], &agents()).await;
    assert_eq!(stage.answer("odd", "c1", "prints").await, "printed");
    assert_eq!(stage.answer("odd", "c1", "meddles").await, "took nothing");
    assert_eq!(stage.answer("plain", "c1", "hello").await, "Received: hello");
    for text in
        ["text on standard output", "{'looks': 'like json'}", "a part of a line", "of a child"]
    {
        wait_for(text, PATIENCE, async || stage.host.log().contains(text).then_some(())).await;
    }
    assert!(!stage.host.log().contains("which is not read"), "{}", stage.host.log());
}

#[tokio::test]
async fn two_megabytes_come_and_go_in_pieces() {
    let stage = Stage::open(&["basics"], &agents()).await;
    for way in ["whole", "ending"] {
        let run = stage.play("big", way, way).await;
        assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{run:?}\n{}", stage.host.log());
        // Too long for a transcript, it is kept whole as an artifact.
        let items = stage.api.history(way).await;
        let kept: Vec<_> = items.iter().flat_map(|item| &item.artifacts).collect();
        assert_eq!(kept.len(), 1, "{way}");
        let target = format!("/v1/artifacts/{}", kept[0].artifact_id);
        let answer = stage.api.send(Request::get(target)).await.unwrap();
        assert_eq!(answer.body().await.unwrap().len(), 2 * 1024 * 1024);
    }
    let run = stage.play("big", "streamed", "streamed").await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{}", stage.host.log());
    let deltas = stage.results(&run).await.into_iter();
    let text: usize = deltas
        .filter(|result| result.kind == "message.delta")
        .map(|result| result.data["chunk"]["content"].as_str().unwrap().len())
        .sum();
    assert_eq!(text, 2 * 1024 * 1024);
    // The other way: a long input reaches the plugin whole.
    let long = "ö\"".repeat(100_000);
    assert_eq!(stage.answer("big", "in", &long).await, "200000");
}

#[tokio::test]
async fn a_runner_that_takes_events_may_answer_by_a_call() {
    let stage = Stage::open(&["basics"], &agents()).await;
    let said = async |way: &str| {
        let run = stage.play("greeter", way, way).await;
        assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{run:?}\n{}", stage.host.log());
        stage.api.answers(way).await
    };
    for (way, answer) in [
        ("text", "welcome"),
        ("quote", "welcome"),
        ("stream", "welcome!"),
        ("aborted", "rather this"),
        ("path", "invalid_argument: a picture or file needs `url` or `base64`: paths are not read"),
    ] {
        assert_eq!(said(way).await, [answer], "{way}");
    }
    let run = stage.play("greeter", "chain", "chain").await;
    let results = stage.results(&run).await;
    let kinds: Vec<&str> = results.iter().map(|result| &*result.kind).collect();
    assert_eq!(kinds, ["message.completed", "run.completed"]);
    let message = results.iter().find(|result| result.kind == "message.completed").unwrap();
    let elements = json!([
        {"type": "text", "text": "look: "}, {"type": "image", "url": "https://example.com/a.png"}
    ]);
    assert_eq!(message.data["message"]["content"], elements);
    let joined = json!({"event_type": "group.member_joined", "agent": "greeter", "conversation_id": "g",
        "subject": {"subject_type": "group", "subject_id": "g1"}});
    let run_id = stage.api.send_event(&joined).await.run_id.unwrap();
    assert_eq!(outcome(&stage.api.ended_run(&run_id).await), (RunStatus::Completed, ""));
    assert_eq!(stage.api.answers("g").await, ["group.member_joined"]);
}

#[tokio::test]
async fn a_cancelled_run_ends_at_once_and_the_plugin_stops_it_and_stays() {
    let stage = Stage::open(&["basics"], &agents()).await;
    let pid = stage.api.ready_runner("basics").await["pid"].clone();
    let run_id = stage.send("slow", "c1", "one").await;
    stage.marked("basics/began-one").await;
    let run = stage.cancel(&run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Cancelled, "cancelled"));
    stage.marked("basics/stopped-one").await;
    let results = stage.results(&run).await;
    assert_eq!(results.last().unwrap().kind, "run.failed");
    assert_eq!(stage.answer("plain", "c1", "hello").await, "Received: hello");
    assert_eq!(stage.api.runner("basics").await["pid"], pid);
}

#[tokio::test]
async fn a_run_that_takes_too_long_is_over_and_stopped() {
    let stage = Stage::open(&["basics"], &agents()).await;
    stage.api.ready_runner("basics").await;
    let run = stage.play("late", "c1", "two").await;
    assert_eq!(outcome(&run), (RunStatus::Timeout, "deadline_exceeded"), "{run:?}");
    stage.marked("basics/stopped-two").await;
}

#[tokio::test]
async fn a_plugin_that_blocks_its_loop_is_replaced_once_its_run_is_cancelled() {
    let stage = Stage::open(&["basics"], &agents()).await;
    let pid = stage.api.ready_runner("basics").await["pid"].clone();
    let run_id = stage.send("odd", "c1", "blocks").await;
    stage.marked("basics/blocked").await;
    let before = stage.send("plain", "c2", "before").await;
    let run = stage.cancel(&run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Cancelled, "cancelled"));
    let after = stage.send("plain", "c3", "after").await;
    for (run_id, conversation) in [(before, "c2"), (after, "c3")] {
        let run = stage.api.ended_run(&run_id).await;
        assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{run:?}\n{}", stage.host.log());
        assert_eq!(run.attempt, 1);
        assert_eq!(stage.diagnostics(&run_id).await, ["moved"]);
        assert_eq!(stage.api.answers(conversation).await.len(), 1);
    }
    assert_ne!(stage.api.ready_runner("basics").await["pid"], pid);
    assert_eq!(stage.answer("plain", "c1", "hello").await, "Received: hello");
}

#[tokio::test]
async fn a_run_that_blocks_keeps_no_other_from_its_answer_and_gives_its_own() {
    let stage = Stage::open(&["basics"], &agents()).await;
    let pid = stage.api.ready_runner("basics").await["pid"].clone();
    let blocking = stage.send("odd", "c1", "blocks").await;
    stage.marked("basics/blocked").await;
    assert_eq!(stage.answer("plain", "c2", "hello").await, "Received: hello");
    assert_ne!(stage.api.ready_runner("basics").await["pid"], pid);
    assert_eq!(stage.api.run(&blocking).await.extra["with_runner"], true);
    assert!(stage.host.log().contains("has not read its input for 5 s"), "{}", stage.host.log());
    std::fs::write(stage.host.folder().join("basics/go"), "").unwrap();
    let run = stage.api.ended_run(&blocking).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{run:?}\n{}", stage.host.log());
    assert_eq!(stage.api.answers("c1").await, ["went on"]);
}

#[tokio::test]
async fn a_run_that_keeps_threads_or_the_loop_busy_keeps_no_other_from_its_answer() {
    for (way, mark) in [("fills its threads", "in-a-thread"), ("never waits", "never-waits")] {
        let stage = Stage::open(&["basics"], &agents()).await;
        let pid = stage.api.ready_runner("basics").await["pid"].clone();
        let busy = stage.send("odd", "c1", way).await;
        stage.marked(&format!("basics/{mark}")).await;
        assert_eq!(stage.answer("plain", "c2", "hello").await, "Received: hello", "{way}");
        std::fs::write(stage.host.folder().join("basics/go"), "").unwrap();
        let run = stage.api.ended_run(&busy).await;
        assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{way}: {run:?}");
        assert_eq!(stage.api.ready_runner("basics").await["pid"], pid, "{way}");
    }
}

#[tokio::test]
async fn a_plugin_that_dies_takes_its_runs_along_and_comes_back() {
    let stage = Stage::open(&["basics"], &agents()).await;
    let pid = stage.api.ready_runner("basics").await["pid"].clone();
    let run_id = stage.send("slow", "c1", "three").await;
    stage.marked("basics/began-three").await;
    let process = Pid::from_raw(i32::try_from(pid.as_i64().unwrap()).unwrap()).unwrap();
    kill_process(process, Signal::KILL).unwrap();
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Failed, "runner.crashed"));
    assert_eq!(stage.answer("plain", "c1", "again").await, "Received: again");
    assert_ne!(stage.api.ready_runner("basics").await["pid"], pid);

    let run = stage.play("odd", "c2", "exits").await;
    assert_eq!(outcome(&run), (RunStatus::Failed, "runner.crashed"));
    assert_eq!(stage.answer("plain", "c2", "again").await, "Received: again");

    // It serves, and still says what had happened.
    let line = stage.listed("basics");
    assert!(line.contains(" ready ") && line.contains("restarted 2x, last 2"), "{line}");
    assert!(line.contains("exited with code 7"), "{line}");
}

#[tokio::test]
async fn a_plugin_that_stands_still_is_over_by_its_deadline_and_one_that_is_killed_so_at_once() {
    let stage = Stage::open(&["basics"], &agents()).await;
    let signal = |runner: &Value, signal: Signal| {
        let pid = i32::try_from(runner["pid"].as_i64().unwrap()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    };
    let still = stage.api.ready_runner("basics").await;
    let run_id = stage.send("slow", "c1", "four").await;
    stage.marked("basics/began-four").await;
    signal(&still, Signal::STOP);
    // It cannot even be told of this one.
    let run = stage.play("late", "c2", "five").await;
    assert_eq!(outcome(&run), (RunStatus::Timeout, "deadline_exceeded"), "{run:?}");
    signal(&still, Signal::KILL);
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Failed, "runner.crashed"), "{run:?}");
    assert_eq!(stage.answer("plain", "c1", "again").await, "Received: again");
}
