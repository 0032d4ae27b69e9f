//! One call that passed the checks, as its handler sees it.
//!
//! Invariant: whatever a handler does, it does as the run in `rights`; nothing in the parameters says who
//! calls.

use super::audit::Trail;
use super::table::ProxyMethod;
use crate::host::Shared;
use crate::live::{LiveRun, Rights};
use crate::settings::Settings;
use greenroom_protocol::api::{self, Params};
use greenroom_protocol::{AgentAPIError, ErrorCode};
use greenroom_runtime::ItemSink;
use greenroom_store::StoreError;
use greenroom_store::commands::RunFence;
use greenroom_store::types::{AuditRecord, OpenCall};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::borrow::Cow;
use std::sync::Arc;

pub(crate) type Answer = Result<Box<RawValue>, AgentAPIError>;

pub(crate) struct Call<'a> {
    pub(crate) shared: &'a Arc<Shared>,
    pub(crate) live: &'a Arc<LiveRun>,
    pub(crate) rights: &'a Rights,
    pub(crate) settings: &'a Settings,
    pub(crate) method: ProxyMethod,
    /// `author/name`, as the connection has it.
    pub(crate) plugin: &'a str,
    /// Takes the items of a streaming call.
    pub(crate) sink: &'a ItemSink,
    pub(super) params: &'a RawValue,
    /// How many results of the run came before the call.
    pub(super) results_before: u64,
    pub(super) trail: &'a mut Trail,
}

impl Call<'_> {
    /// The parameters in their proper form.
    pub(crate) fn params<T: Params>(&self) -> Result<T, AgentAPIError> {
        api::parse(self.params.get())
            .map_err(|error| refuse(ErrorCode::InvalidArgument, error.to_string()))
    }

    /// The place that a cursor stands for, if it was made for this very list.
    pub(crate) fn position(&self, domain: &[&str], cursor: &str) -> Result<String, AgentAPIError> {
        self.shared.cursors.open(domain, cursor).ok_or_else(|| {
            let error = refuse(ErrorCode::InvalidArgument, "the cursor does not belong here");
            error.detail("reason", "foreign_cursor")
        })
    }

    /// Tells the audit what the call is about: a resource by its id, a scope by its name.
    pub(crate) fn about(&mut self, resource: Option<&str>, scope: Option<Cow<'static, str>>) {
        self.trail.about(resource, scope);
    }

    /// Tells the audit on whose word the call is made.
    pub(crate) fn set_authority(&mut self, authority: &'static str) {
        self.trail.set_authority(authority);
    }

    /// The call is answered, and does not do what was asked.
    pub(super) fn turn_down(&mut self, code: ErrorCode) {
        self.trail.turn_down(code);
    }

    /// The record of this call, for the command that carries it out.
    pub(crate) fn audit(&mut self) -> Option<AuditRecord> {
        self.trail.hand_over()
    }

    /// This call, for a command that acts before the call ends.
    pub(crate) fn keep_open(&mut self, call_id: &str) -> Option<OpenCall> {
        self.trail.keep_open(call_id)
    }

    /// The command has committed the record: what comes of the call later adds none.
    pub(crate) fn recorded(&mut self) {
        self.trail.recorded();
    }

    /// The run as its writer knows it.
    pub(crate) fn fence(&self) -> RunFence {
        RunFence {
            workspace_id: self.rights.identity.workspace_id.clone(),
            run_id: self.rights.identity.run_id.clone(),
            attempt: self.rights.attempt,
            epoch: self.shared.store.epoch(),
        }
    }

    pub(crate) fn workspace(&self) -> &str {
        &self.rights.identity.workspace_id
    }

    /// How many items a page has: what was asked for, within what is allowed.
    pub(crate) fn page_size(&self, asked: u32) -> usize {
        usize::try_from(asked).unwrap_or(usize::MAX).clamp(1, self.settings.limits.page_size)
    }
}

pub(crate) fn answer(value: &impl Serialize) -> Answer {
    to_raw_value(value).map_err(|error| refuse(ErrorCode::RuntimeError, error.to_string()))
}

pub(crate) fn refuse(code: ErrorCode, message: impl Into<String>) -> AgentAPIError {
    AgentAPIError::new(code, message)
}

/// What does not exist and what is not the run's look the same.
pub(crate) fn not_found(what: &str) -> AgentAPIError {
    refuse(ErrorCode::NotFound, format!("there is no such {what}"))
}

pub(crate) fn failed(error: &StoreError) -> AgentAPIError {
    tracing::error!(%error, "a call failed in the store");
    refuse(ErrorCode::RuntimeError, "the store did not answer").retryable()
}

/// Something in the host broke; what it was is in the log alone.
pub(crate) fn failed_inside() -> AgentAPIError {
    refuse(ErrorCode::RuntimeError, "the host failed inside while it served the call")
}

/// The run ended while it called.
pub(crate) fn stale() -> AgentAPIError {
    refuse(ErrorCode::Unauthorized, "the run is over")
}

/// A write that would take more room than there is for its owner.
pub(crate) fn over_quota(what: &str, used: i64, max: i64) -> AgentAPIError {
    let message = format!("the {what} holds {used} of the {max} bytes it may");
    let error = refuse(ErrorCode::PayloadTooLarge, message);
    error.detail("reason", "quota").detail("used", used).detail("max", max)
}
