//! A client of AG-UI: sends an input, reads frames.
//!
//! Invariant: a frame is taken only as the reference says it must be: `data:` lines between line feeds, JSON
//! without a null at its top.

use crate::stage::Stage;
use greenroom_testkit::api::Failure;
use greenroom_testkit::http::{Request, Response};
use serde_json::{Value, json};

pub(crate) struct Reader {
    answer: Response,
    buffer: String,
    /// The number of the last frame that had one.
    pub(crate) last: Option<String>,
}

/// An input of one message.
pub(crate) fn input(thread: &str, run: &str, text: &str) -> Value {
    json!({"threadId": thread, "runId": run, "protocolVersion": "1.0", "state": {}, "tools": [],
        "messages": [{"id": format!("user-{run}"), "role": "user", "content": text}],
        "context": [], "forwardedProps": {}})
}

/// An input whose message is steps for the puppet.
pub(crate) fn steps(thread: &str, run: &str, steps: Value) -> Value {
    input(thread, run, &steps.to_string())
}

pub(crate) fn request(agent: &str, input: &Value) -> Request {
    Request::post(format!("/v1/agui/{agent}"), input.to_string())
        .header("accept", "text/event-stream")
}

/// Sends an input and reads to the end.
pub(crate) async fn talk(stage: &Stage, agent: &str, input: &Value) -> Vec<Value> {
    Reader::open(stage, request(agent, input)).await.rest().await
}

/// As whoever has the token: of two, the first counts, and the admin's comes behind it.
pub(crate) fn with_token(request: Request, token: &str) -> Request {
    request.header("authorization", format!("Bearer {token}"))
}

/// The status and the body of a refusal.
pub(crate) async fn refused(stage: &Stage, request: Request) -> (u16, Value) {
    match stage.api.json(request).await {
        Err(Failure::Refused { status, body }) => (status, body),
        other => panic!("{other:?}"),
    }
}

impl Reader {
    pub(crate) async fn open(stage: &Stage, request: Request) -> Self {
        let answer = stage.api.send(request).await.unwrap();
        assert_eq!(answer.status, 200);
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
        Self { answer, buffer: String::new(), last: None }
    }

    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some((frame, rest)) = self.buffer.split_once("\n\n") {
                let frame = frame.to_owned();
                self.buffer = rest.to_owned();
                match self.read(&frame) {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            match self.answer.next_part().await.unwrap() {
                Some(part) => self.buffer.push_str(std::str::from_utf8(&part).unwrap()),
                None => {
                    assert_eq!(self.buffer, "", "a frame is complete");
                    return None;
                }
            }
        }
    }

    pub(crate) async fn rest(mut self) -> Vec<Value> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }

    /// Reads to an event of this type, which is given.
    pub(crate) async fn until(&mut self, kind: &str) -> Value {
        while let Some(event) = self.next().await {
            if event["type"] == kind {
                return event;
            }
        }
        panic!("no {kind}")
    }

    fn read(&mut self, frame: &str) -> Option<Value> {
        assert!(!frame.contains('\r'), "{frame:?}");
        let mut event = None;
        for line in frame.lines() {
            if let Some(number) = line.strip_prefix("id: ") {
                self.last = Some(number.to_owned());
            } else if let Some(data) = line.strip_prefix("data: ") {
                event = Some(serde_json::from_str::<Value>(data).unwrap());
            } else {
                assert!(line.starts_with(':'), "{line:?}");
            }
        }
        if let Some(event) = &event {
            let mut fields = event.as_object().unwrap().values();
            assert!(!fields.any(Value::is_null), "{event}");
        }
        event
    }
}

pub(crate) fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

pub(crate) fn find<'a>(events: &'a [Value], kind: &str) -> &'a Value {
    let found = events.iter().find(|event| event["type"] == kind);
    found.unwrap_or_else(|| panic!("no {kind} in {:?}", kinds(events)))
}

/// The text of all messages, in order.
pub(crate) fn text(events: &[Value]) -> String {
    let deltas = events.iter().filter(|event| event["type"] == "TEXT_MESSAGE_CONTENT");
    deltas.map(|event| event["delta"].as_str().unwrap()).collect()
}
