//! How a connection begins, and why there is none.
//!
//! Invariant: a server that answers gets the older handshake as well, whatever it says to the newer one.

use rmcp::model::ProtocolVersion;
use rmcp::service::ClientLifecycleMode;

/// How a connection begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Handshake {
    /// `server/discover`, then `initialize` if the server says that it is older.
    Newest,
    /// `initialize` only.
    Older,
}

/// Why there is no connection.
pub(super) enum NotConnected {
    /// The server answered, with something else than the handshake.
    AtHandshake(String),
    Before(String),
}

impl From<String> for NotConnected {
    fn from(reason: String) -> Self {
        Self::Before(reason)
    }
}

impl Handshake {
    pub(super) fn lifecycle(self) -> ClientLifecycleMode {
        match self {
            Handshake::Newest => ClientLifecycleMode::Auto {
                preferred_versions: vec![ProtocolVersion::LATEST],
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
            Handshake::Older => ClientLifecycleMode::Initialize,
        }
    }
}
