//! The runs that are active in this process.
//!
//! Invariant: a run is in this table from the follow-up of its start to its terminal; the proxy serves no other
//! run, and a token is void once its run has left. Only hashes of tokens are held.

mod deadline;
mod tool_calls;

use crate::context::Identity;
use crate::grant::Grant;
use crate::ids::hex;
use crate::proxy::audit::Subject;
use crate::proxy::meter::Bucket;
use crate::proxy::uploads::Uploads;
use crate::redaction::RUN_TOKEN;
use crate::resources::Resources;
use deadline::Deadline;
use greenroom_protocol::error::run_code;
use greenroom_runtime::RunSeat;
use greenroom_store::types::RunRow;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, Semaphore, watch};

pub(crate) use tool_calls::{Entered, Taken, ToolCalls};

/// Long reads that one run may have in progress at once.
const READS_AT_ONCE: usize = 4;
/// Streams that one run may have open at once; others wait.
const STREAMS_AT_ONCE: usize = 8;
/// Calls that the programs of one run may have in progress over HTTP; others are refused.
const PROGRAM_CALLS_AT_ONCE: usize = 64;
/// Model failures recorded as diagnostics of one run.
const MODEL_FAILURES_NOTED: u32 = 20;
/// Runs remembered as overdue.
const OVERDUE_KNOWN: usize = 256;
/// Runs whose end a runner may ask about.
const ENDED_KNOWN: usize = 1024;

#[derive(Debug)]
pub(crate) struct LiveRun {
    ending: watch::Sender<Option<Ending>>,
    ended: watch::Sender<bool>,
    applied: watch::Sender<u64>,
    /// A read of the run waits for its results to be applied.
    flush_requested: Notify,
    rights: OnceLock<Rights>,
    /// The connection that has it, once a runner accepted it.
    seat: watch::Sender<Option<RunSeat>>,
    /// Permits for calls of its own programs over HTTP.
    pub(crate) program_calls: Arc<Semaphore>,
    /// The rate limit of its calls.
    pub(crate) bucket: Bucket,
    pub(crate) deadline: Deadline,
    /// Permits for long reads, so that one run does not occupy all readers.
    pub(crate) reads: Semaphore,
    /// Permits for streams of bytes, each of which buffers some.
    pub(crate) streams: Semaphore,
    /// Artifacts that it is uploading in parts.
    pub(crate) uploads: Uploads,
    overdue: AtomicBool,
    /// Whether a runner has accepted it.
    with_runner: AtomicBool,
    /// The number of the last message that the run pulled, 0 before.
    pulled_seq: AtomicI64,
    spent: AtomicI64,
    model_failures: AtomicU32,
    /// Its tool calls, by who records them.
    pub(crate) tool_calls: Arc<ToolCalls>,
}

/// Why the host ends a run early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) code: &'static str,
    pub(crate) reason: String,
}

/// SHA-256 of a run's token.
type TokenHash = [u8; 32];

/// What a live run may do, and as whom.
#[derive(Debug)]
pub(crate) struct Rights {
    pub(crate) grant: Arc<Grant>,
    /// The models and tools that were configured when the run started.
    pub(crate) resources: Arc<Resources>,
    pub(crate) identity: Identity,
    pub(crate) attempt: i64,
    /// What audit records of its calls refer to.
    pub(crate) subject: Arc<Subject>,
}

impl LiveRun {
    /// Requests cancellation.
    pub(crate) fn cancel(&self, reason: &str) {
        self.end_with(run_code::CANCELLED, reason.to_owned());
    }

    /// Requests this end; the first request counts.
    pub(crate) fn end_with(&self, code: &'static str, reason: String) {
        self.ending.send_if_modified(|current| {
            let first = current.is_none();
            if first {
                *current = Some(Ending { code, reason });
            }
            first
        });
    }

    /// Resolves when an early end is requested.
    pub(crate) async fn ending(&self) -> Ending {
        let mut ending = self.ending.subscribe();
        let wanted = ending.wait_for(Option::is_some).await.map(|wanted| wanted.clone());
        // `self` owns the sender, so the channel does not close.
        let gone = Ending { code: run_code::CANCELLED, reason: String::new() };
        wanted.ok().flatten().unwrap_or(gone)
    }

    /// The cost of its model calls so far, in millionths of a dollar.
    pub(crate) fn spent(&self) -> i64 {
        self.spent.load(Ordering::Relaxed)
    }

    pub(crate) fn spend(&self, cost_micro: i64) {
        self.spent.fetch_add(cost_micro, Ordering::Relaxed);
    }

    /// Whether to record one more model failure.
    pub(crate) fn notes_model_failure(&self) -> bool {
        self.model_failures.fetch_add(1, Ordering::Relaxed) < MODEL_FAILURES_NOTED
    }

    pub(crate) fn is_with_runner(&self) -> bool {
        self.with_runner.load(Ordering::Relaxed)
    }

    pub(crate) fn set_with_runner(&self, is_with_runner: bool) {
        self.with_runner.store(is_with_runner, Ordering::Relaxed);
    }

    /// The connection that has the run now; a run may move to another.
    pub(crate) fn set_seat(&self, seat: RunSeat) {
        self.seat.send_replace(Some(seat));
    }

    /// Waits for the connection that has the run: its programs may call before `run_agent` was written completely.
    pub(crate) async fn seat(&self) -> Option<RunSeat> {
        let mut seat = self.seat.subscribe();
        tokio::select! {
            known = seat.wait_for(Option::is_some) => known.ok()?.clone(),
            () = self.wait_for_end() => None,
        }
    }

    pub(crate) fn granted(&self, rights: Rights) {
        let _ = self.rights.set(rights);
    }

    /// What the run may do; none once its end is requested, even before its terminal is stored.
    pub(crate) fn rights(&self) -> Option<&Rights> {
        let is_over = *self.ended.borrow() || self.is_overdue() || self.ending.borrow().is_some();
        self.rights.get().filter(|_| !is_over)
    }

    /// `count` more results of the runner were applied.
    pub(crate) fn applied(&self, count: usize) {
        self.applied.send_modify(|applied| *applied += count as u64);
    }

    /// Waits until `count` results were applied, so that a read sees the run's own writes.
    pub(crate) async fn wait_for_applied(&self, count: u64) {
        if *self.applied.borrow() < count {
            let mut applied = self.applied.subscribe();
            self.flush_requested.notify_one();
            let _ = applied.wait_for(|applied| *applied >= count).await;
        }
    }

    /// Resolves when a read waits for results that were not applied yet.
    pub(crate) async fn flush_requested(&self) {
        self.flush_requested.notified().await;
    }

    /// The run is past its deadline; called before `end`.
    pub(crate) fn overdue(&self) {
        self.overdue.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_overdue(&self) -> bool {
        self.overdue.load(Ordering::Relaxed)
    }

    /// The run has pulled messages up to this number of its conversation.
    pub(crate) fn pulled(&self, conversation_seq: i64) {
        self.pulled_seq.fetch_max(conversation_seq, Ordering::Relaxed);
    }

    pub(crate) fn pulled_seq(&self) -> i64 {
        self.pulled_seq.load(Ordering::Relaxed)
    }

    pub(crate) fn end(&self) {
        self.ended.send_replace(true);
        self.applied.send_replace(u64::MAX);
    }

    pub(crate) async fn wait_for_end(&self) {
        let mut ended = self.ended.subscribe();
        let _ = ended.wait_for(|ended| *ended).await;
    }
}

#[derive(Debug, Default)]
pub(crate) struct Live {
    by_run: Mutex<HashMap<String, Arc<LiveRun>>>,
    changed: Notify,
    tokens: Mutex<Tokens>,
    /// The last overdue runs, so that a refusal tells their runners why.
    overdue: Mutex<VecDeque<String>>,
    /// The last runs that ended, with their workspaces.
    ended: Mutex<VecDeque<(String, String)>>,
}

/// The run and attempt of each token.
#[derive(Debug, Default)]
struct Tokens {
    runs: HashMap<TokenHash, (String, i64)>,
    by_run: HashMap<String, TokenHash>,
}

impl Tokens {
    fn revoke(&mut self, run_id: &str) {
        if let Some(hash) = self.by_run.remove(run_id) {
            self.runs.remove(&hash);
        }
    }
}

impl Live {
    /// A new token for this attempt, valid until the run ends. An earlier one is revoked.
    pub(crate) fn issue_token(&self, run_id: &str, attempt: i64) -> Option<String> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes).ok()?;
        let token = format!("{RUN_TOKEN}{}", hex(&bytes));
        let hash = hash(&token);
        let mut tokens = self.tokens();
        tokens.revoke(run_id);
        tokens.runs.insert(hash, (run_id.to_owned(), attempt));
        tokens.by_run.insert(run_id.to_owned(), hash);
        Some(token)
    }

    /// The run and attempt of a token, while that attempt is active.
    pub(crate) fn run_of_token(&self, token: &str) -> Option<(String, i64)> {
        // Looked up by its hash: the time this takes reveals nothing about the token.
        self.tokens().runs.get(&hash(token)).cloned()
    }

    pub(crate) fn revoke_token(&self, run_id: &str) {
        self.tokens().revoke(run_id);
    }

    pub(crate) fn enter(&self, run: &RunRow) -> Arc<LiveRun> {
        let limit = Duration::from_millis(u64::try_from(run.deadline_ms).unwrap_or(0));
        let live = Arc::new(LiveRun {
            ending: watch::channel(None).0,
            ended: watch::channel(false).0,
            applied: watch::channel(0).0,
            flush_requested: Notify::new(),
            rights: OnceLock::new(),
            seat: watch::channel(None).0,
            program_calls: Arc::new(Semaphore::new(PROGRAM_CALLS_AT_ONCE)),
            bucket: Bucket::default(),
            reads: Semaphore::new(READS_AT_ONCE),
            streams: Semaphore::new(STREAMS_AT_ONCE),
            uploads: Uploads::default(),
            deadline: Deadline::new(limit),
            overdue: AtomicBool::new(false),
            with_runner: AtomicBool::new(false),
            pulled_seq: AtomicI64::new(0),
            spent: AtomicI64::new(0),
            model_failures: AtomicU32::new(0),
            tool_calls: Arc::default(),
        });
        if run.cancel_requested {
            live.cancel("cancelled");
        }
        self.lock().insert(run.run_id.clone(), Arc::clone(&live));
        self.changed.notify_waiters();
        live
    }

    pub(crate) fn get(&self, run_id: &str) -> Option<Arc<LiveRun>> {
        self.lock().get(run_id).cloned()
    }

    pub(crate) fn leave(&self, run_id: &str) {
        self.revoke_token(run_id);
        if self.get(run_id).is_some_and(|live| live.is_overdue()) {
            let mut overdue = self.overdue.lock().unwrap_or_else(PoisonError::into_inner);
            overdue.truncate(OVERDUE_KNOWN - 1);
            overdue.push_front(run_id.to_owned());
        }
        let Some(live) = self.lock().remove(run_id) else { return };
        self.changed.notify_waiters();
        if let Some(rights) = live.rights.get() {
            let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            ended.truncate(ENDED_KNOWN - 1);
            ended.push_front((run_id.to_owned(), rights.identity.workspace_id.clone()));
        }
    }

    /// The workspace of a run that is active or ended recently.
    pub(crate) fn workspace_of(&self, run_id: &str) -> Option<String> {
        if let Some(live) = self.get(run_id) {
            return live.rights.get().map(|rights| rights.identity.workspace_id.clone());
        }
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let known = ended.iter().find(|(known, _)| known == run_id);
        known.map(|(_, workspace)| workspace.clone())
    }

    /// Whether a run was ended by its deadline, as far as it is remembered.
    pub(crate) fn was_overdue(&self, run_id: &str) -> bool {
        if self.get(run_id).is_some_and(|live| live.is_overdue()) {
            return true;
        }
        let overdue = self.overdue.lock().unwrap_or_else(PoisonError::into_inner);
        overdue.iter().any(|known| known == run_id)
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    /// Resolves when a run is entered or leaves after this call.
    pub(crate) fn changed(&self) -> Notified<'_> {
        self.changed.notified()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<LiveRun>>> {
        self.by_run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tokens(&self) -> MutexGuard<'_, Tokens> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn hash(token: &str) -> TokenHash {
    Sha256::digest(token).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_stands_for_its_attempt_until_the_run_ends_or_is_tried_again() {
        let live = Live::default();
        let first = live.issue_token("r1", 1).unwrap();
        let other = live.issue_token("r2", 1).unwrap();
        assert_eq!((first.len(), &first[..4]), (68, "grt_"));
        assert_eq!(live.run_of_token(&first), Some(("r1".to_owned(), 1)));
        let second = live.issue_token("r1", 2).unwrap();
        assert_eq!(live.run_of_token(&first), None);
        assert_eq!(live.run_of_token(&second), Some(("r1".to_owned(), 2)));
        live.leave("r1");
        assert_eq!(live.run_of_token(&second), None);
        assert_eq!(live.run_of_token(&other), Some(("r2".to_owned(), 1)));
        assert_eq!(live.run_of_token("r2"), None);
    }

    #[test]
    fn tokens_are_kept_as_hashes_alone() {
        let live = Live::default();
        let token = live.issue_token("r1", 1).unwrap();
        assert!(!format!("{live:?}").contains(&token[4..]));
    }
}
