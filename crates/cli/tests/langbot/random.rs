//! Random sequences of snapshots, rewrites, pictures and completions through the real host: what every kind of reader
//! holds at the end equals what LangBot would show.
//!
//! LangBot's rule, written down by hand: `all_content` of a chunk, else its `content`, replaces what is shown; a chunk
//! without text repeats the last text; a final chunk or a complete message ends it, both with one text are one message.

use crate::snapshots::through_agui;
use crate::stage::{PATIENCE, Stage, agent};
use greenroom_protocol::TranscriptRole;
use greenroom_testkit::reader::{SeenResults, follow};
use greenroom_testkit::receiver::{Received, Receiver};
use greenroom_testkit::wait::wait_for;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use serde_json::{Value, json};

/// A message as someone sees it: its text, and how many pictures it has.
type Seen = (String, usize);

#[derive(Debug, Clone)]
enum Chunk {
    Text(String),
    /// A piece and everything so far.
    All(String, String),
    Nothing,
    Picture(String),
}

#[derive(Debug, Clone)]
enum End {
    FinalChunk(String),
    /// Complete, with what is shown or with something else.
    Complete(Option<String>),
    Both(String),
}

#[derive(Debug, Clone)]
struct Sent {
    chunks: Vec<Chunk>,
    end: End,
}

fn text() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "ab", "abc", "abc d", "b", "bcd", "ä好", "ä好x", "other"])
        .prop_map(str::to_owned)
}

fn chunk() -> impl Strategy<Value = Chunk> {
    prop_oneof![
        5 => text().prop_map(Chunk::Text),
        2 => (text(), text()).prop_map(|(piece, all)| Chunk::All(piece, all)),
        1 => Just(Chunk::Nothing),
        1 => text().prop_map(Chunk::Picture),
    ]
}

fn message() -> impl Strategy<Value = Sent> {
    let end = prop_oneof![
        text().prop_map(End::FinalChunk),
        prop::option::of(text()).prop_map(End::Complete),
        text().prop_map(End::Both),
    ];
    (prop::collection::vec(chunk(), 1..6), end).prop_map(|(chunks, end)| Sent { chunks, end })
}

/// Messages, and chunks of one that nothing ends but the run.
fn sequence() -> impl Strategy<Value = (Vec<Sent>, Vec<Chunk>)> {
    (prop::collection::vec(message(), 0..4), prop::collection::vec(chunk(), 0..4))
}

fn elements(text: &str) -> Value {
    json!([{"type": "text", "text": text},
        {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}])
}

/// What LangBot shows after these chunks; nothing if they showed nothing.
fn shown(chunks: &[Chunk]) -> Option<Seen> {
    let (mut last, mut card) = (None, None);
    for chunk in chunks {
        match chunk {
            Chunk::Text(text) | Chunk::All(_, text) => {
                last = Some(text.clone());
                card = Some((text.clone(), 0));
            }
            Chunk::Nothing => card = last.clone().map(|text| (text, 0)).or(card),
            Chunk::Picture(text) => card = Some((text.clone(), 1)),
        }
    }
    card
}

fn expected(messages: &[Sent], open: &[Chunk]) -> Vec<Seen> {
    let whole = messages.iter().filter_map(|sent| match &sent.end {
        End::FinalChunk(text) | End::Both(text) | End::Complete(Some(text)) => {
            Some((text.clone(), 0))
        }
        End::Complete(None) => shown(&sent.chunks),
    });
    whole.chain(shown(open)).collect()
}

/// What the plugin is told to send.
fn script(messages: &[Sent], open: &[Chunk]) -> Value {
    let chunk = |chunk: &Chunk| match chunk {
        Chunk::Text(text) => json!(["delta", {"content": text}]),
        Chunk::All(piece, all) => json!(["delta", {"content": piece, "all_content": all}]),
        Chunk::Nothing => json!(["delta", {"content": null}]),
        Chunk::Picture(text) => json!(["delta", {"content": elements(text)}]),
    };
    let last = |text: &str| json!(["delta", {"content": text, "is_final": true}]);
    let complete = |content: Value| json!(["completed", {"content": content}]);
    let mut script = Vec::new();
    for sent in messages {
        script.extend(sent.chunks.iter().map(chunk));
        match &sent.end {
            End::FinalChunk(text) => script.push(last(text)),
            End::Complete(Some(text)) => script.push(complete(text.as_str().into())),
            End::Complete(None) => script.push(complete(match shown(&sent.chunks) {
                Some((text, 0)) => text.into(),
                Some((text, _)) => elements(&text),
                None => "".into(),
            })),
            End::Both(text) => script.extend([last(text), complete(text.as_str().into())]),
        }
    }
    script.extend(open.iter().map(chunk));
    script.into()
}

/// The text of a message, and the pictures among its segments.
fn seen(text: &Value, segments: &Value) -> Seen {
    let segments = segments.as_array().map_or(&[][..], Vec::as_slice);
    let pictures = segments.iter().filter(|segment| segment["type"] == "image").count();
    (text.as_str().unwrap_or_default().to_owned(), pictures)
}

async fn check(stage: &Stage, receiver: &Receiver, number: usize, sent: &Value, wanted: &[Seen]) {
    let texts: Vec<&str> = wanted.iter().map(|(text, _)| text.as_str()).collect();
    let conversation = format!("c{number}");
    let run_id = stage.send("delivered", &conversation, &sent.to_string()).await;
    // Live, and again from every number on.
    let live = follow(stage.api.clone(), run_id.clone(), SeenResults::default()).await;
    assert_eq!(live.fold.messages, texts, "live: {sent}");
    for at in 0..live.results.len() {
        let mut fold = greenroom_testkit::fold::Fold::of(&live.results[..at]);
        let last = live.results[..at].last().map_or(0, |result| result.sequence.unwrap());
        let path = format!("/v1/runs/{run_id}/results?after={last}&limit=200");
        let page = stage.api.get(&path).await;
        let rest: Vec<greenroom_protocol::AgentRunResult> =
            serde_json::from_value(page["items"].clone()).unwrap();
        rest.iter().for_each(|result| fold.push(result));
        assert_eq!(fold.messages, texts, "from {last}: {sent}");
    }
    // The transcript.
    stage.api.ended_run(&run_id).await;
    let items = stage.api.history(&conversation).await.into_iter();
    let kept: Vec<Seen> = items
        .filter(|item| item.role == TranscriptRole::Assistant)
        .map(|item| {
            let view = serde_json::to_value(&item).unwrap();
            seen(&view["text"], &view["segments"])
        })
        .collect();
    assert_eq!(kept, wanted, "transcript: {sent}");
    // What was delivered.
    let delivered = wait_for("the deliveries", PATIENCE, async || {
        let received = receiver.received().into_iter();
        let own = received.filter(|one| one.payload["conversation_id"] == conversation.as_str());
        let message = |one: Received| one.payload["message"].clone();
        let found: Vec<Seen> =
            own.map(message).map(|one| seen(&one["content"], &one["segments"])).collect();
        (found.len() >= wanted.len()).then_some(found)
    });
    assert_eq!(delivered.await, wanted, "delivered: {sent}");
    // AG-UI has no pictures.
    assert_eq!(through_agui(stage, number, sent).await, texts, "AG-UI: {sent}");
}

#[test]
fn every_reader_ends_with_what_langbot_shows_for_random_sequences() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (stage, receiver) = runtime.block_on(async {
        let receiver = Receiver::start().await;
        let surface = format!(
            "[surfaces.hook]\nkind = \"webhook\"\nurl = \"{}\"\nallow_private = true\n",
            receiver.url()
        );
        let agents = agent("delivered", "basics", "replay", "delivery = \"hook\"")
            + &agent("replay", "basics", "replay", "");
        (Stage::open(&["basics"], &(agents + &surface)).await, receiver)
    });
    let number = std::cell::Cell::new(0);
    let config = Config { cases: 100, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&sequence(), |(messages, open)| {
        number.set(number.get() + 1);
        let (sent, wanted) = (script(&messages, &open), expected(&messages, &open));
        let checked = std::panic::AssertUnwindSafe(|| {
            runtime.block_on(check(&stage, &receiver, number.get(), &sent, &wanted));
        });
        std::panic::catch_unwind(checked)
            .map_err(|_| TestCaseError::fail(format!("{sent} should show {wanted:?}")))
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}
