//! Readers of live results that reconnect after every restart of the host.
//!
//! Invariant: a reader sees increasing sequence numbers, and no number of a run ever refers to two results.

use crate::api::{Api, Failure, PATIENCE};
use crate::fold::Fold;
use crate::http::{Request, Response};
use crate::wait::PAUSE;
use greenroom_protocol::AgentRunResult;
use serde_json::Value;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a run may wait for its turn: its host may be killed again and again, and other runs come first.
const RUN_PATIENCE: Duration = Duration::from_secs(240);

/// The result that every sequence number referred to, over all readers.
#[derive(Debug, Clone, Default)]
pub struct SeenResults(Arc<Mutex<HashMap<(String, i64), SeenResult>>>);

/// Type, data and the runner's sequence number.
type SeenResult = (String, Value, Option<i64>);

impl SeenResults {
    /// Records a result; panics if its number referred to another one.
    pub fn note(&self, result: &AgentRunResult) {
        let sequence = result.sequence.expect("the host numbers every result");
        let data = Value::Object(result.data.clone());
        let result_seen = (result.kind.clone(), data, result.runner_sequence);
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match seen.entry((result.run_id.clone(), sequence)) {
            Entry::Occupied(earlier) => {
                assert_eq!(
                    *earlier.get(),
                    result_seen,
                    "sequence number {sequence} of {} refers to two results",
                    result.run_id
                );
            }
            Entry::Vacant(entry) => {
                entry.insert(result_seen);
            }
        }
    }
}

/// Everything that one reader saw of a run.
#[derive(Debug, Clone)]
pub struct Reading {
    pub run_id: String,
    pub results: Vec<AgentRunResult>,
    pub fold: Fold,
    /// How often it connected.
    pub connections: usize,
}

/// Reads a run until its terminal result, resuming by `Last-Event-ID` over as many connections as needed.
pub async fn follow(api: Api, run_id: String, seen: SeenResults) -> Reading {
    let results = Vec::new();
    let mut reading = Reading { run_id, results, fold: Fold::default(), connections: 0 };
    let mut deadline = Instant::now() + RUN_PATIENCE;
    while reading.fold.terminal.is_none() {
        let count_before = reading.results.len();
        let end = reading.read_connection(&api, &seen).await;
        if reading.results.len() > count_before {
            deadline = Instant::now() + RUN_PATIENCE;
        }
        if let Err(failure) = &end {
            let run_id = &reading.run_id;
            assert!(failure.is_transient(), "{run_id} cannot be followed: {failure:?}");
        }
        let may_retry = reading.fold.terminal.is_some() || Instant::now() < deadline;
        assert!(may_retry, "{} has no terminal: {end:?}", reading.run_id);
        tokio::time::sleep(PAUSE).await;
    }
    reading
}

impl Reading {
    fn last_sequence(&self) -> Option<i64> {
        self.results.last().and_then(|result| result.sequence)
    }

    async fn read_connection(&mut self, api: &Api, seen: &SeenResults) -> Result<(), Failure> {
        let mut request = Request::get(format!("/v1/runs/{}/results", self.run_id))
            .header("accept", "text/event-stream");
        if let Some(last) = self.last_sequence() {
            request = request.header("last-event-id", last.to_string());
        }
        let response = api.send(request).await?;
        if response.status != 200 {
            let status = response.status;
            let body = response.body().await.map_err(Failure::Lost)?;
            let body = String::from_utf8_lossy(&body).into_owned().into();
            return Err(Failure::Refused { status, body });
        }
        self.connections += 1;
        let mut frames = Frames::new(response);
        loop {
            let frame = tokio::time::timeout(PATIENCE, frames.next()).await;
            let frame = frame.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            match frame.map_err(Failure::Lost)? {
                Some(frame) => self.take(&frame, seen),
                None => return Ok(()),
            }
        }
    }

    fn take(&mut self, frame: &Frame, seen: &SeenResults) {
        let result: AgentRunResult = serde_json::from_str(&frame.data)
            .unwrap_or_else(|error| panic!("{error} in a frame: {frame:?}"));
        assert_eq!(frame.event, result.kind, "the frame is named after its result");
        assert_eq!(frame.id.parse().ok(), result.sequence, "the frame has its result's number");
        assert_eq!(result.run_id, self.run_id);
        assert!(self.last_sequence() < result.sequence, "numbers rise: {frame:?}");
        assert!(self.fold.terminal.is_none(), "nothing follows the terminal: {frame:?}");
        seen.note(&result);
        self.fold.push(&result);
        self.results.push(result);
    }
}

/// One server-sent event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frame {
    pub event: String,
    pub id: String,
    pub data: String,
}

/// A stream of server-sent events.
pub struct Frames {
    response: Response,
    bytes: Vec<u8>,
}

impl Frames {
    pub fn new(response: Response) -> Self {
        Self { response, bytes: Vec::new() }
    }

    /// The next event; `None` when the host has ended the stream.
    pub async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            while let Some(end) = self.bytes.windows(2).position(|pair| pair == b"\n\n") {
                let frame: Vec<u8> = self.bytes.drain(..end + 2).collect();
                let frame = parse(&String::from_utf8_lossy(&frame));
                if !frame.data.is_empty() {
                    return Ok(Some(frame));
                }
            }
            match self.response.next_part().await? {
                Some(part) => self.bytes.extend(part),
                None => return Ok(None),
            }
        }
    }
}

fn parse(text: &str) -> Frame {
    let mut frame = Frame::default();
    for line in text.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => frame.event.push_str(value),
            "id" => frame.id.push_str(value),
            "data" => frame.data.push_str(value),
            _ => {}
        }
    }
    frame
}
