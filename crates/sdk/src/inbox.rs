//! What has come of one streaming call and was not read yet.
//!
//! Invariant: items are given in the order in which they came, and then the end; the reader of the
//! connection never waits here. More than `INBOX_BYTES_MAX` unread bytes end the stream as overflowed.

use crate::message::Answer;
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Bytes of items that may wait for their reader.
const INBOX_BYTES_MAX: usize = 4 * 1024 * 1024;

#[derive(Default)]
pub(crate) struct Inbox {
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    items: VecDeque<Box<RawValue>>,
    bytes: usize,
    end: Option<End>,
    waker: Option<Waker>,
}

/// How a stream ended.
pub(crate) enum End {
    Answered(Answer),
    /// Items came faster than they were read.
    Overflowed,
    /// The connection is over.
    Closed,
}

pub(crate) enum Next {
    Item(Box<RawValue>),
    End(End),
}

impl Inbox {
    /// Takes an item; false when there is no room for it, which is the end of the stream.
    pub(crate) fn put(&self, item: &RawValue) -> bool {
        let mut queue = self.lock();
        let bytes = queue.bytes + item.get().len();
        let fits = bytes <= INBOX_BYTES_MAX || queue.items.is_empty();
        if fits {
            queue.bytes = bytes;
            queue.items.push_back(item.to_owned());
        } else {
            queue.end = Some(End::Overflowed);
        }
        wake(queue);
        fits
    }

    pub(crate) fn end(&self, end: End) {
        let mut queue = self.lock();
        queue.end.get_or_insert(end);
        wake(queue);
    }

    /// The next item, or the end once; pending for ever after that.
    pub(crate) fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Next> {
        let mut queue = self.lock();
        if let Some(item) = queue.items.pop_front() {
            queue.bytes -= item.get().len();
            return Poll::Ready(Next::Item(item));
        }
        if let Some(end) = queue.end.take() {
            return Poll::Ready(Next::End(end));
        }
        queue.waker = Some(cx.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake(mut queue: MutexGuard<'_, Queue>) {
    let waker = queue.waker.take();
    drop(queue);
    if let Some(waker) = waker {
        waker.wake();
    }
}
