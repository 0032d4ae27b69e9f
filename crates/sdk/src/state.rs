//! State: small JSON values that the host keeps per scope (CONTRACT §4).

use crate::RunCtx;
use greenroom_protocol::AgentAPIError;
use greenroom_protocol::payload::StateScope;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// The methods `state.*`, for one run.
pub struct StateApi<'a>(pub(crate) &'a RunCtx);

/// A value and the version it has; a key that was never set has the value null.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StateValue {
    #[serde(default)]
    pub value: Value,
    #[serde(default)]
    pub version: Option<i64>,
}

/// One entry of `state.list`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct StateEntry {
    pub key: String,
    #[serde(default)]
    pub value: Value,
    #[serde(default)]
    pub version: Option<i64>,
}

/// Conditions of a write.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub struct SetOptions {
    /// Write only if the key still has this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub if_version: Option<i64>,
    /// Forget the value after so many seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_s: Option<u64>,
}

impl StateApi<'_> {
    pub async fn get(&self, scope: StateScope, key: &str) -> Result<StateValue, AgentAPIError> {
        self.0.call("state.get", json!({ "scope": scope, "key": key })).await
    }

    /// Writes a value and returns its version.
    pub async fn set(
        &self,
        scope: StateScope,
        key: &str,
        value: impl Into<Value>,
    ) -> Result<i64, AgentAPIError> {
        self.set_with(scope, key, value, SetOptions::default()).await
    }

    pub async fn set_with(
        &self,
        scope: StateScope,
        key: &str,
        value: impl Into<Value>,
        options: SetOptions,
    ) -> Result<i64, AgentAPIError> {
        #[derive(Serialize)]
        struct Params<'a> {
            scope: StateScope,
            key: &'a str,
            value: Value,
            #[serde(flatten)]
            options: SetOptions,
        }
        #[derive(Deserialize)]
        struct Written {
            version: i64,
        }
        let params = Params { scope, key, value: value.into(), options };
        let written: Written = self.0.call("state.set", params).await?;
        Ok(written.version)
    }

    /// Removes a key; false when there was none.
    pub async fn delete(&self, scope: StateScope, key: &str) -> Result<bool, AgentAPIError> {
        #[derive(Deserialize)]
        struct Deleted {
            deleted: bool,
        }
        let params = json!({ "scope": scope, "key": key });
        let answer: Deleted = self.0.call("state.delete", params).await?;
        Ok(answer.deleted)
    }

    /// The entries of a scope whose keys begin with `prefix`.
    pub async fn list(
        &self,
        scope: StateScope,
        prefix: &str,
    ) -> Result<Vec<StateEntry>, AgentAPIError> {
        #[derive(Deserialize)]
        struct Page {
            items: Vec<StateEntry>,
        }
        let params = json!({ "scope": scope, "prefix": prefix });
        let page: Page = self.0.call("state.list", params).await?;
        Ok(page.items)
    }
}
