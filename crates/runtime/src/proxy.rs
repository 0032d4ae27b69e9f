//! The calls that runners make, as the host gets them.
//!
//! Invariant: who calls is said by the connection, never by the call.

use crate::connection::ConnectionId;
use greenroom_protocol::AgentAPIError;
use serde_json::value::RawValue;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// The host's side of the calls that runners make.
pub trait Proxy: Send + Sync + 'static {
    fn call(&self, call: ProxyCall) -> ProxyFuture<'_>;
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
    /// Whether that run is under way on this very connection.
    pub run_is_on_connection: bool,
    /// How many results of that run came before this call: a read waits until they are applied.
    pub results_before: u64,
    pub method: String,
    pub params: Box<RawValue>,
}
