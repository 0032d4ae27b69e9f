//! The Agent Client Protocol on the wire: JSON-RPC, one message per line of the harness's standard streams.
//!
//! Invariant: lines that are no messages are skipped, an overlong one ends the connection; every pending request is
//! answered or fails when the connection ends; queues are bounded.

use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

/// Longest line: a message with a picture is a few megabytes.
const LINE_BYTES_MAX: u64 = 32 * 1024 * 1024;
/// Messages that wait for the harness to read them.
const OUTGOING_MAX: usize = 64;
/// Messages of the harness that wait for the turn to take them.
const INBOX_MAX: usize = 256;
/// JSON-RPC: the method does not exist.
const METHOD_NOT_FOUND: i64 = -32601;

/// What a harness sends during a turn, besides answers.
#[derive(Debug)]
pub(crate) enum Inbound {
    /// `session/update`: the update.
    Update(Value),
    /// `session/request_permission`: answer it with [`Connection::answer`].
    Permission { id: Value, params: Value },
}

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(crate) enum WireError {
    #[error("the harness ended the connection")]
    Closed,
    #[error("{message}")]
    Refused { code: i64, message: String, data: Value },
}

type Answer = oneshot::Sender<Result<Value, WireError>>;

/// One connection to a harness; cheap to share.
pub(crate) struct Connection {
    outgoing: mpsc::Sender<Value>,
    state: Mutex<State>,
    next_id: AtomicU64,
}

#[derive(Default)]
struct State {
    pending: HashMap<u64, Answer>,
    /// Takes what arrives during a turn.
    turn: Option<mpsc::Sender<Inbound>>,
    is_closed: bool,
}

impl Connection {
    /// Reads and writes in tasks of `tasks` until the streams end.
    pub(crate) fn open(
        reader: impl AsyncBufRead + Unpin + Send + 'static,
        writer: impl AsyncWrite + Unpin + Send + 'static,
        tasks: &TaskTracker,
    ) -> Arc<Self> {
        let (outgoing, messages) = mpsc::channel(OUTGOING_MAX);
        let connection =
            Arc::new(Self { outgoing, state: Mutex::default(), next_id: AtomicU64::new(1) });
        tasks.spawn(write(writer, messages));
        // Weak: a dropped connection ends the writer, and with it the harness's input.
        let reading = Arc::downgrade(&connection);
        tasks.spawn(async move {
            let mut lines = Lines(reader);
            while let Some(line) = lines.next().await {
                let Some(connection) = reading.upgrade() else { return };
                connection.receive(&line).await;
            }
            if let Some(connection) = reading.upgrade() {
                connection.close();
            }
        });
        connection
    }

    /// Sends a request and waits for its result.
    pub(crate) async fn request(&self, method: &str, params: Value) -> Result<Value, WireError> {
        self.begin(method, params).await?.await.unwrap_or(Err(WireError::Closed))
    }

    /// Sends a request; its result comes from the receiver.
    pub(crate) async fn begin(
        &self,
        method: &str,
        params: Value,
    ) -> Result<oneshot::Receiver<Result<Value, WireError>>, WireError> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (answer, result) = oneshot::channel();
        {
            let mut state = self.lock();
            if state.is_closed {
                return Err(WireError::Closed);
            }
            state.pending.insert(id, answer);
        }
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        Ok(result)
    }

    pub(crate) async fn notify(&self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params})).await;
    }

    /// Answers a request of the harness.
    pub(crate) async fn answer(&self, id: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "result": result})).await;
    }

    /// From now on a turn gets what arrives; without a turn, updates are dropped and questions are cancelled.
    pub(crate) fn begin_turn(&self) -> mpsc::Receiver<Inbound> {
        let (sender, receiver) = mpsc::channel(INBOX_MAX);
        self.lock().turn = Some(sender);
        receiver
    }

    pub(crate) fn end_turn(&self) {
        self.lock().turn = None;
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    async fn send(&self, message: Value) {
        // The writer ends with the connection.
        let _ = self.outgoing.send(message).await;
    }

    async fn receive(&self, line: &[u8]) {
        let Ok(Value::Object(mut message)) = serde_json::from_slice::<Value>(line) else {
            eprintln!("the harness printed: {}", excerpt(line));
            return;
        };
        let id = message.remove("id").filter(|id| !id.is_null());
        let params = message.remove("params").unwrap_or_default();
        match (message.get("method").and_then(Value::as_str), id) {
            (Some(method), Some(id)) => self.request_of_harness(method, id, params).await,
            (Some("session/update"), None) => {
                let turn = self.lock().turn.clone();
                if let Some(turn) = turn {
                    let update = params.get("update").cloned().unwrap_or_default();
                    let _ = turn.send(Inbound::Update(update)).await;
                }
            }
            // Other notifications are extensions of the harness.
            (Some(_), None) => {}
            (None, Some(id)) => self.response(&id, message),
            (None, None) => {}
        }
    }

    async fn request_of_harness(&self, method: &str, id: Value, params: Value) {
        if method != "session/request_permission" {
            let error = json!({"code": METHOD_NOT_FOUND, "message": "method not found"});
            return self.send(json!({"jsonrpc": "2.0", "id": id, "error": error})).await;
        }
        let turn = self.lock().turn.clone();
        let refused = match turn {
            Some(turn) => turn.send(Inbound::Permission { id: id.clone(), params }).await.is_err(),
            None => true,
        };
        if refused {
            self.answer(&id, json!({"outcome": {"outcome": "cancelled"}})).await;
        }
    }

    fn response(&self, id: &Value, mut message: serde_json::Map<String, Value>) {
        let Some(answer) = id.as_u64().and_then(|id| self.lock().pending.remove(&id)) else {
            return;
        };
        let result = match message.remove("error").filter(|error| !error.is_null()) {
            None => Ok(message.remove("result").unwrap_or_default()),
            Some(error) => Err(WireError::Refused {
                code: error["code"].as_i64().unwrap_or_default(),
                message: error["message"].as_str().unwrap_or("no reason given").to_owned(),
                data: error.get("data").cloned().unwrap_or_default(),
            }),
        };
        let _ = answer.send(result);
    }

    fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        state.turn = None;
        // Dropped senders fail their requests.
        state.pending.clear();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn write(mut writer: impl AsyncWrite + Unpin, mut messages: mpsc::Receiver<Value>) {
    while let Some(message) = messages.recv().await {
        let mut line = message.to_string();
        line.push('\n');
        let written = async {
            writer.write_all(line.as_bytes()).await?;
            writer.flush().await
        };
        if written.await.is_err() {
            return;
        }
    }
}

/// Lines up to a length.
struct Lines<R>(R);

impl<R: AsyncBufRead + Unpin> Lines<R> {
    async fn next(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        let mut limited = (&mut self.0).take(LINE_BYTES_MAX);
        let bytes = limited.read_until(b'\n', &mut line).await.ok()?;
        if bytes == 0 {
            return None;
        }
        if !line.ends_with(b"\n") && bytes as u64 == LINE_BYTES_MAX {
            eprintln!("the harness sent a line of more than {LINE_BYTES_MAX} bytes");
            return None;
        }
        Some(line)
    }
}

/// The beginning of a line, for the log.
fn excerpt(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(300)]).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{BufReader, DuplexStream, duplex, split};

    fn connect(tasks: &TaskTracker) -> (Arc<Connection>, DuplexStream) {
        let (ours, theirs) = duplex(1 << 16);
        let (reader, writer) = split(ours);
        (Connection::open(BufReader::new(reader), writer, tasks), theirs)
    }

    async fn line(harness: &mut BufReader<DuplexStream>) -> Value {
        let mut line = String::new();
        harness.read_line(&mut line).await.unwrap();
        serde_json::from_str(&line).unwrap()
    }

    #[tokio::test]
    async fn garbage_is_skipped_and_the_end_fails_what_is_pending() {
        let tasks = TaskTracker::new();
        let (connection, theirs) = connect(&tasks);
        let mut harness = BufReader::new(theirs);
        let answered = connection.begin("a", json!({})).await.unwrap();
        let open = connection.begin("b", json!({})).await.unwrap();
        assert_eq!(line(&mut harness).await["method"], "a");
        harness.write_all(b"no json\n[1]\n{\"id\":99,\"result\":1}\n").await.unwrap();
        harness
            .write_all(b"{\"id\":1,\"error\":{\"code\":-32000,\"message\":\"no\"}}\n")
            .await
            .unwrap();
        let refused = answered.await.unwrap().unwrap_err();
        assert_eq!(refused.to_string(), "no");
        drop(harness);
        assert!(open.await.is_err());
        assert!(connection.is_closed());
        assert_eq!(connection.request("c", json!({})).await, Err(WireError::Closed));
    }

    #[tokio::test]
    async fn a_question_without_a_turn_is_cancelled_and_unknown_methods_are_refused() {
        let tasks = TaskTracker::new();
        let (connection, theirs) = connect(&tasks);
        let mut harness = BufReader::new(theirs);
        let asked = json!({"id": "q", "method": "session/request_permission", "params": {}});
        harness.write_all(format!("{asked}\n").as_bytes()).await.unwrap();
        assert_eq!(line(&mut harness).await["result"]["outcome"]["outcome"], "cancelled");
        harness
            .write_all(b"{\"id\":7,\"method\":\"fs/read_text_file\",\"params\":{}}\n")
            .await
            .unwrap();
        assert_eq!(line(&mut harness).await["error"]["code"], METHOD_NOT_FOUND);
        let mut turn = connection.begin_turn();
        harness.write_all(format!("{asked}\n").as_bytes()).await.unwrap();
        let Some(Inbound::Permission { id, .. }) = turn.recv().await else { panic!("a question") };
        connection.answer(&id, json!(1)).await;
        assert_eq!(line(&mut harness).await, json!({"jsonrpc": "2.0", "id": "q", "result": 1}));
    }
}
