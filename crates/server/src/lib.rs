//! HTTP, SSE and WebSocket interface of the host.
//!
//! Invariant: every error response has the same shape, `{"error": {code, message, retryable, details}}`; no input
//! can panic or block the host.

mod accept;
mod access;
mod agents;
mod agui;
mod approvals;
mod artifacts;
mod audit;
mod base;
mod connect;
mod deliveries;
mod events;
mod facts;
mod guard;
mod id;
mod idle_timer;
mod interactions;
mod listen;
mod mcp_gateway;
mod metrics;
mod model_gateway;
mod openapi;
mod origin;
mod overview;
mod query;
mod request_policy;
mod resources;
mod response;
mod router;
mod run_access;
mod runs;
mod session;
mod stream;
mod stream_access;
mod system;
mod tls;
mod tool_runtime;
mod ui;

pub use access::{Access, Actors, Conversations, Role, Token, hash_token};
pub use base::is_route;
pub use greenroom_store::reads::conversations::Names;
pub use listen::{ListenerKind, bind, serve};
pub use openapi::openapi_document;
pub use request_policy::RequestPolicy;
pub use router::{Server, ServerOptions};
pub use tls::{Certificate, TlsError};
