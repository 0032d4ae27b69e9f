//! Records of the project modules: by id, or those of an actor in a span of time.

use crate::records::Record;
use crate::sql::{Row, Tx};
use crate::{StoreError, params};
use greenroom_protocol::records::{RecordLink, RecordLinkStatus};

/// Workspace, module and id.
/// Workspace, module and record or owner.
pub(crate) type RecordKey<'a> = (&'a str, &'a str, &'a str);

pub(crate) fn get(
    tx: &mut dyn Tx,
    (workspace, module, record_id): RecordKey<'_>,
) -> Result<Option<Record>, StoreError> {
    let row = tx.query_opt(
        "SELECT record_id, owner, version, starts_at, ends_at, body, updated_at, NULL FROM records
         WHERE workspace_id = ?1 AND module = ?2 AND record_id = ?3",
        params![workspace, module, record_id],
    )?;
    row.map(read).transpose()
}

/// A record that is the actor's own or was shared with them.
pub fn visible(
    tx: &mut dyn Tx,
    key: RecordKey<'_>,
    actor: &str,
) -> Result<Option<(Record, Vec<RecordLink>)>, StoreError> {
    let Some(record) = get(tx, key)? else { return Ok(None) };
    let links = links(tx, key)?;
    let own = links.iter().find(|link| link.actor == actor).map(|link| link.status);
    if record.owner != actor && own.is_none() {
        return Ok(None);
    }
    Ok(Some((Record { link_status: own, ..record }, links)))
}

/// Whom a record is shared with.
pub(crate) fn links(
    tx: &mut dyn Tx,
    (workspace, module, record_id): RecordKey<'_>,
) -> Result<Vec<RecordLink>, StoreError> {
    let rows = tx.query(
        "SELECT actor, status FROM record_links
         WHERE workspace_id = ?1 AND module = ?2 AND record_id = ?3 ORDER BY actor",
        params![workspace, module, record_id],
    )?;
    let link = |mut row: Row| Ok(RecordLink { actor: row.text()?, status: status(&row.text()?)? });
    rows.into_iter().map(link).collect()
}

/// What is wanted of a module.
#[derive(Debug, Clone)]
pub struct RecordSpan {
    pub module: String,
    pub actor: String,
    /// Records that end after this, and those without a time.
    pub from: Option<i64>,
    /// Records that begin before this, and those without a time.
    pub to: Option<i64>,
    /// After this position: `(starts_at, record_id)` of the last one that was seen.
    pub after: Option<(i64, String)>,
    pub limit: i64,
}

/// An actor's own records and those shared with them that they have not rejected, by their beginning.
pub fn list(
    tx: &mut dyn Tx,
    workspace: &str,
    span: &RecordSpan,
) -> Result<Vec<Record>, StoreError> {
    let (after, after_id) = match &span.after {
        Some((at, id)) => (Some(*at), Some(id.as_str())),
        None => (None, None),
    };
    let rows = tx.query(
        "SELECT r.record_id, r.owner, r.version, r.starts_at, r.ends_at, r.body, r.updated_at, l.status
         FROM records r
         LEFT JOIN record_links l ON l.workspace_id = ?1 AND l.module = ?2
           AND l.record_id = r.record_id AND l.actor = ?3
         WHERE r.workspace_id = ?1 AND r.module = ?2
           AND (r.owner = ?3 OR r.record_id IN (
             SELECT record_id FROM record_links
             WHERE workspace_id = ?1 AND module = ?2 AND actor = ?3 AND status <> ?9))
           AND (CAST(?4 AS BIGINT) IS NULL OR r.ends_at IS NULL OR r.ends_at > ?4)
           AND (CAST(?5 AS BIGINT) IS NULL OR r.starts_at IS NULL OR r.starts_at < ?5)
           AND (CAST(?6 AS BIGINT) IS NULL OR COALESCE(r.starts_at, 0) > ?6
             OR (COALESCE(r.starts_at, 0) = ?6 AND r.record_id > ?7))
         ORDER BY COALESCE(r.starts_at, 0), r.record_id LIMIT ?8",
        params![
            workspace,
            &span.module,
            &span.actor,
            span.from,
            span.to,
            after,
            after_id,
            span.limit,
            RecordLinkStatus::Rejected
        ],
    )?;
    rows.into_iter().map(read).collect()
}

/// How many records an actor keeps in a module, counted up to a number.
pub(crate) fn count(
    tx: &mut dyn Tx,
    (workspace, module, owner): RecordKey<'_>,
    upto: i64,
) -> Result<i64, StoreError> {
    let row = tx.query_opt(
        "SELECT COUNT(*) FROM (SELECT 1 FROM records
         WHERE workspace_id = ?1 AND module = ?2 AND owner = ?3 LIMIT ?4) AS counted",
        params![workspace, module, owner, upto],
    )?;
    row.map_or(Ok(0), |mut row| row.int())
}

fn read(mut row: Row) -> Result<Record, StoreError> {
    Ok(Record {
        record_id: row.text()?,
        owner: row.text()?,
        version: row.int()?,
        starts_at: row.opt_int()?,
        ends_at: row.opt_int()?,
        body: row.text()?,
        updated_at: row.int()?,
        link_status: row.opt_text()?.map(|text| status(&text)).transpose()?,
    })
}

fn status(text: &str) -> Result<RecordLinkStatus, StoreError> {
    RecordLinkStatus::parse(text)
        .ok_or_else(|| StoreError::Refused(format!("`{text}` is no status of a link")))
}
