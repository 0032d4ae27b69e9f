//! Runs, one by id or a page of them, newest first.

use crate::sql::{Row, Tx, prose};
use crate::types::{Diagnostic, OnInterrupt, Queue, RunRow};
use crate::{StoreError, params};
use greenroom_protocol::RunStatus;

/// The columns of a run, in the order in which `read` takes them.
macro_rules! select {
    ($($tail:literal),+) => {
        concat!(
            "SELECT workspace_id, run_id, event_seq, event_id, agent, runner_id, conversation_id,
                 conversation_seq, transcript_seq, queue, status, attempt, epoch, grant_hash,
                 on_interrupt, deadline_ms, surface, last_seq, reserved_seq, effects,
                 cancel_requested, steers, created_at, started_at, finished_at, error, usage,
                 isolation, session
             FROM runs ",
            $($tail),+
        )
    };
}

pub fn get(tx: &mut dyn Tx, workspace: &str, run_id: &str) -> Result<Option<RunRow>, StoreError> {
    let row = tx.query_opt(
        select!("WHERE workspace_id = ?1 AND run_id = ?2"),
        params![workspace, run_id],
    )?;
    row.map(read).transpose()
}

/// The run of a conversation that started when its predecessor ended, as `start_next` stores it.
pub(crate) fn started_at(
    tx: &mut dyn Tx,
    workspace: &str,
    conversation: &str,
    started_at: i64,
) -> Result<Option<RunRow>, StoreError> {
    let row = tx.query_opt(
        select!(
            "WHERE workspace_id = ?1 AND conversation_id = ?2
               AND finished_at IS NULL AND status = ?4
               AND queue <> ?5
               AND started_at = CASE WHEN created_at > ?3 THEN created_at ELSE ?3 END LIMIT 1"
        ),
        params![workspace, conversation, started_at, RunStatus::Running, Queue::Parallel],
    )?;
    row.map(read).transpose()
}

/// Every run that has not ended, in the order of its events; for recovery.
pub fn open(tx: &mut dyn Tx) -> Result<Vec<RunRow>, StoreError> {
    let rows = tx.query(select!("WHERE finished_at IS NULL ORDER BY event_seq"), &[])?;
    rows.into_iter().map(read).collect()
}

/// What a listing is narrowed to.
#[derive(Debug, Clone, Default)]
pub struct RunFilter {
    pub conversation_id: Option<String>,
    pub agent: Option<String>,
    pub status: Option<RunStatus>,
    pub runner_id: Option<String>,
    pub event_type: Option<String>,
    pub error_code: Option<String>,
    /// Created at this time or later.
    pub since_ms: Option<i64>,
    /// Created before this time.
    pub until_ms: Option<i64>,
    /// Only ids from this one on; ids are ordered by time.
    pub id_min: Option<String>,
    /// Only ids before this one.
    pub id_end: Option<String>,
}

impl RunFilter {
    /// Whether many runs may have to be read to find a few.
    pub fn passes_over(&self) -> bool {
        self.agent.is_some()
            || self.status.is_some_and(|status| !status.is_open())
            || self.runner_id.is_some()
            || self.event_type.is_some()
            || self.error_code.is_some()
    }
}

/// Greater than every id.
const END: &str = "\u{10ffff}";

/// The conditions that every listing has.
macro_rules! filtered {
    ($which:literal, $order:literal) => {
        select!(
            $which,
            "
               AND (CAST(?4 AS TEXT) IS NULL OR agent = ?4)
               AND (CAST(?5 AS TEXT) IS NULL OR status = ?5)
               AND (CAST(?6 AS TEXT) IS NULL OR runner_id = ?6)
               AND (CAST(?7 AS TEXT) IS NULL OR error_code = ?7)
               AND (CAST(?8 AS TEXT) IS NULL OR EXISTS (SELECT 1 FROM events
                   WHERE events.seq = runs.event_seq AND events.event_type = ?8))
               AND created_at >= ?9 AND created_at < ?10 ",
            $order
        )
    };
}

/// The id at which a listing has read `rows` runs; none when there are fewer.
pub fn floor(
    tx: &mut dyn Tx,
    workspace: &str,
    filter: &RunFilter,
    before: Option<&str>,
    rows: i64,
) -> Result<Option<String>, StoreError> {
    let (before, first) = filter.bounds(before);
    let row = tx.query_opt(
        "SELECT run_id FROM runs WHERE workspace_id = ?1 AND run_id < ?2 AND run_id >= ?3
         ORDER BY run_id DESC LIMIT 1 OFFSET ?4",
        params![workspace, before, first, rows - 1],
    )?;
    row.map(|mut row| row.text()).transpose()
}

/// A page of runs, newest first, older than `before`.
pub fn page(
    tx: &mut dyn Tx,
    workspace: &str,
    filter: &RunFilter,
    before: Option<&str>,
    limit: i64,
) -> Result<Vec<RunRow>, StoreError> {
    let (before, first) = filter.bounds(before);
    let error_code = filter.error_code.as_deref().map(prose);
    let (since, until) = (filter.since_ms.unwrap_or(0), filter.until_ms.unwrap_or(i64::MAX));
    let mut given = params![
        workspace,
        before,
        first,
        &filter.agent,
        filter.status,
        &filter.runner_id,
        &error_code,
        &filter.event_type,
        since,
        until,
        limit,
    ]
    .to_vec();
    let sql = match (&filter.conversation_id, filter.status) {
        (Some(conversation), _) => {
            given.push(conversation.into());
            // `|| ''` keeps SQLite from scanning the whole workspace for one conversation.
            filtered!(
                "WHERE workspace_id || '' = ?1 AND run_id < ?2 AND run_id >= ?3
                   AND conversation_id = ?12",
                "ORDER BY run_id DESC LIMIT ?11"
            )
        }
        // Few are open, and an index has them; `|| ''` keeps SQLite from scanning the others.
        (None, Some(status)) if status.is_open() => filtered!(
            "WHERE workspace_id || '' = ?1 AND run_id || '' < ?2 AND run_id || '' >= ?3
               AND finished_at IS NULL",
            "ORDER BY run_id || '' DESC LIMIT ?11"
        ),
        (None, _) => filtered!(
            "WHERE workspace_id = ?1 AND run_id < ?2 AND run_id >= ?3",
            "ORDER BY run_id DESC LIMIT ?11"
        ),
    };
    tx.query(sql, &given)?.into_iter().map(read).collect()
}

impl RunFilter {
    /// The ids that are read: before the first, from the second on.
    fn bounds<'a>(&'a self, before: Option<&'a str>) -> (&'a str, &'a str) {
        let end = self.id_end.as_deref().unwrap_or(END);
        (before.map_or(end, |before| before.min(end)), self.id_min.as_deref().unwrap_or_default())
    }
}

/// A grant's document by its hash.
pub fn grant(tx: &mut dyn Tx, hash: &str) -> Result<Option<String>, StoreError> {
    let row = tx.query_opt("SELECT body FROM grants WHERE hash = ?1", params![hash])?;
    row.map(|mut row| row.text()).transpose()
}

/// What a run sent that has no sequence number.
pub fn diagnostics(
    tx: &mut dyn Tx,
    run_id: &str,
    limit: i64,
) -> Result<Vec<Diagnostic>, StoreError> {
    let rows = tx.query(
        "SELECT kind, message, created_at FROM diagnostics WHERE run_id = ?1 ORDER BY id LIMIT ?2",
        params![run_id, limit],
    )?;
    rows.into_iter()
        .map(|mut row| {
            Ok(Diagnostic { kind: row.text()?, message: row.text()?, created_at: row.int()? })
        })
        .collect()
}

fn read(mut row: Row) -> Result<RunRow, StoreError> {
    Ok(RunRow {
        workspace_id: row.text()?,
        run_id: row.text()?,
        event_seq: row.int()?,
        event_id: row.text()?,
        agent: row.text()?,
        runner_id: row.text()?,
        conversation_id: row.opt_text()?,
        conversation_seq: row.opt_int()?,
        transcript_seq: row.opt_int()?,
        queue: Queue::parse(&row.text()?).ok_or_else(|| unknown("queue"))?,
        status: RunStatus::parse(&row.text()?).ok_or_else(|| unknown("status"))?,
        attempt: row.int()?,
        epoch: row.int()?,
        grant_hash: row.opt_text()?,
        on_interrupt: match row.text()?.as_str() {
            "retry" => OnInterrupt::Retry,
            _ => OnInterrupt::Fail,
        },
        deadline_ms: row.int()?,
        surface: row.opt_text()?,
        last_seq: row.int()?,
        reserved_seq: row.int()?,
        effects: row.int()? != 0,
        cancel_requested: row.int()? != 0,
        steers: row.int()? != 0,
        created_at: row.int()?,
        started_at: row.opt_int()?,
        finished_at: row.opt_int()?,
        error: row.opt_text()?.and_then(|text| serde_json::from_str(&text).ok()),
        usage: row.opt_text()?.map(String::into_boxed_str),
        isolation: row.opt_text()?,
        session: row.text()?,
    })
}

fn unknown(column: &str) -> StoreError {
    StoreError::Refused(format!("a run has an unknown {column}"))
}
