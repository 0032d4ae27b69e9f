//! Conversations that no longer fit: summarised, gone on with from the checkpoint, and without one.

use crate::scene::{Scene, Setting};
use crate::shapes::{check, check_prefixes, messages};
use crate::stage::outcome;
use greenroom_models::count::text_tokens;
use greenroom_protocol::RunStatus;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

/// Tokens of the model, and what of them is kept for its answer.
pub(crate) const WINDOW: u64 = 2400;
pub(crate) const MODEL: &str = "context_window = 2400\nretries = 0";
const KEY: &str = "runner.compaction.checkpoint";

/// A model whose records carry one fact on.
pub(crate) const SCRIPT: &str = r#"
[[rule]]
when = { system = "You keep the record", regex = 'code word is (\w+)' }
answer = "The code word is {{match.1}}."
[[rule]]
when.system = "You keep the record"
answer = "Small talk."
[[rule]]
answer = "Noted, and thank you very much for telling me about it."
"#;

pub(crate) fn setting(script: &str) -> Setting<'_> {
    Setting { script, model: MODEL, grant: "tools = []", ..Setting::default() }
}

/// The requests between summaries. A long past is summarised with several questions.
pub(crate) fn stretches(requests: &[Value]) -> Vec<&[Value]> {
    requests.split(is_summary).filter(|stretch| !stretch.is_empty()).collect()
}

/// Requests for a summary have a prompt of their own.
pub(crate) fn is_summary(request: &Value) -> bool {
    let prompt = messages(request)[0]["content"].as_str().unwrap_or_default().to_owned();
    prompt.starts_with("You keep the record")
}

/// Tokens of a request on the wire of chat completions, by the tokenizer of its provider.
pub(crate) fn tokens(request: &Value) -> u64 {
    let of = |value: &Value| match value {
        Value::Null => 0,
        Value::String(text) => text_tokens(text),
        other => text_tokens(&other.to_string()),
    };
    let message = |message: &Value| 4 + of(&message["content"]) + of(&message["tool_calls"]);
    messages(request).iter().map(message).sum::<u64>() + of(&request["tools"])
}

/// Something to say that takes room.
pub(crate) fn chatter(number: usize) -> String {
    format!("This is remark number {number} about {}", "this and that and ".repeat(24))
}

fn database(scene: &Scene) -> Connection {
    Connection::open(scene.stage.host.data().join("greenroom.db")).unwrap()
}

/// The checkpoint of a conversation and its version; of a host that stands still.
fn checkpoint(scene: &Scene) -> (Value, i64) {
    let row = database(scene).query_row(
        "SELECT value, version FROM state WHERE name = ?1",
        params![KEY],
        |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)),
    );
    let (value, version) = row.unwrap();
    (serde_json::from_str(&value).unwrap(), version)
}

/// Puts a checkpoint where the agent's own would be; of a host that stands still.
fn plant(scene: &Scene, value: Option<&str>) {
    // What another program writes would look like damage.
    for name in ["greenroom.db-mark", "greenroom.db-sums"] {
        std::fs::remove_file(scene.stage.host.data().join(name)).unwrap();
    }
    let database = database(scene);
    database.execute("DELETE FROM state WHERE name = ?1", params![KEY]).unwrap();
    let owner = json!(["conversation", "agent", "plugin:greenroom/local-agent/default", "c1"]);
    let Some(value) = value else { return };
    database
        .execute(
            "INSERT INTO state (workspace_id, owner, name, size, version, updated_at, value)
             VALUES ('default', ?1, ?2, ?3, 1, 1, ?4)",
            params![owner.to_string(), KEY, value.len() as i64, value],
        )
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_grows_is_summarised_and_stays_the_same_until_it_is_again() {
    let mut scene = setting(SCRIPT).open().await;
    scene.answer("c1", "The code word is heron.").await;
    for number in 0..24 {
        scene.answer("c1", &chatter(number)).await;
    }
    let requests = scene.requests();
    requests.iter().for_each(|request| check("openai", request));
    assert!(requests.iter().all(|request| tokens(request) <= WINDOW * 3 / 4));
    let stretches = stretches(&requests);
    let summaries = stretches.len() - 1;
    assert!(summaries >= 2, "{summaries} of {}", requests.len());
    stretches.iter().for_each(|stretch| check_prefixes(stretch));
    // Every summary was made with the one before it, and serves from then on.
    for stretch in &stretches[1..] {
        let summary = &messages(&stretch[0])[1];
        assert_eq!(summary["role"], "user");
        let expected = "<conversation_summary>\nThe code word is heron.\n</conversation_summary>";
        assert_eq!(summary["content"], expected);
    }
    assert!(scene.stage.host.stop().await.success());
    let (kept, version) = checkpoint(&scene);
    assert_eq!(usize::try_from(version).unwrap(), summaries, "written once per summary");
    assert_eq!(kept["schema_version"], 1);
    assert_eq!(kept["summary"], "The code word is heron.");
    assert_eq!(kept["conversation_id"], "c1");
    let covers_until = kept["covers_until"].as_i64().unwrap();
    // Two items per turn: whole turns are covered.
    assert!(covers_until > 0 && covers_until % 2 == 0, "{kept}");
    assert!(kept["tokens_before"].as_u64().unwrap() > 0);
    assert!(kept["created_at"].as_str().unwrap().ends_with('Z'));
    // The next run begins there.
    scene.stage.host.start_again().await;
    scene.answer("c1", "last").await;
    let all = scene.requests();
    check_prefixes(&[requests.last().unwrap().clone(), all.last().unwrap().clone()]);
    let first = messages(all.last().unwrap())[2]["content"].as_str().unwrap().to_owned();
    // Item 2n + 3 is remark n.
    let number = (covers_until + 1 - 3) / 2;
    assert!(first.starts_with(&format!("This is remark number {number} ")), "{first}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_checkpoint_that_is_missing_foreign_unreadable_or_newer_falls_back_to_the_tail() {
    let mut scene = setting(SCRIPT).open().await;
    for text in ["first", "second", "third"] {
        scene.answer("c1", text).await;
    }
    let of = |schema_version: u32, conversation_id: &str, covers_until: Value| {
        json!({"schema_version": schema_version, "summary": "PLANTED", "covers_until": covers_until,
            "tokens_before": 1, "created_at": "2026-01-01T00:00:00.000Z",
            "conversation_id": conversation_id})
        .to_string()
    };
    let cases = [
        // One that counts, to show that the others could have.
        (Some(of(1, "c1", 4.into())), true),
        (None, false),
        (Some(of(1, "c2", 4.into())), false),
        (Some(of(2, "c1", 4.into())), false),
        (Some(of(1, "c1", "four".into())), false),
        (Some(of(1, "c1", 1000.into())), false),
        (Some("\"only words\"".to_owned()), false),
    ];
    for (value, counts) in cases {
        assert!(scene.stage.host.stop().await.success());
        plant(&scene, value.as_deref());
        scene.stage.host.start_again().await;
        scene.answer("c1", "and now?").await;
        let request = scene.requests().pop().unwrap();
        let said = messages(&request);
        let says = |text: &str| said.iter().any(|message| message["content"] == text);
        assert_eq!(request.to_string().contains("PLANTED"), counts, "{value:?}: {request}");
        assert_eq!((says("first"), says("second")), (!counts, !counts), "{value:?}: {request}");
        assert!(says("third"), "{value:?}: {request}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_model_that_summarises_the_gist_is_kept_all_the_same() {
    let script = format!(
        "[[rule]]\nwhen.system = \"You keep the record\"\nanswer = [{{ error = 500 }}]\n{SCRIPT}"
    );
    let scene = setting(&script).open().await;
    for number in 0..16 {
        scene.answer("c1", &chatter(number)).await;
    }
    let requests = scene.requests();
    assert!(requests.iter().any(is_summary));
    assert!(requests.iter().all(|request| tokens(request) <= WINDOW * 3 / 4));
    let summary = messages(requests.last().unwrap())[1]["content"].as_str().unwrap().to_owned();
    assert!(summary.starts_with("<conversation_summary>\n- This is remark number "), "{summary}");
    assert!(summary.contains(" → Noted, and thank you"), "{summary}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_state_the_agent_answers_within_its_window_all_the_same() {
    let setting = Setting { grant: "tools = [], state = []", ..setting(SCRIPT) };
    let scene = setting.open().await;
    for number in 0..14 {
        scene.answer("c1", &chatter(number)).await;
    }
    let requests = scene.requests();
    assert!(requests.iter().any(is_summary));
    for request in &requests {
        check("openai", request);
        assert!(tokens(request) <= WINDOW * 3 / 4, "{request}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_are_summarised_or_kept_whole_with_their_calls() {
    let script = format!(
        "[[rule]]\nwhen = {{ text = \"add\", tool_result = false }}\n\
         answer = [{{ call = \"forge_add\", args = {{ a = 1, b = 2 }} }}, {{ call = \"forge_text\", args = {{}} }}]\n{SCRIPT}"
    );
    let setting = Setting { grant: "tools = [\"forge.add\", \"forge.text\"]", ..setting(&script) };
    let scene = setting.open().await;
    for number in 0..16 {
        scene.answer("c1", &format!("add {number} {}", "and so on ".repeat(12))).await;
    }
    let requests = scene.requests();
    assert!(requests.iter().filter(|request| is_summary(request)).count() >= 2);
    for request in requests.iter().filter(|request| !is_summary(request)) {
        check("openai", request);
        assert!(tokens(request) <= WINDOW * 3 / 4, "{request}");
        // Behind prompt and summary, the first that is told is what a user said.
        let said = messages(request);
        let first = said.iter().find(|message| {
            let text = message["content"].as_str().unwrap_or_default();
            message["role"] != "system" && !text.starts_with("<conversation_summary>")
        });
        assert_eq!(first.unwrap()["role"], "user", "{request}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_is_part_of_what_the_run_uses_and_of_its_limits() {
    let script = format!(
        "[[rule]]\nwhen = {{ system = \"You keep the record\", text = \"endless\" }}\n\
         answer = [{{ silence = true }}]\n\
         [[rule]]\nwhen.system = \"You keep the record\"\n\
         answer = [{{ text = \"Small talk.\" }}, {{ usage = {{ input_tokens = 50000, output_tokens = 1 }} }}]\n{SCRIPT}"
    );
    for (config, first, ending) in [
        ("{}", "hello", (RunStatus::Completed, "")),
        ("{ max_tokens_per_run = 40000 }", "hello", (RunStatus::Failed, "limit.tokens")),
        ("{ max_seconds = 3 }", "endless", (RunStatus::Failed, "limit.time")),
    ] {
        let scene = Setting { config, ..setting(&script) }.open().await;
        let mut run = scene.say("c1", first).await;
        for number in 0..24 {
            if scene.requests().iter().any(is_summary) {
                break;
            }
            run = scene.say("c1", &chatter(number)).await;
        }
        assert_eq!(outcome(&run), ending, "{config}");
        if config == "{}" {
            let used = run.usage.as_ref().and_then(|usage| usage["input_tokens"].as_u64());
            assert!(used.is_some_and(|used| used >= 50000), "{run:?}");
        }
    }
}
