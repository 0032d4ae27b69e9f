//! JSON-RPC messages of MCP.
//!
//! Invariant: a message that is not valid is answered with an error of JSON-RPC, never with a panic or silence.

use serde_json::{Value, json};

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
/// Of MCP.
const RESOURCE_NOT_FOUND: i64 = -32002;
/// As in the Language Server Protocol.
const CANCELLED: i64 = -32800;

#[derive(Debug, PartialEq)]
pub(super) enum Incoming {
    Request {
        id: Value,
        method: String,
        params: Value,
    },
    Notification {
        method: String,
        params: Value,
    },
    /// To a request of the server, of which there are none.
    Response,
}

#[derive(Debug, PartialEq)]
pub(super) struct RpcError {
    code: i64,
    message: String,
}

impl RpcError {
    pub(super) fn unknown_method(method: &str) -> Self {
        let method: String = method.chars().take(100).collect();
        let message = format!("there is no method `{}`", method.escape_debug());
        Self { code: METHOD_NOT_FOUND, message }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self { code: INVALID_PARAMS, message: message.into() }
    }

    pub(super) fn no_resource(message: impl Into<String>) -> Self {
        Self { code: RESOURCE_NOT_FOUND, message: message.into() }
    }

    pub(super) fn cancelled() -> Self {
        Self { code: CANCELLED, message: "the request was cancelled".to_owned() }
    }

    fn request(message: &str) -> Self {
        Self { code: INVALID_REQUEST, message: message.to_owned() }
    }
}

pub(super) fn read(body: &[u8]) -> Result<Incoming, RpcError> {
    let message: Value = serde_json::from_slice(body).map_err(|error| RpcError {
        code: PARSE_ERROR,
        message: format!("the body is not valid JSON: {error}"),
    })?;
    let Value::Object(mut fields) = message else {
        return Err(RpcError::request("the body must be one JSON-RPC message"));
    };
    if fields.get("jsonrpc") != Some(&"2.0".into()) {
        return Err(RpcError::request("`jsonrpc` must be `2.0`"));
    }
    let params = fields.remove("params").unwrap_or(json!({}));
    let id = fields.remove("id");
    match (fields.remove("method"), id) {
        (Some(Value::String(method)), None) => Ok(Incoming::Notification { method, params }),
        (Some(Value::String(method)), Some(id @ (Value::String(_) | Value::Number(_)))) => {
            match params.is_object() {
                true => Ok(Incoming::Request { id, method, params }),
                false => Err(RpcError::request("`params` must be an object")),
            }
        }
        (Some(Value::String(_)), Some(_)) => {
            Err(RpcError::request("`id` must be a string or a number"))
        }
        (Some(_), _) => Err(RpcError::request("`method` must be a string")),
        (None, Some(_)) if fields.contains_key("result") || fields.contains_key("error") => {
            Ok(Incoming::Response)
        }
        (None, _) => Err(RpcError::request("`method` is missing")),
    }
}

pub(super) fn succeeded(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

pub(super) fn failed(id: &Value, error: &RpcError) -> Value {
    let error = json!({"code": error.code, "message": error.message});
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(body: &str) -> i64 {
        read(body.as_bytes()).unwrap_err().code
    }

    #[test]
    fn a_message_is_a_request_a_notification_or_a_response() {
        let request =
            Incoming::Request { id: json!(1), method: "ping".to_owned(), params: json!({}) };
        assert_eq!(read(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#), Ok(request));
        let told = Incoming::Notification { method: "n".to_owned(), params: json!({"a": 1}) };
        assert_eq!(read(br#"{"jsonrpc":"2.0","method":"n","params":{"a":1}}"#), Ok(told));
        let answer = br#"{"jsonrpc":"2.0","id":"x","result":{}}"#;
        assert_eq!(read(answer), Ok(Incoming::Response));
    }

    #[test]
    fn an_invalid_message_has_the_code_of_json_rpc() {
        assert_eq!(code("{"), -32700);
        assert_eq!(code("[]"), -32600);
        assert_eq!(code("{}"), -32600);
        assert_eq!(code(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#), -32600);
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#), -32600);
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"method":7}"#), -32600);
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[]}"#), -32600);
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":1}"#), -32600);
    }
}
