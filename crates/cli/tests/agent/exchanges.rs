//! What a run leaves to the next one: more answers than one, or none.

use crate::scene::Setting;
use crate::shapes::{PROVIDERS, check, check_prefixes, messages};
use crate::stage::{PATIENCE, event, outcome};
use crate::yard::{FOLDER, yard};
use greenroom_protocol::RunStatus;
use greenroom_testkit::wait::wait_for;

/// Answers so slowly that something can be said meanwhile.
const SLOW: &str = r#"
[[rule]]
when = { text = "slowly", round = 1 }
answer = [{ call = "yard_typed", args = { count = 2 } }]
[[rule]]
when.text = "slowly"
answer = [{ text = "Once upon " }, { wait_ms = 1500 }, { text = "a time." }]
[[rule]]
when = { text = "bread", round = 1 }
answer = [{ text = "Bread?" }, { call = "yard_typed", args = { count = 3 } }]
[[rule]]
answer = "You said: {{text}}"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn two_answers_of_one_run_are_told_as_they_were_given() {
    for provider in PROVIDERS {
        let setting = Setting {
            script: SLOW,
            provider,
            grant: "tools = [\"yard.*\"]",
            agent: "queue = \"steer\"",
            more: &yard(0),
            files: &[FOLDER],
            ..Setting::default()
        };
        let scene = setting.open().await;
        let run_id = scene.stage.send(&event("agent", "c1", "slowly")).await;
        wait_for("the first words", PATIENCE, async || {
            let results = scene.stage.api.get(&format!("/v1/runs/{run_id}/results")).await;
            results.to_string().contains("Once").then_some(())
        })
        .await;
        scene.stage.send(&event("agent", "c1", "and bread")).await;
        let run = scene.stage.api.ended_run(&run_id).await;
        assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{provider}");
        let expected = ["Once upon a time.", "Bread?", "You said: and bread"];
        assert_eq!(scene.stage.api.answers("c1").await, expected, "{provider}");
        scene.answer("c1", "and now?").await;
        let requests = scene.requests();
        assert_eq!(requests.len(), 5, "{provider}");
        requests.iter().for_each(|request| check(provider, request));
        check_prefixes(&requests);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_failed_run_left_unanswered_is_no_question_any_more() {
    let script = r#"
[[rule]]
when.text = "break"
answer = [{ error = 400, message = "no" }]
[[rule]]
answer = "You said: {{text}}"
"#;
    for provider in PROVIDERS {
        let scene = Setting { script, provider, ..Setting::default() }.open().await;
        let run = scene.say("c1", "break").await;
        assert_eq!(run.status, RunStatus::Failed, "{provider}");
        scene.answer("c1", "hello").await;
        scene.answer("c1", "and now?").await;
        let requests = scene.requests();
        check_prefixes(&requests);
        let told = messages(requests.last().unwrap());
        let told = told.iter().filter(|message| message["role"] != "system");
        let told: Vec<(bool, String)> =
            told.map(|message| (message["role"] == "user", message.to_string())).collect();
        let expected =
            ["break", "(This was not answered.)", "hello", "You said: hello", "and now?"];
        assert_eq!(told.len(), expected.len(), "{provider}: {told:#?}");
        for (at, ((is_user, message), text)) in told.iter().zip(expected).enumerate() {
            assert_eq!(*is_user, at % 2 == 0, "{provider}: {told:#?}");
            assert!(message.contains(text), "{provider}: {told:#?}");
        }
    }
}
