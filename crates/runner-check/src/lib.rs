//! Checks any runner process against the contract (CONTRACT §3), for `greenroom runner test`.
//!
//! Invariant: the process is called over the public wire only, and has ended when the report is returned.

mod checks;
mod discovery;
mod peer;
mod report;
mod run;
mod tools;

pub use checks::all as check;
pub use report::Report;

use greenroom_protocol::Object;
use std::time::Duration;

/// What is checked, and with which input.
pub struct Plan {
    pub command: Vec<String>,
    /// The runner by its name in the plugin; `None`: the first.
    pub runner: Option<String>,
    /// The message of the test runs.
    pub text: String,
    /// `ctx.config` of the test runs.
    pub config: Object,
    /// For a single step.
    pub timeout: Duration,
}
