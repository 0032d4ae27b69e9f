//! JSON-RPC messages as they come over the wire.

use greenroom_protocol::wire::{Incoming, RequestId, RpcError};
use greenroom_protocol::{AgentAPIError, ErrorCode, RawResult};
use std::borrow::Cow;

fn read(json: &str) -> Incoming<'_> {
    Incoming::parse(json).expect("the message is valid")
}

#[test]
fn the_method_and_its_parameters_are_borrowed() {
    let json = r#"{"jsonrpc":"2.0","method":"run.result","params":{"run_id":"r1"}}"#;
    let message = read(json);
    assert!(matches!(message.method, Some(Cow::Borrowed("run.result"))));
    assert_eq!(message.params.map(|raw| raw.get()), Some(r#"{"run_id":"r1"}"#));
    assert_eq!(message.id, None);
}

#[test]
fn a_null_result_is_a_response_and_a_missing_one_is_not() {
    assert_eq!(read(r#"{"id":1,"result":null}"#).result.map(|raw| raw.get()), Some("null"));
    assert!(read(r#"{"id":1}"#).result.is_none());
}

#[test]
fn ids_are_numbers_or_texts() {
    assert_eq!(read(r#"{"id":7}"#).id, Some(RequestId::Number(7)));
    assert_eq!(read(r#"{"id":"七"}"#).id, Some(RequestId::Text("七".to_owned())));
    assert_eq!(read(r#"{"id":null,"error":{"code":-32700,"message":"x"}}"#).id, None);
    assert!(Incoming::parse(r#"{"id":1.5}"#).is_err());
    assert!(Incoming::parse(r#"{"id":{}}"#).is_err());
}

#[test]
fn an_rpc_error_contains_the_whole_api_error() {
    let refusal =
        AgentAPIError::new(ErrorCode::RateLimited, "too fast").detail("retry_after_ms", 5);
    let error = RpcError::from(refusal.clone());
    assert_eq!((error.code, error.message.as_str()), (-32000, "too fast"));
    let carried: AgentAPIError =
        serde_json::from_value(error.data.expect("it has data")).expect("it is an API error");
    assert_eq!(carried, refusal);
    assert!(carried.retryable);
}

#[test]
fn a_raw_result_rejects_invalid_sequence_numbers() {
    let read = |sequence: &str| {
        let json = format!(r#"{{"run_id":"r","type":"t","sequence":{sequence}}}"#);
        RawResult::parse(&json).map(|result| result.sequence)
    };
    assert_eq!(read("3").ok(), Some(Some(3)));
    assert_eq!(read("3.0").ok(), Some(Some(3)));
    assert_eq!(read("null").ok(), Some(None));
    assert_eq!(read("9223372036854775807").ok(), Some(Some(i64::MAX)));
    for wrong in
        ["-1", "-0.5", "1.5", "1e30", "1e999", "9223372036854775808", "NaN", "\"3\"", "true"]
    {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_list_of_fields_is_not_a_message() {
    assert!(Incoming::parse(r#"[7,"run.result",{}]"#).is_err());
    assert!(RawResult::parse(r#"["r1","run.completed",{}]"#).is_err());
}
