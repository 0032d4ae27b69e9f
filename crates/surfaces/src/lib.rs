//! Surfaces: where output goes. The host stores a neutral message; the surface renders and sends it.
//!
//! Invariant: an attempt whose message may have been delivered is never reported as not delivered.
//! A new kind is its own file, a variant here and its keys in the configuration. All kinds are known at build time,
//! so this is an enum: a kind that lacks something does not compile, and a surface stays a plain value.

mod clients;
mod message;
mod text;
mod webhook;

pub use clients::Clients;
pub use message::{Content, File, MessagePart, OutboundMessage, action};
pub use text::TextMax;
pub use webhook::Webhook;

use std::collections::BTreeSet;
use std::time::Duration;

/// One entry of `[surfaces]`.
#[derive(Debug, Clone)]
pub enum Surface {
    Webhook(Webhook),
}

/// What a surface can show, and the size of one message. Editing and reactions are actions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// It shows a message while it is being written.
    pub streaming: bool,
    pub text_max: Option<TextMax>,
    /// It takes files.
    pub files: bool,
    /// The actions that it carries out, of `action::ALL`.
    pub actions: BTreeSet<String>,
}

/// One attempt of a delivery.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// The same on every attempt: the idempotency key.
    pub id: &'a str,
    /// The JSON of an `OutboundMessage`, as stored.
    pub message: &'a str,
}

/// What is known after an attempt.
#[derive(Debug, PartialEq, Eq)]
pub enum SendOutcome {
    Delivered,
    /// Permanent: another attempt would fail as well.
    Rejected(String),
    /// Temporary: certainly not delivered, to be tried again after the pause that the receiver asks for.
    NotDelivered {
        error: String,
        retry_after: Option<Duration>,
    },
    /// It may have been delivered.
    Unknown(String),
}

impl Surface {
    pub fn capabilities(&self) -> Capabilities {
        match self {
            Surface::Webhook(webhook) => webhook.capabilities(),
        }
    }

    /// Whether the receiver drops a delivery id that it has seen, so that an unknown outcome may be sent again.
    pub fn is_idempotent(&self) -> bool {
        match self {
            Surface::Webhook(webhook) => webhook.idempotent,
        }
    }

    /// Renders and sends a message, once.
    pub async fn send(&self, clients: &Clients, delivery: Delivery<'_>) -> SendOutcome {
        match self {
            Surface::Webhook(webhook) => webhook.send(clients, delivery).await,
        }
    }

    /// Connects without sending anything; says what was found, or what is wrong with the entry `name`.
    pub async fn check(&self, name: &str, timeout: Duration) -> Result<String, String> {
        match self {
            Surface::Webhook(webhook) => webhook.check(name, timeout).await,
        }
    }

    /// The address that has to be public for this surface to be called.
    pub fn public_url(&self) -> Option<&str> {
        match self {
            Surface::Webhook(webhook) => (!webhook.allow_private).then_some(&webhook.url),
        }
    }
}
