//! Frames to a runner, in order: written immediately while the pipe has room, else queued.
//!
//! Invariant: pushing never waits; at most `bytes_max` bytes are queued, or one frame.

mod unread;

use bytes::{Buf, Bytes};
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::unix::pipe;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use unread::Marks;

#[derive(Debug)]
pub(crate) struct Outbox {
    inner: Mutex<Inner>,
    queued: Notify,
    /// Notified when the queue has shrunk enough for streams to continue.
    drained: Notify,
    /// Ends a writer that waits for room in the pipe.
    over: CancellationToken,
    bytes_max: usize,
    is_for_pipe: bool,
}

#[derive(Debug)]
struct Inner {
    queue: VecDeque<Bytes>,
    bytes: usize,
    /// Bytes written so far.
    sent: u64,
    marks: Marks,
    pipe: Option<Arc<pipe::Sender>>,
    closed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotSent {
    #[error("it does not read its input")]
    Full,
    #[error("its input is closed")]
    Closed,
}

/// Above this many queued bytes streams wait: the rest is reserved for answers and runs.
const STREAM_BYTES_MAX: usize = 1 << 20;
/// Frames per write.
const FRAMES_PER_WRITE: usize = 64;

impl Outbox {
    /// With a pipe, frames are lines of a byte stream; without, the caller takes them with `next`.
    pub(crate) fn new(bytes_max: usize, pipe: Option<pipe::Sender>) -> Self {
        let (is_for_pipe, pipe) = (pipe.is_some(), pipe.map(Arc::new));
        let marks = Marks::default();
        let inner = Inner { queue: VecDeque::new(), bytes: 0, sent: 0, marks, pipe, closed: false };
        Self {
            inner: Mutex::new(inner),
            queued: Notify::new(),
            drained: Notify::new(),
            over: CancellationToken::new(),
            bytes_max,
            is_for_pipe,
        }
    }

    /// Whether the other end is a process with a pipe.
    pub(crate) fn is_for_pipe(&self) -> bool {
        self.is_for_pipe
    }

    /// `frame` ends with a newline.
    pub(crate) fn push(&self, frame: Bytes) -> Result<(), NotSent> {
        self.push_as(None, frame)
    }

    /// Like `push`, for a frame that can be taken back until it is read.
    pub(crate) fn push_marked(&self, number: i64, frame: Bytes) -> Result<(), NotSent> {
        self.push_as(Some(number), frame)
    }

    fn push_as(&self, number: Option<i64>, frame: Bytes) -> Result<(), NotSent> {
        let mut inner = self.lock();
        if inner.closed {
            return Err(NotSent::Closed);
        }
        if inner.bytes > 0 && inner.bytes + frame.len() > self.bytes_max {
            return Err(NotSent::Full);
        }
        if let Some(number) = number {
            let at = inner.sent + inner.bytes as u64;
            inner.marks.push(number, at, frame.len());
        }
        inner.bytes += frame.len();
        inner.queue.push_back(frame);
        if inner.queue.len() == 1 && inner.pipe.is_some() {
            inner.write().map_err(|_| NotSent::Closed)?;
        }
        if !inner.queue.is_empty() {
            drop(inner);
            self.queued.notify_one();
        }
        Ok(())
    }

    /// Waits until most queued bytes are written, or the outbox is closed.
    pub(crate) async fn room_for_items(&self) {
        loop {
            let drained = self.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            match self.lock() {
                inner if inner.closed || inner.bytes <= STREAM_BYTES_MAX => return,
                _ => {}
            }
            drained.await;
        }
    }

    /// Writes queued frames whenever the pipe has room; returns when the outbox is closed.
    pub(crate) async fn write_queued(&self) -> Result<(), NotSent> {
        loop {
            tokio::select! {
                () = self.over.cancelled() => return Ok(()),
                () = self.queued.notified() => {}
            }
            loop {
                let pipe = match self.lock() {
                    inner if inner.queue.is_empty() => break,
                    inner => inner.pipe.clone().ok_or(NotSent::Closed)?,
                };
                tokio::select! {
                    () = self.over.cancelled() => return Ok(()),
                    room = pipe.writable() => room.map_err(|_| NotSent::Closed)?,
                }
                self.lock().write().map_err(|_| NotSent::Closed)?;
                self.drained.notify_waiters();
            }
        }
    }

    /// The next frame without its newline, for a transport with frames of its own.
    pub(crate) async fn next(&self) -> Option<Bytes> {
        loop {
            {
                let mut inner = self.lock();
                if let Some(mut frame) = inner.queue.pop_front() {
                    inner.bytes -= frame.len();
                    inner.sent += frame.len() as u64;
                    frame.truncate(frame.len() - 1);
                    self.drained.notify_waiters();
                    return Some(frame);
                }
                if inner.closed {
                    return None;
                }
            }
            self.queued.notified().await;
        }
    }

    /// Closes the input: the runner reads end-of-file.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.close();
        drop(inner);
        self.over.cancel();
        self.queued.notify_one();
        self.drained.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Writes as much as the pipe takes now.
    fn write(&mut self) -> io::Result<()> {
        let Some(pipe) = self.pipe.clone() else { return Ok(()) };
        while !self.queue.is_empty() {
            let frames: Vec<IoSlice<'_>> =
                self.queue.iter().take(FRAMES_PER_WRITE).map(|frame| IoSlice::new(frame)).collect();
            match pipe.try_write_vectored(&frames) {
                Ok(written) => self.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => {
                    // The pipe stays open so that unread frames can be taken back.
                    self.closed = true;
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    fn advance(&mut self, mut written: usize) {
        self.bytes -= written;
        self.sent += written as u64;
        self.marks.forget_read(self.sent);
        while let Some(frame) = self.queue.front_mut() {
            if written < frame.len() {
                frame.advance(written);
                return;
            }
            written -= frame.len();
            self.queue.pop_front();
        }
    }

    fn close(&mut self) {
        self.closed = true;
        self.pipe = None;
        self.queue.clear();
        self.bytes = 0;
    }
}
