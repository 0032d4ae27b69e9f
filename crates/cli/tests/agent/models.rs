//! Models that are silent, refuse or break off; the ones that stand in; conversations that do not wait.

use crate::checks::{kinds, shown};
use crate::raw::Raw;
use crate::scene::{Scene, Setting};
use crate::stage::{PATIENCE, Stage, config, event, outcome};
use crate::yard::{FOLDER, at_gate, open_gate, yard};
use greenroom_protocol::RunStatus;
use greenroom_testkit::host::TestHost;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// A model that stands in, without any network.
const SPARE: (&str, &str) = ("spare.toml", "[[rule]]\nanswer = \"The spare answers.\"\n");
const SPARE_MODEL: &str = "[models.spare]\nprovider = \"scripted\"\nscript = \"spare.toml\"\n";

#[tokio::test(flavor = "multi_thread")]
async fn the_model_that_was_granted_first_answers_whatever_its_name() {
    for (models, expected) in
        [(["spare", "main"], "The spare answers."), (["main", "spare"], "You said: hello")]
    {
        let setting =
            Setting { more: SPARE_MODEL, files: &[SPARE], models: &models, ..Setting::default() };
        assert_eq!(setting.open().await.answer("c1", "hello").await, expected, "{models:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_several_models_the_first_in_the_file_answers_where_nobody_chooses() {
    let model = |name: &str| {
        format!("[models.{name}]\nprovider = \"scripted\"\nscript = \"{name}.toml\"\n")
    };
    for order in [["zeta", "alpha"], ["alpha", "zeta"]] {
        let models: String = order.map(model).concat();
        let host = TestHost::prepare(crate::PROGRAM, &config("", &models));
        for name in order {
            let script = format!("[[rule]]\nanswer = \"{name} answers\"\n");
            std::fs::write(host.folder().join(format!("{name}.toml")), script).unwrap();
        }
        let stage = Stage::with(host).await;
        let run_id = stage.send(&event("assistant", "c1", "hello")).await;
        stage.api.ended_run(&run_id).await;
        assert_eq!(stage.api.answers("c1").await, [format!("{} answers", order[0])]);
        let listed = stage.api.get("/v1/models").await;
        let names: Vec<&str> = listed["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|model| model["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, order);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_provider_does_not_hold_the_run() {
    // It takes the request and never says a word, whether it is told to stop or not.
    let raw = Raw::start(|_| None);
    let more = raw.model("raw", "");
    let setting = Setting {
        more: &more,
        models: &["raw"],
        config: "{ model_timeout_s = 1 }",
        ..Setting::default()
    };
    let scene = setting.open().await;
    let began = Instant::now();
    let run = scene.say("c1", "hello").await;
    assert_eq!(outcome(&run), (RunStatus::Failed, "model.timeout"));
    assert!(began.elapsed() < Duration::from_secs(10));
    let error = run.error.as_ref().unwrap();
    assert!(error.retryable && error.message.contains("raw"), "{error:?}");
    kinds(&scene, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_falls_silent_before_its_first_word_is_replaced_and_after_it_is_not() {
    let script = r#"
[[rule]]
when.text = "begin"
answer = [{ text = "so far" }, { silence = true }]
[[rule]]
answer = [{ silence = true }]
"#;
    let setting = Setting {
        script,
        more: SPARE_MODEL,
        files: &[SPARE],
        models: &["main", "spare"],
        config: "{ model = \"main\", fallback_models = [\"spare\"], model_timeout_s = 1 }",
        ..Setting::default()
    };
    let scene = setting.open().await;
    assert_eq!(scene.answer("c1", "say nothing").await, "The spare answers.");
    let run = scene.say("c2", "begin").await;
    assert_eq!(outcome(&run), (RunStatus::Failed, "model.timeout"));
    assert_eq!(shown(&scene, &run).await, "so far");
    // The record of a call that cost nothing is stored a little later.
    let calls = wait_for("the record of the call", PATIENCE, async || {
        let calls = scene.stage.api.run(&run.run_id).await.model_calls?.calls;
        (calls > 0).then_some(calls)
    });
    assert_eq!(calls.await, 1, "nobody else was asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_passes_is_tried_again_before_the_first_word_and_never_after_it() {
    let mut rules = String::new();
    for (name, step) in [
        ("limited", "{ error = 429, retry_after_s = 0 }"),
        ("down", "{ error = 503, retry_after_s = 0 }"),
        ("reset", "{ cut = true }"),
    ] {
        let rule = format!("[[rule]]\nwhen.text = \"{name}\"\ntimes = 1\nanswer = [{step}]\n");
        rules.push_str(&rule);
    }
    rules.push_str(
        "[[rule]]\nwhen.text = \"half\"\nanswer = [{ text = \"so far\" }, { cut = true }]\n\
         [[rule]]\nanswer = \"fine\"\n",
    );
    let setting = Setting {
        script: &rules,
        model: "retries = 2",
        more: SPARE_MODEL,
        files: &[SPARE],
        models: &["main", "spare"],
        config: "{ model = \"main\", fallback_models = [\"spare\"] }",
        ..Setting::default()
    };
    let scene = setting.open().await;
    for name in ["limited", "down", "reset"] {
        assert_eq!(scene.answer(name, name).await, "fine");
        assert_eq!(scene.server.requests(&format!("\"{name}\"")).len(), 2, "{name}");
    }
    let run = scene.say("half", "half").await;
    assert_eq!(run.status, RunStatus::Failed, "{run:?}");
    assert_eq!(shown(&scene, &run).await, "so far");
    assert_eq!(scene.server.requests("\"half\"").len(), 1);
    assert_eq!(run.model_calls.unwrap().calls, 1, "no model stood in");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_stands_in_for_the_rest_of_the_run_once_the_host_has_given_up() {
    let script = "[[rule]]\nanswer = [{ error = 500, retry_after_s = 0 }]\n";
    let spare = r#"
[[rule]]
when.round = 1
answer = [{ text = "I add." }, { call = "forge.add", args = { a = 2, b = 3 } }]
[[rule]]
answer = "It is {{last_tool_result}}."
"#;
    let setting = Setting {
        script,
        model: "retries = 1",
        more: SPARE_MODEL,
        files: &[("spare.toml", spare)],
        models: &["main", "spare"],
        config: "{ model = \"main\", fallback_models = [\"gone\", \"spare\"] }",
        ..Setting::default()
    };
    let scene = setting.open().await;
    assert_eq!(scene.answer("c1", "add").await, r#"It is {"sum":5}."#);
    assert_eq!(scene.requests().len(), 2, "asked and tried again, then left alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_learns_which_model_answered_and_that_its_answer_was_cut() {
    let script = "[[rule]]\nanswer = [{ error = 500, retry_after_s = 0 }]\n";
    let spare = "[[rule]]\nanswer = [{ text = \"so far\" }, { finish = \"length\" }]\n";
    let setting = Setting {
        script,
        model: "retries = 0",
        more: SPARE_MODEL,
        files: &[("spare.toml", spare)],
        models: &["main", "spare"],
        config: "{ model = \"main\", fallback_models = [\"spare\"] }",
        ..Setting::default()
    };
    let scene = setting.open().await;
    let sent = greenroom(&scene, &["send", "hello", "--agent", "agent", "--follow"]);
    assert_eq!(String::from_utf8_lossy(&sent.stdout), "so far\n");
    let told = String::from_utf8_lossy(&sent.stderr).into_owned();
    let cut = "the answer was cut off at the maximum output length (`length`)";
    assert_eq!(told.matches(cut).count(), 1, "{told}");
    let run = scene.stage.api.get("/v1/runs").await["items"][0]["run_id"].clone();
    let story = wait_for("the records of the calls", PATIENCE, async || {
        let shown = greenroom(&scene, &["runs", "show", run.as_str()?]);
        let story = String::from_utf8(shown.stdout).unwrap();
        story.contains("  model ").then_some(story)
    });
    let story = story.await;
    assert!(story.contains("spare, as a fallback for main"), "{story}");
    assert!(story.contains(cut), "{story}");
}

#[expect(clippy::disallowed_methods, reason = "the program under test is started here")]
fn greenroom(scene: &Scene, args: &[&str]) -> Output {
    let mut command = Command::new(crate::PROGRAM);
    command.args(args).arg("--data").arg(scene.stage.host.data()).env("LC_ALL", "C");
    for name in ["GREENROOM_URL", "GREENROOM_TOKEN", "GREENROOM_DATA", "GREENROOM_CONFIG"] {
        command.env_remove(name);
    }
    command.output().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_another_model_the_failure_is_the_providers_own() {
    let script = "[[rule]]\nanswer = [{ error = 401, message = \"wrong key\" }]\n";
    let scene = Setting { script, ..Setting::default() }.open().await;
    let run = scene.say("c1", "hello").await;
    assert_eq!(run.status, RunStatus::Failed);
    assert!(run.error.as_ref().unwrap().message.contains("wrong key"), "{run:?}");
    let scene = Setting { models: &[], ..Setting::default() }.open().await;
    let run = scene.say("c1", "hello").await;
    assert_eq!(outcome(&run), (RunStatus::Failed, "agent.no_model"));
    let config = "{ model = \"gone\" }";
    let scene = Setting { config, ..Setting::default() }.open().await;
    let run = scene.say("c1", "hello").await;
    assert_eq!(outcome(&run), (RunStatus::Failed, "agent.no_model"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_answer_is_asked_for_once_more() {
    let script = r#"
[[rule]]
when.text = "once"
times = 1
answer = [{ finish = "stop" }]
[[rule]]
when.text = "always"
answer = [{ finish = "stop" }]
[[rule]]
answer = "Now."
"#;
    let scene = Setting { script, ..Setting::default() }.open().await;
    assert_eq!(scene.answer("c1", "once").await, "Now.");
    let run = scene.say("c2", "always").await;
    assert_eq!(outcome(&run), (RunStatus::Failed, "model.empty_answer"));
    assert_eq!(scene.server.requests("\"always\"").len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_conversations_never_wait_for_each_other() {
    let script = r#"
[[rule]]
when = { text = "hang", round = 1 }
answer = [{ call = "yard_gate", args = { name = "g" } }]
[[rule]]
when.text = "mute"
answer = [{ text = "one moment" }, { silence = true }]
[[rule]]
answer = "Done: {{text}}"
"#;
    let more = yard(0);
    let grant = "tools = [\"yard.*\"]";
    let setting = Setting { script, more: &more, grant, files: &[FOLDER], ..Setting::default() };
    let scene = setting.open().await;
    let hanging = scene.stage.send(&event("agent", "a", "hang")).await;
    let mute = scene.stage.send(&event("agent", "b", "mute")).await;
    at_gate(&scene, "g").await;
    wait_for("the first words", PATIENCE, async || {
        scene.stage.api.run(&mute).await.started_at.as_ref()?;
        scene.requests().iter().any(|body| body.to_string().contains("mute")).then_some(())
    })
    .await;
    assert_eq!(scene.answer("c", "quick").await, "Done: quick");
    assert_eq!(scene.stage.api.run(&hanging).await.status, RunStatus::Running);
    open_gate(&scene, "g");
    let run = scene.stage.api.ended_run(&hanging).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    scene.stage.cancel(&mute).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn temperature_reasoning_and_options_reach_the_provider() {
    let config = "{ temperature = 0.5, reasoning = \"low\", options = { top_p = 0.9 } }";
    let scene = Setting { config, ..Setting::default() }.open().await;
    scene.answer("c1", "hello").await;
    let request: Value = scene.requests().remove(0);
    assert_eq!(request["temperature"], json!(0.5));
    assert_eq!(request["reasoning_effort"], "low");
    assert_eq!(request["top_p"], json!(0.9));
}
