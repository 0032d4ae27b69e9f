//! The queue of bytes between all senders and the one writer.
//!
//! Invariant: messages leave in the order in which they were pushed, each terminated by `\n`; senders wait while more
//! than `OUTBOX_BYTES_MAX` are queued, so a slow host slows the runs instead of growing memory.

use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// Above this, senders wait for the writer.
const OUTBOX_BYTES_MAX: usize = 256 * 1024;
/// A buffer that grew beyond this is freed.
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
    /// The writer is writing a batch.
    writing: bool,
    closed: bool,
}

/// The connection is closed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the host closed the connection")]
pub(crate) struct Closed;

impl Outbox {
    /// Appends one message when there is room. `write` writes the message without line end.
    pub(crate) async fn push(&self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Closed> {
        // Yields to the writer even if a run sends in a tight loop.
        tokio::task::consume_budget().await;
        self.wait_while(|queue| queue.bytes.len() > OUTBOX_BYTES_MAX).await;
        self.push_now(write)
    }

    /// Appends without waiting: for small messages that must not be lost, such as a cancellation.
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

    /// Swaps everything queued into `batch`; false if the queue is closed and empty.
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

    /// Waits until everything pushed was written.
    pub(crate) async fn flush(&self) {
        self.wait_while(|queue| queue.writing || !queue.bytes.is_empty()).await;
    }

    /// Rejects new messages; queued ones are still written.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
        self.drained.notify_waiters();
    }

    /// Does not wait for a closed queue.
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
    async fn senders_wait_while_the_queue_is_full() {
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
    async fn a_flush_waits_for_the_writer() {
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
    async fn a_closed_queue_drains_and_rejects_new_messages() {
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
