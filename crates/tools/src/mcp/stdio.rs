//! The wire to a server on stdio: one JSON message per line.
//!
//! Invariant: at most one line of the allowed length is buffered; a longer line, too many lines that are not MCP,
//! or a server that does not read closes the connection with a reason.

use super::pace::Pace;
use super::settings::McpLimits;
use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::service::TxJsonRpcMessage;
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe;
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Longer lines are parsed outside the runtime's workers.
const LONG_LINE_BYTES: usize = 256 * 1024;

pub(super) struct Stdio {
    stdout: BufReader<pipe::Receiver>,
    line: Vec<u8>,
    /// A partially read long line; kept here because `receive` may be dropped at any time.
    parsing: Option<JoinHandle<Parsed>>,
    stdin: Arc<AsyncMutex<Option<pipe::Sender>>>,
    pace: Pace,
    foreign_lines: u32,
    discovery: Discovery,
    limits: McpLimits,
    fault: Fault,
}

/// Why a connection has failed.
#[derive(Debug, Clone, Default)]
pub(super) struct Fault {
    reason: Arc<Mutex<Option<String>>>,
    raised: CancellationToken,
}

/// The `discover` request. A server that starts slowly may answer it after we have given up on it and sent
/// `initialize`; that late answer would end the connection.
#[derive(Debug, Default)]
struct Discovery {
    asked: Option<RequestId>,
    given_up: bool,
}

enum Parsed {
    Message(Box<ServerJsonRpcMessage>),
    Foreign,
}

impl Discovery {
    fn note(&mut self, sent: &TxJsonRpcMessage<RoleClient>) {
        let JsonRpcMessage::Request(sent) = sent else { return };
        match sent.request {
            ClientRequest::DiscoverRequest(_) => self.asked = Some(sent.id.clone()),
            ClientRequest::InitializeRequest(_) => self.given_up = true,
            _ => {}
        }
    }

    fn is_stale(&self, message: &ServerJsonRpcMessage) -> bool {
        let answered = match message {
            JsonRpcMessage::Response(answer) => Some(&answer.id),
            JsonRpcMessage::Error(answer) => answer.id.as_ref(),
            _ => None,
        };
        self.given_up && answered.is_some() && answered == self.asked.as_ref()
    }
}

impl Fault {
    pub(super) fn reason(&self) -> Option<String> {
        self.reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn raise(&self, reason: String) {
        let mut kept = self.reason.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get_or_insert(reason);
        self.raised.cancel();
    }
}

impl Stdio {
    pub(super) fn new(
        stdin: pipe::Sender,
        stdout: pipe::Receiver,
        limits: McpLimits,
        fault: Fault,
    ) -> Self {
        Self {
            stdout: BufReader::with_capacity(64 * 1024, stdout),
            line: Vec::new(),
            parsing: None,
            stdin: Arc::new(AsyncMutex::new(Some(stdin))),
            pace: Pace::new(limits.notices_per_s, limits.notices_burst),
            foreign_lines: 0,
            discovery: Discovery::default(),
            limits,
            fault,
        }
    }

    /// The next message; `None` at the end. Cancel safe.
    async fn next(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            self.pace.ready().await;
            let parsed = match &mut self.parsing {
                Some(parsing) => {
                    let parsed = parsing.await;
                    self.parsing = None;
                    parsed.unwrap_or(Parsed::Foreign)
                }
                None => {
                    self.fill_line().await?;
                    let line = std::mem::take(&mut self.line);
                    if line.len() > LONG_LINE_BYTES {
                        self.parsing = Some(tokio::task::spawn_blocking(move || parse(&line)));
                        continue;
                    }
                    parse(&line)
                }
            };
            match parsed {
                Parsed::Message(message) if self.discovery.is_stale(&message) => {}
                Parsed::Message(message) => {
                    let is_answer = matches!(
                        *message,
                        ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_)
                    );
                    if !is_answer {
                        self.pace.spend();
                    }
                    return Some(*message);
                }
                Parsed::Foreign => self.count_foreign()?,
            }
        }
    }

    /// Reads until `line` is complete.
    async fn fill_line(&mut self) -> Option<()> {
        loop {
            let chunk = self.stdout.fill_buf().await.ok().filter(|chunk| !chunk.is_empty())?;
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            if self.line.len() + part.len() > self.limits.message_bytes_max {
                let max = self.limits.message_bytes_max;
                self.fault.raise(format!("sent a line of more than {max} bytes"));
                return None;
            }
            self.line.extend_from_slice(part);
            let taken = part.len() + usize::from(end.is_some());
            self.stdout.consume(taken);
            if end.is_some() {
                return Some(());
            }
        }
    }

    fn count_foreign(&mut self) -> Option<()> {
        self.foreign_lines += 1;
        if self.foreign_lines > self.limits.foreign_lines_max {
            let reason = "writes what is not MCP to its standard output, where logs do not belong";
            self.fault.raise(reason.to_owned());
            return None;
        }
        Some(())
    }
}

impl Transport<RoleClient> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        self.discovery.note(&item);
        let (stdin, fault) = (self.stdin.clone(), self.fault.clone());
        let write_timeout = self.limits.write_timeout;
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let written = tokio::time::timeout(write_timeout, async {
                let mut stdin = stdin.lock().await;
                let stdin = stdin.as_mut().ok_or(io::ErrorKind::NotConnected)?;
                stdin.write_all(&line).await
            });
            match written.await {
                Ok(written) => written,
                Err(_) => {
                    fault.raise("does not read what it is sent".to_owned());
                    Err(io::ErrorKind::TimedOut.into())
                }
            }
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        let raised = self.fault.raised.clone();
        tokio::select! {
            biased;
            () = raised.cancelled() => None,
            message = self.next() => message,
        }
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        // Locked only while something is written, and that is bounded.
        self.stdin.lock().await.take();
        Ok(())
    }
}

/// An invalid answer still ends the wait of its request.
fn parse(line: &[u8]) -> Parsed {
    let error = match serde_json::from_slice(line) {
        Ok(message) => return Parsed::Message(Box::new(message)),
        Err(error) => error,
    };
    match serde_json::from_slice::<Envelope<'_>>(line) {
        Ok(Envelope { id: Some(id), result, error: failure }) if result.or(failure).is_some() => {
            let error = ErrorData::internal_error(format!("the answer is not MCP: {error}"), None);
            Parsed::Message(Box::new(ServerJsonRpcMessage::error(error, Some(id))))
        }
        _ => Parsed::Foreign,
    }
}

/// The parts of an answer that can be read at any depth.
#[derive(Deserialize)]
struct Envelope<'a> {
    id: Option<RequestId>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}
