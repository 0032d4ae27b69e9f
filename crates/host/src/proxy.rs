//! The API proxy: what a running runner may ask the host for.
//!
//! Invariant: no call is served without a live run on the very connection that calls, and a grant that
//! covers it. This version serves `state.*`; everything else is refused with the same shape.

use crate::host::Shared;
use crate::ids::now_ms;
use crate::live::Rights;
use crate::metrics::Metrics;
use greenroom_protocol::payload::{StateScope, check_state_key};
use greenroom_protocol::{AgentAPIError, ErrorCode};
use greenroom_runtime::{Proxy, ProxyCall};
use greenroom_store::commands::{StateWritten, WriteState};
use greenroom_store::reads::state::StateSpan;
use greenroom_store::{StoreError, reads};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, Weak};

/// Values that one `state.list` returns at most.
const STATE_LIST_MAX: i64 = 200;
/// Size of the values that one `state.list` returns, the first excepted.
const STATE_LIST_BYTES_MAX: i64 = 512 * 1024;

/// The door between runtime and host: the runtime exists before the host's own parts do.
#[derive(Default)]
pub(crate) struct ProxyGate {
    shared: OnceLock<Weak<Shared>>,
}

impl ProxyGate {
    pub(crate) fn open(&self, shared: &Arc<Shared>) {
        let _ = self.shared.set(Arc::downgrade(shared));
    }
}

impl Proxy for ProxyGate {
    fn call(
        &self,
        call: ProxyCall,
    ) -> Pin<Box<dyn Future<Output = Result<Box<RawValue>, AgentAPIError>> + Send + '_>> {
        Box::pin(async move {
            let shared = self.shared.get().and_then(Weak::upgrade);
            let shared =
                shared.ok_or_else(|| refuse(ErrorCode::RuntimeError, "the host is not ready"))?;
            Metrics::add(&shared.metrics.proxy_calls);
            let answer = shared.serve(call).await;
            if let Err(error) = &answer {
                Metrics::add(&shared.metrics.proxy_refusals);
                tracing::debug!(
                    code = error.code.as_str(),
                    message = error.message,
                    "call refused"
                );
            }
            answer
        })
    }
}

#[derive(Deserialize)]
struct StateParams {
    scope: String,
    #[serde(default)]
    key: Option<String>,
    #[serde(default)]
    value: Option<Box<RawValue>>,
    #[serde(default)]
    if_version: Option<i64>,
    #[serde(default)]
    ttl_s: Option<i64>,
    #[serde(default)]
    prefix: Option<String>,
    #[serde(default)]
    cursor: Option<String>,
}

#[derive(Serialize)]
struct StateValue<'a> {
    value: Option<&'a RawValue>,
    version: i64,
}

impl Shared {
    async fn serve(&self, call: ProxyCall) -> Result<Box<RawValue>, AgentAPIError> {
        let live = call.run_id.as_deref().filter(|_| call.run_is_on_connection);
        let live = live.and_then(|run_id| self.live.get(run_id));
        let rights = live.as_ref().and_then(|live| live.rights());
        let rights =
            rights.ok_or_else(|| refuse(ErrorCode::Unauthorized, "there is no such live run"))?;
        if let Some(live) = &live {
            live.wait_for_applied(call.results_before).await;
        }
        match call.method.strip_prefix("state.") {
            Some(operation) => self.serve_state(operation, rights, &call.params).await,
            None => {
                let message = format!("`{}` is not granted to this run", call.method);
                Err(refuse(ErrorCode::Unauthorized, &message))
            }
        }
    }

    async fn serve_state(
        &self,
        operation: &str,
        rights: &Rights,
        params: &RawValue,
    ) -> Result<Box<RawValue>, AgentAPIError> {
        let params: StateParams = serde_json::from_str(params.get())
            .map_err(|error| refuse(ErrorCode::InvalidArgument, &error.to_string()))?;
        let scope = StateScope::ALL.into_iter().find(|scope| scope.as_str() == params.scope);
        let scope = scope.ok_or_else(|| {
            refuse(ErrorCode::InvalidArgument, &format!("`{}` is not a scope", params.scope))
        })?;
        let owner =
            rights.identity.state_owner(scope).filter(|_| rights.grant.state.contains(&scope));
        let owner = owner.ok_or_else(|| {
            let message = format!("state of scope `{}` is not granted to this run", params.scope);
            refuse(ErrorCode::Unauthorized, &message)
        })?;
        match operation {
            "get" => self.state_get(rights, owner, key(&params)?).await,
            "list" => self.state_list(rights, owner, &params).await,
            "set" => {
                let value = params.value.as_ref().map_or("null", |value| value.get()).to_owned();
                let bytes_max = self.settings.load().limits.state_value_bytes;
                if value.len() > bytes_max {
                    let message = format!("a state value has at most {bytes_max} bytes");
                    return Err(refuse(ErrorCode::PayloadTooLarge, &message));
                }
                self.state_write(rights, owner, &params, Some(value)).await
            }
            "delete" => self.state_write(rights, owner, &params, None).await,
            _ => Err(refuse(ErrorCode::Unauthorized, "there is no such method")),
        }
    }

    async fn state_get(
        &self,
        rights: &Rights,
        owner: String,
        key: String,
    ) -> Result<Box<RawValue>, AgentAPIError> {
        let (workspace, now) = (rights.identity.workspace_id.clone(), now_ms());
        let read =
            self.store.read_near(move |tx| reads::state::get(tx, &workspace, &owner, &key, now));
        let row = read.await.map_err(|error| failed(&error))?;
        let value = row.as_ref().map(|row| serde_json::from_str::<&RawValue>(&row.value));
        let value = value
            .transpose()
            .map_err(|error| refuse(ErrorCode::RuntimeError, &error.to_string()))?;
        answer(&StateValue { value, version: row.as_ref().map_or(0, |row| row.version) })
    }

    async fn state_list(
        &self,
        rights: &Rights,
        owner: String,
        params: &StateParams,
    ) -> Result<Box<RawValue>, AgentAPIError> {
        let (workspace, now) = (rights.identity.workspace_id.clone(), now_ms());
        let prefix = params.prefix.clone().unwrap_or_default();
        let domain = ["state", &workspace, &owner, &prefix];
        let after = match &params.cursor {
            Some(cursor) => self.cursors.open(&domain, cursor).ok_or_else(|| {
                refuse(ErrorCode::InvalidArgument, "`cursor` does not belong to this list")
            })?,
            None => String::new(),
        };
        let span = StateSpan {
            prefix: prefix.clone(),
            after,
            values_max: STATE_LIST_MAX,
            bytes_max: STATE_LIST_BYTES_MAX,
        };
        let (place, whose) = (workspace.clone(), owner.clone());
        let read = self.store.read(move |tx| reads::state::list(tx, &place, &whose, &span, now));
        let (rows, has_more) = read.await.map_err(|error| failed(&error))?;
        let last = rows.last().filter(|_| has_more);
        let next_cursor = last.map(|row| self.cursors.seal(&domain, &row.name));
        let items: Vec<_> = rows
            .iter()
            .map(|row| {
                let value: serde_json::Value = serde_json::from_str(&row.value).unwrap_or_default();
                json!({"key": row.name, "value": value, "version": row.version})
            })
            .collect();
        answer(&json!({"items": items, "next_cursor": next_cursor, "has_more": has_more}))
    }

    async fn state_write(
        &self,
        rights: &Rights,
        owner: String,
        params: &StateParams,
        value: Option<String>,
    ) -> Result<Box<RawValue>, AgentAPIError> {
        let now = now_ms();
        let ttl_ms = params.ttl_s.map(|ttl| ttl.clamp(0, i64::MAX / 2000) * 1000);
        let written = self.store.write_state(WriteState {
            workspace_id: rights.identity.workspace_id.clone(),
            run_id: rights.identity.run_id.clone(),
            attempt: rights.attempt,
            epoch: self.store.epoch(),
            owner,
            name: key(params)?,
            value,
            if_version: params.if_version,
            expires_at: ttl_ms.map(|ttl| now + ttl),
            owner_bytes_max: None,
            audit: None,
            now_ms: now,
        });
        match written.await.map_err(|error| failed(&error))? {
            StateWritten::Set(version) => answer(&json!({"version": version})),
            StateWritten::Deleted(deleted) => answer(&json!({"deleted": deleted})),
            StateWritten::Conflict(found) => {
                let error = refuse(ErrorCode::InvalidArgument, "the value has another version");
                Err(error.detail("reason", "version_conflict").detail("version", found))
            }
            StateWritten::OverQuota { used, max } => {
                let error = refuse(ErrorCode::PayloadTooLarge, "the scope has no space left");
                Err(error.detail("used", used).detail("max", max))
            }
            StateWritten::Stale => Err(refuse(ErrorCode::Unauthorized, "the run is over")),
        }
    }
}

fn key(params: &StateParams) -> Result<String, AgentAPIError> {
    let key = params.key.clone().unwrap_or_default();
    check_state_key(&key).map_err(|reason| refuse(ErrorCode::InvalidArgument, &reason))?;
    Ok(key)
}

fn answer(value: &impl Serialize) -> Result<Box<RawValue>, AgentAPIError> {
    to_raw_value(value).map_err(|error| refuse(ErrorCode::RuntimeError, &error.to_string()))
}

fn refuse(code: ErrorCode, message: &str) -> AgentAPIError {
    AgentAPIError::new(code, message)
}

fn failed(error: &StoreError) -> AgentAPIError {
    tracing::error!(%error, "a call failed in the store");
    AgentAPIError::new(ErrorCode::RuntimeError, "the store did not answer").retryable()
}
