//! Faults of scripts as faults of connections.

use super::*;
use serde_json::json;

fn requests() -> [(&'static str, Value); 5] {
    let messages = json!([{"role": "user", "content": "hi"}]);
    [
        ("/v1/chat/completions", json!({"model": "m", "messages": messages, "stream": true})),
        ("/v1/responses", json!({"model": "m", "input": "hi", "stream": true})),
        ("/v1/messages", json!({"model": "m", "messages": messages, "stream": true})),
        (
            "/v1beta/models/m:streamGenerateContent?alt=sse",
            json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}),
        ),
        ("/api/chat", json!({"model": "m", "messages": messages})),
    ]
}

#[tokio::test]
async fn an_error_before_the_response_is_a_status_in_every_wire() {
    let script = "[[rule]]\nanswer = [{ error = 429, message = 'slow down', retry_after_s = 3 }]";
    let expected = [
        json!({"error": {"message": "slow down", "type": "rate_limit_error", "param": null, "code": "rate_limit_exceeded"}}),
        json!({"error": {"message": "slow down", "type": "rate_limit_error", "param": null, "code": "rate_limit_exceeded"}}),
        json!({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}),
        json!({"error": {"code": 429, "message": "slow down", "status": "RESOURCE_EXHAUSTED"}}),
        json!({"error": "slow down"}),
    ];
    for ((address, request), expected) in requests().into_iter().zip(expected) {
        let body = expected.to_string();
        let got = send(script, "POST", address, &request).await;
        assert_eq!(got, Got::Whole { status: 429, retry_after: Some(3), body }, "{address}");
    }
}

#[tokio::test]
async fn an_error_during_the_stream_is_an_event_after_the_text() {
    let script = "[[rule]]\nanswer = [{ text = 'so' }, { error = 529, message = 'too much' }]";
    let marks = [
        r#"data: {"error":{"#,
        "event: response.failed\n",
        "event: error\ndata: {\"error\":{\"message\":\"too much\",\"type\":\"overloaded_error\"}",
        r#""status":"UNAVAILABLE""#,
        r#"{"error":"too much"}"#,
    ];
    for ((address, request), mark) in requests().into_iter().zip(marks) {
        let got = send(script, "POST", address, &request).await;
        let Got::Stream { body, end: End::Clean, .. } = got else { panic!("{got:?}") };
        let (text, error) = (body.find("so").unwrap(), body.find(mark).expect(&body));
        assert!(text < error, "{body}");
        assert!(!body.contains("[DONE]") && !body.contains("message_stop"), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn cuts_silence_and_garbage_are_reproduced() {
    let fault = |step: &str| format!("[[rule]]\nanswer = [{{ text = 'so' }}, {step}]");
    for (address, request) in requests() {
        let got = send(&fault("{ cut = true }"), "POST", address, &request).await;
        assert!(
            matches!(&got, Got::Stream { body, end: End::Cut, .. } if body.contains("so")),
            "{got:?}"
        );
        let got = send(&fault("{ silence = true }"), "POST", address, &request).await;
        assert!(matches!(&got, Got::Stream { end: End::IdleTimeout, .. }), "{got:?}");
        let got = send(&fault("{ garbage = '<html>' }"), "POST", address, &request).await;
        assert!(
            matches!(&got, Got::Stream { body, .. } if body.contains("data: <html>")),
            "{got:?}"
        );
        let early = "[[rule]]\nanswer = [{ wait_ms = 5 }, { cut = true }]";
        assert_eq!(send(early, "POST", address, &request).await, Got::Cut);
        let early = "[[rule]]\nanswer = [{ silence = true }]";
        assert_eq!(send(early, "POST", address, &request).await, Got::Silence);
    }
}

#[tokio::test]
async fn a_response_that_is_not_streamed_is_cut_in_half() {
    let script = "[[rule]]\nanswer = [{ text = 'so' }, { cut = true }]";
    let request = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
    let got = send(script, "POST", "/v1/messages", &request).await;
    let Got::Stream { content_type, body, end: End::Cut } = got else { panic!("{got:?}") };
    assert_eq!(content_type, "application/json");
    assert!(body.starts_with('{') && serde_json::from_str::<Value>(&body).is_err(), "{body}");
}

#[tokio::test]
async fn invalid_arguments_are_sent_unchanged() {
    let script = r#"[[rule]]
        answer = [{ call = "x", args_text = '{"a": ' }]"#;
    for (address, request) in requests() {
        let Got::Stream { body, .. } = send(script, "POST", address, &request).await else {
            panic!("{address}")
        };
        assert!(body.contains(r#""{\"a\": "#), "{address}\n{body}");
    }
}
