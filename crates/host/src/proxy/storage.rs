//! `storage.*`: blobs in three areas.
//!
//! Invariant: the owner of an area comes from the connection (plugin) or the run (binding, workspace); a key
//! is a name in a table, never a path.

use super::call::{Answer, Call, answer, failed, over_quota, refuse, stale};
use crate::context::owner;
use crate::ids::{now_ms, rfc3339};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use greenroom_protocol::api::state::Deleted;
use greenroom_protocol::api::storage::{
    StorageDeleteParams, StorageGetParams, StorageListParams, StorageSetParams, StorageValue,
    StorageWritten,
};
use greenroom_protocol::manifest::StorageArea;
use greenroom_protocol::{AgentAPIError, ErrorCode};
use greenroom_store::commands::{self, WriteStorage};
use greenroom_store::reads;
use greenroom_store::reads::storage::StorageSpan;
use serde_json::json;

/// Default number of entries of `storage.list`.
const LIST_DEFAULT: u32 = 100;

pub(super) async fn get(call: &mut Call<'_>) -> Answer {
    let params: StorageGetParams = call.params()?;
    let owner = area_owner(call, params.area, Some(&params.key))?;
    let workspace = call.workspace().to_owned();
    let read =
        call.shared.store.read(move |tx| reads::storage::get(tx, &workspace, &owner, &params.key));
    let value = read.await.map_err(|error| failed(&error))?;
    answer(&StorageValue {
        size_bytes: value.as_ref().map_or(0, |value| value.len() as u64),
        data_base64: value.map(|value| STANDARD.encode(value)),
    })
}

pub(super) async fn list(call: &mut Call<'_>) -> Answer {
    let params: StorageListParams = call.params()?;
    let owner = area_owner(call, params.area, None)?;
    let workspace = call.workspace().to_owned();
    let prefix = params.prefix.unwrap_or_default();
    let domain = ["storage", &workspace, &owner, &prefix];
    let after = match &params.cursor {
        Some(cursor) => call.position(&domain, cursor)?,
        None => String::new(),
    };
    let limit = call.page_size(params.limit.unwrap_or(LIST_DEFAULT));
    let span = StorageSpan { prefix: prefix.clone(), after, limit };
    let (place, whose) = (workspace.clone(), owner.clone());
    let read = call.shared.store.read(move |tx| reads::storage::list(tx, &place, &whose, &span));
    let (rows, has_more) = read.await.map_err(|error| failed(&error))?;
    let last = rows.last().filter(|_| has_more);
    let next_cursor = last.map(|row| call.shared.cursors.seal(&domain, &row.name));
    let items: Vec<_> = rows
        .iter()
        .map(|row| {
            json!({"key": row.name, "size_bytes": row.size, "updated_at": rfc3339(row.updated_at)})
        })
        .collect();
    answer(&json!({"items": items, "next_cursor": next_cursor, "has_more": has_more}))
}

pub(super) async fn set(call: &mut Call<'_>) -> Answer {
    let params: StorageSetParams = call.params()?;
    let owner = area_owner(call, params.area, Some(&params.key))?;
    let value = STANDARD
        .decode(&params.value)
        .map_err(|error| refuse(ErrorCode::InvalidArgument, format!("`value`: {error}")))?;
    let bytes_max = call.settings.limits.storage_value_bytes;
    if value.len() > bytes_max {
        let message = format!("a stored value has at most {bytes_max} bytes");
        return Err(refuse(ErrorCode::PayloadTooLarge, message));
    }
    let redactor = &call.shared.redactor;
    let (key, value) = (redactor.text(&params.key), redactor.bytes(&value));
    write(call, owner, key.into_owned(), Some(value.into_owned())).await
}

pub(super) async fn delete(call: &mut Call<'_>) -> Answer {
    let params: StorageDeleteParams = call.params()?;
    let owner = area_owner(call, params.area, Some(&params.key))?;
    write(call, owner, params.key, None).await
}

async fn write(call: &mut Call<'_>, owner: String, name: String, value: Option<Vec<u8>>) -> Answer {
    let limits = &call.settings.limits;
    let command = WriteStorage {
        fence: call.fence(),
        owner,
        name,
        value,
        owner_bytes_max: i64::try_from(limits.storage_plugin_bytes).unwrap_or(i64::MAX),
        workspace_bytes_max: i64::try_from(limits.storage_workspace_bytes).unwrap_or(i64::MAX),
        now_ms: now_ms(),
        audit: call.audit(),
    };
    match call.shared.store.commit(command).await.map_err(|error| failed(&error))? {
        commands::StorageWritten::Set { size } => {
            answer(&StorageWritten { size_bytes: u64::try_from(size).unwrap_or(0) })
        }
        commands::StorageWritten::Deleted(deleted) => answer(&Deleted { deleted }),
        commands::StorageWritten::OverQuota { used, max } => Err(over_quota("area", used, max)),
        commands::StorageWritten::Stale => Err(stale()),
    }
}

pub(crate) fn area_name(area: StorageArea) -> &'static str {
    match area {
        StorageArea::Plugin => "plugin",
        StorageArea::Workspace => "workspace",
        StorageArea::Binding => "binding",
    }
}

/// The owner of an area, if it is granted.
fn area_owner(
    call: &mut Call<'_>,
    area: StorageArea,
    key: Option<&str>,
) -> Result<String, AgentAPIError> {
    let name = area_name(area);
    call.about(key, Some(name.into()));
    if !call.rights.grant.storage.contains(&area) {
        let message = format!("storage area `{name}` is not granted to this run");
        return Err(refuse(ErrorCode::Unauthorized, message));
    }
    Ok(match area {
        StorageArea::Plugin => owner(&[name, call.plugin]),
        StorageArea::Workspace => owner(&[name]),
        StorageArea::Binding => owner(&[name, &call.rights.identity.agent]),
    })
}
