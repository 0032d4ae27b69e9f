//! One call that passed the checks, for its handler.
//!
//! Invariant: a handler acts as the run in `rights`; nothing in the parameters says who calls.

use super::audit::Trail;
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
    /// The name of its method, or of its wire.
    pub(crate) method: &'static str,
    /// `author/name`, from the connection.
    pub(crate) plugin: &'a str,
    /// Takes the items of a streaming call.
    pub(crate) sink: &'a ItemSink,
    pub(super) params: &'a RawValue,
    /// How many results of the run came before the call.
    pub(super) results_before: u64,
    pub(super) trail: &'a mut Trail,
}

impl Call<'_> {
    /// Parses the parameters.
    pub(crate) fn params<T: Params>(&self) -> Result<T, AgentAPIError> {
        api::parse(self.params.get())
            .map_err(|error| refuse(ErrorCode::InvalidArgument, error.to_string()))
    }

    /// The position of a cursor, if it was made for this list.
    pub(crate) fn position(&self, domain: &[&str], cursor: &str) -> Result<String, AgentAPIError> {
        self.shared.cursors.open(domain, cursor).ok_or_else(|| {
            let error = refuse(ErrorCode::InvalidArgument, "the cursor does not belong here");
            error.detail("reason", "foreign_cursor")
        })
    }

    /// Sets what the audit record is about: a resource by its id, a scope by its name.
    pub(crate) fn about(&mut self, resource: Option<&str>, scope: Option<Cow<'static, str>>) {
        self.trail.about(resource, scope);
    }

    /// Sets the authority of the audit record.
    pub(crate) fn set_authority(&mut self, authority: &'static str) {
        self.trail.set_authority(authority);
    }

    /// The call is answered, but was refused.
    pub(super) fn set_refusal(&mut self, code: ErrorCode) {
        self.trail.set_refusal(code);
    }

    /// The audit record, for the command that carries the call out.
    pub(crate) fn audit(&mut self) -> Option<AuditRecord> {
        self.trail.hand_over()
    }

    /// The open call, for a command that acts before the call ends.
    pub(crate) fn keep_open(&mut self, call_id: &str) -> Option<OpenCall> {
        self.trail.keep_open(call_id)
    }

    /// The command has committed the record: the end of the call adds none.
    pub(crate) fn recorded(&mut self) {
        self.trail.recorded();
    }

    /// The fence of the run.
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

    /// Items per page: as requested, within the limit.
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

/// Missing, or not the run's: indistinguishable.
pub(crate) fn not_found(what: &str) -> AgentAPIError {
    refuse(ErrorCode::NotFound, format!("there is no such {what}"))
}

pub(crate) fn failed(error: &StoreError) -> AgentAPIError {
    tracing::error!(%error, "a proxy call failed in the store");
    refuse(ErrorCode::RuntimeError, "the store did not answer").retryable()
}

/// The host failed; the log says why.
pub(crate) fn failed_inside() -> AgentAPIError {
    refuse(ErrorCode::RuntimeError, "the host failed inside while it served the call")
}

/// The run ended during the call.
pub(crate) fn stale() -> AgentAPIError {
    refuse(ErrorCode::Unauthorized, "the run is over")
}

/// A write beyond the quota of its owner.
pub(crate) fn over_quota(what: &str, used: i64, max: i64) -> AgentAPIError {
    let message = format!("the {what} holds {used} of the {max} bytes it may");
    let error = refuse(ErrorCode::PayloadTooLarge, message);
    error.detail("reason", "quota").detail("used", used).detail("max", max)
}
