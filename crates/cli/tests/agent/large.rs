//! Large results: both ends are seen, the rest can be read and searched (seed 003 §4.4, §6).

use crate::checks::{is_paired, results};
use crate::scene::{Scene, Setting};
use crate::yard::{FOLDER, yard};
use serde_json::{Value, json};

/// A text of 160,000 bytes, as the tool `yard.book` returns it.
fn book() -> String {
    let lines: String =
        (0..4000).map(|n| format!("line {n:05} of the book, {:>16}; ", n * n)).collect();
    json!({"text": lines}).to_string()
}

const SCRIPT: &str = r#"
[[rule]]
when = { regex = 'read (?<id>art_\w+) from (?<at>\d+)', tool_result = false, offers = "artifact_read" }
answer = [{ call = "artifact_read", args = { artifact_id = "{{match.id}}", offset = "{{match.at | json}}" } }]
[[rule]]
when = { regex = 'find (?<what>[\w ]+) in (?<id>\w+)', tool_result = false }
answer = [{ call = "artifact_read", args = { artifact_id = "{{match.id}}", search = "{{match.what}}" } }]
[[rule]]
when = { text = "both", tool_result = false }
answer = [{ call = "yard_book", args = {} }, { call = "yard_two_words", args = { a = 1 } }, { call = "yard_book", args = {} }]
[[rule]]
when = { text = "book", tool_result = false }
answer = [{ call = "yard_book", args = {} }]
[[rule]]
answer = "I have read it."
"#;

async fn library() -> Scene {
    let more = yard(0);
    let known = "[models.known]\nprovider = \"anthropic\"\nmodel = \"claude-sonnet-4-5\"\napi_key = { file = \"key\" }\n";
    let more = format!("{more}{known}");
    let setting = Setting {
        script: SCRIPT,
        more: &more,
        grant: "tools = [\"yard.book\", \"yard.two_words\"]",
        files: &[FOLDER],
        ..Setting::default()
    };
    setting.open().await
}

/// The result in the last request: its text, and the artifact and offset that it names.
fn cut(text: &str) -> (String, usize) {
    let note = text.split_once("\n[cut: ").unwrap_or_else(|| panic!("{text}")).1;
    let place = note.split_once("artifact.read ").unwrap_or_else(|| panic!("{note}")).1;
    let place = place.split_once("]\n").unwrap().0;
    let place: Value = serde_json::from_str(place).unwrap();
    let offset = usize::try_from(place["offset"].as_u64().unwrap()).unwrap();
    (place["artifact_id"].as_str().unwrap().to_owned(), offset)
}

fn content(message: &Value) -> &str {
    message["content"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_result_is_seen_at_both_ends_and_can_be_read_on_and_searched() {
    let scene = library().await;
    let whole = book();
    assert!(whole.len() > 160_000);
    scene.answer("c1", "get the book").await;
    let first = scene.asked().pop().unwrap();
    is_paired(&first);
    let seen = content(first.last().unwrap());
    assert!(seen.len() > 16_000, "{}", seen.len());
    assert!(seen.starts_with(&whole[..5_000]) && seen.ends_with(&whole[whole.len() - 5_000..]));
    let (id, offset) = cut(seen);
    // The next part begins where the head ends.
    scene.answer("c1", &format!("read {id} from {offset}")).await;
    let second = scene.asked().pop().unwrap();
    let part = &results(&second)[0];
    let text = part["text"].as_str().unwrap_or_else(|| panic!("{part}"));
    assert!(whole[offset..].starts_with(text) && text.len() >= 8_000, "{part}");
    assert_eq!(part["next_offset"], offset + text.len());
    assert_eq!(part["size_bytes"], whole.len());
    // The earlier result is as it was, byte for byte.
    assert_eq!(first[1..], second[1..first.len()]);
    scene.answer("c1", &format!("find LINE 02500 in {id}")).await;
    let found = results(scene.asked().last().unwrap());
    let hits = found[0]["hits"].as_array().unwrap_or_else(|| panic!("{found:?}"));
    assert_eq!(hits.len(), 1, "{found:?}");
    assert_eq!(hits[0]["offset"], whole.find("line 02500").unwrap());
    assert!(hits[0]["text"].as_str().unwrap().contains("6250000"), "{found:?}");
    // What is not in the conversation cannot be read in it.
    scene.answer("c2", &format!("read {id} from 0")).await;
    let other = results(scene.asked().last().unwrap());
    assert_eq!(other[0]["error"]["code"], "not_found", "{other:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_results_of_one_round_share_what_there_is() {
    let scene = library().await;
    scene.answer("c1", "get both books").await;
    let asked = scene.asked().pop().unwrap();
    is_paired(&asked);
    let told: Vec<&str> =
        asked.iter().filter(|message| message["role"] == "tool").map(content).collect();
    let [first, small, second] = told[..] else { panic!("{told:?}") };
    assert!(!small.contains("[cut: "), "{small}");
    assert!(first.len() > 8_000 && first.len().abs_diff(second.len()) < 200, "{}", first.len());
    assert_ne!(cut(first).0, cut(second).0);
}

#[tokio::test(flavor = "multi_thread")]
async fn windows_of_known_models_are_known() {
    let scene = library().await;
    let models = scene.stage.api.get("/v1/models").await;
    let window = |name: &str| {
        let items = models["items"].as_array().unwrap().iter();
        items.clone().find(|item| item["name"] == name).unwrap()["context_window"].clone()
    };
    assert_eq!(window("known"), 200_000);
    assert_eq!(window("main"), Value::Null);
}
