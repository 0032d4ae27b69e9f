//! Audit records, and the compact form in which a row keeps many of them.
//!
//! Invariant: a record says who called what and how it ended, never what was said: no payload, no secret.
//! What is packed comes back as it was.

use crate::StoreError;
use serde::{Deserialize, Serialize};

/// The code of a call that was served.
pub const OK: &str = "ok";
/// The code of a call that failed inside the host: it was not refused.
pub(crate) const FAILED: &str = "runtime_error";

/// One call of a runner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// None when the call named no live run.
    pub attempt: Option<i64>,
    pub agent: String,
    pub runner: String,
    pub plugin: String,
    /// The runner of the run; none when the call named no live run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner_id: Option<String>,
    pub method: String,
    pub resource: Option<String>,
    pub scope: Option<String>,
    /// On whose word a tool was called.
    pub authority: Option<String>,
    /// `ok` or an error code.
    pub code: String,
    pub bytes_in: i64,
    pub bytes_out: i64,
    pub duration_us: i64,
    /// Unix milliseconds.
    pub at_ms: i64,
}

impl AuditRecord {
    /// The same call with its outcome.
    pub fn ended(&self, code: &str) -> AuditRecord {
        AuditRecord { code: code.to_owned(), ..self.clone() }
    }

    /// Whether the call was refused.
    pub fn is_denial(&self) -> bool {
        is_denial(&self.code)
    }
}

/// Whether a code says that the host refused a call.
pub fn is_denial(code: &str) -> bool {
    !matches!(code, OK | FAILED)
}

/// Records of one run, or of calls that named none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditBatch {
    pub workspace_id: String,
    pub run_id: Option<String>,
    pub records: Vec<AuditRecord>,
    /// Calls that were open until they got one of these records.
    pub closes: Vec<String>,
}

/// A call that goes on after it has done something: its record is kept open until it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenCall {
    pub call_id: String,
    /// What is known of it so far.
    pub record: AuditRecord,
}

/// Neighbours of the same caller share one entry.
#[derive(Serialize, Deserialize)]
struct Group<'a> {
    #[serde(rename = "t")]
    attempt: Option<i64>,
    #[serde(rename = "a", borrow)]
    agent: std::borrow::Cow<'a, str>,
    #[serde(rename = "r", borrow)]
    runner: std::borrow::Cow<'a, str>,
    #[serde(rename = "p", borrow)]
    plugin: std::borrow::Cow<'a, str>,
    #[serde(rename = "i", default, borrow, skip_serializing_if = "Option::is_none")]
    runner_id: Option<std::borrow::Cow<'a, str>>,
    #[serde(rename = "c")]
    calls: Vec<Call>,
}

/// `method, resource, scope, code, bytes_in, bytes_out, duration_us, at_ms, authority`. An array gains elements at
/// its end alone, each with a default: rows of earlier versions are shorter.
#[derive(Serialize, Deserialize)]
struct Call(
    String,
    Option<String>,
    Option<String>,
    String,
    i64,
    i64,
    i64,
    i64,
    #[serde(default)] Option<String>,
);

pub(crate) fn pack(records: &[AuditRecord]) -> Result<String, StoreError> {
    let groups = records.chunk_by(is_same_caller).map(|records| Group {
        attempt: records[0].attempt,
        agent: records[0].agent.as_str().into(),
        runner: records[0].runner.as_str().into(),
        plugin: records[0].plugin.as_str().into(),
        runner_id: records[0].runner_id.as_deref().map(Into::into),
        calls: records.iter().map(call).collect(),
    });
    let groups: Vec<_> = groups.collect();
    serde_json::to_string(&groups).map_err(damaged)
}

pub(crate) fn unpack(body: &str) -> Result<Vec<AuditRecord>, StoreError> {
    let groups: Vec<Group<'_>> = serde_json::from_str(body).map_err(damaged)?;
    let records = groups.into_iter().flat_map(|group| {
        let Group { attempt, agent, runner, plugin, runner_id, calls } = group;
        calls.into_iter().map(move |call| AuditRecord {
            attempt,
            agent: agent.clone().into_owned(),
            runner: runner.clone().into_owned(),
            plugin: plugin.clone().into_owned(),
            runner_id: runner_id.clone().map(std::borrow::Cow::into_owned),
            method: call.0,
            resource: call.1,
            scope: call.2,
            code: call.3,
            bytes_in: call.4,
            bytes_out: call.5,
            duration_us: call.6,
            at_ms: call.7,
            authority: call.8,
        })
    });
    Ok(records.collect())
}

fn is_same_caller(one: &AuditRecord, other: &AuditRecord) -> bool {
    (one.attempt, &one.agent, &one.runner, &one.plugin, &one.runner_id)
        == (other.attempt, &other.agent, &other.runner, &other.plugin, &other.runner_id)
}

fn call(record: &AuditRecord) -> Call {
    Call(
        record.method.clone(),
        record.resource.clone(),
        record.scope.clone(),
        record.code.clone(),
        record.bytes_in,
        record.bytes_out,
        record.duration_us,
        record.at_ms,
        record.authority.clone(),
    )
}

fn damaged(error: serde_json::Error) -> StoreError {
    StoreError::Refused(format!("audit records cannot be packed or read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_of_the_first_version_are_read() {
        let body = r#"[{"t":1,"a":"player","r":"player","p":"recorded/player","c":[
            ["tools.call","shed.note","write","ok",131,12,176,1794889047197,"agent"],
            ["state.get",null,"conversation","unauthorized",10,0,5,1794889047198,null]]}]"#;
        let records = unpack(body).unwrap();
        let expected = AuditRecord {
            attempt: Some(1),
            agent: "player".to_owned(),
            runner: "player".to_owned(),
            plugin: "recorded/player".to_owned(),
            runner_id: None,
            method: "tools.call".to_owned(),
            resource: Some("shed.note".to_owned()),
            scope: Some("write".to_owned()),
            authority: Some("agent".to_owned()),
            code: "ok".to_owned(),
            bytes_in: 131,
            bytes_out: 12,
            duration_us: 176,
            at_ms: 1_794_889_047_197,
        };
        assert_eq!(records[0], expected);
        assert_eq!((records.len(), records[1].is_denial()), (2, true));
    }

    #[test]
    fn an_element_that_an_earlier_version_did_not_have_is_its_default() {
        let body = r#"[{"a":"a","r":"r","p":"p","c":[["state.get",null,null,"ok",1,2,3,4]]}]"#;
        let records = unpack(body).unwrap();
        assert_eq!((records[0].attempt, records[0].authority.as_deref()), (None, None));
    }
}
