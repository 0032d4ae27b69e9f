//! Providers that refuse, break off, fall silent or talk nonsense.

use crate::kit::*;
use greenroom_models::{Model, ModelError};
use serde_json::json;
use std::time::Duration;
use tokio::time::Instant;

#[tokio::test]
async fn a_rate_limit_is_waited_for_as_long_as_the_provider_says() {
    let limited = answer(429, &[("retry-after", "0")], r#"{"error":{"message":"slow down"}}"#);
    let server = Server::start(vec![limited.clone(), limited, hello()]).await;
    assert_eq!(asked(&model(&server)).await, Ok((hello_items(), None)));
    assert_eq!(server.asked().len(), 3);
}

#[tokio::test]
async fn a_rate_limit_that_outlasts_the_deadline_is_told_at_once() {
    let limited = answer(429, &[("retry-after", "3600")], r#"{"error":{"message":"slow down"}}"#);
    let server = Server::start(vec![limited]).await;
    let begun = Instant::now();
    let expected = ModelError::RateLimited {
        message: "slow down".to_owned(),
        retry_after: Some(Duration::from_secs(3600)),
    };
    assert_eq!(asked(&model(&server)).await, Err(expected));
    assert!(begun.elapsed() < Duration::from_secs(5));
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn a_provider_that_keeps_failing_is_tried_three_times() {
    for status in [500, 503, 529, 408, 409] {
        let broken = answer(status, &[("retry-after", "0")], "<html>broken</html>");
        let server = Server::start(vec![broken]).await;
        let message = "<html>broken</html>".to_owned();
        let error = asked(&model(&server)).await.unwrap_err();
        assert_eq!(error, ModelError::Refused { status, message });
        assert_eq!(server.asked().len(), 3, "{status}");
    }
}

#[tokio::test]
async fn a_request_that_the_provider_does_not_like_is_not_repeated_and_its_key_is_not_told() {
    for status in [400, 401, 404, 422] {
        let body = json!({"error": {"message": format!("bad key {KEY}"), "type": "x"}});
        let server = Server::start(vec![answer(status, &[], &body.to_string())]).await;
        let error = asked(&model(&server)).await.unwrap_err();
        assert_eq!(error, ModelError::Refused { status, message: "bad key …".to_owned() });
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn an_answer_that_breaks_off_before_its_first_item_is_asked_for_again() {
    let before_head = vec![Step::Reset];
    let behind_head = vec![head(), Step::Reset];
    let behind_comment = vec![head(), chunk(": wait\n\n"), Step::Reset];
    for broken in [before_head, behind_head, behind_comment] {
        let server = Server::start(vec![broken, hello()]).await;
        assert_eq!(asked(&model(&server)).await, Ok((hello_items(), None)));
        assert_eq!(server.asked().len(), 2);
    }
}

#[tokio::test]
async fn an_error_event_before_the_first_item_is_tried_again() {
    let busy = vec![
        head(),
        chunk("data: {\"error\":{\"message\":\"busy\",\"code\":503}}\n\n"),
        last_chunk(),
    ];
    let server = Server::start(vec![busy, hello()]).await;
    assert_eq!(asked(&model(&server)).await, Ok((hello_items(), None)));
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn an_answer_that_breaks_off_in_the_middle_is_never_begun_again() {
    let closed = vec![head(), chunk(&delta("hel"))];
    let ended = vec![head(), chunk(&delta("hel")), last_chunk()];
    let busy = vec![head(), chunk(&format!("{}data: {{\"error\":\"busy\"}}\n\n", delta("hel")))];
    for broken in [closed, ended, busy] {
        let server = Server::start(vec![broken, hello()]).await;
        let (items, error) = asked(&model(&server)).await.unwrap();
        assert_eq!(items, json!([{"type": "text_delta", "text": "hel"}]));
        assert!(error.is_some_and(|error| error.is_passing()));
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn what_breaks_off_behind_the_reason_to_stop_was_complete() {
    let stop = STOP.replace("data: [DONE]\n\n", "");
    let broken = vec![head(), chunk(&delta("hel")), chunk(&delta("lo")), chunk(&stop)];
    let server = Server::start(vec![broken]).await;
    assert_eq!(asked(&model(&server)).await, Ok((hello_items(), None)));
}

#[tokio::test]
async fn a_provider_that_falls_silent_is_given_up() {
    let idle = Duration::from_millis(150);
    let silent = vec![Step::Hold];
    let server = Server::start(vec![silent]).await;
    let mut patient = settings(&server);
    patient.idle_timeout = idle;
    let model = Model::new(patient).unwrap();
    assert_eq!(asked(&model).await, Err(ModelError::Silent(idle)));
    server.left().await;
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn silence_in_the_middle_ends_what_was_begun() {
    let idle = Duration::from_millis(150);
    let server = Server::start(vec![vec![head(), chunk(&delta("hel")), Step::Hold]]).await;
    let mut patient = settings(&server);
    patient.idle_timeout = idle;
    let (items, error) = asked(&Model::new(patient).unwrap()).await.unwrap();
    assert_eq!(items, json!([{"type": "text_delta", "text": "hel"}]));
    assert_eq!(error, Some(ModelError::Silent(idle)));
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
async fn nonsense_is_an_error_and_is_not_asked_for_again() {
    for nonsense in [
        "data: <html>\n\n",
        "data: {\"choices\":[{\"index\":0,\"del",
        "data: \u{0}\u{1}\n\n",
        "data: {\"choices\"\n\n",
    ] {
        let server = Server::start(vec![vec![head(), chunk(nonsense), last_chunk()]]).await;
        let error = asked(&model(&server)).await.unwrap_err();
        assert!(matches!(error, ModelError::Garbled(_)), "{nonsense}: {error}");
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn json_that_is_cut_off_behind_an_item_is_an_error_behind_that_item() {
    let cut = format!("{}data: {{\"choices\":[{{\"ind", delta("hel"));
    let server = Server::start(vec![vec![head(), chunk(&cut), last_chunk()], hello()]).await;
    let (items, error) = asked(&model(&server)).await.unwrap();
    assert_eq!(items, json!([{"type": "text_delta", "text": "hel"}]));
    assert!(matches!(error, Some(ModelError::Garbled(_))));
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn what_does_not_speak_http_is_not_there() {
    let server = Server::start(vec![vec![Step::Write(b"\x00\x01SSH-2.0\r\n\r\n".to_vec())]]).await;
    let mut hasty = settings(&server);
    hasty.retries = 1;
    let error = asked(&Model::new(hasty).unwrap()).await.unwrap_err();
    assert!(matches!(error, ModelError::Unavailable(_)), "{error}");
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn an_empty_answer_is_no_answer() {
    let server = Server::start(vec![vec![head(), last_chunk()], hello()]).await;
    assert_eq!(asked(&model(&server)).await, Ok((hello_items(), None)));
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn a_models_own_time_limit_is_not_called_the_runs() {
    let server = Server::start(vec![vec![head(), chunk(&delta("hel")), Step::Hold]]).await;
    let mut hasty = settings(&server);
    hasty.timeout = Duration::from_millis(250);
    let (items, error) = asked(&Model::new(hasty).unwrap()).await.unwrap();
    assert_eq!(items, json!([{"type": "text_delta", "text": "hel"}]));
    let text = "its answer took longer than 0.25 s".to_owned();
    assert_eq!(error, Some(ModelError::Unavailable(text)));
}
