//! `state.*`: small JSON values that belong to the parties of the run's event.
//!
//! Invariant: the owner of a value comes from the run's identity; a run cannot name another.

use super::call::{Answer, Call, answer, failed, over_quota, refuse, stale};
use crate::ids::now_ms;
use greenroom_protocol::api::state::{
    Deleted, StateDeleteParams, StateGetParams, StateListParams, StateSetParams, StateWritten,
};
use greenroom_protocol::payload::StateScope;
use greenroom_protocol::{AgentAPIError, ErrorCode};
use greenroom_store::commands::{self, WriteState};
use greenroom_store::reads;
use greenroom_store::reads::state::StateSpan;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

/// Values that one `state.list` returns at most.
const LIST_MAX: u32 = 200;
/// Size of the values that one `state.list` returns, the first excepted.
const LIST_BYTES_MAX: i64 = 512 * 1024;

/// The value as the runner wrote it, so that no digit of a number is lost.
#[derive(Deserialize)]
struct Given<'a> {
    #[serde(borrow)]
    value: &'a RawValue,
}

#[derive(Serialize)]
struct StateValue<'a> {
    value: Option<&'a RawValue>,
    version: i64,
}

pub(super) async fn get(call: &mut Call<'_>) -> Answer {
    let params: StateGetParams = call.params()?;
    let owner = owner(call, params.scope, Some(&params.key))?;
    let (workspace, now) = (call.workspace().to_owned(), now_ms());
    let read = call
        .shared
        .store
        .read_inline(move |tx| reads::state::get(tx, &workspace, &owner, &params.key, now));
    let row = read.await.map_err(|error| failed(&error))?;
    let value = row.as_ref().map(|row| serde_json::from_str::<&RawValue>(&row.value));
    let value =
        value.transpose().map_err(|error| refuse(ErrorCode::RuntimeError, error.to_string()))?;
    answer(&StateValue { value, version: row.as_ref().map_or(0, |row| row.version) })
}

pub(super) async fn list(call: &mut Call<'_>) -> Answer {
    let params: StateListParams = call.params()?;
    let owner = owner(call, params.scope, None)?;
    let (workspace, now) = (call.workspace().to_owned(), now_ms());
    let prefix = params.prefix.unwrap_or_default();
    let domain = ["state", &workspace, &owner, &prefix];
    let after = match &params.cursor {
        Some(cursor) => call.position(&domain, cursor)?,
        None => String::new(),
    };
    let span = StateSpan {
        prefix: prefix.clone(),
        after,
        values_max: i64::from(params.limit.unwrap_or(LIST_MAX).min(LIST_MAX)),
        bytes_max: LIST_BYTES_MAX,
    };
    let (place, whose) = (workspace.clone(), owner.clone());
    let read = call.shared.store.read(move |tx| reads::state::list(tx, &place, &whose, &span, now));
    let (rows, has_more) = read.await.map_err(|error| failed(&error))?;
    let last = rows.last().filter(|_| has_more);
    let next_cursor = last.map(|row| call.shared.cursors.seal(&domain, &row.name));
    let items: Result<Vec<_>, _> = rows
        .iter()
        .map(|row| {
            let value: &RawValue = serde_json::from_str(&row.value)?;
            Ok(json!({"key": row.name, "value": value, "version": row.version}))
        })
        .collect();
    let items = items
        .map_err(|error: serde_json::Error| refuse(ErrorCode::RuntimeError, error.to_string()))?;
    answer(&json!({"items": items, "next_cursor": next_cursor, "has_more": has_more}))
}

pub(super) async fn set(call: &mut Call<'_>) -> Answer {
    let params: StateSetParams = call.params()?;
    let owner = owner(call, params.scope, Some(&params.key))?;
    let given: Given<'_> = serde_json::from_str(call.params.get())
        .map_err(|error| refuse(ErrorCode::InvalidArgument, error.to_string()))?;
    let value = given.value.get().to_owned();
    let bytes_max = call.settings.limits.state_value_bytes;
    if value.len() > bytes_max {
        let message = format!("a state value has at most {bytes_max} bytes");
        return Err(refuse(ErrorCode::PayloadTooLarge, message));
    }
    let now = now_ms();
    let mut command = command(call, owner, params.key, now);
    command.value = Some(value);
    command.if_version = params.if_version;
    command.expires_at = params.ttl_s.map(|ttl| now + ttl * 1000);
    write(call, command).await
}

pub(super) async fn delete(call: &mut Call<'_>) -> Answer {
    let params: StateDeleteParams = call.params()?;
    let owner = owner(call, params.scope, Some(&params.key))?;
    let mut command = command(call, owner, params.key, now_ms());
    command.if_version = params.if_version;
    write(call, command).await
}

fn command(call: &Call<'_>, owner: String, name: String, now_ms: i64) -> WriteState {
    WriteState {
        fence: call.fence(),
        owner,
        name,
        value: None,
        if_version: None,
        expires_at: None,
        owner_bytes_max: i64::try_from(call.settings.limits.state_owner_bytes).ok(),
        audit: None,
        now_ms,
    }
}

async fn write(call: &mut Call<'_>, mut command: WriteState) -> Answer {
    command.audit = call.audit();
    match call.shared.store.commit(command).await.map_err(|error| failed(&error))? {
        commands::StateWritten::Set(version) => answer(&StateWritten { version }),
        commands::StateWritten::Deleted(deleted) => answer(&Deleted { deleted }),
        commands::StateWritten::Conflict(found) => {
            let error = refuse(ErrorCode::InvalidArgument, "the value has another version");
            Err(error.detail("reason", "version_conflict").detail("version", found))
        }
        commands::StateWritten::OverQuota { used, max } => Err(over_quota("scope", used, max)),
        commands::StateWritten::Stale => Err(stale()),
    }
}

/// The owner of a value, if the grant covers the scope and the event has such a party.
fn owner(
    call: &mut Call<'_>,
    scope: StateScope,
    key: Option<&str>,
) -> Result<String, AgentAPIError> {
    call.about(key, Some(scope.as_str().into()));
    let (rights, name) = (call.rights, scope.as_str());
    if !rights.grant.state.contains(&scope) {
        let message = format!("state of scope `{name}` is not granted to this run");
        return Err(refuse(ErrorCode::Unauthorized, message));
    }
    rights.identity.state_owner(scope).ok_or_else(|| {
        let message = format!("this event has no {name} with an id, so there is no state of it");
        refuse(ErrorCode::InvalidArgument, message).detail("reason", "no_owner")
    })
}
