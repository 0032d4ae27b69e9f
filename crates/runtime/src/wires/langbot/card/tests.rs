//! What readers hold equals what LangBot would show, whatever a runner sends.

use super::*;
use crate::wires::langbot::RunnerProfile;
use crate::wires::langbot::results::translate;
use greenroom_protocol::RawResult;
use proptest::prelude::*;
use serde_json::value::to_raw_value;

/// A message as someone sees it: its text, and how many pictures it has.
type Seen = (String, usize);

/// LangBot's pipeline for adapters that stream, written down by hand: its coalescing of the final chunk with the
/// complete message, and its cards.
#[derive(Default)]
struct Langbot {
    closed: Vec<Seen>,
    card: Option<Seen>,
    snapshot: String,
    /// The final chunk that was not delivered yet: what it shows, and whether it has tool calls.
    pending: Option<(Value, bool)>,
}

impl Langbot {
    fn deliver(&mut self, content: &Value, is_final: bool, has_calls: bool) {
        let is_empty = content.is_null() || *content == json!("") || *content == json!([]);
        if !is_empty {
            self.card = Some(seen(content));
        }
        if is_final && !has_calls {
            self.closed.extend(self.card.take());
        }
    }

    fn chunk(&mut self, chunk: &Value) {
        if let Some((content, has_calls)) = self.pending.take() {
            self.deliver(&content, true, has_calls);
            self.snapshot.clear();
        }
        let all = chunk["all_content"].as_str();
        let content = match &chunk["content"] {
            Value::Array(elements) => all.map_or_else(|| elements.clone().into(), Value::from),
            content => {
                let text = content.as_str().filter(|text| !text.is_empty());
                if let Some(text) = all.or(text) {
                    self.snapshot = text.to_owned();
                }
                self.snapshot.clone().into()
            }
        };
        let has_calls = chunk["tool_calls"].is_array();
        match chunk["is_final"] == true {
            true => self.pending = Some((content, has_calls)),
            false => self.deliver(&content, false, has_calls),
        }
    }

    fn message(&mut self, message: &Value) {
        let has_calls = message["tool_calls"].is_array();
        let mut content = message["content"].clone();
        if let Some((pending, pending_calls)) = self.pending.take() {
            let is_round = match (pending.as_str(), content.as_str()) {
                (Some(whole), Some(part)) => !part.is_empty() && whole.ends_with(part),
                _ => false,
            };
            let is_same = has_calls == pending_calls
                && (pending == json!("") || pending == content || is_round);
            match is_same {
                true if is_round => content = pending,
                true => {}
                false => self.deliver(&pending, true, pending_calls),
            }
        }
        self.snapshot.clear();
        self.deliver(&content, true, has_calls);
    }

    fn end(mut self) -> Vec<Seen> {
        if let Some((content, has_calls)) = self.pending.take() {
            self.deliver(&content, true, has_calls);
        }
        self.closed.extend(self.card.take());
        self.closed.retain(|seen| *seen != (String::new(), 0));
        self.closed
    }
}

fn seen(content: &Value) -> Seen {
    match content {
        Value::Array(parts) => {
            let text = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            (text, parts.iter().filter(|part| part["type"] != "text").count())
        }
        content => (content.as_str().unwrap_or_default().to_owned(), 0),
    }
}

/// A reader of our results.
fn read(results: &[RawResult]) -> Vec<Seen> {
    let (mut messages, mut open) = (Vec::new(), String::new());
    for result in results {
        let data: Value = serde_json::from_str(result.data.as_ref().unwrap().get()).unwrap();
        match result.kind.as_str() {
            "message.delta" => {
                let chunk = &data["chunk"];
                if chunk["replace"] == true {
                    open.clear();
                }
                open += chunk["content"].as_str().unwrap();
            }
            "message.completed" => {
                open.clear();
                messages.push(seen(&data["message"]["content"]));
            }
            "run.completed" => {
                let message = &data["message"];
                match message.is_null() || !messages.is_empty() {
                    true => messages.push((std::mem::take(&mut open), 0)),
                    false => messages.push(seen(&message["content"])),
                }
            }
            _ => {}
        }
    }
    messages.retain(|seen| *seen != (String::new(), 0));
    messages
}

fn results(items: &[Value]) -> Vec<RawResult> {
    let mut card = Card::default();
    let numbered = items.iter().zip(1..).map(|(item, number)| {
        let mut item = item.clone();
        item["run_id"] = "r1".into();
        item["sequence"] = number.into();
        to_raw_value(&item).unwrap()
    });
    numbered.flat_map(|item| translate("r1", &item, &mut card, RunnerProfile::default())).collect()
}

fn text() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "a", "ab", "abc", "abcd", "b", "c", "bcd", "ä好", "ä好x"])
        .prop_map(str::to_owned)
}

fn content() -> impl Strategy<Value = Value> {
    let picture = json!({"type": "image_url", "image_url": {"url": "https://example.com/a.png"}});
    let with = picture.clone();
    prop_oneof![
        6 => text().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => Just(json!([picture])),
        1 => text().prop_map(move |text| json!([{"type": "text", "text": text}, with.clone()])),
    ]
}

fn calls() -> impl Strategy<Value = Value> {
    let call =
        json!([{"id": "t1", "type": "function", "function": {"name": "x", "arguments": "{}"}}]);
    prop_oneof![5 => Just(Value::Null), 1 => Just(call)]
}

fn item() -> impl Strategy<Value = Value> {
    let all = prop::option::weighted(0.3, text());
    let chunk = (content(), all, any::<bool>(), calls()).prop_map(|(content, all, is_final, calls)| {
        json!({"type": "message.delta", "data": {"chunk": {"role": "assistant", "content": content,
            "all_content": all, "is_final": is_final, "tool_calls": calls}}})
    });
    let message = (content(), calls()).prop_map(|(content, calls)| {
        json!({"type": "message.completed",
            "data": {"message": {"role": "assistant", "content": content, "tool_calls": calls}}})
    });
    prop_oneof![5 => chunk, 1 => message]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn readers_end_with_what_langbot_would_show(items in prop::collection::vec(item(), 0..12)) {
        let mut langbot = Langbot::default();
        for item in &items {
            match item["type"].as_str() {
                Some("message.delta") => langbot.chunk(&item["data"]["chunk"]),
                _ => langbot.message(&item["data"]["message"]),
            }
        }
        let mut sent = items.clone();
        sent.push(json!({"type": "run.completed", "data": {"finish_reason": "stop"}}));
        prop_assert_eq!(read(&results(&sent)), langbot.end());
    }

    #[test]
    fn a_snapshot_that_extends_the_last_one_is_only_the_difference(
        pieces in prop::collection::vec("[a-zä好 ]{1,5}", 1..12),
    ) {
        let mut whole = String::new();
        let chunks: Vec<Value> = pieces.iter().map(|piece| {
            whole += piece;
            json!({"type": "message.delta", "data": {"chunk": {"role": "assistant", "content": whole}}})
        }).collect();
        let texts: Vec<Value> = results(&chunks).iter().map(|result| {
            serde_json::from_str::<Value>(result.data.as_ref().unwrap().get()).unwrap()["chunk"].clone()
        }).collect();
        let expected: Vec<Value> =
            pieces.iter().map(|piece| json!({"role": "assistant", "content": piece})).collect();
        prop_assert_eq!(texts, expected);
    }
}

#[test]
fn the_message_of_the_terminal_completes_what_is_open_and_is_not_repeated() {
    let delta = |text: &str, is_final: bool| {
        json!({"type": "message.delta",
            "data": {"chunk": {"role": "assistant", "content": text, "is_final": is_final}}})
    };
    let end = |text: &str| json!({"type": "run.completed", "data": {"message": {"role": "assistant", "content": text}}});
    let whole = json!({"type": "message.completed",
        "data": {"message": {"role": "assistant", "content": "ab"}}});
    let text = |text: &str| (text.to_owned(), 0);
    assert_eq!(read(&results(&[delta("a", false), end("ab")])), [text("ab")]);
    assert_eq!(read(&results(&[delta("ab", true), end("ab")])), [text("ab")]);
    assert_eq!(read(&results(&[whole, end("ab")])), [text("ab")]);
    assert_eq!(read(&results(&[end("ab")])), [text("ab")]);
    assert_eq!(read(&results(&[delta("x", true), end("y")])), [text("x"), text("y")]);
}
