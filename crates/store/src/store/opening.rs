//! Opens a store: connections, threads, and the record of a loss that was accepted.

use super::{INDEXER, Inner, OnLoss, Options, Probed, Store};
use crate::commands::record_accepted_loss;
use crate::condition::Condition;
use crate::drivers::{
    Driver, Guarded, Keeper, PostgresDriver, SqliteDriver, inspect, open_guarded,
};
use crate::gate::Gate;
use crate::health::Health;
use crate::location::Location;
use crate::reads::sizes::sizes;
use crate::schema::{self, SchemaVersion};
use crate::shares::Shares;
use crate::writer::Writer;
use crate::{StoreError, copy, reader};
use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use tokio::sync::{mpsc, watch};

/// Commands in the writer's queue.
const WRITES_WAITING_MAX: usize = 4096;
/// Events of one workspace in the writer's queue.
const EVENTS_WAITING_MAX: usize = 1024;
/// Reads in the queue of one reader.
const READS_WAITING_MAX: usize = 1024;

/// What opening a database to write gives.
struct Opened {
    driver: Box<dyn Driver>,
    keeper: Option<Keeper>,
    file: Option<Arc<File>>,
    accepted_loss: Option<String>,
}

impl Store {
    /// Opens the database, brings its schema up to date and begins a new epoch. Blocks.
    pub fn open(options: &Options) -> Result<Store, StoreError> {
        on_own_thread(|| open_here(options, OnLoss::Refuse))
    }

    /// The same, also if the database is damaged or incomplete; what was found then becomes an event.
    pub fn open_accepting_loss(options: &Options) -> Result<Store, StoreError> {
        on_own_thread(|| open_here(options, OnLoss::Accept))
    }

    /// The version of the tables; none when there are none yet. Changes nothing. Blocks.
    pub fn version(options: &Options) -> Result<Option<SchemaVersion>, StoreError> {
        match &options.location {
            Location::Sqlite(path) if !path.exists() => Ok(None),
            _ => on_own_thread(|| schema::version(&mut *connect_reader(options, None)?)),
        }
    }

    /// Whether the database exists and can be read, and how much it holds. Changes nothing. Blocks.
    pub fn probe(options: &Options) -> Result<Probed, StoreError> {
        on_own_thread(|| {
            if let Location::Sqlite(path) = &options.location {
                inspect(path, options.sync)?;
            }
            let mut reader = connect_reader(options, None)?;
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
}

fn open_here(options: &Options, on_loss: OnLoss) -> Result<Store, StoreError> {
    let (condition, gate) = (Arc::<Condition>::default(), Arc::<Gate>::default());
    let Opened { mut driver, keeper, file, accepted_loss } =
        connect_writer(options, on_loss, &condition, &gate)?;
    schema::prepare(&mut *driver)?;
    let epoch = schema::bump_epoch(&mut *driver)?;
    driver.hold(epoch)?;
    if let Some(found) = accepted_loss {
        tracing::warn!(found, "going on with a damaged or incomplete database, as requested");
        driver.begin()?;
        record_accepted_loss(&mut *driver, epoch, &found)?;
        driver.commit()?;
    }
    let cursor_key = schema::read_meta(&mut *driver, "cursor_key")?;
    let (lost_sender, lost) = watch::channel(None);
    let is_full = Arc::new(AtomicBool::new(false));
    let health = Arc::new(Health::default());
    let (writer_lives, writer_ends) = std::sync::mpsc::sync_channel(1);
    let writer = Writer {
        driver,
        lost: lost_sender,
        keeper: Some(writer_lives),
        gate,
        condition: Arc::clone(&condition),
        is_full: Arc::clone(&is_full),
        health: Arc::clone(&health),
    };
    let (write_jobs, jobs) = mpsc::channel(WRITES_WAITING_MAX);
    let mut readers = Vec::new();
    for _ in 0..=INDEXER {
        let driver = connect_reader(options, file.as_ref())?;
        let (sender, jobs) = mpsc::channel(READS_WAITING_MAX);
        let health = Arc::clone(&health);
        spawn("store-reader", move || reader::run(driver, jobs, &health))?;
        readers.push(sender);
    }
    let inline_reader = match &options.location {
        Location::Sqlite(_) => Some(connect_reader(options, file.as_ref())?),
        Location::Postgres(_) => None,
    };
    let mut threads = vec![spawn("store-writer", move || writer.run(jobs))?];
    if let Some(keeper) = keeper {
        threads.push(spawn("store-keeper", move || keeper.run(&writer_ends))?);
    }
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
        sync: match &options.location {
            Location::Sqlite(_) => Some(options.sync),
            Location::Postgres(_) => None,
        },
        condition,
        cursor_key,
        lost,
        is_full,
        threads: Mutex::new(threads),
    };
    Ok(Store { inner: Arc::new(inner) })
}

/// The PostgreSQL client has its own runtime, which must not be entered from within another.
fn on_own_thread<T: Send>(
    work: impl FnOnce() -> Result<T, StoreError> + Send,
) -> Result<T, StoreError> {
    std::thread::scope(|scope| scope.spawn(work).join())
        .unwrap_or_else(|_| Err(StoreError::Lost("opening the store panicked".to_owned())))
}

fn connect_writer(
    options: &Options,
    on_loss: OnLoss,
    condition: &Arc<Condition>,
    gate: &Arc<Gate>,
) -> Result<Opened, StoreError> {
    match &options.location {
        Location::Sqlite(path) => {
            let how = (options.sync, on_loss);
            let Guarded { writer, keeper, file, accepted_loss } =
                open_guarded(path, how, Arc::clone(condition), Arc::clone(gate))?;
            let (driver, keeper, file) = (Box::new(writer), Some(keeper), Some(file));
            Ok(Opened { driver, keeper, file, accepted_loss })
        }
        Location::Postgres(url) => {
            let driver = Box::new(PostgresDriver::writer(url)?);
            Ok(Opened { driver, keeper: None, file: None, accepted_loss: None })
        }
    }
}

fn connect_reader(
    options: &Options,
    file: Option<&Arc<File>>,
) -> Result<Box<dyn Driver>, StoreError> {
    Ok(match (&options.location, file) {
        (Location::Sqlite(path), Some(file)) => {
            Box::new(SqliteDriver::reader_beside(path, Arc::clone(file))?)
        }
        (Location::Sqlite(path), None) => Box::new(SqliteDriver::reader(path)?),
        (Location::Postgres(url), _) => Box::new(PostgresDriver::reader(url)?),
    })
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(work)
        .map_err(|error| StoreError::Unavailable(format!("cannot start thread {name}: {error}")))
}
