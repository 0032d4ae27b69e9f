//! `/v1/runners/connect`: remote runners over WebSocket, each with its own token.
//!
//! Invariant: the token alone identifies the runner; a rejected runner gets the reason before the connection
//! is closed.

use crate::access::bearer;
use crate::response::Problem;
use crate::router::App;
use axum::extract::ws::{CloseFrame, Message, WebSocketUpgrade, close_code};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use greenroom_protocol::ErrorCode;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Interval, MissedTickBehavior};

/// Interval between pings.
const PING_EVERY: Duration = Duration::from_secs(15);
/// A runner silent for longer is disconnected; a busy program may leave its socket alone for a while.
const SILENCE_MAX: Duration = Duration::from_secs(90);
/// How long a rejected runner may take to receive the reason.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Longest reason in a WebSocket close frame, in bytes.
const REASON_BYTES_MAX: usize = 123;

pub(crate) async fn connect(State(app): State<App>, request: Request) -> Result<Response, Problem> {
    let (mut parts, _) = request.into_parts();
    let token = bearer(&parts).ok_or_else(Problem::unauthenticated)?;
    let name = app.access.load().runner(token).cloned().ok_or_else(Problem::unauthenticated)?;
    let upgrade = WebSocketUpgrade::from_request_parts(&mut parts, &app).await.map_err(|_| {
        let message = "runners connect by WebSocket";
        Problem::new(StatusCode::UPGRADE_REQUIRED, ErrorCode::InvalidArgument, message)
    })?;
    // The runtime handles frames over the limit: one may fail a single run instead of the connection.
    let bytes_max = 2 * app.options.limits.line_bytes;
    let upgrade = upgrade.max_message_size(bytes_max).max_frame_size(bytes_max);
    let runtime = app.host.runtime().clone();
    Ok(upgrade
        .on_upgrade(move |socket| async move {
            let mut frames = Frames::new(socket);
            if let Err(error) = runtime.attach(&name, &mut frames).await {
                tracing::warn!(runner = name, %error, "rejected a runner connection");
                frames.reject(&error.to_string()).await;
            }
        })
        .into_response())
}

/// One JSON message per text or binary frame. A peer that answers no ping within `SILENCE_MAX` is disconnected.
struct Frames<S> {
    socket: S,
    pings: Interval,
    last_seen: Instant,
}

/// An axum WebSocket.
trait Socket:
    Stream<Item = Result<Message, axum::Error>> + Sink<Message, Error = axum::Error> + Unpin
{
}

impl<S> Socket for S where
    S: Stream<Item = Result<Message, axum::Error>> + Sink<Message, Error = axum::Error> + Unpin
{
}

impl<S: Socket> Frames<S> {
    fn new(socket: S) -> Self {
        let mut pings = tokio::time::interval(PING_EVERY);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { socket, pings, last_seen: Instant::now() }
    }

    /// Sends a ping when one is due, unless the socket is full.
    fn ping(&mut self, cx: &mut Context<'_>) -> Result<(), axum::Error> {
        while self.pings.poll_tick(cx).is_ready() {
            if self.last_seen.elapsed() > SILENCE_MAX {
                return Err(axum::Error::new("the runner stopped responding"));
            }
            if let Poll::Ready(ready) = self.socket.poll_ready_unpin(cx) {
                ready?;
                self.socket.start_send_unpin(Message::Ping(Bytes::new()))?;
                if let Poll::Ready(sent) = self.socket.poll_flush_unpin(cx) {
                    sent?;
                }
            }
        }
        Ok(())
    }

    async fn reject(mut self, reason: &str) {
        let reason = &reason[..reason.floor_char_boundary(REASON_BYTES_MAX)];
        let close = CloseFrame { code: close_code::POLICY, reason: reason.into() };
        // Waits until the peer has read the close frame.
        let closing = async {
            if self.socket.send(Message::Close(Some(close))).await.is_ok() {
                while let Some(Ok(_)) = self.socket.next().await {}
            }
        };
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, closing).await;
    }
}

impl<S: Socket> Stream for Frames<S> {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Err(error) = self.ping(cx) {
            return Poll::Ready(Some(Err(error)));
        }
        loop {
            let frame = ready!(self.socket.poll_next_unpin(cx));
            self.last_seen = Instant::now();
            return Poll::Ready(match frame {
                Some(Ok(Message::Text(text))) => Some(Ok(Bytes::from(text))),
                Some(Ok(Message::Binary(bytes))) => Some(Ok(bytes)),
                Some(Ok(_)) => continue,
                Some(Err(error)) => Some(Err(error)),
                None => None,
            });
        }
    }
}

impl<S: Socket> Sink<Bytes> for Frames<S> {
    type Error = axum::Error;

    fn poll_ready(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), axum::Error>> {
        self.socket.poll_ready_unpin(cx)
    }

    fn start_send(mut self: Pin<&mut Self>, frame: Bytes) -> Result<(), axum::Error> {
        let text = String::from_utf8_lossy(&frame).into_owned();
        self.socket.start_send_unpin(Message::Text(text.into()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), axum::Error>> {
        self.socket.poll_flush_unpin(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), axum::Error>> {
        self.socket.poll_close_unpin(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::mpsc;

    /// The other end of a connection.
    struct Peer {
        says: mpsc::Sender<Message>,
        hears: mpsc::Receiver<Message>,
    }

    struct Line {
        incoming: mpsc::Receiver<Message>,
        outgoing: mpsc::Sender<Message>,
    }

    fn line() -> (Frames<Line>, Peer) {
        let (says, incoming) = mpsc::channel(16);
        let (outgoing, hears) = mpsc::channel(16);
        (Frames::new(Line { incoming, outgoing }), Peer { says, hears })
    }

    impl Stream for Line {
        type Item = Result<Message, axum::Error>;

        fn poll_next(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<Message, axum::Error>>> {
            self.incoming.poll_recv(cx).map(|message| message.map(Ok))
        }
    }

    impl Sink<Message> for Line {
        type Error = axum::Error;

        fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), axum::Error>> {
            Poll::Ready(Ok(()))
        }

        fn start_send(self: Pin<&mut Self>, message: Message) -> Result<(), axum::Error> {
            self.outgoing.try_send(message).map_err(axum::Error::new)
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), axum::Error>> {
            Poll::Ready(Ok(()))
        }

        fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), axum::Error>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_peer_is_disconnected_after_a_timeout() {
        let (mut frames, mut peer) = line();
        let begun = Instant::now();
        let error = frames.next().await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), "the runner stopped responding");
        let silent_s = begun.elapsed().as_secs();
        assert!((90..=110).contains(&silent_s), "{silent_s} s");
        let mut pings = 0;
        while let Ok(message) = peer.hears.try_recv() {
            assert_eq!(message, Message::Ping(Bytes::new()));
            pings += 1;
        }
        assert!((6..=8).contains(&pings), "{pings} pings");
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_answers_pings_stays_connected() {
        let (mut frames, Peer { says, mut hears }) = line();
        let answering = async move {
            for _ in 0..40 {
                assert_eq!(hears.recv().await, Some(Message::Ping(Bytes::new())));
                says.send(Message::Pong(Bytes::new())).await.unwrap();
            }
            says.send(Message::text("{}")).await.unwrap();
        };
        let begun = Instant::now();
        let (frame, ()) = tokio::join!(frames.next(), answering);
        assert_eq!(frame.unwrap().unwrap(), "{}");
        assert!(begun.elapsed() > Duration::from_secs(500), "{:?}", begun.elapsed());
    }
}
