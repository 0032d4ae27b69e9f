//! Runner processes: start them, feed them, limit them, replace them.
//!
//! Invariants: a connection's identity is its name in the configuration, never what the process says; a
//! runner affects its own runs only; every wait for a runner has a bound. This crate knows nothing of the
//! store or of what a run means: it sends requests and returns results.

mod child;
mod connection;
mod handshake;
mod lines;
mod listening;
mod orphans;
mod outbox;
mod pins;
mod process;
mod proxy;
mod quote;
mod reader;
mod registry;
mod relay;
mod remote;
mod run;
mod runtime;
mod slot;
mod spec;
mod state;
mod stderr;
pub mod supervisor;
mod tasks;
mod tools;
mod wires;

pub use child::{Child, ChildError, ChildHold, ChildSpec, Children, Confinement, Finished};
pub use connection::ConnectionId;
pub use listening::Heard;
pub use orphans::wait_for_orphans;
pub use proxy::{ItemSink, NotTaken, Proxy, ProxyCall, ProxyFuture, RunSeat, Standing};
pub use quote::Cleaner;
pub use remote::AttachError;
pub use run::{RunEnd, RunEvent, RunHandle};
pub use runtime::Runtime;
pub use spec::{Limits, RunnerSpec, Settings, Wire};
pub use state::{Descriptor, RunnerState, RunnerStatus, Unavailable};

pub use wires::langbot::manifest::read_form as langbot_form;

pub use tools::{PluginToolAnswer, PluginToolCall, PluginToolError, PluginTools, ToolCaller};

pub use supervisor::{Allowed, ChildEnd, Domain, Network, Sandbox, UserIds, Without};

/// Keeps other processes of the same user out of this process's memory and environment.
pub fn make_undumpable() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "cannot make this process undumpable");
    }
}

/// Which isolation runners get on this machine: `landlock:N` or `unavailable`.
pub fn isolation_available() -> String {
    supervisor::isolation_available()
}
