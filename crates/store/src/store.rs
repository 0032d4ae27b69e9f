//! The store's handle: open it once, clone it freely.

mod opening;
mod postponed;

pub use postponed::Postponed;

use crate::StoreError;
use crate::commands::{Command, IndexItems, Touch};
use crate::condition::Condition;
use crate::drivers::Driver;
use crate::health::Health;
use crate::job::{Job, Queued};
use crate::location::Location;
use crate::reader::{Answer, ReadJob, Turn};
use crate::reads::sizes::Sizes;
use crate::search::index;
use crate::shares::Shares;
use crate::sql::Tx;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::SystemTime;
use tokio::sync::{mpsc, oneshot, watch};

const READERS: usize = 2;
/// The reader that prepares the search index, so that other reads do not wait for it.
const INDEXER: usize = READERS;

/// What a commit survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sync {
    /// Power loss: the log is synced before an answer.
    #[default]
    Full,
    /// A crash of the host, but not of the machine.
    Normal,
}

/// What to do with a database that is damaged or incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnLoss {
    /// Do not open it.
    Refuse,
    /// Go on with what is left, and record that as an event.
    Accept,
}

#[derive(Debug, Clone)]
pub struct Options {
    pub location: Location,
    pub sync: Sync,
}

/// A database as `Store::probe` finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probed {
    /// Name, address and size, in words.
    pub description: String,
    /// None when no host has used it yet.
    pub sizes: Option<Sizes>,
}

#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    writer: Mutex<Option<mpsc::Sender<Box<dyn Job>>>>,
    postponed: Mutex<VecDeque<Box<dyn Job>>>,
    readers: Vec<mpsc::Sender<ReadJob>>,
    next_reader: AtomicUsize,
    /// For reads on the caller's thread; none on PostgreSQL.
    inline_reader: Mutex<Option<Box<dyn Driver>>>,
    shares: Shares,
    location: Location,
    health: Arc<Health>,
    epoch: i64,
    /// None on PostgreSQL, whose server decides.
    sync: Option<Sync>,
    condition: Arc<Condition>,
    cursor_key: String,
    lost: watch::Receiver<Option<StoreError>>,
    /// Whether the last write found no space.
    is_full: Arc<AtomicBool>,
    /// The writer, and the one that keeps an SQLite file.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Store {
    /// The number of this start of the host.
    pub fn epoch(&self) -> i64 {
        self.inner.epoch
    }

    pub(crate) fn location(&self) -> &Location {
        &self.inner.location
    }

    /// What a commit survives, where this host decides it: not on PostgreSQL.
    pub fn sync(&self) -> Option<Sync> {
        self.inner.sync
    }

    /// The database's own key for cursors, as hexadecimal text.
    pub fn cursor_key(&self) -> &str {
        &self.inner.cursor_key
    }

    /// Waits until this host may no longer write, and returns why.
    pub async fn lost(&self) -> StoreError {
        let mut lost = self.inner.lost.clone();
        let found = lost.wait_for(Option::is_some).await;
        let error = found.ok().and_then(|error| error.clone());
        error.unwrap_or_else(|| StoreError::Unavailable("the store was closed".to_owned()))
    }

    /// Whether the database answers and can be written to; the latter is tried if the last write found no space.
    pub async fn check(&self) -> Result<(), StoreError> {
        self.inner.condition.check()?;
        if self.inner.health.failed_recently() {
            return Err(self.down());
        }
        self.read(|tx| tx.query("SELECT 1 FROM meta LIMIT 1", &[]).map(drop)).await?;
        if self.inner.is_full.load(Ordering::Relaxed) {
            let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
            let mark = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
            self.commit(Touch(mark)).await?;
        }
        Ok(())
    }

    /// Commits a command, together with others that wait. Returns after it was committed or refused, never before.
    pub async fn commit<C: Command>(&self, command: C) -> Result<C::Outcome, StoreError> {
        let (job, outcome) = Queued::new(command);
        let _share = match job.command.fair_share() {
            Some(workspace) => self.inner.shares.enter(workspace).await,
            None => None,
        };
        if C::FROM_OUTSIDE && !self.inner.health.is_up_soon().await {
            return Err(self.down());
        }
        let writer = lock(&self.inner.writer).clone().ok_or_else(closed)?;
        self.send_postponed(&writer).await?;
        writer.send(job).await.map_err(|_| closed())?;
        outcome.await.map_err(|_| closed())?.map_err(|error| self.named(error))
    }

    /// Puts up to `limit` of the oldest unindexed items into the search index and returns how many are left
    /// at most. Only the insertion is the writer's work.
    pub async fn index_some(&self, limit: i64) -> Result<i64, StoreError> {
        let step = self.read_by(INDEXER, move |tx| IndexItems::next(tx, limit)).await?;
        let Some(step) = step else { return Ok(0) };
        self.commit(step).await?;
        self.read_by(INDEXER, |tx| {
            index::settle(tx)?;
            Ok(index::newest(tx)? - index::upto(tx)?)
        })
        .await
    }

    /// The last check of the database's pages, in words; none so far, or on PostgreSQL.
    pub fn last_check(&self) -> Option<String> {
        self.inner.condition.last_check()
    }

    /// Hides the address of a database that cannot be reached; the log has the details.
    fn named(&self, error: StoreError) -> StoreError {
        self.inner.condition.note(&error);
        if error.is_connection() { self.down() } else { error }
    }

    fn down(&self) -> StoreError {
        StoreError::Down(self.inner.location.title())
    }

    /// Reads on one of the reader threads. `read` may be called again after a new connection.
    pub async fn read<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut dyn Tx) -> Result<T, StoreError> + Send + 'static,
    {
        let reader = self.inner.next_reader.fetch_add(1, Ordering::Relaxed) % READERS;
        self.read_by(reader, read).await
    }

    async fn read_by<T, F>(&self, reader: usize, mut read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut dyn Tx) -> Result<T, StoreError> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let mut reply = Some(reply);
        let job: ReadJob = Box::new(move |tx, turn| {
            let found = read(tx);
            if turn == Turn::MayRepeat && found.as_ref().is_err_and(StoreError::is_connection) {
                return Answer::Repeat;
            }
            if let Some(reply) = reply.take() {
                let _ = reply.send(found);
            }
            Answer::Given
        });
        self.inner.readers[reader].send(job).await.map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?.map_err(|error| self.named(error))
    }

    /// Reads on the caller's thread if the database is a local file, else like `read`. For look-ups of a few
    /// microseconds only, where a proxy call would spend more on waking a reader's thread.
    pub async fn read_inline<T, F>(&self, mut read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut dyn Tx) -> Result<T, StoreError> + Send + 'static,
    {
        if let Ok(mut reader) = self.inner.inline_reader.try_lock()
            && let Some(driver) = reader.as_mut()
        {
            return read(&mut **driver).map_err(|error| self.named(error));
        }
        self.read(read).await
    }

    /// Commits everything submitted so far and closes the database. An SQLite file is complete then: its log is
    /// empty. Blocks.
    pub fn close(&self) {
        if let Some(writer) = lock(&self.inner.writer).take() {
            self.send_postponed_last(&writer);
        }
        let threads = std::mem::take(&mut *lock(&self.inner.threads));
        // The writer ends now, then the thread that keeps the files; readers end with the last handle.
        for thread in threads {
            if thread.join().is_err() {
                tracing::error!("a thread of the store panicked");
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn closed() -> StoreError {
    StoreError::Unavailable("the store was closed".to_owned())
}
