//! Scripts through every wire: responses and requests.

mod anything;
mod faults;
mod other;
mod requests;
mod wires;

use super::{Call, Cut, Reply, respond};
use crate::scripted::Script;
use futures_util::StreamExt;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A response, and what happened to the connection.
#[derive(Debug, PartialEq)]
enum Got {
    Whole { status: u16, retry_after: Option<u64>, body: String },
    Stream { content_type: String, body: String, end: End },
    Cut,
    Silence,
}

#[derive(Debug, PartialEq)]
enum End {
    Clean,
    Cut,
    IdleTimeout,
}

async fn send(script: &str, method: &str, address: &str, body: &Value) -> Got {
    let script = Arc::new(Script::parse(script).unwrap());
    send_to(&script, method, address, body).await
}

async fn send_to(script: &Arc<Script>, method: &str, address: &str, body: &Value) -> Got {
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    let body = body.to_string();
    let call = Call { method, path, query, body: body.as_bytes() };
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    match respond(script, call, now).await {
        Reply::Whole { status, retry_after, body } => Got::Whole {
            status,
            retry_after: retry_after.map(|time| time.as_secs()),
            body: String::from_utf8(body.to_vec()).unwrap(),
        },
        Reply::Cut => Got::Cut,
        Reply::Silence => Got::Silence,
        Reply::Stream { content_type, mut pieces } => {
            let mut body = String::new();
            let end = loop {
                match tokio::time::timeout(Duration::from_secs(3600), pieces.next()).await {
                    Ok(Some(Ok(chunk))) => body.push_str(std::str::from_utf8(&chunk).unwrap()),
                    Ok(Some(Err(Cut))) => break End::Cut,
                    Ok(None) => break End::Clean,
                    Err(_) => break End::IdleTimeout,
                }
            };
            Got::Stream { content_type: content_type.to_owned(), body, end }
        }
    }
}

/// A JSON response.
async fn whole(script: &str, address: &str, body: &Value) -> Value {
    match send(script, "POST", address, body).await {
        Got::Whole { status: 200, body, .. } => serde_json::from_str(&body).unwrap(),
        other => panic!("{other:?}"),
    }
}

/// Names and data of a stream's events; `[DONE]` as a string.
async fn events(script: &str, address: &str, body: &Value) -> Vec<(String, Value)> {
    let Got::Stream { content_type, body, end: End::Clean } =
        send(script, "POST", address, body).await
    else {
        panic!("no stream")
    };
    assert_eq!(content_type, "text/event-stream");
    let events = body.split_terminator("\n\n").map(|event| {
        let line = |key: &str| event.lines().find_map(|line| line.strip_prefix(key));
        let data = line("data: ").unwrap();
        let data = serde_json::from_str(data).unwrap_or_else(|_| Value::String(data.to_owned()));
        (line("event: ").unwrap_or_default().to_owned(), data)
    });
    events.collect()
}
