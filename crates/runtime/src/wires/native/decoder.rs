//! Decodes JSON-RPC lines.
//!
//! Invariant: a line is one message or corrupt.

use crate::connection::Connection;
use crate::run::Run;
use crate::wires::{Adapter, Call, Inbound, head};
use greenroom_protocol::RawResult;
use greenroom_protocol::wire::{RequestId, RpcError, method};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

const NOT_JSON_RPC: &str = "a line that is not a JSON-RPC message";

/// A JSON-RPC message, borrowed from its line.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(default, borrow)]
    id: Option<&'a RawValue>,
    #[serde(default, borrow)]
    method: Cow<'a, str>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default, borrow)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<RpcError>,
}

#[derive(Default)]
pub(crate) struct Decoder {
    /// The run of the last result: results of one run mostly come in a row.
    last: Option<Arc<Run>>,
}

impl Decoder {
    pub(in crate::wires) fn decode(
        &mut self,
        connection: &Connection,
        line: &[u8],
        take: &mut dyn FnMut(Inbound<'_>),
    ) {
        let Ok(text) = std::str::from_utf8(line) else {
            return take(corrupt("a line that is not UTF-8", line));
        };
        if text.trim_ascii().is_empty() {
            return;
        }
        let Ok(message) = serde_json::from_str::<Message<'_>>(text) else {
            return take(corrupt(NOT_JSON_RPC, line));
        };
        take(match (message.method.as_ref(), message.id) {
            (method::RUN_RESULT, None) => self.result(connection, line, message.params),
            (method::REQUEST_CANCEL, None) => match cancelled(message.params) {
                Some(id) => Inbound::CancelCall { id, answer_to: None },
                None => Inbound::Unexpected("a `request.cancel` without a request"),
            },
            ("", Some(id)) => {
                self.last = None;
                response(line, id, &message)
            }
            ("", None) => corrupt(NOT_JSON_RPC, line),
            (_, Some(id)) => call(id, &message),
            (_, None) => Inbound::Unexpected("a notification that the host does not know"),
        });
    }

    pub(in crate::wires) fn reset(&mut self) {
        self.last = None;
    }

    fn result<'a>(
        &mut self,
        connection: &Connection,
        line: &'a [u8],
        params: Option<&RawValue>,
    ) -> Inbound<'a> {
        let result = params.and_then(|params| serde_json::from_str::<RawResult>(params.get()).ok());
        let Some(result) = result else {
            return corrupt("a `run.result` without a proper result", line);
        };
        if self.last.as_ref().is_none_or(|run| run.id != result.run_id) {
            self.last = connection.live_run(&result.run_id);
        }
        match &self.last {
            Some(run) => Inbound::Result { run: run.clone(), result, bytes: line.len() },
            None => {
                Inbound::Unexpected("a result of a run that is not under way on this connection")
            }
        }
    }
}

fn corrupt<'a>(what: &'static str, line: &'a [u8]) -> Inbound<'a> {
    Inbound::Corrupt { what: what.into(), line }
}

fn response<'a>(line: &'a [u8], id: &RawValue, message: &Message<'a>) -> Inbound<'a> {
    let response = match (message.result, &message.error) {
        (Some(result), None) => Ok(result),
        (None, Some(error)) => Err(error.clone()),
        // `"result":null` reads as absent.
        (None, None) => Ok(RawValue::NULL),
        (Some(_), Some(_)) => return corrupt("an answer with a result and an error", line),
    };
    match id.get().parse::<i64>() {
        Ok(number) => Inbound::Response { number, response },
        Err(_) => Inbound::Unexpected("an answer to nothing that was asked"),
    }
}

fn call<'a>(id: &'a RawValue, message: &Message<'_>) -> Inbound<'a> {
    if serde_json::from_str::<RequestId>(id.get()).is_err() {
        return corrupt("a request with an improper id", id.get().as_bytes());
    }
    let params = message.params.unwrap_or(RawValue::NULL);
    Inbound::Call(Call {
        id: id.get().to_owned(),
        run_id: run_id_of(params),
        method: message.method.to_string().into(),
        params: params.to_owned(),
        adapter: Adapter::Native,
    })
}

fn run_id_of(params: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(default)]
        run_id: Option<String>,
    }
    serde_json::from_str::<Named>(params.get()).ok().and_then(|named| named.run_id)
}

fn cancelled(params: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct Cancel<'a> {
        #[serde(borrow)]
        request_id: &'a RawValue,
    }
    let cancel = serde_json::from_str::<Cancel<'_>>(params?.get()).ok()?;
    Some(cancel.request_id.get().to_owned())
}

/// The number of the request that a line responds to, if that comes before where the line breaks.
pub(in crate::wires) fn answered_by(line: &[u8]) -> Option<i64> {
    let keys = head::keys(line, &["id", "method"]);
    if keys.iter().any(|(key, _)| *key == "method") {
        return None;
    }
    keys.iter().rev().find(|(key, _)| *key == "id")?.1?.get().parse().ok()
}

/// The id and method of a call whose beginning this is; its parameters may break off.
pub(in crate::wires) fn called_by(line: &[u8]) -> Option<(String, String)> {
    let keys = head::keys(line, &["id", "method"]);
    let value = |name: &str| keys.iter().rev().find(|(key, _)| *key == name)?.1;
    let (id, method) = (value("id")?, value("method")?);
    serde_json::from_str::<RequestId>(id.get()).ok()?;
    Some((id.get().to_owned(), serde_json::from_str(method.get()).ok()?))
}

#[cfg(test)]
mod tests {
    use super::{answered_by, called_by};

    #[test]
    fn the_id_and_method_of_a_call_are_found_in_its_beginning() {
        let call =
            br#"{"jsonrpc":"2.0","id":"a7","method":"artifacts.create","params":{"run_id":"r","co"#;
        let found = called_by(call).unwrap();
        assert_eq!(found, ("\"a7\"".to_owned(), "artifacts.create".to_owned()));
        for line in [
            &br#"{"method":"run.result","params":{"id":7,"text":"xxx"#[..],
            br#"{"jsonrpc":"2.0","id":7,"result":"xxx"#,
            br#"{"id":{},"method":"state.set","params":"x"#,
        ] {
            assert_eq!(called_by(line), None, "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn the_id_of_an_answer_is_found_in_its_beginning() {
        assert_eq!(answered_by(br#"{"jsonrpc":"2.0","id":7,"result":{"result":"xxxx"#), Some(7));
        assert_eq!(answered_by(br#"{"id":7,"result":1,"error":2}"#), Some(7));
    }

    #[test]
    fn an_id_inside_of_something_or_of_a_request_is_no_answer() {
        for line in [
            &br#"{"jsonrpc":"2.0","result":{"id":7,"text":"xxx"#[..],
            br#"{"method":"state.set","id":7,"params":{"value":"xxx"#,
            br#"{"id":"7","result":"xxx"#,
            br#"[{"id":7,"result":"xxx"#,
            br#"not {"id":7}"#,
            b"",
        ] {
            assert_eq!(answered_by(line), None, "{}", String::from_utf8_lossy(line));
        }
    }
}
