//! The way to the writer: by its thread, which takes whatever is waiting, or past it for whoever is alone.
//!
//! Invariant: one commits at a time; nobody passes a command that waits; nothing is written after the store was
//! lost or closed, or a commit has panicked.

use crate::StoreError;
use crate::store::closed;
use crate::writer::{Job, Writer};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use tokio::sync::mpsc;

/// Commands in one transaction at most.
const BATCH_MAX: usize = 512;
/// Commits of a single command in a row after which the next is made by whoever asks for it.
const ALONE_MIN: usize = 8;

#[derive(Clone)]
pub(crate) struct Line {
    jobs: mpsc::Sender<Job>,
    shared: Arc<Shared>,
}

struct Shared {
    /// None once the store was lost or closed, or a commit has panicked.
    writer: Mutex<Option<Writer>>,
    /// Jobs for the thread that are not committed yet.
    waiting: AtomicUsize,
    /// Commits of a single command in a row.
    alone: AtomicUsize,
}

impl Line {
    /// A line, and what the writer's thread has to do: until every line is gone, or the store is lost.
    pub(crate) fn new(writer: Writer, waiting_max: usize) -> (Self, impl FnOnce() + Send) {
        let (sender, jobs) = mpsc::channel(waiting_max);
        let shared = Arc::new(Shared {
            writer: Mutex::new(Some(writer)),
            waiting: AtomicUsize::new(0),
            alone: AtomicUsize::new(0),
        });
        (Self { jobs: sender, shared: Arc::clone(&shared) }, move || shared.run(jobs))
    }

    /// Waits for a place before the thread.
    pub(crate) async fn place(&self) -> Result<Place<'_>, StoreError> {
        let permit = self.jobs.reserve().await.map_err(|_| closed())?;
        Ok(Place { permit, waiting: &self.shared.waiting })
    }

    /// Hands a job to the thread. Blocks.
    pub(crate) fn send_now(&self, job: Job) {
        self.shared.waiting.fetch_add(1, Ordering::AcqRel);
        // Fails only when the thread is gone, which has said why.
        let _ = self.jobs.blocking_send(job);
    }

    /// Commits a brief job here and now, which spares two threads their way to each other; gives it back where
    /// others write or lately did, because then commits are shared.
    pub(crate) fn commit_alone(&self, job: Job) -> Option<Job> {
        let shared = &self.shared;
        if shared.alone.load(Ordering::Relaxed) < ALONE_MIN || !job.command.is_brief() {
            return Some(job);
        }
        let writer = match shared.writer.try_lock() {
            // Whoever waits came first.
            _ if shared.waiting.load(Ordering::Acquire) > 0 => None,
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(error)) => Some(error.into_inner()),
            Ok(writer) => Some(writer),
        };
        let Some(mut writer) = writer else {
            shared.alone.store(0, Ordering::Relaxed);
            return Some(job);
        };
        if !writer.as_mut().is_none_or(Writer::begin_at_once) {
            return Some(job);
        }
        commit(&mut writer, &mut vec![job]);
        None
    }
}

pub(crate) struct Place<'a> {
    permit: mpsc::Permit<'a, Job>,
    waiting: &'a AtomicUsize,
}

impl Place<'_> {
    /// Hands a job to the thread.
    pub(crate) fn send(self, job: Job) {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        self.permit.send(job);
    }
}

impl Shared {
    fn run(&self, mut jobs: mpsc::Receiver<Job>) {
        let mut batch = Vec::new();
        loop {
            let taken = jobs.blocking_recv_many(&mut batch, BATCH_MAX);
            let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
            if taken > 0 {
                commit(&mut writer, &mut batch);
            } else {
                *writer = None;
            }
            if writer.is_none() {
                return;
            }
            self.waiting.fetch_sub(taken, Ordering::AcqRel);
            let alone = if taken == 1 { self.alone.load(Ordering::Relaxed) + 1 } else { 0 };
            self.alone.store(alone, Ordering::Relaxed);
        }
    }
}

/// Commits a batch; a writer that lost the store, or panicked, is let go.
fn commit(place: &mut Option<Writer>, batch: &mut Vec<Job>) {
    let Some(mut writer) = place.take() else { return };
    match writer.commit(batch) {
        Ok(()) => *place = Some(writer),
        Err(error) => {
            tracing::error!(%error, "the store is lost, the host has to end");
            for job in batch.drain(..) {
                let _ = job.reply.send(Err(error.clone()));
            }
            writer.lost.send_replace(Some(error));
        }
    }
}
