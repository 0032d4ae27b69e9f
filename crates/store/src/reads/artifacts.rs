//! Artifacts, and which bytes are still referenced.

use crate::sql::{Row, Tx};
use crate::types::ArtifactRow;
use crate::{StoreError, params};

macro_rules! select {
    ($($tail:literal),+) => {
        concat!(
            "SELECT workspace_id, artifact_id, sha256, size, name, mime_type, conversation_id,
                 run_id, agent, metadata, created_at, expires_at, session
             FROM artifacts ",
            $($tail),+
        )
    };
}

/// An artifact that has not expired.
pub fn get(
    tx: &mut dyn Tx,
    workspace: &str,
    artifact_id: &str,
    now_ms: i64,
) -> Result<Option<ArtifactRow>, StoreError> {
    let row = tx.query_opt(
        select!(
            "WHERE workspace_id = ?1 AND artifact_id = ?2
               AND (expires_at IS NULL OR expires_at > ?3)"
        ),
        params![workspace, artifact_id, now_ms],
    )?;
    row.map(read).transpose()
}

/// What a listing is narrowed to.
#[derive(Debug, Clone, Default)]
pub struct ArtifactFilter {
    pub conversation_id: Option<String>,
    pub run_id: Option<String>,
    pub mime: Option<Mime>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mime {
    /// With or without parameters.
    Exactly(String),
    /// Such as `image`.
    Family(String),
}

/// The position of an artifact in its workspace, by age.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactPosition {
    pub created_at: i64,
    pub artifact_id: String,
}

/// A stretch of artifacts: older than the first, not older than the second.
#[derive(Debug, Clone)]
pub struct ArtifactSpan {
    pub before: ArtifactPosition,
    pub floor: ArtifactPosition,
    pub limit: i64,
    pub now_ms: i64,
}

impl ArtifactSpan {
    /// From the newest to the oldest.
    pub fn whole(limit: i64, now_ms: i64) -> Self {
        let at = |created_at| ArtifactPosition { created_at, artifact_id: String::new() };
        Self { before: at(i64::MAX), floor: at(i64::MIN), limit, now_ms }
    }
}

macro_rules! listed {
    ($which:literal) => {
        select!(
            "WHERE workspace_id = ?1 AND (created_at, artifact_id) < (?2, ?3)
               AND (created_at, artifact_id) >= (?4, ?5)
               AND (expires_at IS NULL OR expires_at > ?6)
               AND (CAST(?7 AS TEXT) IS NULL OR mime_type = ?7
                   OR substr(mime_type, 1, length(CAST(?7 AS TEXT)) + 1) = CAST(?7 AS TEXT) || ';')
               AND (CAST(?8 AS TEXT) IS NULL
                   OR substr(mime_type, 1, length(CAST(?8 AS TEXT)) + 1) = CAST(?8 AS TEXT) || '/') ",
            $which,
            " ORDER BY created_at DESC, artifact_id DESC LIMIT ?9"
        )
    };
}

/// Artifacts, newest first.
pub fn page(
    tx: &mut dyn Tx,
    workspace: &str,
    filter: &ArtifactFilter,
    span: &ArtifactSpan,
) -> Result<Vec<ArtifactRow>, StoreError> {
    let (exactly, family) = match &filter.mime {
        Some(Mime::Exactly(mime)) => (Some(mime.as_str()), None),
        Some(Mime::Family(family)) => (None, Some(family.as_str())),
        None => (None, None),
    };
    let mut given = params![
        workspace,
        span.before.created_at,
        &span.before.artifact_id,
        span.floor.created_at,
        &span.floor.artifact_id,
        span.now_ms,
        exactly,
        family,
        span.limit,
    ]
    .to_vec();
    let sql = match (&filter.run_id, &filter.conversation_id) {
        (Some(run), None) => {
            given.push(run.into());
            listed!("AND run_id = ?10")
        }
        (Some(run), Some(conversation)) => {
            given.extend_from_slice(params![run, conversation]);
            listed!("AND run_id = ?10 AND conversation_id || '' = ?11")
        }
        (None, Some(conversation)) => {
            given.push(conversation.into());
            listed!("AND conversation_id = ?10")
        }
        (None, None) => listed!(""),
    };
    tx.query(sql, &given)?.into_iter().map(read).collect()
}

/// The position at which a listing of a workspace has read `rows` artifacts; none when there are fewer.
pub fn floor(
    tx: &mut dyn Tx,
    workspace: &str,
    before: &ArtifactPosition,
    rows: i64,
) -> Result<Option<ArtifactPosition>, StoreError> {
    let row = tx.query_opt(
        "SELECT created_at, artifact_id FROM artifacts
         WHERE workspace_id = ?1 AND (created_at, artifact_id) < (?2, ?3)
         ORDER BY created_at DESC, artifact_id DESC LIMIT 1 OFFSET ?4",
        params![workspace, before.created_at, &before.artifact_id, rows - 1],
    )?;
    let read =
        |mut row: Row| Ok(ArtifactPosition { created_at: row.int()?, artifact_id: row.text()? });
    row.map(read).transpose()
}

fn read(mut row: Row) -> Result<ArtifactRow, StoreError> {
    Ok(ArtifactRow {
        workspace_id: row.text()?,
        artifact_id: row.text()?,
        sha256: row.text()?,
        size: row.int()?,
        name: row.opt_text()?,
        mime_type: row.text()?,
        conversation_id: row.opt_text()?,
        run_id: row.opt_text()?,
        agent: row.opt_text()?,
        metadata: row.text()?,
        created_at: row.int()?,
        expires_at: row.opt_int()?,
        session: row.text()?,
    })
}

/// Whether anything, in any workspace, refers to these bytes.
pub fn is_referred_to(tx: &mut dyn Tx, sha256: &str) -> Result<bool, StoreError> {
    let found =
        tx.query_opt("SELECT 1 FROM artifacts WHERE sha256 = ?1 LIMIT 1", params![sha256])?;
    Ok(found.is_some())
}

/// All hashes that something refers to and that begin with these digits, in order.
pub fn hashes(tx: &mut dyn Tx, digits: &str) -> Result<Vec<String>, StoreError> {
    // Behind every digit that a hash may go on with.
    let end = format!("{digits}g");
    let rows = tx.query(
        "SELECT DISTINCT sha256 FROM artifacts WHERE sha256 >= ?1 AND sha256 < ?2 ORDER BY sha256",
        params![digits, &end],
    )?;
    rows.into_iter().map(|mut row| row.text()).collect()
}

/// Artifacts whose time is over, by workspace and id.
pub fn expired(
    tx: &mut dyn Tx,
    now_ms: i64,
    limit: i64,
) -> Result<Vec<(String, String)>, StoreError> {
    let rows = tx.query(
        "SELECT workspace_id, artifact_id FROM artifacts
         WHERE expires_at IS NOT NULL AND expires_at <= ?1 ORDER BY expires_at LIMIT ?2",
        params![now_ms, limit],
    )?;
    rows.into_iter().map(|mut row| Ok((row.text()?, row.text()?))).collect()
}

/// Artifacts that were made before a time, by workspace and id.
pub fn made_before(
    tx: &mut dyn Tx,
    before_ms: i64,
    limit: i64,
) -> Result<Vec<(String, String)>, StoreError> {
    let rows = tx.query(
        "SELECT workspace_id, artifact_id FROM artifacts WHERE created_at < ?1
         ORDER BY created_at LIMIT ?2",
        params![before_ms, limit],
    )?;
    rows.into_iter().map(|mut row| Ok((row.text()?, row.text()?))).collect()
}
