//! Whose actors a sender names (decision 028).
//!
//! Invariant: a sender that is not trusted names people of its own token only.

use greenroom_store::records::TOKEN_MARK;
use std::sync::Arc;

/// The people whom a sender's actor ids name (decision 028).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ActorIds {
    /// Those of the event's source: a trusted sender.
    #[default]
    OfSource,
    /// Those of this token, each source by itself.
    OfToken(Arc<str>),
    /// Those of this namespace, whatever the source of the event is: the token of one actor.
    Of(Arc<str>),
}

impl ActorIds {
    /// The namespace of ids from a source; none if it is the source.
    pub(super) fn namespace(&self, source: &str) -> Option<String> {
        match self {
            ActorIds::OfSource => None,
            ActorIds::OfToken(token) => Some(format!("{source}{TOKEN_MARK}{token}")),
            ActorIds::Of(namespace) => Some(namespace.to_string()),
        }
    }

    /// Whether it names people of this namespace.
    pub(crate) fn includes(&self, namespace: &str) -> bool {
        match self {
            ActorIds::OfSource => true,
            ActorIds::OfToken(token) => {
                namespace.split_once(TOKEN_MARK).is_some_and(|(_, of)| *of == **token)
            }
            ActorIds::Of(own) => **own == *namespace,
        }
    }

    /// The namespace of ids from a source.
    pub fn of(&self, source: &str) -> String {
        self.namespace(source).unwrap_or_else(|| source.to_owned())
    }
}
