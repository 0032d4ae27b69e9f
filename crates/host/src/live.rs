//! The runs that are under way in this process.
//!
//! Invariant: a run is here from its start to its terminal; the proxy serves no run that is not here.

use crate::context::Identity;
use crate::grant::Grant;
use crate::proxy::audit::Subject;
use crate::proxy::meter::Bucket;
use greenroom_store::types::RunRow;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use tokio::sync::watch;

/// Runs that are remembered as overdue.
const OVERDUE_KNOWN: usize = 256;

#[derive(Debug)]
pub(crate) struct LiveRun {
    cancel: watch::Sender<Option<String>>,
    ended: watch::Sender<bool>,
    applied: watch::Sender<u64>,
    rights: OnceLock<Rights>,
    /// What the run may still call.
    pub(crate) bucket: Bucket,
    overdue: AtomicBool,
}

/// What a live run may do, and as whom.
#[derive(Debug)]
pub(crate) struct Rights {
    pub(crate) grant: Arc<Grant>,
    pub(crate) identity: Identity,
    pub(crate) attempt: i64,
    /// Whom audit records are about.
    pub(crate) subject: Arc<Subject>,
}

impl LiveRun {
    /// Asks the run to stop; the first reason stands.
    pub(crate) fn cancel(&self, reason: &str) {
        self.cancel.send_if_modified(|current| {
            let first = current.is_none();
            if first {
                *current = Some(reason.to_owned());
            }
            first
        });
    }

    pub(crate) async fn cancelled(&self) -> String {
        let mut cancel = self.cancel.subscribe();
        let reason = cancel.wait_for(Option::is_some).await.map(|reason| reason.clone());
        // The sender lives in this very run, so the channel does not close while anyone waits.
        reason.ok().flatten().unwrap_or_default()
    }

    pub(crate) fn granted(&self, rights: Rights) {
        let _ = self.rights.set(rights);
    }

    pub(crate) fn rights(&self) -> Option<&Rights> {
        self.rights.get().filter(|_| !*self.ended.borrow())
    }

    /// So many more results of the runner's have been dealt with.
    pub(crate) fn applied(&self, count: usize) {
        self.applied.send_modify(|applied| *applied += count as u64);
    }

    /// Waits until that many results have been dealt with, so that a read sees the run's own writes.
    pub(crate) async fn wait_for_applied(&self, count: u64) {
        if *self.applied.borrow() < count {
            let mut applied = self.applied.subscribe();
            let _ = applied.wait_for(|applied| *applied >= count).await;
        }
    }

    /// The run ends because its time is over; before `end`.
    pub(crate) fn overdue(&self) {
        self.overdue.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_overdue(&self) -> bool {
        self.overdue.load(Ordering::Relaxed)
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
    /// The last runs that were overdue, so that their runners are told why they are refused.
    overdue: Mutex<VecDeque<String>>,
}

impl Live {
    pub(crate) fn enter(&self, run: &RunRow) -> Arc<LiveRun> {
        let live = Arc::new(LiveRun {
            cancel: watch::channel(None).0,
            ended: watch::channel(false).0,
            applied: watch::channel(0).0,
            rights: OnceLock::new(),
            bucket: Bucket::default(),
            overdue: AtomicBool::new(false),
        });
        if run.cancel_requested {
            live.cancel("cancelled");
        }
        self.lock().insert(run.run_id.clone(), Arc::clone(&live));
        live
    }

    pub(crate) fn get(&self, run_id: &str) -> Option<Arc<LiveRun>> {
        self.lock().get(run_id).cloned()
    }

    pub(crate) fn leave(&self, run_id: &str) {
        let left = self.lock().remove(run_id);
        if left.is_some_and(|live| live.is_overdue()) {
            let mut overdue = self.overdue.lock().unwrap_or_else(PoisonError::into_inner);
            overdue.truncate(OVERDUE_KNOWN - 1);
            overdue.push_front(run_id.to_owned());
        }
    }

    /// Whether a run that is over was ended by its deadline, as far as that is still known.
    pub(crate) fn was_overdue(&self, run_id: &str) -> bool {
        let overdue = self.overdue.lock().unwrap_or_else(PoisonError::into_inner);
        overdue.iter().any(|known| known == run_id)
    }

    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<LiveRun>>> {
        self.by_run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
