//! The open sessions of this runner.
//!
//! Invariant: a conversation has at most one session, and a session one run at a time. A session ends when it is idle
//! for too long, when another one needs its room, or when it uses too much memory.

use crate::process::{kill_marked, memory_mb};
use crate::session::Session;
use crate::settings::Settings;
use crate::workspace::Owner;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedMutexGuard, OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;

/// How often idle sessions and memory are looked at.
const WATCH_INTERVAL: Duration = Duration::from_secs(5);

pub(crate) struct Sessions {
    slots: Mutex<HashMap<Owner, Arc<Slot>>>,
    room: Arc<Semaphore>,
    idle_max: Duration,
    memory_mb_max: u64,
    is_watched: AtomicBool,
    pub(crate) tasks: TaskTracker,
}

/// The place of one conversation.
pub(crate) struct Slot {
    session: Arc<tokio::sync::Mutex<Option<Session>>>,
    used_at: Mutex<Instant>,
    /// The mark of its processes, and whether they were killed for their memory.
    mark: String,
    over_memory: AtomicBool,
}

/// The session of a conversation, held by one run.
pub(crate) type Held = OwnedMutexGuard<Option<Session>>;

impl Sessions {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            slots: Mutex::default(),
            room: Arc::new(Semaphore::new(settings.sessions_max)),
            idle_max: Duration::from_secs(settings.idle_s),
            memory_mb_max: settings.session_memory_mb,
            is_watched: AtomicBool::new(false),
            tasks: TaskTracker::new(),
        }
    }

    pub(crate) fn slot(self: &Arc<Self>, owner: &Owner) -> Arc<Slot> {
        if !self.is_watched.swap(true, Ordering::AcqRel) {
            self.tasks.spawn(watch(Arc::clone(self)));
        }
        let slot = || {
            Arc::new(Slot {
                session: Arc::default(),
                used_at: Mutex::new(Instant::now()),
                mark: owner.id(),
                over_memory: AtomicBool::new(false),
            })
        };
        Arc::clone(self.lock().entry(owner.clone()).or_insert_with(slot))
    }

    /// Room for one more session: the one that is unused for the longest time ends if there is none.
    pub(crate) async fn room(&self) -> OwnedSemaphorePermit {
        loop {
            if let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() {
                return permit;
            }
            let mut idle: Vec<Arc<Slot>> = self.lock().values().cloned().collect();
            idle.sort_by_key(|slot| slot.used_at());
            let ended = idle.iter().find_map(|slot| slot.take_idle());
            match ended {
                Some((_held, session)) => session.stop().await,
                // All are in use: one of them is free after its run.
                None => {
                    let free = Arc::clone(&self.room).acquire_owned();
                    if let Ok(Ok(permit)) = tokio::time::timeout(WATCH_INTERVAL, free).await {
                        return permit;
                    }
                }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Owner, Arc<Slot>>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets conversations without a session that no run uses.
    fn forget(&self) {
        self.lock().retain(|_, slot| {
            let is_empty = slot.session.try_lock().is_ok_and(|session| session.is_none());
            !is_empty || Arc::strong_count(slot) > 1
        });
    }
}

impl Slot {
    /// The session, once no other run has it.
    pub(crate) async fn hold(&self) -> Held {
        let held = Arc::clone(&self.session).lock_owned().await;
        self.over_memory.store(false, Ordering::Release);
        held
    }

    /// Puts a session back.
    pub(crate) fn keep(&self, mut held: Held, session: Session) {
        *self.used_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        *held = Some(session);
    }

    /// Whether its processes were killed because of their memory.
    pub(crate) fn was_over_memory(&self) -> bool {
        self.over_memory.load(Ordering::Acquire)
    }

    fn used_at(&self) -> Instant {
        *self.used_at.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_idle(&self) -> Option<(Held, Session)> {
        let mut held = Arc::clone(&self.session).try_lock_owned().ok()?;
        let session = held.take()?;
        Some((held, session))
    }
}

/// Ends sessions that are idle, dead or too large.
async fn watch(sessions: Arc<Sessions>) {
    loop {
        tokio::time::sleep(WATCH_INTERVAL.min(sessions.idle_max.max(Duration::from_millis(200))))
            .await;
        let slots: Vec<Arc<Slot>> = sessions.lock().values().cloned().collect();
        for slot in &slots {
            let mark = slot.mark.clone();
            let used = tokio::task::spawn_blocking(move || memory_mb(&mark)).await.unwrap_or(0);
            if used > sessions.memory_mb_max {
                eprintln!("session {} uses {used} MiB: stopped", slot.mark);
                slot.over_memory.store(true, Ordering::Release);
                kill_marked(&slot.mark);
            }
            let is_idle = slot.used_at().elapsed() >= sessions.idle_max;
            let Ok(mut held) = slot.session.try_lock() else { continue };
            let is_dead = held.as_mut().is_some_and(|session| session.process.ended().is_some());
            let ended = if is_idle || is_dead { held.take() } else { None };
            // A new session of the conversation would have the same mark.
            if let Some(session) = ended {
                session.stop().await;
            }
            drop(held);
        }
        drop(slots);
        sessions.forget();
    }
}
