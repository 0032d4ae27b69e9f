//! Readers of live results that come back after every restart of the host.
//!
//! Invariant: a reader sees numbers rise, and over all readers no number of a run ever means two things.

use crate::api::{Api, Failure, PATIENCE};
use crate::fold::Fold;
use crate::http::{Answer, Request};
use crate::wait::PAUSE;
use greenroom_protocol::AgentRunResult;
use serde_json::Value;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// What every number of every run meant to whoever saw it.
#[derive(Debug, Clone, Default)]
pub struct Meanings(Arc<Mutex<HashMap<(String, i64), Meaning>>>);

/// Type, data and the runner's own number.
type Meaning = (String, Value, Option<i64>);

impl Meanings {
    /// Takes note of a result; a number with another meaning is a panic.
    pub fn note(&self, result: &AgentRunResult) {
        let sequence = result.sequence.expect("the host numbers every result");
        let data = Value::Object(result.data.clone());
        let meaning = (result.kind.clone(), data, result.runner_sequence);
        let mut meanings = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match meanings.entry((result.run_id.clone(), sequence)) {
            Entry::Occupied(earlier) => {
                assert_eq!(
                    *earlier.get(),
                    meaning,
                    "number {sequence} of {} means two things",
                    result.run_id
                );
            }
            Entry::Vacant(place) => {
                place.insert(meaning);
            }
        }
    }
}

/// All that one reader saw of a run.
#[derive(Debug, Clone)]
pub struct Reading {
    pub run_id: String,
    pub results: Vec<AgentRunResult>,
    pub fold: Fold,
    /// How often it had to connect.
    pub connections: usize,
}

/// Reads a run to its terminal, resuming by `Last-Event-ID` over as many connections as it takes.
pub async fn follow(api: Api, run_id: String, meanings: Meanings) -> Reading {
    let results = Vec::new();
    let mut reading = Reading { run_id, results, fold: Fold::default(), connections: 0 };
    let mut patience_ends = Instant::now() + PATIENCE;
    while reading.fold.terminal.is_none() {
        let seen = reading.results.len();
        let end = reading.read_connection(&api, &meanings).await;
        if reading.results.len() > seen {
            patience_ends = Instant::now() + PATIENCE;
        }
        if let Err(failure) = &end {
            let run_id = &reading.run_id;
            assert!(failure.is_passing(), "{run_id} cannot be followed: {failure:?}");
        }
        let goes_on = reading.fold.terminal.is_some() || Instant::now() < patience_ends;
        assert!(goes_on, "{} has no terminal: {end:?}", reading.run_id);
        tokio::time::sleep(PAUSE).await;
    }
    reading
}

impl Reading {
    fn last_sequence(&self) -> Option<i64> {
        self.results.last().and_then(|result| result.sequence)
    }

    async fn read_connection(&mut self, api: &Api, meanings: &Meanings) -> Result<(), Failure> {
        let mut request = Request::get(format!("/v1/runs/{}/results", self.run_id))
            .header("accept", "text/event-stream");
        if let Some(last) = self.last_sequence() {
            request = request.header("last-event-id", last.to_string());
        }
        let answer = api.send(request).await?;
        if answer.status != 200 {
            let status = answer.status;
            let body = answer.body().await.map_err(Failure::Lost)?;
            let body = String::from_utf8_lossy(&body).into_owned().into();
            return Err(Failure::Refused { status, body });
        }
        self.connections += 1;
        let mut frames = Frames::new(answer);
        loop {
            let frame = tokio::time::timeout(PATIENCE, frames.next()).await;
            let frame = frame.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            match frame.map_err(Failure::Lost)? {
                Some(frame) => self.take(&frame, meanings),
                None => return Ok(()),
            }
        }
    }

    fn take(&mut self, frame: &Frame, meanings: &Meanings) {
        let result: AgentRunResult = serde_json::from_str(&frame.data)
            .unwrap_or_else(|error| panic!("{error} in a frame: {frame:?}"));
        assert_eq!(frame.event, result.kind, "the frame is named after its result");
        assert_eq!(frame.id.parse().ok(), result.sequence, "the frame has its result's number");
        assert_eq!(result.run_id, self.run_id);
        assert!(self.last_sequence() < result.sequence, "numbers rise: {frame:?}");
        assert!(self.fold.terminal.is_none(), "nothing follows the terminal: {frame:?}");
        meanings.note(&result);
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

/// Server-sent events as they come.
pub struct Frames {
    answer: Answer,
    bytes: Vec<u8>,
}

impl Frames {
    pub fn new(answer: Answer) -> Self {
        Self { answer, bytes: Vec::new() }
    }

    /// The next event; nothing when the host has ended the stream in order.
    pub async fn next(&mut self) -> io::Result<Option<Frame>> {
        loop {
            while let Some(end) = self.bytes.windows(2).position(|pair| pair == b"\n\n") {
                let frame: Vec<u8> = self.bytes.drain(..end + 2).collect();
                let frame = parse(&String::from_utf8_lossy(&frame));
                if !frame.data.is_empty() {
                    return Ok(Some(frame));
                }
            }
            match self.answer.next_part().await? {
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
