//! Server-sent events: live, resumable at any number, and no burden to the run.

use crate::stage::{Stage, message};
use greenroom_protocol::AgentRunResult;
use greenroom_testkit::fold::Fold;
use greenroom_testkit::http::{self, Request, Response};
use greenroom_testkit::reader::{Frame, Frames, SeenResults, follow};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;

async fn open(stage: &Stage, request: Request) -> Response {
    let request = request
        .header("accept", "text/event-stream")
        .header("authorization", format!("Bearer {}", stage.admin));
    http::send(stage.address, &request).await.unwrap()
}

async fn all(answer: Response) -> Vec<Frame> {
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(answer.header("cache-control"), Some("no-cache"));
    let mut frames = Frames::new(answer);
    let mut read = Vec::new();
    while let Some(frame) = frames.next().await.unwrap() {
        read.push(frame);
    }
    read
}

fn results(frames: &[Frame]) -> Vec<AgentRunResult> {
    frames.iter().map(|frame| serde_json::from_str(&frame.data).unwrap()).collect()
}

/// What a frame says; deltas that are stored together share the time of the first.
fn told(frame: &Frame) -> (String, String, Value) {
    let mut result: Value = serde_json::from_str(&frame.data).unwrap();
    result.as_object_mut().unwrap().remove("timestamp");
    (frame.event.clone(), frame.id.clone(), result)
}

#[tokio::test]
async fn an_event_is_answered_by_its_acceptance_and_then_its_results() {
    let stage = Stage::start().await;
    let event = message("c", "/count n=5").to_string();
    let frames = all(open(&stage, Request::post("/v1/events", event)).await).await;
    assert_eq!((frames[0].event.as_str(), frames[0].id.as_str()), ("accepted", ""));
    let accepted: Value = serde_json::from_str(&frames[0].data).unwrap();
    assert_eq!(accepted["status"], "running");
    let numbers: Vec<i64> = frames[1..].iter().map(|frame| frame.id.parse().unwrap()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    let fold = Fold::of(&results(&frames[1..]));
    assert_eq!(fold.messages, ["1 2 3 4 5 "]);
    assert_eq!(frames.last().unwrap().event, "run.completed");
    let run_id = accepted["run_id"].as_str().unwrap();
    assert_eq!(results(&frames[1..]).len(), stage.api().results(run_id).await.len());
}

#[tokio::test]
async fn an_unbound_event_and_a_repeated_one_are_answered_as_streams_too() {
    let stage = Stage::start().await;
    let unbound = Request::post("/v1/events", r#"{"event_type":"weather"}"#);
    let frames = all(open(&stage, unbound).await).await;
    assert_eq!(frames.len(), 1);
    let accepted: Value = serde_json::from_str(&frames[0].data).unwrap();
    assert_eq!((&accepted["run_id"], &accepted["status"]), (&json!(null), &json!("unbound")));
    let mut event = message("c", "/count n=3");
    event["event_id"] = "e1".into();
    let send = || open(&stage, Request::post("/v1/events", event.to_string()));
    let first = all(send().await).await;
    let second = all(send().await).await;
    assert_eq!(
        first[1..].iter().map(told).collect::<Vec<_>>(),
        second[1..].iter().map(told).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn a_reader_resumes_behind_any_number_and_gets_exactly_the_rest() {
    let stage = Stage::start().await;
    let run_id = stage.play("c", "/count n=30").await;
    stage.api().ended_run(&run_id).await;
    let target = format!("/v1/runs/{run_id}/results");
    let whole = all(open(&stage, Request::get(&target)).await).await;
    assert_eq!(whole.len(), 32);
    for (seen, frame) in whole.iter().enumerate() {
        let by_header = Request::get(&target).header("last-event-id", &frame.id);
        assert_eq!(all(open(&stage, by_header).await).await, whole[seen + 1..]);
        let by_parameter = Request::get(format!("{target}?after={}", frame.id));
        assert_eq!(all(open(&stage, by_parameter).await).await, whole[seen + 1..]);
    }
    let both = Request::get(format!("{target}?after=5")).header("last-event-id", "20");
    assert_eq!(all(open(&stage, both).await).await, whole[20..], "the header stands above");
    let beyond = Request::get(&target).header("last-event-id", "9223372036854775807");
    assert_eq!(all(open(&stage, beyond).await).await, []);
}

#[tokio::test]
async fn a_reader_that_resumes_in_the_middle_of_a_live_run_misses_and_repeats_nothing() {
    let stage = Stage::start().await;
    let run_id = stage.play("c", "/count n=60 delay_ms=10").await;
    let target = format!("/v1/runs/{run_id}/results");
    let mut seen: Vec<Frame> = Vec::new();
    // Three frames per connection, then away and back again.
    while seen.last().is_none_or(|frame| frame.event != "run.completed") {
        let mut request = Request::get(&target);
        if let Some(last) = seen.last() {
            request = request.header("last-event-id", &last.id);
        }
        let mut frames = Frames::new(open(&stage, request).await);
        for _ in 0..3 {
            match frames.next().await.unwrap() {
                Some(frame) => seen.push(frame),
                None => break,
            }
        }
    }
    let whole = all(open(&stage, Request::get(&target)).await).await;
    assert_eq!(
        seen.iter().map(told).collect::<Vec<_>>(),
        whole.iter().map(told).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn a_reader_of_a_queued_run_gets_everything_once_it_starts() {
    let stage = Stage::start().await;
    let first = stage.play("c", "/hang").await;
    let second = stage.play("c", "/count n=4").await;
    assert_eq!(stage.api().run(&second).await.status.as_str(), "queued");
    let mut reader =
        Frames::new(open(&stage, Request::get(format!("/v1/runs/{second}/results"))).await);
    let cancel = Request { method: "POST", ..Request::get(format!("/v1/runs/{first}/cancel")) };
    assert_eq!(stage.ask(cancel).await.body["status"], "cancelled");
    let mut frames = Vec::new();
    while let Some(frame) = reader.next().await.unwrap() {
        frames.push(frame);
    }
    let fold = Fold::of(&results(&frames));
    assert_eq!(
        (fold.messages, fold.terminal.unwrap().kind),
        (vec!["1 2 3 4 ".to_owned()], "run.completed".to_owned())
    );
}

#[tokio::test]
async fn a_reader_of_a_run_that_is_cancelled_while_it_waits_sees_its_end() {
    let stage = Stage::start().await;
    stage.play("c", "/hang").await;
    let second = stage.play("c", "never").await;
    let mut reader =
        Frames::new(open(&stage, Request::get(format!("/v1/runs/{second}/results"))).await);
    let cancel = Request { method: "POST", ..Request::get(format!("/v1/runs/{second}/cancel")) };
    stage.ask(cancel).await;
    let end = reader.next().await.unwrap().unwrap();
    let data: Value = serde_json::from_str(&end.data).unwrap();
    assert_eq!((end.event.as_str(), &data["data"]["code"]), ("run.failed", &json!("cancelled")));
    assert_eq!(reader.next().await.unwrap(), None, "closed after the terminal");
}

#[tokio::test]
async fn a_sender_that_goes_away_does_not_disturb_its_run() {
    let stage = Stage::start().await;
    let event = message("c", "/count n=30 delay_ms=10").to_string();
    let mut reader = Frames::new(open(&stage, Request::post("/v1/events", event)).await);
    let accepted = reader.next().await.unwrap().unwrap();
    let accepted: Value = serde_json::from_str(&accepted.data).unwrap();
    drop(reader);
    let run = stage.api().ended_run(accepted["run_id"].as_str().unwrap()).await;
    assert_eq!(run.status.as_str(), "completed");
    let fold = Fold::of(&stage.api().results(&run.run_id).await);
    assert_eq!(fold.messages.len(), 1);
}

#[tokio::test]
async fn a_quiet_stream_shows_signs_of_life() {
    let stage = Stage::start().await;
    let run_id = stage.play("c", "/hang").await;
    let mut answer = open(&stage, Request::get(format!("/v1/runs/{run_id}/results"))).await;
    let first = answer.next_part().await.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&first), ": following\n\n");
    let sign = answer.next_part().await.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&sign), ": keep-alive\n\n");
}

/// The reader takes nothing while many megabytes are published, until the host has let go of it.
#[tokio::test]
async fn a_slow_reader_is_cut_off_and_resumes_without_loss_while_the_run_goes_on() {
    let stage = Stage::with("[limits]\nsubscriber_buffer = 16").await;
    // The slow one waits in the lane until its reader is there.
    let first = stage.play("c", "/hang").await;
    let run_id = stage.play("c", "/count n=100000").await;
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut slow = socket.connect(stage.address).await.unwrap();
    let head = format!(
        "GET /v1/runs/{run_id}/results HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\
         connection: close\r\nauthorization: Bearer {}\r\n\r\n",
        stage.admin
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    slow.readable().await.unwrap();
    let cancel = Request { method: "POST", ..Request::get(format!("/v1/runs/{first}/cancel")) };
    stage.ask(cancel).await;
    let quick = follow(stage.api(), run_id.clone(), SeenResults::default()).await;
    assert_eq!(stage.api().ended_run(&run_id).await.status.as_str(), "completed");
    let mut bytes = Vec::new();
    let read = slow.read_to_end(&mut bytes);
    tokio::time::timeout(Duration::from_secs(30), read).await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let last: i64 = text
        .lines()
        .filter_map(|line| line.strip_prefix("id: ")?.parse().ok())
        .next_back()
        .expect("it saw the beginning");
    assert!(!text.contains("event: run.completed"), "it was cut off, not served to the end");
    let resumed = Request::get(format!("/v1/runs/{run_id}/results"))
        .header("last-event-id", last.to_string());
    let rest = results(&all(open(&stage, resumed).await).await);
    let expected: Vec<&AgentRunResult> =
        quick.results.iter().filter(|result| result.sequence > Some(last)).collect();
    let numbers = |results: &[&AgentRunResult]| -> Vec<Option<i64>> {
        results.iter().map(|result| result.sequence).collect()
    };
    assert_eq!(numbers(&rest.iter().collect::<Vec<_>>()), numbers(&expected));
    assert!(quick.fold.messages[0].ends_with(" 99999 100000 "));
}

#[tokio::test]
async fn many_readers_of_one_run_all_see_the_same() {
    let stage = Stage::start().await;
    let run_id = stage.play("c", "/count n=50 delay_ms=5").await;
    let seen = SeenResults::default();
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..50 {
        readers.spawn(follow(stage.api(), run_id.clone(), seen.clone()));
    }
    for reading in readers.join_all().await {
        assert_eq!(reading.results.len(), 52);
        assert_eq!(reading.connections, 1);
    }
}
