//! Surfaces: where output goes. The host stores a neutral message; the surface renders and sends it.
//!
//! A new surface is one file here, its variant in `surface.rs`, and its keys in the configuration.

mod clients;
mod message;
mod surface;
mod text;
mod webhook;

pub use clients::Clients;
pub use message::{Content, MessagePart, OutboundMessage, action};
pub use surface::{Capabilities, Delivery, SendOutcome, Surface};
pub use text::TextMax;
pub use webhook::Webhook;
