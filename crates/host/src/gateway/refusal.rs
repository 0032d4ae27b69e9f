//! Why an event is not accepted.
//!
//! Invariant: a refused event leaves nothing behind.

use greenroom_store::StoreError;

/// Why an event was refused. Nothing was stored.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Refusal {
    #[error("{0}")]
    Invalid(String),
    #[error("this event id was used before with another body")]
    Conflict,
    #[error("no agent is called `{0}`")]
    UnknownAgent(String),
    #[error("this token may not send to agent `{0}`")]
    NotAllowed(String),
    #[error("this token may not send for actor `{0}`")]
    OtherActor(String),
    #[error("the client's tool `{0}` has the name of a tool of the agent: rename it")]
    ToolClash(String),
    #[error("several agents match this event equally ({}): make one of them narrower", .0.join(", "))]
    Tie(Vec<String>),
    #[error("there is no such conversation")]
    ForeignConversation,
    #[error("too many runs are waiting, try again later")]
    Busy,
    #[error("the event of this run is no longer stored")]
    Gone,
    #[error("this interaction was answered already")]
    Answered,
    #[error("this interaction has expired")]
    Expired,
    #[error("the host is stopping")]
    Stopping,
    #[error("the event could not be stored: {0}")]
    Store(StoreError),
}
