//! `/v1/runners/connect`: runners on other machines, over WebSocket, with a token of their own.
//!
//! Invariant: which runner connects is said by its token, never by what it sends.

use crate::access::bearer;
use crate::answer::Problem;
use crate::router::App;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Sink, SinkExt, Stream, StreamExt, future};
use greenroom_protocol::ErrorCode;

pub(crate) async fn connect(State(app): State<App>, request: Request) -> Result<Response, Problem> {
    let (mut parts, _) = request.into_parts();
    let token = bearer(&parts).ok_or_else(Problem::unauthenticated)?;
    let name = app.access.load().runner(token).cloned().ok_or_else(Problem::unauthenticated)?;
    let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &app).await.map_err(|_| {
        let message = "runners connect by WebSocket";
        Problem::new(StatusCode::UPGRADE_REQUIRED, ErrorCode::InvalidArgument, message)
    })?;
    let bytes_max = app.options.frame_bytes_max;
    let upgrade = upgrade.max_message_size(bytes_max).max_frame_size(bytes_max);
    let runtime = app.host.runtime().clone();
    Ok(upgrade
        .on_upgrade(move |socket| async move {
            if let Err(error) = runtime.attach(&name, transport(socket)).await {
                tracing::warn!(runner = name, %error, "a runner could not connect");
            }
        })
        .into_response())
}

/// One JSON message per frame, text or binary; pings are answered below.
fn transport(
    socket: WebSocket,
) -> impl Stream<Item = Result<Bytes, axum::Error>> + Sink<Bytes, Error = axum::Error> + Send {
    socket
        .filter_map(|frame| {
            future::ready(match frame {
                Ok(Message::Text(text)) => Some(Ok(Bytes::from(text))),
                Ok(Message::Binary(bytes)) => Some(Ok(bytes)),
                Ok(_) => None,
                Err(error) => Some(Err(error)),
            })
        })
        .with(|bytes: Bytes| {
            let text = String::from_utf8_lossy(&bytes).into_owned();
            future::ready(Ok::<_, axum::Error>(Message::Text(text.into())))
        })
}
