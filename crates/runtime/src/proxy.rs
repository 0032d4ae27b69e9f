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
use tokio::sync::mpsc;

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
pub struct ItemSink(Way);

#[derive(Debug, Clone)]
enum Way {
    /// To the runner, under the id of the request as the runner wrote it.
    Wire { connection: Arc<Connection>, request_id: String },
    /// To a caller in this process.
    Channel(mpsc::Sender<Box<RawValue>>),
}

/// The caller is gone or does not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the runner does not accept the items of its call")]
pub struct NotTaken;

impl ItemSink {
    pub(crate) fn wire(connection: Arc<Connection>, request_id: String) -> Self {
        Self(Way::Wire { connection, request_id })
    }

    /// The id of the request on the wire; empty for a caller in this process.
    pub(crate) fn request_id(&self) -> &str {
        match &self.0 {
            Way::Wire { request_id, .. } => request_id,
            Way::Channel(_) => "",
        }
    }

    /// Waits until the caller has read most of what it was sent; call this before making a large item.
    pub async fn room(&self) {
        match &self.0 {
            Way::Wire { connection, .. } => connection.outbox.room_for_items().await,
            // `send` waits.
            Way::Channel(_) => {}
        }
    }

    /// Sends one item; waits while the caller has too much to read.
    pub async fn send(&self, item: &RawValue) -> Result<(), NotTaken> {
        match &self.0 {
            Way::Wire { connection, request_id } => {
                connection.codec.send_item(connection, request_id, item).await
            }
            Way::Channel(items) => items.send(item.to_owned()).await.map_err(|_| NotTaken),
        }
    }
}

/// The connection that has a run: for calls of the run's own programs, which reach the host on another way than
/// the wire. They have the identity of that connection.
#[derive(Debug, Clone)]
pub struct RunSeat {
    connection: Arc<Connection>,
}

impl RunSeat {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        Self { connection }
    }

    /// A call for the run, which sees the results that came before it. `items` takes what it streams.
    pub fn call(
        &self,
        run_id: &str,
        method: &str,
        params: Box<RawValue>,
        items: mpsc::Sender<Box<RawValue>>,
    ) -> ProxyCall {
        let (standing, results_before) = self.connection.standing(run_id);
        ProxyCall {
            connection: self.connection.id,
            runner: self.connection.runner.clone(),
            plugin: self.connection.plugin.get().cloned().unwrap_or_default(),
            run_id: Some(run_id.to_owned()),
            standing,
            results_before,
            method: method.to_owned(),
            params,
            wire: self.connection.codec.wire(),
            sink: ItemSink(Way::Channel(items)),
        }
    }
}
