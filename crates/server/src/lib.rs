//! HTTP, SSE and WebSocket in front of the host.
//!
//! Invariant: every answer that is not a success has the same shape, `{"error": {code, message, retryable,
//! details}}`; nothing from outside can panic or hold the host.

mod accept;
mod access;
mod agents;
mod agui;
mod answer;
mod approvals;
mod artifacts;
mod at_once;
mod audit;
mod base;
mod connect;
mod deliveries;
mod events;
mod facts;
mod front;
mod guard;
mod id;
mod listen;
mod openapi;
mod origin;
mod overview;
mod query;
mod resources;
mod router;
mod runs;
mod session;
mod silence;
mod standing;
mod stream;
mod system;
mod tls;
mod tool_runtime;
mod ui;

pub use access::{Access, Actors, Role, Token, hash_token};
pub use base::is_route;
pub use front::Front;
pub use listen::{Door, bind, serve};
pub use openapi::openapi_document;
pub use router::{Server, ServerOptions};
pub use tls::{Certificate, TlsError};
