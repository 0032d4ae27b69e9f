//! The runs that are under way in this process.
//!
//! Invariant: a run is here from its start to its terminal; the proxy serves no run that is not here, and its
//! token means nothing once it is gone. Of a token only the hash is kept.

mod deadline;
mod tool_calls;

use crate::context::Identity;
use crate::grant::Grant;
use crate::ids::hex;
use crate::proxy::audit::Subject;
use crate::proxy::meter::Bucket;
use crate::redaction::RUN_TOKEN;
use crate::resources::Resources;
use deadline::Deadline;
use greenroom_protocol::error::run_code;
use greenroom_store::types::RunRow;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, Semaphore, watch};

pub(crate) use tool_calls::{Entered, Taken, ToolCalls};

/// Long reads that one run has under way at once.
const READS_AT_ONCE: usize = 4;
/// Streams that one run has open at once; others wait for their turn.
const STREAMS_AT_ONCE: usize = 8;
/// Failures of models that are noted of one run.
const MODEL_FAILURES_NOTED: u32 = 20;
/// Runs that are remembered as overdue.
const OVERDUE_KNOWN: usize = 256;
/// Runs whose end a runner may ask about.
const ENDED_KNOWN: usize = 1024;

#[derive(Debug)]
pub(crate) struct LiveRun {
    ending: watch::Sender<Option<Ending>>,
    ended: watch::Sender<bool>,
    applied: watch::Sender<u64>,
    /// Told when someone waits for results to be dealt with.
    waited_for: Notify,
    rights: OnceLock<Rights>,
    /// What the run may still call.
    pub(crate) bucket: Bucket,
    pub(crate) deadline: Deadline,
    /// Turns for reads that take the store a while, so that one run does not keep others out.
    pub(crate) reads: Semaphore,
    /// Turns for streams of bytes, each of which holds some.
    pub(crate) streams: Semaphore,
    overdue: AtomicBool,
    /// Whether a runner has it; before, it waits for one.
    with_runner: AtomicBool,
    /// The place of the last message that the run has pulled, 0 before.
    pulled_seq: AtomicI64,
    spent: AtomicI64,
    model_failures: AtomicU32,
    /// Calls of tools, by whose item the conversation shows them.
    pub(crate) tool_calls: Arc<ToolCalls>,
}

/// Why a run has to end before it does.
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
    /// What the grant chooses from, as it was when the run began.
    pub(crate) resources: Arc<Resources>,
    pub(crate) identity: Identity,
    pub(crate) attempt: i64,
    /// Whom audit records are about.
    pub(crate) subject: Arc<Subject>,
}

impl LiveRun {
    /// Asks the run to stop.
    pub(crate) fn cancel(&self, reason: &str) {
        self.end_with(run_code::CANCELLED, reason.to_owned());
    }

    /// The run has to end so; the first ending stands.
    pub(crate) fn end_with(&self, code: &'static str, reason: String) {
        self.ending.send_if_modified(|current| {
            let first = current.is_none();
            if first {
                *current = Some(Ending { code, reason });
            }
            first
        });
    }

    /// Resolves when somebody wants the run to end before it does.
    pub(crate) async fn ending(&self) -> Ending {
        let mut ending = self.ending.subscribe();
        let wanted = ending.wait_for(Option::is_some).await.map(|wanted| wanted.clone());
        // The sender lives in this very run, so the channel does not close while anyone waits.
        let gone = Ending { code: run_code::CANCELLED, reason: String::new() };
        wanted.ok().flatten().unwrap_or(gone)
    }

    /// What the models of this run have cost so far, in millionths of a dollar.
    pub(crate) fn spent(&self) -> i64 {
        self.spent.load(Ordering::Relaxed)
    }

    pub(crate) fn spend(&self, cost_micro: i64) {
        self.spent.fetch_add(cost_micro, Ordering::Relaxed);
    }

    /// Whether one more failure of a model is worth a note.
    pub(crate) fn notes_model_failure(&self) -> bool {
        self.model_failures.fetch_add(1, Ordering::Relaxed) < MODEL_FAILURES_NOTED
    }

    pub(crate) fn is_with_runner(&self) -> bool {
        self.with_runner.load(Ordering::Relaxed)
    }

    pub(crate) fn set_with_runner(&self, is_there: bool) {
        self.with_runner.store(is_there, Ordering::Relaxed);
    }

    pub(crate) fn granted(&self, rights: Rights) {
        let _ = self.rights.set(rights);
    }

    /// What the run may do; nothing from the moment on in which it is to end, before its terminal is stored.
    pub(crate) fn rights(&self) -> Option<&Rights> {
        let is_over = *self.ended.borrow() || self.is_overdue() || self.ending.borrow().is_some();
        self.rights.get().filter(|_| !is_over)
    }

    /// So many more results of the runner's have been dealt with.
    pub(crate) fn applied(&self, count: usize) {
        self.applied.send_modify(|applied| *applied += count as u64);
    }

    /// Waits until that many results have been dealt with, so that a read sees the run's own writes.
    pub(crate) async fn wait_for_applied(&self, count: u64) {
        if *self.applied.borrow() < count {
            let mut applied = self.applied.subscribe();
            self.waited_for.notify_one();
            let _ = applied.wait_for(|applied| *applied >= count).await;
        }
    }

    /// Resolves when someone waits for results that have come but were not dealt with yet.
    pub(crate) async fn waited_for(&self) {
        self.waited_for.notified().await;
    }

    /// The run ends because its time is over; before `end`.
    pub(crate) fn overdue(&self) {
        self.overdue.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_overdue(&self) -> bool {
        self.overdue.load(Ordering::Relaxed)
    }

    /// The run has pulled messages up to this place of its conversation.
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
    /// The last runs that were overdue, so that their runners are told why they are refused.
    overdue: Mutex<VecDeque<String>>,
    /// The last runs that ended, with their workspaces.
    ended: Mutex<VecDeque<(String, String)>>,
}

/// Which run and attempt a token stands for.
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
    /// A new token for a run, which stands for this attempt until the run ends. An earlier one ends now.
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

    /// The run and the attempt that a token was given to, while that attempt is under way.
    pub(crate) fn run_of_token(&self, token: &str) -> Option<(String, i64)> {
        // Found by its hash: how long that takes tells nothing about the token.
        self.tokens().runs.get(&hash(token)).cloned()
    }

    /// The run's token means nothing any more.
    pub(crate) fn revoke_token(&self, run_id: &str) {
        self.tokens().revoke(run_id);
    }

    pub(crate) fn enter(&self, run: &RunRow) -> Arc<LiveRun> {
        let limit = Duration::from_millis(u64::try_from(run.deadline_ms).unwrap_or(0));
        let live = Arc::new(LiveRun {
            ending: watch::channel(None).0,
            ended: watch::channel(false).0,
            applied: watch::channel(0).0,
            waited_for: Notify::new(),
            rights: OnceLock::new(),
            bucket: Bucket::default(),
            reads: Semaphore::new(READS_AT_ONCE),
            streams: Semaphore::new(STREAMS_AT_ONCE),
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

    /// The workspace of a run that is under way or has ended lately.
    pub(crate) fn workspace_of(&self, run_id: &str) -> Option<String> {
        if let Some(live) = self.get(run_id) {
            return live.rights.get().map(|rights| rights.identity.workspace_id.clone());
        }
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let known = ended.iter().find(|(known, _)| known == run_id);
        known.map(|(_, workspace)| workspace.clone())
    }

    /// Whether a run was ended by its deadline, as far as that is still known.
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
