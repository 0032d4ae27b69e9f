//! The calls that runners make, as the host gets them.
//!
//! Invariant: the connection says who calls, never the call.

use crate::connection::{Connection, ConnectionId};
use crate::spec::Wire;
use greenroom_protocol::AgentAPIError;
use serde_json::value::RawValue;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// The host's side of the calls that runners make.
pub trait Proxy: Send + Sync + 'static {
    fn call(&self, call: ProxyCall) -> ProxyFuture<'_>;

    /// A call that the runtime itself refused, for the audit record. Must not wait.
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
    /// How many results of that run came before this call: the call waits until they are applied.
    pub results_before: u64,
    pub method: String,
    pub params: Box<RawValue>,
    /// The wire of the connection: some methods exist on one wire only.
    pub wire: Wire,
    /// Takes the items of a streaming call.
    pub sink: ItemSink,
}

impl ProxyCall {
    /// Another call of the same caller for the same run.
    pub(crate) fn again(&self, method: &str, params: Box<RawValue>) -> Self {
        Self {
            connection: self.connection,
            runner: self.runner.clone(),
            plugin: self.plugin.clone(),
            run_id: self.run_id.clone(),
            standing: self.standing,
            results_before: self.results_before,
            method: method.to_owned(),
            params,
            wire: self.wire,
            sink: self.sink.clone(),
        }
    }
}

/// The run of a call, seen from the connection that calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Not a run of this connection.
    Foreign,
    /// Live on this connection.
    Live,
    /// It was live, and the host has dropped it; the runner still has it.
    Over,
}

/// Sends the items of a streaming call to its caller, before the answer.
#[derive(Debug, Clone)]
pub struct ItemSink {
    pub(crate) connection: Arc<Connection>,
    /// The id of the request as the runner wrote it.
    pub(crate) request_id: String,
}

/// The caller is gone or does not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the runner does not accept the items of its call")]
pub struct NotTaken;

impl ItemSink {
    /// Waits until the runner has read most of what it was sent; call this before making a large item.
    pub async fn room(&self) {
        self.connection.outbox.room_for_items().await;
    }

    /// Sends one item; waits while the runner has too much to read.
    pub async fn send(&self, item: &RawValue) -> Result<(), NotTaken> {
        self.connection.codec.send_item(&self.connection, &self.request_id, item).await
    }
}
