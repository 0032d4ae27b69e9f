//! Clients that go away and come back, and hosts that do.

use crate::reader::{Reader, find, kinds, request, steps, talk, text};
use crate::stage::Stage;
use serde_json::{Value, json};

fn waiting() -> Value {
    json!([
        ["say", "one "],
        ["mark", "said"],
        ["gate", "go"],
        ["say", "two"],
        ["message", "one two"],
        ["end"]
    ])
}

/// Reads until the first piece of text is there, then hangs up.
async fn begin(stage: &Stage, sent: &Value) -> (Reader, Value) {
    let mut reader = Reader::open(stage, request("puppet", sent)).await;
    let said = reader.until("TEXT_MESSAGE_CONTENT").await;
    assert_eq!(said["delta"], "one ");
    (reader, said)
}

#[tokio::test]
async fn a_client_that_comes_back_sees_the_run_go_on() {
    let stage = Stage::open("").await;
    let sent = steps("t", "r", waiting());
    let (reader, said) = begin(&stage, &sent).await;
    drop(reader);
    // It has a part of the answer by now, and sends that as well.
    let mut back = sent.clone();
    let half = json!({"id": said["messageId"], "role": "assistant", "content": "one "});
    back["messages"].as_array_mut().unwrap().push(half);
    let mut reader = Reader::open(&stage, request("puppet", &back)).await;
    let started = reader.next().await.unwrap();
    assert_eq!((&started["type"], &started["runId"]), (&json!("RUN_STARTED"), &json!("r")));
    let reset = reader.next().await.unwrap();
    assert_eq!(reset, json!({"type": "MESSAGES_SNAPSHOT", "messages": sent["messages"]}));
    let again = reader.until("TEXT_MESSAGE_CONTENT").await;
    assert_eq!(again, said, "the same piece of the same message");
    stage.pass("go");
    let rest = reader.rest().await;
    assert_eq!(text(&rest), "two");
    assert_eq!(rest.last().unwrap()["type"], "RUN_FINISHED");
    assert_eq!(stage.api.runs().await.len(), 1);
    assert_eq!(stage.api.answers("t").await, ["one two"]);
}

#[tokio::test]
async fn a_stream_that_was_cut_off_goes_on_behind_its_last_number() {
    let stage = Stage::open("").await;
    let sent = steps("t", "r", waiting());
    let (reader, said) = begin(&stage, &sent).await;
    let last = reader.last.clone().unwrap();
    drop(reader);
    let back = request("puppet", &sent).header("last-event-id", last);
    let mut reader = Reader::open(&stage, back).await;
    stage.pass("go");
    let next = reader.next().await.unwrap();
    assert_eq!(next["delta"], "two");
    assert_eq!(next["messageId"], said["messageId"]);
    assert_eq!(kinds(&reader.rest().await), ["TEXT_MESSAGE_END", "RUN_FINISHED"]);
}

#[tokio::test]
async fn after_a_crash_the_next_host_tells_how_the_run_ended() {
    let mut stage = Stage::open("").await;
    let sent = steps("t", "r", json!([["say", "one "], ["mark", "said"], ["hang"]]));
    let (reader, _) = begin(&stage, &sent).await;
    stage.host.kill();
    drop(reader);
    stage.host.start_again().await;
    stage.api = stage.host.api();
    let events = talk(&stage, "puppet", &sent).await;
    assert_eq!(find(&events, "RUN_ERROR")["code"], "host.interrupted");
    assert_eq!(kinds(&events).iter().filter(|kind| **kind == "RUN_ERROR").count(), 1);
    assert_eq!(stage.api.runs().await.len(), 1);
}

#[tokio::test]
async fn a_host_that_stops_ends_the_stream_in_good_order() {
    let mut stage = Stage::open_with("cancel_grace_s = 1\nshutdown_grace_s = 1", "").await;
    let sent = steps("t", "r", json!([["say", "one "], ["hang"]]));
    let (reader, _) = begin(&stage, &sent).await;
    let (_, events) = tokio::join!(stage.host.stop(), reader.rest());
    assert_eq!(kinds(&events), ["TEXT_MESSAGE_END", "RUN_ERROR"]);
    assert_eq!(events[1]["code"], "host.interrupted");
}

#[tokio::test]
async fn a_slow_reader_gets_everything() {
    let stage = Stage::open_with("cancel_grace_s = 1\nsubscriber_buffer = 16", "").await;
    let says: Vec<Value> = (0..3000).map(|number| json!(["say", format!("{number} ")])).collect();
    let all: String = (0..3000).map(|number| format!("{number} ")).collect();
    let steps_all: Vec<Value> =
        says.into_iter().chain([json!(["mark", "over"]), json!(["end"])]).collect();
    let mut reader =
        Reader::open(&stage, request("puppet", &steps("t", "r", steps_all.into()))).await;
    reader.next().await.unwrap();
    stage.marked("over").await;
    let events = reader.rest().await;
    assert_eq!(text(&events), all);
    assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED");
}
