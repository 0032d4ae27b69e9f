//! Stored text must be readable by every later reader.

use greenroom_protocol::result::kind;
use greenroom_protocol::{InvalidEvent, NESTING_MAX, NewEvent, Payload};

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

#[test]
fn unreadable_text_is_rejected_even_in_unknown_fields() {
    let too_deep = nested(100_000);
    for odd in ["\"\\ud800\"", "1e999", "-1e999", too_deep.as_str()] {
        for (kind, data) in [
            ("x.unknown", format!(r#"{{"odd":{odd}}}"#)),
            (kind::TOOL_CALL_STARTED, format!(r#"{{"odd":{odd}}}"#)),
            (kind::RUN_COMPLETED, format!(r#"{{"odd":{odd}}}"#)),
            (kind::STATE_UPDATED, format!(r#"{{"scope":"runner","key":"k","value":{odd}}}"#)),
            (kind::MESSAGE_DELTA, format!(r#"{{"chunk":{{"content":"a","odd":{odd}}}}}"#)),
            (kind::MESSAGE_DELTA, format!(r#"{{"chunk":{{"content":"a"}},"odd":{odd}}}"#)),
        ] {
            let start: String = data.chars().take(80).collect();
            assert!(Payload::parse(kind, Some(&data)).is_err(), "{kind} {start}");
        }
    }
}

#[test]
fn nesting_is_accepted_up_to_its_limit_and_no_further() {
    let state = |levels: usize| {
        let data = format!(r#"{{"scope":"runner","key":"k","value":{}}}"#, nested(levels - 1));
        Payload::parse(kind::STATE_UPDATED, Some(&data))
    };
    assert!(state(NESTING_MAX).is_ok());
    let refused = state(NESTING_MAX + 1).expect_err("it is too deep");
    assert_eq!(
        refused.to_string(),
        "data of `state.updated` is not valid: it is nested deeper than 100 levels"
    );
    let event = |levels: usize| {
        let json = format!(r#"{{"event_type":"tick","data":{{"x":{}}}}}"#, nested(levels - 2));
        NewEvent::parse(json.as_bytes())
    };
    assert!(event(NESTING_MAX).is_ok());
    assert!(matches!(event(NESTING_MAX + 1), Err(InvalidEvent::Value { .. })));
}

#[test]
fn brackets_inside_strings_do_not_count() {
    let text = format!("\\\"{}", "[".repeat(1000));
    let json = format!(r#"{{"event_type":"tick","input":{{"text":"{text}"}}}}"#);
    assert!(NewEvent::parse(json.as_bytes()).is_ok());
    let data = format!(r#"{{"note":"{text}"}}"#);
    assert_eq!(Payload::parse("x.unknown", Some(&data)).ok(), Some(Payload::Unknown));
}

#[test]
fn tool_telemetry_of_another_shape_is_unknown() {
    for data in [r#"{}"#, r#"{"tool_call_id":7}"#, r#"{"name":"add"}"#] {
        let payload = Payload::parse(kind::TOOL_CALL_STARTED, Some(data)).ok();
        assert_eq!(payload, Some(Payload::Unknown), "{data}");
    }
    assert!(Payload::parse(kind::TOOL_CALL_COMPLETED, Some("[]")).is_err());
}

#[test]
fn missing_data_is_an_empty_object() {
    assert!(matches!(Payload::parse(kind::RUN_COMPLETED, None), Ok(Payload::RunCompleted(_))));
    assert!(Payload::parse(kind::MESSAGE_COMPLETED, None).is_err());
}

#[test]
fn a_type_is_one_word_and_not_reserved() {
    let endless = "x".repeat(129);
    for kind in ["", "a b", "a\ndata: {}", "a\u{85}b", "run.restarted", endless.as_str()] {
        assert!(Payload::parse(kind, None).is_err(), "{kind:?}");
    }
    assert_eq!(Payload::parse("思考.delta", None).ok(), Some(Payload::Unknown));
}
