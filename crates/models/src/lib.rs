//! Model providers in one shape: a request goes in, a stream of items comes out, and its fold is the answer.
//!
//! Invariant: whatever a provider sends, a stream ends with exactly one finish or one error; nothing is sent
//! a second time once a part of the answer has gone out.

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
mod refusal;
mod request;
mod rerank;
pub mod scripted;
pub mod serve;
mod settings;
mod sse;
mod turns;
mod usage;
mod wires;

pub use client::Probe;
pub use error::ModelError;
pub use fold::Fold;
pub use model::{Model, ModelStream, Models};
pub use request::{ModelRequest, ToolSpec};
pub use settings::{Kind, ModelSettings, Price, ProviderKind, Secret};
