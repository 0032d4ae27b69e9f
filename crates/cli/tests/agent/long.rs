//! Five hundred turns with a small window: what was said in the beginning is still known at the end.

use crate::compaction::{MODEL, SCRIPT, WINDOW, stretches, tokens};
use crate::scene::Setting;
use crate::shapes::{check, check_prefixes, messages};
use crate::stage::outcome;
use greenroom_protocol::{RunStatus, TranscriptRole};

const TURNS: usize = 500;

/// Of the third turn: the code word is carried on by the summaries, the locker only by the transcript.
const FACTS: &str = "Remember that the code word is heron. My things are in locker number 4711.";

const QUESTIONS: &str = r#"
[[rule]]
when = { text = "what is the code word", context = "code word is heron" }
answer = "It is heron."
[[rule]]
when.text = "what is the code word"
answer = "I do not know."
[[rule]]
when = { text = "which locker", result_text = "locker number 4711" }
answer = "It is 4711."
[[rule]]
when = { text = "which locker", tool_result = true }
answer = "I found nothing."
[[rule]]
when = { text = "which locker", context = "4711" }
answer = "I was told by mistake."
[[rule]]
when = { text = "which locker", offers = "search_history" }
answer = [{ call = "search_history", args = { query = "locker number" } }]
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_fact_of_the_third_turn_is_known_in_the_five_hundredth() {
    let script = format!("{QUESTIONS}{SCRIPT}");
    let setting =
        Setting { script: &script, model: MODEL, grant: "tools = []", ..Setting::default() };
    let scene = setting.open().await;
    for turn in 1..TURNS {
        let text = match turn {
            3 => FACTS.to_owned(),
            _ => format!("Remark {turn}: the weather is as it always is at this time of the year."),
        };
        let run = scene.say("c1", &text).await;
        assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    }
    assert_eq!(scene.answer("c1", "What is the code word?").await, "It is heron.");
    assert_eq!(scene.answer("c1", "Which locker is mine?").await, "It is 4711.");
    let items = scene.history("c1").await;
    let found = items.iter().rfind(|item| item.role == TranscriptRole::Tool).unwrap();
    let found: serde_json::Value = serde_json::from_str(found.text.as_ref().unwrap()).unwrap();
    let first = &found["items"][0];
    assert_eq!(first["text"], FACTS, "{found}");
    assert_eq!((&first["role"], &first["seq"]), (&"user".into(), &5.into()), "{found}");
    let requests = scene.requests();
    for request in &requests {
        check("openai", request);
        assert!(tokens(request) <= WINDOW * 3 / 4, "{request}");
    }
    // The turn itself is long out of sight, until the search brings it back.
    let [.., asked, answered] = requests.as_slice() else { panic!("{requests:?}") };
    assert!(!asked.to_string().contains("Remember that"), "{asked}");
    assert!(answered.to_string().contains("Remember that"), "{answered}");
    assert!(messages(asked)[1]["content"].as_str().unwrap().contains("The code word is heron."));
    // Between two summaries every request begins with the one before it.
    let stretches = stretches(&requests);
    stretches.iter().for_each(|stretch| check_prefixes(stretch));
    let summaries = stretches.len() - 1;
    assert!((5..TURNS / 5).contains(&summaries), "{summaries}");
    // A checkpoint is written when there is a new summary, and at no other time.
    assert_eq!(writes(&scene.stage.api).await, summaries);
}

/// How often state was written, by the audit.
async fn writes(api: &greenroom_testkit::api::Api) -> usize {
    let mut count = 0;
    for run in api.runs().await {
        let audit = api.get(&format!("/v1/audit?run_id={}&limit=200", run.run_id)).await;
        let records = audit["items"].as_array().unwrap();
        count += records.iter().filter(|record| record["method"] == "state.set").count();
    }
    count
}
