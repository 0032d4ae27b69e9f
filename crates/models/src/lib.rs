//! Model providers in one shape: a request goes in, a stream of items comes out, and its fold is the answer.
//!
//! Invariant: whatever a provider sends, a stream ends with exactly one finish or one error; nothing is sent
//! a second time once a part of the answer has gone out.

mod error;
mod request;
pub mod scripted;
mod settings;

pub use error::ModelError;
pub use request::{ModelRequest, ToolSpec};
pub use settings::{Kind, ModelSettings, Price, ProviderKind, Secret};
