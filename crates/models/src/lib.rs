//! Model providers behind one interface: a request in, a stream of items out.
//!
//! Invariant: a stream ends with exactly one finish or one error, whatever a provider sends; a request is not
//! repeated once a part of its response was emitted.

mod assembly;
mod client;
pub mod count;
mod embed;
mod error;
mod fold;
mod limits;
mod model;
mod names;
mod options;
pub mod presets;
pub mod price;
mod provider_error;
mod request;
mod rerank;
pub mod scripted;
pub mod serve;
mod settings;
mod sse;
mod turns;
mod usage;
mod windows;
mod wires;

pub use client::Probe;
pub use error::ModelError;
pub use fold::Fold;
pub use model::{Model, ModelStream, Models};
pub use request::{ModelRequest, ToolSpec};
pub use settings::{Kind, ModelSettings, Price, ProviderKind, Secret};
