//! Audit records: every call leaves exactly one.
//!
//! Invariant: a write's record is committed with its outcome, a refusal's before the refusal is sent; reads
//! are batched and stored within `BEHIND_MAX`. A call that is dropped is recorded then. A call that acts
//! before it ends is open in the store from that commit on, so that it gets its one record even if the host
//! dies. Calls over their rate are batched like reads: a refusal must not cost a commit each.

use crate::ids::{DEFAULT_WORKSPACE, now_ms};
use crate::redaction::Redactor;
use greenroom_protocol::ErrorCode;
use greenroom_store::Store;
use greenroom_store::audit::OK;
use greenroom_store::commands::RecordAudit;
use greenroom_store::types::{AuditBatch, AuditRecord, OpenCall};
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How long the record of a read may wait.
const BEHIND_MAX: Duration = Duration::from_millis(200);
/// Records that may wait; above, calls wait until some are stored.
const WAITING_MAX: usize = 100_000;
/// Records of refused calls may wait up to here; further ones are only counted.
const WAITING_HARD_MAX: usize = 2 * WAITING_MAX;
/// Delay between attempts to store records.
const STORE_AGAIN: Duration = Duration::from_millis(500);
/// Length limit for text that a runner wrote.
const NAME_CHARS_MAX: usize = 200;
/// The outcome of a call that its caller cancelled.
const GIVEN_UP: &str = "cancelled";

/// What a record is about.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) workspace_id: String,
    /// Absent for a call without a run.
    pub(crate) run_id: Option<String>,
    pub(crate) attempt: Option<i64>,
    pub(crate) agent: String,
    pub(crate) runner_id: Option<String>,
}

/// A call in progress.
pub(crate) struct Trail {
    auditor: Arc<Auditor>,
    started: Instant,
    /// What is known so far; absent once it is recorded.
    note: Option<Note>,
    /// A command has the record and commits it with its outcome.
    handed_over: bool,
    /// The code of a call that was refused by its answer instead of an error.
    refusal: Option<ErrorCode>,
}

#[derive(Debug, Clone)]
struct Note {
    subject: Arc<Subject>,
    runner: Arc<str>,
    plugin: Arc<str>,
    method: Cow<'static, str>,
    resource: Option<String>,
    scope: Option<Cow<'static, str>>,
    authority: Option<&'static str>,
    bytes_in: usize,
    at_ms: i64,
    /// The id under which the store keeps the call open.
    open: Option<String>,
}

/// What is known at the start of a call.
pub(crate) struct Beginning {
    pub(crate) subject: Arc<Subject>,
    pub(crate) runner: Arc<str>,
    pub(crate) plugin: Arc<str>,
    pub(crate) method: Cow<'static, str>,
    /// How far the method reaches; the handler may say more.
    pub(crate) scope: Option<Cow<'static, str>>,
    pub(crate) bytes_in: usize,
}

impl Trail {
    pub(crate) fn new(auditor: &Arc<Auditor>, beginning: Beginning) -> Self {
        let Beginning { subject, runner, plugin, method, scope, bytes_in } = beginning;
        let at_ms = now_ms();
        let note = Note {
            subject,
            runner,
            plugin,
            method,
            resource: None,
            scope,
            authority: None,
            bytes_in,
            at_ms,
            open: None,
        };
        Self {
            auditor: Arc::clone(auditor),
            started: Instant::now(),
            note: Some(note),
            handed_over: false,
            refusal: None,
        }
    }

    /// Sets what the call is about; what is not given stays as it is.
    pub(crate) fn about(&mut self, resource: Option<&str>, scope: Option<Cow<'static, str>>) {
        if let Some(note) = &mut self.note {
            if let Some(resource) = resource {
                note.resource = Some(self.auditor.quoted(resource));
            }
            note.scope = scope.or_else(|| note.scope.take());
        }
    }

    /// Sets the authority that the call is made with.
    pub(crate) fn set_authority(&mut self, authority: &'static str) {
        if let Some(note) = &mut self.note {
            note.authority = Some(authority);
        }
    }

    /// The call is answered, but was refused.
    pub(crate) fn set_refusal(&mut self, code: ErrorCode) {
        self.refusal = Some(code);
    }

    /// Hands the record to a command that commits it with its outcome.
    pub(crate) fn hand_over(&mut self) -> Option<AuditRecord> {
        self.handed_over = true;
        let duration = self.started.elapsed();
        self.note.clone().map(|note| note.record(OK, 0, duration))
    }

    /// Hands the call to a command that keeps it open, in case the host does not see its end.
    pub(crate) fn keep_open(&mut self, call_id: &str) -> Option<OpenCall> {
        let note = self.note.as_mut()?;
        note.open = Some(call_id.to_owned());
        let record = note.clone().record(OK, 0, self.started.elapsed());
        Some(OpenCall { call_id: call_id.to_owned(), record })
    }

    /// A command has committed the record.
    pub(crate) fn recorded(&mut self) {
        self.note = None;
    }

    /// The call was served; a write has left its record already. An open call is closed before the answer is
    /// sent.
    pub(crate) async fn served(&mut self, store: &Store, bytes_out: usize) {
        match (&self.note, self.refusal) {
            (_, Some(code)) => self.store(store, code.as_str(), bytes_out).await,
            (Some(Note { open: Some(_), .. }), None) => self.store(store, OK, bytes_out).await,
            _ => self.gather(OK, bytes_out),
        }
    }

    /// The call was refused. The record is stored before the refusal is sent; errors of the host and calls
    /// over their rate are batched.
    pub(crate) async fn refused(&mut self, store: &Store, code: ErrorCode) {
        match code {
            ErrorCode::RuntimeError => {
                // The command that had the record may have failed with it.
                self.handed_over = false;
                self.gather(code.as_str(), 0);
            }
            ErrorCode::RateLimited => self.gather(code.as_str(), 0),
            _ => self.store(store, code.as_str(), 0).await,
        }
    }

    /// The runtime refused the call and cannot wait for a commit.
    pub(crate) fn refused_by_runtime(&mut self, code: ErrorCode) {
        self.gather(code.as_str(), 0);
    }

    fn gather(&mut self, code: &'static str, bytes_out: usize) {
        let duration = self.started.elapsed();
        if let Some(note) = self.note.take().filter(|_| !self.handed_over) {
            self.auditor.gather(Gathered { note, code, bytes_out, duration });
        }
    }

    async fn store(&mut self, store: &Store, code: &'static str, bytes_out: usize) {
        let duration = self.started.elapsed();
        let Some(note) = self.note.take().filter(|_| !self.handed_over) else { return };
        let batches = batches(vec![Gathered { note, code, bytes_out, duration }]);
        if let Err(error) = store.commit(RecordAudit { batches }).await {
            tracing::error!(%error, "cannot store the audit record of a call");
        }
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        self.gather(GIVEN_UP, 0);
    }
}

impl Note {
    fn record(self, code: &str, bytes_out: usize, duration: Duration) -> AuditRecord {
        AuditRecord {
            attempt: self.subject.attempt,
            agent: self.subject.agent.clone(),
            runner: self.runner.to_string(),
            plugin: self.plugin.to_string(),
            runner_id: self.subject.runner_id.clone(),
            method: self.method.into_owned(),
            resource: self.resource,
            scope: self.scope.map(Cow::into_owned),
            authority: self.authority.map(str::to_owned),
            code: code.to_owned(),
            bytes_in: i64::try_from(self.bytes_in).unwrap_or(i64::MAX),
            bytes_out: i64::try_from(bytes_out).unwrap_or(i64::MAX),
            duration_us: i64::try_from(duration.as_micros()).unwrap_or(i64::MAX),
            at_ms: self.at_ms,
        }
    }
}

#[derive(Debug)]
struct Gathered {
    note: Note,
    code: &'static str,
    bytes_out: usize,
    duration: Duration,
}

/// Collects records and stores them.
pub(crate) struct Auditor {
    redactor: Redactor,
    waiting: Mutex<Vec<Gathered>>,
    /// Records that were dropped for lack of room.
    unrecorded: AtomicU64,
    some: Notify,
    stored: Notify,
}

impl Auditor {
    pub(crate) fn new(redactor: Redactor) -> Self {
        let (waiting, unrecorded) = (Mutex::default(), AtomicU64::new(0));
        Self { redactor, waiting, unrecorded, some: Notify::new(), stored: Notify::new() }
    }

    /// The subject of a call without a live run: the id is what the caller claimed.
    pub(crate) fn claimed(&self, run_id: Option<&str>) -> Subject {
        Subject {
            workspace_id: DEFAULT_WORKSPACE.to_owned(),
            run_id: run_id.map(|run_id| self.quoted(run_id)),
            attempt: None,
            agent: String::new(),
            runner_id: None,
        }
    }

    /// Text that a runner wrote, safe to keep: short, without secrets and control characters.
    pub(crate) fn quoted(&self, text: &str) -> String {
        let clean = self.redactor.text(text);
        clean.chars().filter(|c| !c.is_control()).take(NAME_CHARS_MAX).collect()
    }

    fn gather(&self, record: Gathered) {
        let mut waiting = self.lock();
        if waiting.len() >= WAITING_HARD_MAX {
            self.unrecorded.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.push(record);
        if waiting.len() == 1 {
            drop(waiting);
            self.some.notify_one();
        }
    }

    /// Waits while too many records wait to be stored.
    pub(crate) async fn room(&self) {
        while self.lock().len() >= WAITING_MAX {
            let stored = self.stored.notified();
            tokio::pin!(stored);
            stored.as_mut().enable();
            if self.lock().len() < WAITING_MAX {
                return;
            }
            stored.await;
        }
    }

    /// Stores records until the host stops, and once more then.
    pub(crate) async fn keep(self: Arc<Self>, store: Store, stopping: CancellationToken) {
        loop {
            tokio::select! {
                () = self.some.notified() => {}
                () = stopping.cancelled() => break,
            }
            tokio::select! {
                () = tokio::time::sleep(BEHIND_MAX) => {}
                () = stopping.cancelled() => break,
            }
            self.store(&store, &stopping).await;
        }
        self.store(&store, &stopping).await;
    }

    async fn store(&self, store: &Store, stopping: &CancellationToken) {
        let gathered = std::mem::take(&mut *self.lock());
        self.stored.notify_waiters();
        let lost = self.unrecorded.swap(0, Ordering::Relaxed);
        if lost > 0 {
            tracing::error!(lost, "dropped audit records of refused calls");
        }
        let batches = batches(gathered);
        if batches.is_empty() {
            return;
        }
        let command = RecordAudit { batches };
        loop {
            match store.commit(command.clone()).await {
                Ok(()) => return,
                Err(error) if error.is_passing() && !stopping.is_cancelled() => {
                    tracing::warn!(%error, "cannot store audit records yet");
                    tokio::time::sleep(STORE_AGAIN).await;
                }
                Err(error) => {
                    tracing::error!(%error, "cannot store audit records");
                    return;
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Gathered>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One batch per run, in the order of the calls.
fn batches(gathered: Vec<Gathered>) -> Vec<AuditBatch> {
    let mut places = HashMap::new();
    let mut batches: Vec<AuditBatch> = Vec::new();
    for Gathered { note, code, bytes_out, duration } in gathered {
        let key = (note.subject.workspace_id.clone(), note.subject.run_id.clone());
        let place = *places.entry(key).or_insert_with_key(|(workspace, run)| {
            batches.push(AuditBatch {
                workspace_id: workspace.clone(),
                run_id: run.clone(),
                records: Vec::new(),
                closes: Vec::new(),
            });
            batches.len() - 1
        });
        batches[place].closes.extend(note.open.clone());
        batches[place].records.push(note.record(code, bytes_out, duration));
    }
    batches
}
