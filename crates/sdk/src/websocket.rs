//! The native wire over WebSocket, for remote runners.
//!
//! Invariant: one message per frame; runs belong to one connection and end with it; a lost connection is retried with
//! increasing delays, a rejected token is not.

use crate::ServeError;
use crate::connection::{Connection, Next};
use crate::outbox::Outbox;
use crate::plugin::CheckedPlugin;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use greenroom_protocol::wire::RequestId;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Request;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

const PATH: &str = "/v1/runners/connect";
const PAUSE_FIRST: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(30);
const PING_EVERY: Duration = Duration::from_secs(20);
/// A host that is silent for this long, even to a ping, is considered gone.
const SILENCE_MAX: Duration = Duration::from_secs(60);

pub(crate) async fn serve(
    plugin: Arc<CheckedPlugin>,
    url: &str,
    token: &str,
) -> Result<(), ServeError> {
    let request = request(url, token)?;
    #[cfg(feature = "wss")]
    // Fails only if the program has already chosen a provider, which is then used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut pause = PAUSE_FIRST;
    loop {
        match tokio_tungstenite::connect_async_with_config(request.clone(), None, true).await {
            Ok((socket, _)) => {
                let (sink, stream) = socket.split();
                match exchange(plugin.clone(), sink, stream).await {
                    End::ShutDown => return Ok(()),
                    End::Lost(Lost::Refused(reason)) => {
                        eprintln!("the host rejected the runner: {reason}");
                    }
                    End::Lost(Lost::Broken { was_used }) => {
                        if was_used {
                            pause = PAUSE_FIRST;
                        }
                        eprintln!("lost the connection to the host");
                    }
                }
            }
            Err(Error::Http(answer)) if answer.status().as_u16() == 401 => {
                return Err(ServeError::Token);
            }
            Err(Error::Http(answer)) if answer.status().as_u16() == 403 => {
                return Err(ServeError::Forbidden);
            }
            Err(error) => eprintln!("cannot reach the host: {error}"),
        }
        sleep(jittered(pause)).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// `http` and `https` become `ws` and `wss`, so that one URL works for all commands.
fn request(url: &str, token: &str) -> Result<Request, ServeError> {
    let invalid = || ServeError::Address(url.to_owned());
    let (scheme, rest) = url.trim_end_matches('/').split_once("://").ok_or_else(invalid)?;
    let scheme = match scheme {
        "ws" | "http" => "ws",
        "wss" | "https" if cfg!(feature = "wss") => "wss",
        "wss" | "https" => return Err(ServeError::Feature("wss")),
        _ => return Err(invalid()),
    };
    let path = if rest.contains('/') { "" } else { PATH };
    let mut request =
        format!("{scheme}://{rest}{path}").into_client_request().map_err(|_| invalid())?;
    let bearer = format!("Bearer {token}").parse().map_err(|_| ServeError::Token)?;
    request.headers_mut().insert(AUTHORIZATION, bearer);
    Ok(request)
}

enum End {
    ShutDown,
    Lost(Lost),
}

enum Lost {
    /// The host closed the connection with a reason.
    Refused(String),
    Broken {
        was_used: bool,
    },
}

/// Why reading ended: by the host's request or by the connection.
enum Read {
    ShutDown(Option<RequestId>),
    Lost(Lost),
}

async fn exchange(
    plugin: Arc<CheckedPlugin>,
    mut sink: impl Sink<Message, Error = Error> + Unpin,
    mut stream: impl Stream<Item = Result<Message, Error>> + Unpin,
) -> End {
    let connection = Connection::new(plugin);
    let reading = async {
        let end = match read(&connection, &mut stream).await {
            Read::ShutDown(id) => {
                connection.drain(id).await;
                End::ShutDown
            }
            Read::Lost(lost) => End::Lost(lost),
        };
        connection.abandon();
        end
    };
    // A failed write closes the outbox; the reader notices the broken connection itself.
    let writing = async {
        let _ = write(&connection.outbox, &mut sink).await;
        connection.abandon();
        let _ = sink.close().await;
    };
    let (end, ()) = tokio::join!(reading, writing);
    end
}

async fn read(
    connection: &Arc<Connection>,
    stream: &mut (impl Stream<Item = Result<Message, Error>> + Unpin),
) -> Read {
    let mut was_used = false;
    while let Ok(Some(Ok(message))) = timeout(SILENCE_MAX, stream.next()).await {
        let next = match message {
            Message::Text(text) => connection.receive(text.as_bytes()).await,
            Message::Binary(bytes) => connection.receive(&bytes).await,
            Message::Close(Some(frame)) if is_rejection(&frame) => {
                return Read::Lost(Lost::Refused(frame.reason.to_string()));
            }
            Message::Close(_) => break,
            _ => continue,
        };
        was_used = true;
        if let Next::ShutDown(id) = next {
            return Read::ShutDown(id);
        }
    }
    Read::Lost(Lost::Broken { was_used })
}

/// Whether the host rejected the runner, rather than going away.
fn is_rejection(frame: &CloseFrame) -> bool {
    frame.code == CloseCode::Policy || (4000..5000).contains(&u16::from(frame.code))
}

async fn write(
    outbox: &Outbox,
    sink: &mut (impl Sink<Message, Error = Error> + Unpin),
) -> Result<(), Error> {
    let mut batch = Vec::new();
    loop {
        match timeout(PING_EVERY, outbox.take(&mut batch)).await {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(_) => {
                sink.send(Message::Ping(Vec::new().into())).await?;
                continue;
            }
        }
        for line in batch.split(|&byte| byte == b'\n').filter(|line| !line.is_empty()) {
            let frame = match std::str::from_utf8(line) {
                Ok(text) => Message::Text(Utf8Bytes::from(text)),
                Err(_) => Message::Binary(line.to_vec().into()),
            };
            sink.feed(frame).await?;
        }
        sink.flush().await?;
    }
}

/// Between half and all of the delay, so that many runners do not reconnect at the same moment.
fn jittered(pause: Duration) -> Duration {
    let random = RandomState::new().hash_one(0_u8) % 1000;
    pause.mul_f64(0.5 + random as f64 / 2000.0)
}
