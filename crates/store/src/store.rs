//! The store's handle: open it once, clone it freely.

mod changes;
mod postponed;

pub use postponed::Postponed;

use crate::commands::{Command, Outcome};
use crate::drivers::{Driver, PostgresDriver, SqliteDriver, checkpoint};
use crate::line::Line;
use crate::reader::{self, Answer, ReadJob, Turn};
use crate::reads::sizes::{Sizes, sizes};
use crate::shares::Shares;
use crate::sql::Tx;
use crate::writer::{Job, Writer};
use crate::{StoreError, schema};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};
use tokio::sync::{mpsc, oneshot, watch};

/// Commands that may wait for the writer.
const WRITES_WAITING_MAX: usize = 4096;
/// Events of one workspace that may wait for the writer.
const EVENTS_WAITING_MAX: usize = 1024;
/// Reads that may wait for one reader.
const READS_WAITING_MAX: usize = 1024;
const READERS: usize = 2;
/// The reader that prepares the search index, so that nobody who asks waits for it.
const INDEXER: usize = READERS;

/// Where the facts are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    Sqlite(PathBuf),
    Postgres(String),
}

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

#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    writer: Mutex<Option<Line>>,
    /// Whether a commit is so quick that whoever asks for one may make it.
    is_near: bool,
    postponed: Mutex<VecDeque<Command>>,
    readers: Vec<mpsc::Sender<ReadJob>>,
    next_reader: AtomicUsize,
    near: Mutex<Option<Box<dyn Driver>>>,
    shares: Shares,
    epoch: i64,
    /// None on PostgreSQL, whose server decides.
    sync: Option<Sync>,
    cursor_key: String,
    lost: watch::Receiver<Option<StoreError>>,
    /// Whether there was no space for what was to be written last.
    is_full: Arc<AtomicBool>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Store {
    /// Opens the database, brings its schema up to date and begins a new epoch. Blocks.
    pub fn open(options: &Options) -> Result<Store, StoreError> {
        // On a thread of its own: the PostgreSQL client brings its own runtime, which may not be entered
        // from within another.
        std::thread::scope(|scope| scope.spawn(|| Self::open_here(options)).join())
            .unwrap_or_else(|_| Err(StoreError::Lost("opening the store panicked".to_owned())))
    }

    /// Whether the database is there and can be read, and how much it holds: nothing when no host has used
    /// it yet. Changes nothing. Blocks.
    pub fn probe(options: &Options) -> Result<Option<Sizes>, StoreError> {
        let look = || {
            let mut reader = connect_reader(options)?;
            match &options.location {
                Location::Postgres(_) if !reader.has_schema()? => Ok(None),
                _ => sizes(&mut *reader).map(Some),
            }
        };
        std::thread::scope(|scope| scope.spawn(look).join())
            .unwrap_or_else(|_| Err(StoreError::Lost("opening the store panicked".to_owned())))
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
        let writer = Writer {
            driver: writer,
            lost: lost_sender,
            committed,
            has_begun: false,
            is_full: Arc::clone(&is_full),
        };
        let (line, write) = Line::new(writer, WRITES_WAITING_MAX);
        threads.push(spawn("store-writer", write)?);
        let mut readers = Vec::new();
        for _ in 0..=INDEXER {
            let driver = connect_reader(options)?;
            let (sender, jobs) = mpsc::channel(READS_WAITING_MAX);
            threads.push(spawn("store-reader", move || reader::run(driver, jobs))?);
            readers.push(sender);
        }
        let near = match &options.location {
            Location::Sqlite(path) => {
                let path = path.clone();
                threads.push(spawn("store-checkpoint", move || checkpoints(&path, &commits))?);
                Some(connect_reader(options)?)
            }
            Location::Postgres(_) => None,
        };
        let inner = Inner {
            writer: Mutex::new(Some(line)),
            is_near: near.is_some() && options.sync == Sync::Normal,
            postponed: Mutex::default(),
            readers,
            next_reader: AtomicUsize::new(0),
            near: Mutex::new(near),
            shares: Shares::new(EVENTS_WAITING_MAX),
            epoch,
            sync: match &options.location {
                Location::Sqlite(_) => Some(options.sync),
                Location::Postgres(_) => None,
            },
            cursor_key,
            lost,
            is_full,
            threads: Mutex::new(threads),
        };
        Ok(Store { inner: Arc::new(inner) })
    }

    /// Which start of the host this is.
    pub fn epoch(&self) -> i64 {
        self.inner.epoch
    }

    /// What a commit survives, where this host decides it: not on PostgreSQL.
    pub fn sync(&self) -> Option<Sync> {
        self.inner.sync
    }

    /// The database's own key for cursors, as hexadecimal text.
    pub fn cursor_key(&self) -> &str {
        &self.inner.cursor_key
    }

    /// Waits until this host may no longer write, and says why.
    pub async fn lost(&self) -> StoreError {
        let mut lost = self.inner.lost.clone();
        let found = lost.wait_for(Option::is_some).await;
        let error = found.ok().and_then(|error| error.clone());
        error.unwrap_or_else(|| StoreError::Unavailable("the store was closed".to_owned()))
    }

    /// Whether the database answers and takes what is written; the latter is tried if there was no space lately.
    pub async fn check(&self) -> Result<(), StoreError> {
        self.read(|tx| tx.query("SELECT 1", &[]).map(drop)).await?;
        if self.inner.is_full.load(Ordering::Relaxed) {
            let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
            let mark = i64::try_from(since.as_nanos()).unwrap_or(i64::MAX);
            self.submit(Command::Touch(mark)).await?;
        }
        Ok(())
    }

    async fn submit(&self, command: Command) -> Result<Outcome, StoreError> {
        let writer = lock(&self.inner.writer).clone().ok_or_else(closed)?;
        self.send_postponed(&writer).await?;
        let (reply, outcome) = oneshot::channel();
        let job = Job { command, reply };
        let left = if self.inner.is_near { writer.commit_alone(job) } else { Some(job) };
        if let Some(job) = left {
            writer.place().await?.send(job);
        }
        outcome.await.map_err(|_| closed())?
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
        answer.await.map_err(|_| closed())?
    }

    /// Reads a point where the caller stands if the database is a local file, else like `read`.
    /// For look-ups of a few microseconds only.
    pub async fn read_near<T, F>(&self, mut read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut dyn Tx) -> Result<T, StoreError> + Send + 'static,
    {
        if let Ok(mut near) = self.inner.near.try_lock()
            && let Some(driver) = near.as_mut()
        {
            return read(&mut **driver);
        }
        self.read(read).await
    }

    /// Waits for everything submitted so far, then lets go of the database. Blocks.
    pub fn close(&self) {
        if let Some(writer) = lock(&self.inner.writer).take() {
            self.send_postponed_last(&writer);
        }
        let threads = std::mem::take(&mut *lock(&self.inner.threads));
        // The writer ends by itself now; readers and the checkpointer end with the last handle.
        for thread in threads.into_iter().take(1) {
            if thread.join().is_err() {
                tracing::error!("the store's writer panicked");
            }
        }
    }
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

/// After commits, and never more often than twice a second, looks whether the log has grown.
fn checkpoints(path: &Path, commits: &std::sync::mpsc::Receiver<()>) {
    while commits.recv().is_ok() {
        std::thread::sleep(Duration::from_millis(500));
        if let Err(error) = checkpoint(path) {
            tracing::warn!(%error, "could not move the log into the database");
        }
    }
}

pub(crate) fn closed() -> StoreError {
    StoreError::Unavailable("the store was closed".to_owned())
}
