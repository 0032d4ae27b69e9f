//! The store's handle: open it once, clone it freely.

use crate::commands::{
    AcceptEvent, Accepted, AnswerApproval, Answered, Applied, ApplyResults, ArtifactWritten,
    CancelApproval, CancelQueued, CancelRequest, ClaimDelivery, Collect, Collected, Command,
    CreateArtifact, ExpireApprovals, FinishDelivery, FreezeGrant, IndexItems, Outcome,
    PullSteering, Pulled, RecordAudit, RecordDiagnostics, RemoveArtifacts, RemoveItems,
    RequestAction, Requested, RestartRun, StateWritten, StorageWritten, WriteState, WriteStorage,
};
use crate::drivers::{Driver, PostgresDriver, SqliteDriver, checkpoint};
use crate::reader::{self, Answer, ReadJob, Turn};
use crate::reads::sizes::{Sizes, sizes};
use crate::search::index;
use crate::shares::Shares;
use crate::sql::Tx;
use crate::types::ApprovalRow;
use crate::writer::{Job, Writer};
use crate::{StoreError, schema};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
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
    writer: Mutex<Option<mpsc::Sender<Job>>>,
    readers: Vec<mpsc::Sender<ReadJob>>,
    next_reader: AtomicUsize,
    near: Mutex<Option<Box<dyn Driver>>>,
    shares: Shares,
    epoch: i64,
    cursor_key: String,
    lost: watch::Receiver<Option<StoreError>>,
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
        let (jobs_sender, jobs) = mpsc::channel(WRITES_WAITING_MAX);
        let mut threads = Vec::new();
        let writer = Writer { driver: writer, jobs, lost: lost_sender, committed };
        threads.push(spawn("store-writer", move || writer.run())?);
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
            writer: Mutex::new(Some(jobs_sender)),
            readers,
            next_reader: AtomicUsize::new(0),
            near: Mutex::new(near),
            shares: Shares::new(EVENTS_WAITING_MAX),
            epoch,
            cursor_key,
            lost,
            threads: Mutex::new(threads),
        };
        Ok(Store { inner: Arc::new(inner) })
    }

    /// Which start of the host this is.
    pub fn epoch(&self) -> i64 {
        self.inner.epoch
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

    pub async fn accept(&self, command: AcceptEvent) -> Result<Accepted, StoreError> {
        let _place = self.inner.shares.enter(&command.workspace_id).await;
        match self.submit(Command::Accept(Box::new(command))).await? {
            Outcome::Accepted(accepted) => Ok(*accepted),
            other => Err(mixed_up(&other)),
        }
    }

    pub async fn apply(
        &self,
        command: impl Into<Arc<ApplyResults>>,
    ) -> Result<Applied, StoreError> {
        match self.submit(Command::Apply(command.into())).await? {
            Outcome::Applied(applied) => Ok(*applied),
            other => Err(mixed_up(&other)),
        }
    }

    pub async fn cancel(&self, command: CancelQueued) -> Result<CancelRequest, StoreError> {
        match self.submit(Command::CancelQueued(command)).await? {
            Outcome::Cancel(request) => Ok(*request),
            other => Err(mixed_up(&other)),
        }
    }

    pub async fn freeze_grant(&self, command: FreezeGrant) -> Result<bool, StoreError> {
        self.change(Command::FreezeGrant(command)).await
    }

    pub async fn restart(&self, command: RestartRun) -> Result<bool, StoreError> {
        self.change(Command::Restart(Box::new(command))).await
    }

    pub async fn claim_delivery(&self, command: ClaimDelivery) -> Result<bool, StoreError> {
        self.change(Command::ClaimDelivery(command)).await
    }

    pub async fn finish_delivery(&self, command: FinishDelivery) -> Result<bool, StoreError> {
        self.change(Command::FinishDelivery(Box::new(command))).await
    }

    /// Keeps what a run sent after its end.
    pub async fn record(
        &self,
        run_id: String,
        diagnostics: Vec<crate::types::Diagnostic>,
    ) -> Result<bool, StoreError> {
        self.change(Command::RecordDiagnostics(RecordDiagnostics { run_id, diagnostics })).await
    }

    /// Keeps the records of calls that changed nothing.
    pub async fn record_audit(
        &self,
        batches: Vec<crate::types::AuditBatch>,
    ) -> Result<(), StoreError> {
        self.change(Command::RecordAudit(RecordAudit { batches })).await.map(drop)
    }

    pub async fn write_state(&self, command: WriteState) -> Result<StateWritten, StoreError> {
        match self.submit(Command::WriteState(Box::new(command))).await? {
            Outcome::StateWritten(written) => Ok(written),
            other => Err(mixed_up(&other)),
        }
    }

    /// Lets go of some of what is past its time.
    pub async fn collect(&self, command: Collect) -> Result<Collected, StoreError> {
        match self.submit(Command::Collect(command)).await? {
            Outcome::Collected(collected) => Ok(collected),
            other => Err(mixed_up(&other)),
        }
    }

    pub async fn write_storage(&self, command: WriteStorage) -> Result<StorageWritten, StoreError> {
        match self.submit(Command::WriteStorage(Box::new(command))).await? {
            Outcome::StorageWritten(written) => Ok(written),
            other => Err(mixed_up(&other)),
        }
    }

    /// Keeps an artifact whose bytes are kept already.
    pub async fn create_artifact(
        &self,
        command: CreateArtifact,
    ) -> Result<ArtifactWritten, StoreError> {
        match self.submit(Command::CreateArtifact(Box::new(command))).await? {
            Outcome::ArtifactWritten(written) => Ok(written),
            other => Err(mixed_up(&other)),
        }
    }

    pub async fn remove_artifacts(&self, command: RemoveArtifacts) -> Result<bool, StoreError> {
        self.change(Command::RemoveArtifacts(command)).await
    }

    pub async fn request_action(&self, command: RequestAction) -> Result<Requested, StoreError> {
        match self.submit(Command::RequestAction(Box::new(command))).await? {
            Outcome::Requested(requested) => Ok(requested),
            other => Err(mixed_up(&other)),
        }
    }

    pub async fn answer_approval(&self, command: AnswerApproval) -> Result<Answered, StoreError> {
        match self.submit(Command::AnswerApproval(Box::new(command))).await? {
            Outcome::Answered(answered) => Ok(answered),
            other => Err(mixed_up(&other)),
        }
    }

    pub async fn expire_approvals(
        &self,
        command: ExpireApprovals,
    ) -> Result<Vec<ApprovalRow>, StoreError> {
        match self.submit(Command::ExpireApprovals(command)).await? {
            Outcome::Expired(expired) => Ok(expired),
            other => Err(mixed_up(&other)),
        }
    }

    pub async fn cancel_approval(&self, command: CancelApproval) -> Result<bool, StoreError> {
        self.change(Command::CancelApproval(command)).await
    }

    pub async fn pull_steering(&self, command: PullSteering) -> Result<Pulled, StoreError> {
        match self.submit(Command::PullSteering(Box::new(command))).await? {
            Outcome::Pulled(pulled) => Ok(pulled),
            other => Err(mixed_up(&other)),
        }
    }

    /// Puts up to so many of the oldest unindexed items into the search index, and says how many are left
    /// at most. Only the insertion is the writer's work.
    pub async fn index_some(&self, limit: i64) -> Result<i64, StoreError> {
        let step = self.read_by(INDEXER, move |tx| IndexItems::next(tx, limit)).await?;
        let Some(step) = step else { return Ok(0) };
        self.change(Command::IndexItems(Box::new(step))).await?;
        self.read_by(INDEXER, |tx| {
            index::settle(tx)?;
            Ok(index::newest(tx)? - index::upto(tx)?)
        })
        .await
    }

    /// Takes items out of their transcripts and out of the search index.
    pub async fn remove_items(&self, ids: Vec<i64>) -> Result<bool, StoreError> {
        self.change(Command::RemoveItems(RemoveItems { ids })).await
    }

    async fn change(&self, command: Command) -> Result<bool, StoreError> {
        match self.submit(command).await? {
            Outcome::Changed(changed) => Ok(changed),
            other => Err(mixed_up(&other)),
        }
    }

    async fn submit(&self, command: Command) -> Result<Outcome, StoreError> {
        let writer = lock(&self.inner.writer).clone().ok_or_else(closed)?;
        let (reply, outcome) = oneshot::channel();
        writer.send(Job { command, reply }).await.map_err(|_| closed())?;
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
        lock(&self.inner.writer).take();
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

fn closed() -> StoreError {
    StoreError::Unavailable("the store was closed".to_owned())
}

fn mixed_up(outcome: &Outcome) -> StoreError {
    StoreError::Refused(format!("the store answered something else: {outcome:?}"))
}
