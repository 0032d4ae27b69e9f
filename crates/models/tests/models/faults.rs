//! Providers that reject, break off, stay silent or send invalid data.

use crate::kit::*;
use greenroom_models::{Model, ModelError};
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test]
async fn retry_after_is_respected() {
    let limited = answer(429, &[("retry-after", "0")], r#"{"error":{"message":"slow down"}}"#);
    let server = Server::start(vec![limited.clone(), limited, hello()]).await;
    assert_eq!(ask_once(&model(&server)).await, Ok((hello_items(), None)));
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test]
async fn a_rate_limit_beyond_the_deadline_fails_at_once() {
    let limited = answer(429, &[("retry-after", "3600")], r#"{"error":{"message":"slow down"}}"#);
    let server = Server::start(vec![limited]).await;
    let begun = Instant::now();
    let expected = ModelError::RateLimited {
        message: "slow down".to_owned(),
        retry_after: Some(Duration::from_secs(3600)),
    };
    assert_eq!(ask_once(&model(&server)).await, Err(expected));
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_provider_that_keeps_failing_is_tried_three_times() {
    for status in [500, 503, 529, 408, 409] {
        let broken = answer(status, &[("retry-after", "0")], "<html>broken</html>");
        let server = Server::start(vec![broken]).await;
        let message = "<html>broken</html>".to_owned();
        let error = ask_once(&model(&server)).await.unwrap_err();
        assert_eq!(error, ModelError::Rejected { status, message });
        assert_eq!(server.requests().len(), 3, "{status}");
    }
}

#[tokio::test]
async fn a_rejected_request_is_not_retried_and_its_key_is_redacted() {
    for status in [400, 401, 404, 422] {
        let body = json!({"error": {"message": format!("bad key {KEY}"), "type": "x"}});
        let server = Server::start(vec![answer(status, &[], &body.to_string())]).await;
        let error = ask_once(&model(&server)).await.unwrap_err();
        assert_eq!(error, ModelError::Rejected { status, message: "bad key …".to_owned() });
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_response_that_breaks_before_its_first_item_is_retried() {
    let before_head = vec![Step::Reset];
    let behind_head = vec![head(), Step::Reset];
    let behind_comment = vec![head(), chunk(": wait\n\n"), Step::Reset];
    for broken in [before_head, behind_head, behind_comment] {
        let server = Server::start(vec![broken, hello()]).await;
        assert_eq!(ask_once(&model(&server)).await, Ok((hello_items(), None)));
        assert_eq!(server.requests().len(), 2);
    }
}

#[tokio::test]
async fn an_error_event_before_the_first_item_is_retried() {
    let busy = vec![
        head(),
        chunk("data: {\"error\":{\"message\":\"busy\",\"code\":503}}\n\n"),
        last_chunk(),
    ];
    let server = Server::start(vec![busy, hello()]).await;
    assert_eq!(ask_once(&model(&server)).await, Ok((hello_items(), None)));
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_response_that_breaks_in_the_middle_is_not_retried() {
    let closed = vec![head(), chunk(&delta("hel"))];
    let ended = vec![head(), chunk(&delta("hel")), last_chunk()];
    let busy = vec![head(), chunk(&format!("{}data: {{\"error\":\"busy\"}}\n\n", delta("hel")))];
    for broken in [closed, ended, busy] {
        let server = Server::start(vec![broken, hello()]).await;
        let (items, error) = ask_once(&model(&server)).await.unwrap();
        assert_eq!(items, json!([{"type": "text_delta", "text": "hel"}]));
        assert!(error.is_some_and(|error| error.is_transient()));
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_response_that_breaks_after_its_finish_reason_is_complete() {
    let stop = STOP.replace("data: [DONE]\n\n", "");
    let broken = vec![head(), chunk(&delta("hel")), chunk(&delta("lo")), chunk(&stop)];
    let server = Server::start(vec![broken]).await;
    assert_eq!(ask_once(&model(&server)).await, Ok((hello_items(), None)));
}

#[tokio::test]
async fn a_silent_provider_times_out() {
    let idle = Duration::from_millis(150);
    let silent = vec![Step::Hold];
    let server = Server::start(vec![silent]).await;
    let mut patient = settings(&server);
    patient.idle_timeout = idle;
    let model = Model::new(patient).unwrap();
    assert_eq!(ask_once(&model).await, Err(ModelError::IdleTimeout(idle)));
    server.left().await;
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn silence_in_the_middle_ends_the_stream() {
    let idle = Duration::from_millis(150);
    let server = Server::start(vec![vec![head(), chunk(&delta("hel")), Step::Hold]]).await;
    let mut patient = settings(&server);
    patient.idle_timeout = idle;
    let (items, error) = ask_once(&Model::new(patient).unwrap()).await.unwrap();
    assert_eq!(items, json!([{"type": "text_delta", "text": "hel"}]));
    assert_eq!(error, Some(ModelError::IdleTimeout(idle)));
    server.left().await;
}

#[tokio::test]
async fn the_deadline_counts_before_and_in_the_middle_of_an_answer() {
    let begun = vec![head(), chunk(&delta("hel")), Step::Hold];
    for (script, items) in [(vec![Step::Hold], 0), (vec![head(), Step::Hold], 0), (begun, 1)] {
        let server = Server::start(vec![script]).await;
        let deadline = Instant::now() + Duration::from_millis(150);
        let (got, error) = match model(&server).stream(question(), deadline).await {
            Err(error) => (Vec::new(), Some(error)),
            Ok(stream) => drain(stream).await,
        };
        assert_eq!((got.len(), error), (items, Some(ModelError::DeadlineExceeded)));
        server.left().await;
    }
}

#[tokio::test]
async fn an_invalid_response_is_an_error_and_not_retried() {
    for nonsense in [
        "data: <html>\n\n",
        "data: {\"choices\":[{\"index\":0,\"del",
        "data: \u{0}\u{1}\n\n",
        "data: {\"choices\"\n\n",
    ] {
        let server = Server::start(vec![vec![head(), chunk(nonsense), last_chunk()]]).await;
        let error = ask_once(&model(&server)).await.unwrap_err();
        assert!(matches!(error, ModelError::InvalidResponse(_)), "{nonsense}: {error}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn truncated_json_after_an_item_is_an_error_after_that_item() {
    let cut = format!("{}data: {{\"choices\":[{{\"ind", delta("hel"));
    let server = Server::start(vec![vec![head(), chunk(&cut), last_chunk()], hello()]).await;
    let (items, error) = ask_once(&model(&server)).await.unwrap();
    assert_eq!(items, json!([{"type": "text_delta", "text": "hel"}]));
    assert!(matches!(error, Some(ModelError::InvalidResponse(_))));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_server_without_http_is_unavailable() {
    let server = Server::start(vec![vec![Step::Write(b"\x00\x01SSH-2.0\r\n\r\n".to_vec())]]).await;
    let mut hasty = settings(&server);
    hasty.retries = 1;
    let error = ask_once(&Model::new(hasty).unwrap()).await.unwrap_err();
    assert!(matches!(error, ModelError::Unavailable(_)), "{error}");
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn an_empty_response_is_retried() {
    let server = Server::start(vec![vec![head(), last_chunk()], hello()]).await;
    assert_eq!(ask_once(&model(&server)).await, Ok((hello_items(), None)));
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn a_models_own_timeout_is_not_reported_as_the_runs_deadline() {
    let server = Server::start(vec![vec![head(), chunk(&delta("hel")), Step::Hold]]).await;
    let mut hasty = settings(&server);
    hasty.timeout = Duration::from_millis(250);
    let (items, error) = ask_once(&Model::new(hasty).unwrap()).await.unwrap();
    assert_eq!(items, json!([{"type": "text_delta", "text": "hel"}]));
    let text = "its response took longer than 0.25 s".to_owned();
    assert_eq!(error, Some(ModelError::Unavailable(text)));
}
