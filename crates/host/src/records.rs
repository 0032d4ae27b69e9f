//! Records of the project modules, for the processes of their methods and for operators.
//!
//! Invariant: the credential decides whose records are reached; a method reaches its own module only, with the
//! operations of its purpose. No secret is stored in a record.

use crate::host::Host;
use crate::ids::{self, now_ms};
use greenroom_protocol::records::{RecordLink, RecordOp, RecordView};
use greenroom_protocol::{AgentAPIError, ErrorCode, Object};
use greenroom_store::commands::{RecordChange, RecordWritten, WriteRecord};
use greenroom_store::reads::records::RecordSpan;
use greenroom_store::records::{Person, Record};
use greenroom_store::{StoreError, reads};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// Longest body of a record, as JSON.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// Longest name: of a module, a record, an actor.
pub const RECORD_NAME_BYTES_MAX: usize = 256;
/// Records of one actor in one module.
const RECORDS_MAX: i64 = 50_000;
/// Actors that one record is shared with.
pub const RECORD_LINKS_MAX: i64 = 500;
const PAGE: u32 = 200;
const PAGE_MAX: u32 = 1_000;

/// The caller.
#[derive(Debug, Clone)]
pub struct RecordCaller {
    /// Whose records are reached.
    pub person: Person,
    /// The methods that were called; none for an operator, who may do everything.
    pub methods: Option<BTreeSet<String>>,
}

impl Host {
    /// The caller that a valid credential identifies.
    pub fn record_caller(&self, credential: &str) -> Option<RecordCaller> {
        let credential = self.shared.credentials.find(credential)?;
        Some(RecordCaller {
            person: credential.person.clone(),
            methods: Some(credential.methods.clone()),
        })
    }

    pub async fn record(
        &self,
        caller: &RecordCaller,
        op: RecordOp,
    ) -> Result<Object, AgentAPIError> {
        check_names(&op)?;
        let op = self.without_secrets(op)?;
        if !caller.methods.as_ref().is_none_or(|methods| methods.iter().any(|m| allows(m, &op))) {
            let message = "this credential does not allow that";
            return Err(AgentAPIError::new(ErrorCode::Unauthorized, message));
        }
        match op {
            RecordOp::List { .. } => self.list_records(caller, op).await,
            RecordOp::Get { module, id } => self.get_record(caller, module, id).await,
            op => self.write_record(caller, op).await,
        }
    }

    /// Redacts what is stored; a name cannot be changed, so one that holds a secret is refused.
    fn without_secrets(&self, mut op: RecordOp) -> Result<RecordOp, AgentAPIError> {
        let redactor = self.redactor();
        if names(&op).any(|name| matches!(redactor.text(name), Cow::Owned(_))) {
            let message = "a name holds a secret";
            return Err(AgentAPIError::new(ErrorCode::InvalidArgument, message));
        }
        if let RecordOp::Put { body, .. } = &mut op {
            let mut whole = Value::Object(std::mem::take(body));
            redactor.value(&mut whole);
            *body = object(whole);
        }
        Ok(op)
    }

    async fn list_records(
        &self,
        caller: &RecordCaller,
        op: RecordOp,
    ) -> Result<Object, AgentAPIError> {
        let RecordOp::List { module, from, to, limit, cursor } = op else {
            return Ok(Object::new());
        };
        let Person { workspace_id, source, actor } = &caller.person;
        let domain = ["records", workspace_id, &module, source, actor];
        let after = self.position(&domain, cursor.as_deref()).map_err(|_| {
            AgentAPIError::new(ErrorCode::InvalidArgument, "the cursor does not belong here")
        })?;
        let limit = limit.unwrap_or(PAGE).clamp(1, PAGE_MAX);
        let span = RecordSpan {
            module: module.clone(),
            from,
            to,
            after: after.as_deref().and_then(position),
            limit: i64::from(limit) + 1,
        };
        let person = caller.person.clone();
        let rows = self.store().read(move |tx| reads::records::list(tx, &person, &span)).await;
        let mut rows = rows.map_err(|error| failed(&error))?;
        let has_more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let next = rows.last().filter(|_| has_more).map(|last| {
            let position = json!([last.starts_at.unwrap_or(0), last.record_id, last.owner]);
            self.shared.cursors.seal(&domain, &position.to_string())
        });
        let items: Vec<RecordView> = rows.into_iter().map(view).collect();
        Ok(object(json!({"items": items, "next_cursor": next, "has_more": has_more})))
    }

    async fn get_record(
        &self,
        caller: &RecordCaller,
        module: String,
        id: String,
    ) -> Result<Object, AgentAPIError> {
        let person = caller.person.clone();
        let read = self.store().read(move |tx| reads::records::visible(tx, &person, &module, &id));
        let row = read.await.map_err(|error| failed(&error))?;
        let (record, links): (Option<RecordView>, Vec<RecordLink>) = match row {
            Some((record, links)) => (Some(view(record)), links),
            None => (None, Vec::new()),
        };
        Ok(object(json!({"record": record, "links": links})))
    }

    async fn write_record(
        &self,
        caller: &RecordCaller,
        op: RecordOp,
    ) -> Result<Object, AgentAPIError> {
        let module = op.module().to_owned();
        let (record_id, change) = change(op)?;
        let command = WriteRecord {
            person: caller.person.clone(),
            module,
            record_id,
            change,
            now_ms: now_ms(),
        };
        let deletes = matches!(command.change, RecordChange::Delete { .. });
        let actor = caller.person.actor.as_str();
        let answers = matches!(command.change, RecordChange::Answer { .. });
        let written = self.store().commit(command).await.map_err(|error| failed(&error))?;
        Ok(object(match written {
            RecordWritten::Put(record) => json!({"record": view(record)}),
            RecordWritten::Deleted => json!({"deleted": true}),
            RecordWritten::Links(links) if answers => {
                json!({"link": links.iter().find(|link| link.actor == actor)})
            }
            RecordWritten::Links(links) => json!({"links": links}),
            RecordWritten::NotFound if deletes => json!({"deleted": false}),
            RecordWritten::NotFound => {
                return Err(AgentAPIError::new(ErrorCode::NotFound, "the record does not exist"));
            }
            RecordWritten::Conflict(version) => {
                let message = "the record was changed in the meantime";
                return Err(AgentAPIError::new(ErrorCode::InvalidArgument, message)
                    .detail("reason", "version_conflict")
                    .detail("version", version));
            }
            RecordWritten::TooMany => {
                let message = format!("an actor has at most {RECORDS_MAX} records in a module");
                return Err(AgentAPIError::new(ErrorCode::PayloadTooLarge, message));
            }
        }))
    }
}

/// Whether a method may use an operation.
fn allows(method: &str, op: &RecordOp) -> bool {
    let Some((module, name)) = method.split_once('.') else { return false };
    if op.module() != module {
        return false;
    }
    let reads = matches!(op, RecordOp::List { .. } | RecordOp::Get { .. });
    match (module, name) {
        ("calendar" | "contacts" | "memory", "read") => reads,
        ("calendar", "create") => matches!(op, RecordOp::Put { id: None, .. }),
        ("calendar", "update") => reads || matches!(op, RecordOp::Put { id: Some(_), .. }),
        ("calendar", "delete") => reads || matches!(op, RecordOp::Delete { .. }),
        ("calendar", "share") => reads || matches!(op, RecordOp::Share { .. }),
        ("calendar", "accept_invite" | "reject_invite") => {
            reads || matches!(op, RecordOp::Answer { .. })
        }
        ("memory", "update") => {
            reads || matches!(op, RecordOp::Put { .. } | RecordOp::Delete { .. })
        }
        ("calendar" | "contacts" | "memory", _) => false,
        // A module of the user may do anything with its records.
        _ => true,
    }
}

fn check_names(op: &RecordOp) -> Result<(), AgentAPIError> {
    let is_name = |name: &str| {
        (1..=RECORD_NAME_BYTES_MAX).contains(&name.len()) && !name.contains(char::is_control)
    };
    let limit = usize::try_from(RECORD_LINKS_MAX).unwrap_or(usize::MAX);
    let shared_with = if let RecordOp::Share { with, .. } = op { with.len() } else { 0 };
    match names(op).all(is_name) && shared_with <= limit {
        true => Ok(()),
        false => Err(AgentAPIError::new(
            ErrorCode::InvalidArgument,
            format!(
                "names have 1 to {RECORD_NAME_BYTES_MAX} bytes; a record is shared with {RECORD_LINKS_MAX} at most"
            ),
        )),
    }
}

/// Every name in an operation: of the module, of the record, of actors.
fn names(op: &RecordOp) -> impl Iterator<Item = &str> {
    let (id, with): (Option<&String>, &[String]) = match op {
        RecordOp::List { .. } => (None, &[]),
        RecordOp::Put { id, .. } => (id.as_ref(), &[]),
        RecordOp::Share { id, with, .. } => (Some(id), with),
        RecordOp::Get { id, .. } | RecordOp::Delete { id, .. } | RecordOp::Answer { id, .. } => {
            (Some(id), &[])
        }
    };
    id.into_iter().chain(with).map(String::as_str).chain([op.module()])
}

fn change(op: RecordOp) -> Result<(String, RecordChange), AgentAPIError> {
    Ok(match op {
        RecordOp::Put { id, if_version, starts_at, ends_at, body, .. } => {
            let body = Value::Object(body).to_string();
            if body.len() > BODY_BYTES_MAX {
                let message = format!("a record has at most {BODY_BYTES_MAX} bytes");
                return Err(AgentAPIError::new(ErrorCode::PayloadTooLarge, message));
            }
            let records_max = RECORDS_MAX;
            let put = RecordChange::Put { if_version, starts_at, ends_at, body, records_max };
            (id.unwrap_or_else(|| ids::fresh("rec")), put)
        }
        RecordOp::Delete { id, if_version, .. } => (id, RecordChange::Delete { if_version }),
        RecordOp::Share { id, with, .. } => {
            (id, RecordChange::Share { with, links_max: RECORD_LINKS_MAX })
        }
        RecordOp::Answer { id, status, .. } => (id, RecordChange::Answer { status }),
        RecordOp::Get { .. } | RecordOp::List { .. } => {
            return Err(AgentAPIError::new(ErrorCode::InvalidArgument, "a read changes nothing"));
        }
    })
}

fn position(text: &str) -> Option<(i64, String, String)> {
    serde_json::from_str(text).ok()
}

pub(crate) fn view(record: Record) -> RecordView {
    RecordView {
        id: record.record_id,
        owner: record.owner,
        version: record.version,
        starts_at: record.starts_at,
        ends_at: record.ends_at,
        body: serde_json::from_str(&record.body).unwrap_or_default(),
        updated_at: ids::rfc3339(record.updated_at),
        link_status: record.link_status,
    }
}

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        _ => Object::new(),
    }
}

fn failed(error: &StoreError) -> AgentAPIError {
    tracing::error!(%error, "cannot read or write records");
    AgentAPIError::new(ErrorCode::RuntimeError, "the store did not answer").retryable()
}
