//! Pins: bytes whose rows are about to be written are not collected.
//!
//! Invariant: bytes are pinned by any number of uploads or claimed by one collection, never both.

use greenroom_objects::ObjectId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock};

#[derive(Debug, Default)]
pub(super) struct Pins {
    by_id: Mutex<HashMap<ObjectId, Arc<RwLock<()>>>>,
}

#[derive(Debug)]
pub(super) struct Pin {
    _held: Held<OwnedRwLockReadGuard<()>>,
}

#[derive(Debug)]
pub(super) struct Claim {
    _held: Held<OwnedRwLockWriteGuard<()>>,
}

/// A guard whose lock is removed with its last holder.
#[derive(Debug)]
struct Held<G> {
    guard: Option<G>,
    id: ObjectId,
    pins: Arc<Pins>,
}

impl Pins {
    /// Waits for a collection of these bytes, then prevents the next one.
    pub(super) async fn pin(self: &Arc<Self>, id: ObjectId) -> Pin {
        let lock = self.lock_of(id);
        let guard = Some(lock.read_owned().await);
        Pin { _held: Held { guard, id, pins: Arc::clone(self) } }
    }

    /// Prevents uploads of these bytes, unless one is in progress.
    pub(super) fn claim(self: &Arc<Self>, id: ObjectId) -> Option<Claim> {
        let guard = Some(self.lock_of(id).try_write_owned().ok()?);
        Some(Claim { _held: Held { guard, id, pins: Arc::clone(self) } })
    }

    fn lock_of(&self, id: ObjectId) -> Arc<RwLock<()>> {
        Arc::clone(self.all().entry(id).or_default())
    }

    fn all(&self) -> MutexGuard<'_, HashMap<ObjectId, Arc<RwLock<()>>>> {
        self.by_id.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<G> Drop for Held<G> {
    fn drop(&mut self) {
        let mut all = self.pins.all();
        self.guard.take();
        // A task that waits for the lock has a handle of its own.
        if all.get(&self.id).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            all.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn bytes_are_pinned_by_many_or_claimed_by_one() {
        let pins = Arc::<Pins>::default();
        let (id, other) = (ObjectId::of(b"a"), ObjectId::of(b"b"));
        let one = pins.pin(id).await;
        let another = pins.pin(id).await;
        assert!(pins.claim(id).is_none());
        assert!(pins.claim(other).is_some());
        drop(one);
        assert!(pins.claim(id).is_none());
        drop(another);
        let claim = pins.claim(id);
        assert!(claim.is_some());
        assert!(pins.claim(id).is_none());
        let waiting = pins.pin(id);
        tokio::pin!(waiting);
        assert!(futures_poll(waiting.as_mut()).await.is_none());
        drop(claim);
        drop(waiting.await);
        assert!(pins.all().is_empty(), "locks without a holder are removed");
    }

    /// Polls a future once.
    async fn futures_poll<F: Future + Unpin>(mut future: F) -> Option<F::Output> {
        std::future::poll_fn(|context| {
            std::task::Poll::Ready(match std::pin::Pin::new(&mut future).poll(context) {
                std::task::Poll::Ready(output) => Some(output),
                std::task::Poll::Pending => None,
            })
        })
        .await
    }
}
