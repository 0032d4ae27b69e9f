//! The queue of bytes between everything that speaks and the one writer.
//!
//! Invariant: messages leave in the order in which they were pushed, each ended by `\n`; who pushes waits
//! while more than `OUTBOX_BYTES_MAX` are queued, so a slow host slows the runs and not the memory.

use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Above this, speakers wait for the writer.
const OUTBOX_BYTES_MAX: usize = 256 * 1024;
/// A buffer that grew beyond this for one giant message is given back.
const SPARE_BYTES_MAX: usize = 4 * OUTBOX_BYTES_MAX;

#[derive(Default)]
pub(crate) struct Outbox {
    queue: Mutex<Queue>,
    filled: Notify,
    drained: Notify,
}

#[derive(Default)]
struct Queue {
    bytes: Vec<u8>,
    /// The writer holds a batch that has not left yet.
    writing: bool,
    closed: bool,
}

/// The host is gone; nothing more can be said.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the host closed the connection")]
pub(crate) struct Closed;

impl Outbox {
    /// Appends one message when there is room. `write` gives the message without its line end.
    pub(crate) async fn push(&self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Closed> {
        // Lets the writer have its turn even when a run speaks in a tight loop.
        tokio::task::consume_budget().await;
        self.wait_while(|queue| queue.bytes.len() > OUTBOX_BYTES_MAX).await;
        self.push_now(write)
    }

    /// Appends without waiting: for what is small and must not be lost, such as giving up a call.
    pub(crate) fn push_now(&self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Closed> {
        let mut queue = self.lock();
        if queue.closed {
            return Err(Closed);
        }
        let before = queue.bytes.len();
        write(&mut queue.bytes);
        if queue.bytes.len() > before {
            queue.bytes.push(b'\n');
        }
        drop(queue);
        self.filled.notify_one();
        Ok(())
    }

    /// Swaps all that is queued into `batch`; false when the queue is closed and empty.
    pub(crate) async fn take(&self, batch: &mut Vec<u8>) -> bool {
        batch.clear();
        if batch.capacity() > SPARE_BYTES_MAX {
            *batch = Vec::new();
        }
        loop {
            {
                let mut queue = self.lock();
                queue.writing = !queue.bytes.is_empty();
                std::mem::swap(&mut queue.bytes, batch);
                let open = queue.writing || !queue.closed;
                drop(queue);
                self.drained.notify_waiters();
                if !batch.is_empty() || !open {
                    return open;
                }
            }
            self.filled.notified().await;
        }
    }

    /// Waits until all that was pushed has been written.
    pub(crate) async fn flush(&self) {
        self.wait_while(|queue| queue.writing || !queue.bytes.is_empty()).await;
    }

    /// Refuses what comes from now on; what is queued still leaves.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
        self.drained.notify_waiters();
    }

    /// A closed queue is never waited for.
    async fn wait_while(&self, condition: impl Fn(&Queue) -> bool) {
        let holds = || {
            let queue = self.lock();
            condition(&queue) && !queue.closed
        };
        while holds() {
            let mut drained = std::pin::pin!(self.drained.notified());
            drained.as_mut().enable();
            if holds() {
                drained.await;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[tokio::test]
    async fn who_speaks_waits_while_the_queue_is_full_and_goes_on_when_it_is_drained() {
        let outbox = Outbox::default();
        let mut batch = Vec::new();
        let mebibyte = vec![b'x'; 1024 * 1024];
        let speak = || outbox.push(|buffer| buffer.extend_from_slice(&mebibyte));
        assert_eq!(speak().await, Ok(()));
        let mut waiting = std::pin::pin!(speak());
        assert_eq!(waiting.as_mut().now_or_never(), None);

        assert!(outbox.take(&mut batch).await);
        assert_eq!(batch.len(), mebibyte.len() + 1);
        assert_eq!(waiting.await, Ok(()));
    }

    #[tokio::test]
    async fn a_flush_waits_until_the_writer_has_come_back_for_more() {
        let outbox = Outbox::default();
        let mut batch = Vec::new();
        outbox.push_now(|buffer| buffer.push(b'1')).unwrap();
        let mut flush = std::pin::pin!(outbox.flush());
        assert_eq!(flush.as_mut().now_or_never(), None);
        assert!(outbox.take(&mut batch).await);
        assert_eq!(flush.as_mut().now_or_never(), None);
        assert_eq!(outbox.take(&mut batch).now_or_never(), None);
        assert_eq!(flush.now_or_never(), Some(()));
    }

    #[tokio::test]
    async fn a_closed_queue_gives_what_it_holds_and_takes_nothing() {
        let outbox = Outbox::default();
        let mut batch = Vec::new();
        outbox.push_now(|buffer| buffer.extend_from_slice(b"last")).unwrap();
        outbox.close();
        assert_eq!(outbox.push(|buffer| buffer.push(b'x')).await, Err(Closed));
        assert!(outbox.take(&mut batch).await);
        assert_eq!(batch, b"last\n");
        assert!(!outbox.take(&mut batch).await);
    }
}
