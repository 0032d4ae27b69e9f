//! Records of the project modules: by id, or those of a person in a span of time.
//!
//! Invariant: an id belongs to its owner; the same id of another owner is another record.

use crate::records::{Person, Record};
use crate::sql::{Row, Tx};
use crate::{StoreError, params};
use greenroom_protocol::records::{RecordLink, RecordLinkStatus};

/// A person's own record.
pub(crate) fn own(
    tx: &mut dyn Tx,
    person: &Person,
    module: &str,
    record_id: &str,
) -> Result<Option<Record>, StoreError> {
    let row = tx.query_opt(
        "SELECT record_id, source, owner, version, starts_at, ends_at, body, updated_at, NULL FROM records
         WHERE workspace_id = ?1 AND module = ?2 AND source IN (?3, ?4) AND owner = ?5 AND record_id = ?6
         ORDER BY source DESC LIMIT 1",
        params![
            &person.workspace_id,
            module,
            &person.source,
            person.older_source(),
            &person.actor,
            record_id
        ],
    )?;
    row.map(read).transpose()
}

/// A record that was shared with a person, with their answer.
pub(crate) fn shared(
    tx: &mut dyn Tx,
    person: &Person,
    module: &str,
    record_id: &str,
) -> Result<Option<Record>, StoreError> {
    let row = tx.query_opt(
        "SELECT r.record_id, r.source, r.owner, r.version, r.starts_at, r.ends_at, r.body, r.updated_at, l.status
         FROM record_links l
         JOIN records r ON r.workspace_id = l.workspace_id AND r.module = l.module
           AND r.source = l.source AND r.owner = l.owner AND r.record_id = l.record_id
         WHERE l.workspace_id = ?1 AND l.module = ?2 AND l.source IN (?3, ?4) AND l.actor = ?5
           AND l.record_id = ?6
         ORDER BY l.source DESC, l.owner LIMIT 1",
        params![
            &person.workspace_id,
            module,
            &person.source,
            person.older_source(),
            &person.actor,
            record_id
        ],
    )?;
    row.map(read).transpose()
}

/// A record that is the person's own or was shared with them.
pub fn visible(
    tx: &mut dyn Tx,
    person: &Person,
    module: &str,
    record_id: &str,
) -> Result<Option<(Record, Vec<RecordLink>)>, StoreError> {
    let found = match own(tx, person, module, record_id)? {
        Some(own) => Some(own),
        None => shared(tx, person, module, record_id)?,
    };
    let Some(record) = found else { return Ok(None) };
    let links = links(tx, (&person.workspace_id, module), &record)?;
    Ok(Some((record, links)))
}

/// Whom a record of a workspace and module is shared with.
pub(crate) fn links(
    tx: &mut dyn Tx,
    (workspace, module): (&str, &str),
    record: &Record,
) -> Result<Vec<RecordLink>, StoreError> {
    let rows = tx.query(
        "SELECT actor, status FROM record_links
         WHERE workspace_id = ?1 AND module = ?2 AND source = ?3 AND owner = ?4 AND record_id = ?5
         ORDER BY actor",
        params![workspace, module, &record.source, &record.owner, &record.record_id],
    )?;
    let link = |mut row: Row| Ok(RecordLink { actor: row.text()?, status: status(&row.text()?)? });
    rows.into_iter().map(link).collect()
}

/// What is wanted of a module.
#[derive(Debug, Clone)]
pub struct RecordSpan {
    pub module: String,
    /// Records that end after this, and those without a time.
    pub from: Option<i64>,
    /// Records that begin before this, and those without a time.
    pub to: Option<i64>,
    /// After this position: `starts_at`, id and owner of the last one that was seen.
    pub after: Option<(i64, String, String)>,
    pub limit: i64,
}

/// A person's own records and those shared with them that they have not rejected, by their beginning.
pub fn list(
    tx: &mut dyn Tx,
    person: &Person,
    span: &RecordSpan,
) -> Result<Vec<Record>, StoreError> {
    let (after, after_id, after_owner) = match &span.after {
        Some((at, id, owner)) => (Some(*at), Some(id.as_str()), Some(owner.as_str())),
        None => (None, None, None),
    };
    let rows = tx.query(
        "SELECT r.record_id, r.source, r.owner, r.version, r.starts_at, r.ends_at, r.body, r.updated_at, l.status
         FROM records r
         LEFT JOIN record_links l ON l.workspace_id = ?1 AND l.module = ?2 AND l.source = r.source
           AND l.owner = r.owner AND l.record_id = r.record_id AND l.actor = ?3
         WHERE r.workspace_id = ?1 AND r.module = ?2 AND r.source IN (?10, ?11)
           AND (r.owner = ?3 OR (r.source, r.owner, r.record_id) IN (
             SELECT source, owner, record_id FROM record_links
             WHERE workspace_id = ?1 AND module = ?2 AND source IN (?10, ?11) AND actor = ?3
               AND status <> ?9))
           AND (CAST(?4 AS BIGINT) IS NULL OR r.ends_at IS NULL OR r.ends_at > ?4)
           AND (CAST(?5 AS BIGINT) IS NULL OR r.starts_at IS NULL OR r.starts_at < ?5)
           AND (CAST(?6 AS BIGINT) IS NULL
             OR (COALESCE(r.starts_at, 0), r.record_id, r.owner) > (?6, ?7, ?12))
         ORDER BY COALESCE(r.starts_at, 0), r.record_id, r.owner LIMIT ?8",
        params![
            &person.workspace_id,
            &span.module,
            &person.actor,
            span.from,
            span.to,
            after,
            after_id,
            span.limit,
            RecordLinkStatus::Rejected,
            &person.source,
            person.older_source(),
            after_owner
        ],
    )?;
    rows.into_iter().map(read).collect()
}

/// How many records a person keeps in a module, counted up to a number.
pub(crate) fn count(
    tx: &mut dyn Tx,
    person: &Person,
    module: &str,
    upto: i64,
) -> Result<i64, StoreError> {
    let row = tx.query_opt(
        "SELECT COUNT(*) FROM (SELECT 1 FROM records
         WHERE workspace_id = ?1 AND module = ?2 AND source IN (?3, ?4) AND owner = ?5 LIMIT ?6) AS counted",
        params![
            &person.workspace_id,
            module,
            &person.source,
            person.older_source(),
            &person.actor,
            upto
        ],
    )?;
    row.map_or(Ok(0), |mut row| row.int())
}

fn read(mut row: Row) -> Result<Record, StoreError> {
    Ok(Record {
        record_id: row.text()?,
        source: row.text()?,
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
