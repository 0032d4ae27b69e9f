//! The host: decides what an event leads to, commits it, then acts.
//!
//! Invariant: decisions (bind, admit, grant, what a result changes, what recovery does) are pure functions;
//! what they decide is stored before anything outside the host sees it.

mod actions;
mod actor_tokens;
mod approvals;
pub mod artifacts;
pub mod binding;
mod budget;
pub mod checks;
pub mod context;
mod credentials;
pub mod cursor;
mod delivery;
pub mod feed;
mod follow_up;
mod gateway;
pub mod grant;
mod host;
pub mod ids;
mod indexing;
mod interactions;
mod ledger;
mod live;
pub mod metrics;
mod proxy;
mod query;
mod records;
mod recovery;
pub mod redaction;
mod replay;
pub mod resources;
mod retention;
mod run;
mod run_programs;
pub mod settings;
mod subscription;
mod tasks;
pub mod telemetry;
mod tool_vectors;
mod ungranted;

pub use actor_tokens::ActorClaims;
pub use approvals::{ApprovalAnswer, ApprovalQuery};
pub use budget::{Budget, Micro};
pub use gateway::{ActorIds, Refusal, Sender, SenderLimit};
pub use host::{Host, HostError, HostOptions};
pub use interactions::{InteractionStatus, InteractionView};
pub use query::{Audience, HistoryQuery, Page, ResultPage, StateQuery, Window, mime};
pub use records::RecordCaller;
pub use redaction::Redactor;
pub use run_programs::{Answering, Items, RunProgram, Scopes};
pub use subscription::{Frames, Subscription};
pub use tasks::Tasks;
