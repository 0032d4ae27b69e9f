//! The calls that runners make, as the host gets them.
//!
//! Invariant: who calls is said by the connection, never by the call.

use crate::connection::{Connection, ConnectionId};
use crate::outbox::NotSent;
use greenroom_protocol::AgentAPIError;
use greenroom_protocol::wire::method;
use serde_json::value::RawValue;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// The host's side of the calls that runners make.
pub trait Proxy: Send + Sync + 'static {
    fn call(&self, call: ProxyCall) -> ProxyFuture<'_>;

    /// A call that the runtime itself refused, for the record. Must not wait.
    fn refused(&self, call: &ProxyCall, error: &AgentAPIError);
}

pub type ProxyFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Box<RawValue>, AgentAPIError>> + Send + 'a>>;

/// One call, with the identity that the connection gives it.
#[derive(Debug)]
pub struct ProxyCall {
    pub connection: ConnectionId,
    /// The name in the configuration.
    pub runner: Arc<str>,
    pub plugin: Arc<str>,
    /// What the parameters name, unchecked.
    pub run_id: Option<String>,
    pub standing: Standing,
    /// How many results of that run came before this call: a read waits until they are applied.
    pub results_before: u64,
    pub method: String,
    pub params: Box<RawValue>,
    /// Takes the items of a streaming call.
    pub sink: ItemSink,
}

/// What the run that a call names is to the connection that calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Not a run of this connection.
    Foreign,
    /// Under way on this very connection.
    Live,
    /// It was, and the host has let go of it; the runner has not.
    Over,
}

/// Where the items of one streaming call go: to the caller, before the answer.
#[derive(Debug, Clone)]
pub struct ItemSink {
    pub(crate) connection: Arc<Connection>,
    /// The id of the request as the runner wrote it.
    pub(crate) request_id: String,
}

/// The caller is gone or reads nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the runner does not take the items of its call")]
pub struct NotTaken;

impl ItemSink {
    /// Waits until the runner has read most of what it was sent: whoever makes large items asks first.
    pub async fn room(&self) {
        self.connection.outbox.room_for_items().await;
    }

    /// Sends one item, and waits while the runner has too much to read already.
    pub async fn send(&self, item: &RawValue) -> Result<(), NotTaken> {
        self.room().await;
        let (name, id) = (method::STREAM_ITEM, &self.request_id);
        let frame = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"{name}\",\"params\":{{\"request_id\":{id},\"item\":{item}}}}}\n"
        );
        match self.connection.outbox.push(frame.into()) {
            Ok(()) => Ok(()),
            Err(NotSent::Full | NotSent::Closed) => Err(NotTaken),
        }
    }
}
