//! State: small JSON values per scope, stored by the host (CONTRACT §4).
//!
//! Invariant: no state between calls; `ctx.state` is the snapshot at the start of the run.

use crate::RunCtx;
use greenroom_protocol::api::state::{
    Deleted, StateDeleteParams, StateGetParams, StateListParams, StatePage, StateSetParams,
    StateValue, StateWritten,
};
use greenroom_protocol::payload::{STATE_VALUE_BYTES_MAX, StateScope};
use greenroom_protocol::{AgentAPIError, ErrorCode};
use serde_json::Value;

/// The methods `state.*`, for one run.
pub struct StateApi<'a>(pub(crate) &'a RunCtx);

/// Conditions of a write.
#[derive(Debug, Clone, Copy, Default)]
pub struct SetOptions {
    /// Write only if the key still has this version; 0: only if the key is missing. Otherwise
    /// `invalid_argument` with `details.reason` `version_conflict`.
    pub if_version: Option<i64>,
    /// Expires after this many seconds.
    pub ttl_s: Option<i64>,
}

impl StateApi<'_> {
    /// A value and its version; null and 0 if missing.
    pub async fn get(
        &self,
        scope: StateScope,
        key: impl Into<String>,
    ) -> Result<StateValue, AgentAPIError> {
        self.0.ask(&StateGetParams { scope, key: key.into() }).await
    }

    /// Writes a value and returns its version.
    pub async fn set(
        &self,
        scope: StateScope,
        key: impl Into<String>,
        value: impl Into<Value>,
    ) -> Result<i64, AgentAPIError> {
        self.set_with(scope, key, value, SetOptions::default()).await
    }

    /// Writes under conditions and returns the new version.
    pub async fn set_with(
        &self,
        scope: StateScope,
        key: impl Into<String>,
        value: impl Into<Value>,
        SetOptions { if_version, ttl_s }: SetOptions,
    ) -> Result<i64, AgentAPIError> {
        let params =
            StateSetParams { scope, key: key.into(), value: value.into(), if_version, ttl_s };
        let bytes = params.value.to_string().len();
        if bytes > STATE_VALUE_BYTES_MAX {
            let text =
                format!("a state value has at most {STATE_VALUE_BYTES_MAX} bytes, not {bytes}");
            return Err(AgentAPIError::new(ErrorCode::PayloadTooLarge, text));
        }
        let written: StateWritten = self.0.ask(&params).await?;
        Ok(written.version)
    }

    /// Removes a key; false if it was missing.
    pub async fn delete(
        &self,
        scope: StateScope,
        key: impl Into<String>,
    ) -> Result<bool, AgentAPIError> {
        self.delete_with(StateDeleteParams { scope, key: key.into(), if_version: None }).await
    }

    /// Removes a key if it still has the version.
    pub async fn delete_with(&self, params: StateDeleteParams) -> Result<bool, AgentAPIError> {
        let result: Deleted = self.0.ask(&params).await?;
        Ok(result.deleted)
    }

    /// The first entries of a scope with this key prefix.
    pub async fn list(
        &self,
        scope: StateScope,
        prefix: impl Into<String>,
    ) -> Result<StatePage, AgentAPIError> {
        let prefix = Some(prefix.into());
        self.list_with(StateListParams { scope, prefix, cursor: None, limit: None }).await
    }

    /// Entries of a scope; `cursor` continues after an earlier page.
    pub async fn list_with(&self, params: StateListParams) -> Result<StatePage, AgentAPIError> {
        self.0.ask(&params).await
    }
}
