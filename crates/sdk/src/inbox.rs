//! The unread items of one streaming call.
//!
//! Invariant: items are read in order of arrival, then the end; the reader of the connection never waits here. More
//! than `INBOX_BYTES_MAX` unread bytes end the stream as overflowed.

use crate::message::Answer;
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Limit for unread items.
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

pub(crate) enum End {
    Answered(Answer),
    /// Items arrived faster than they were read.
    Overflowed,
    /// The connection ended.
    Closed,
}

pub(crate) enum Next {
    Item(Box<RawValue>),
    End(End),
}

impl Inbox {
    /// Adds an item; false if there is no room, which ends the stream.
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

    /// The next item, then the end once; pending forever after that.
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
