//! The store's handle: open it once, clone it freely.

mod postponed;

pub use postponed::Postponed;

use crate::StoreError;
use crate::commands::{Command, IndexItems, Touch};
use crate::copy;
use crate::drivers::{Driver, PostgresDriver, SqliteDriver, checkpoint, checkpoint_all};
use crate::health::Health;
use crate::job::{Job, Queued};
use crate::location::Location;
use crate::reader::{self, Answer, ReadJob, Turn};
use crate::reads::sizes::{Sizes, sizes};
use crate::schema::{self, SchemaVersion};
use crate::search::index;
use crate::shares::Shares;
use crate::sql::Tx;
use crate::writer::Writer;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};
use tokio::sync::{mpsc, oneshot, watch};

/// Commands in the writer's queue.
const WRITES_WAITING_MAX: usize = 4096;
/// Events of one workspace in the writer's queue.
const EVENTS_WAITING_MAX: usize = 1024;
/// Reads in the queue of one reader.
const READS_WAITING_MAX: usize = 1024;
/// Between two checks of SQLite's log while there are commits.
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(500);
/// Time without a commit after which the whole log is moved into the database.
const QUIET: Duration = Duration::from_secs(5);
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
    /// The database file; none on PostgreSQL.
    file: Option<PathBuf>,
    cursor_key: String,
    lost: watch::Receiver<Option<StoreError>>,
    /// Whether the last write found no space.
    is_full: Arc<AtomicBool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Store {
    /// Opens the database, brings its schema up to date and begins a new epoch. Blocks.
    pub fn open(options: &Options) -> Result<Store, StoreError> {
        on_own_thread(|| Self::open_here(options))
    }

    /// The version of the tables; none when there are none yet. Changes nothing. Blocks.
    pub fn version(options: &Options) -> Result<Option<SchemaVersion>, StoreError> {
        match &options.location {
            Location::Sqlite(path) if !path.exists() => Ok(None),
            _ => on_own_thread(|| schema::version(&mut *connect_reader(options)?)),
        }
    }

    /// Whether the database exists and can be read, and how much it holds. Changes nothing. Blocks.
    pub fn probe(options: &Options) -> Result<Probed, StoreError> {
        on_own_thread(|| {
            let mut reader = connect_reader(options)?;
            copy::refuse_moved(&mut *reader)?;
            let sizes = match &options.location {
                Location::Postgres(_) if !reader.has_schema()? => None,
                _ => Some(sizes(&mut *reader)?),
            };
            let mut description = options.location.describe(&mut *reader)?;
            if let Some(SchemaVersion { found, known }) = schema::version(&mut *reader)?
                && found < known
            {
                description +=
                    &format!("; the next start upgrades it from schema {found} to {known}");
            }
            Ok(Probed { description, sizes })
        })
    }

    fn open_here(options: &Options) -> Result<Store, StoreError> {
        let mut writer = connect_writer(options)?;
        schema::prepare(&mut *writer)?;
        let epoch = schema::bump_epoch(&mut *writer)?;
        writer.hold(epoch)?;
        let cursor_key = schema::read_meta(&mut *writer, "cursor_key")?;
        let (lost_sender, lost) = watch::channel(None);
        let (committed, commits) = std::sync::mpsc::sync_channel(1);
        let mut threads = Vec::new();
        let is_full = Arc::new(AtomicBool::new(false));
        let health = Arc::new(Health::default());
        let writer = Writer {
            driver: writer,
            lost: lost_sender,
            committed,
            is_full: Arc::clone(&is_full),
            health: Arc::clone(&health),
        };
        let (write_jobs, jobs) = mpsc::channel(WRITES_WAITING_MAX);
        threads.push(spawn("store-writer", move || writer.run(jobs))?);
        let mut readers = Vec::new();
        for _ in 0..=INDEXER {
            let driver = connect_reader(options)?;
            let (sender, jobs) = mpsc::channel(READS_WAITING_MAX);
            let health = Arc::clone(&health);
            threads.push(spawn("store-reader", move || reader::run(driver, jobs, &health))?);
            readers.push(sender);
        }
        let inline_reader = match &options.location {
            Location::Sqlite(path) => {
                let path = path.clone();
                threads.push(spawn("store-checkpoint", move || checkpoints(&path, &commits))?);
                Some(connect_reader(options)?)
            }
            Location::Postgres(_) => None,
        };
        let (file, sync) = match &options.location {
            Location::Sqlite(path) => (Some(path.clone()), Some(options.sync)),
            Location::Postgres(_) => (None, None),
        };
        let inner = Inner {
            writer: Mutex::new(Some(write_jobs)),
            postponed: Mutex::default(),
            readers,
            next_reader: AtomicUsize::new(0),
            inline_reader: Mutex::new(inline_reader),
            shares: Shares::new(EVENTS_WAITING_MAX),
            location: options.location.clone(),
            health,
            epoch,
            sync,
            file,
            cursor_key,
            lost,
            is_full,
            threads: Mutex::new(threads),
        };
        Ok(Store { inner: Arc::new(inner) })
    }

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
        if self.inner.health.failed_recently() {
            return Err(self.down());
        }
        self.read(|tx| tx.query("SELECT 1", &[]).map(drop)).await?;
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

    /// Hides the address of a database that cannot be reached; the log has the details.
    fn named(&self, error: StoreError) -> StoreError {
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
            return read(&mut **driver);
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
        // The writer ends now; readers and the checkpointer end with the last handle.
        for thread in threads.into_iter().take(1) {
            if thread.join().is_err() {
                tracing::error!("store writer panicked");
            }
        }
        if let Some(path) = &self.inner.file {
            log_failure(checkpoint_all(path));
        }
    }
}

/// The PostgreSQL client has its own runtime, which must not be entered from within another.
fn on_own_thread<T: Send>(
    work: impl FnOnce() -> Result<T, StoreError> + Send,
) -> Result<T, StoreError> {
    std::thread::scope(|scope| scope.spawn(work).join())
        .unwrap_or_else(|_| Err(StoreError::Lost("opening the store panicked".to_owned())))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn connect_writer(options: &Options) -> Result<Box<dyn Driver>, StoreError> {
    Ok(match &options.location {
        Location::Sqlite(path) => Box::new(SqliteDriver::writer(path, options.sync)?),
        Location::Postgres(url) => Box::new(PostgresDriver::writer(url)?),
    })
}

fn connect_reader(options: &Options) -> Result<Box<dyn Driver>, StoreError> {
    Ok(match &options.location {
        Location::Sqlite(path) => Box::new(SqliteDriver::reader(path)?),
        Location::Postgres(url) => Box::new(PostgresDriver::reader(url)?),
    })
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| StoreError::Unavailable(format!("cannot start thread {name}: {error}")))
}

/// Checks the size of the log after commits, at most twice a second; moves all of it after a while without commits.
fn checkpoints(path: &Path, commits: &std::sync::mpsc::Receiver<()>) {
    while commits.recv().is_ok() {
        loop {
            std::thread::sleep(CHECKPOINT_PAUSE);
            log_failure(checkpoint(path));
            match commits.recv_timeout(QUIET) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => break log_failure(checkpoint_all(path)),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

fn log_failure(checkpoint: Result<(), StoreError>) {
    if let Err(error) = checkpoint {
        tracing::warn!(%error, "checkpoint of the write-ahead log failed");
    }
}

pub(crate) fn closed() -> StoreError {
    StoreError::Unavailable("the store was closed".to_owned())
}
