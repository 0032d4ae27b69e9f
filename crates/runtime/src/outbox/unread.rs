//! Finds what a runner has not read yet, and takes it back.
//!
//! Invariant: no byte of a frame that is taken back has been or will be read; everything else is still read,
//! in order. This holds because each byte of a pipe goes to one reader, and one read empties the pipe.

use super::{Inner, Outbox};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use std::io::{self, Read};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;
use tokio::net::unix::pipe;

/// Capacity of a pipe, which is never enlarged: anything further back has been read.
const PIPE_BYTES: u64 = 64 * 1024;

/// Frames that can be taken back, in the order of writing.
#[derive(Debug, Default)]
pub(super) struct Marks(VecDeque<Mark>);

#[derive(Debug)]
struct Mark {
    number: i64,
    /// Position in everything ever written.
    span: Range<u64>,
}

impl Marks {
    pub(super) fn push(&mut self, number: i64, at: u64, len: usize) {
        self.0.push_back(Mark { number, span: at..at + len as u64 });
    }

    /// Drops frames that must have been read, once this many bytes are written.
    pub(super) fn forget_read(&mut self, sent: u64) {
        while self.0.front().is_some_and(|mark| mark.span.start + PIPE_BYTES < sent) {
            self.0.pop_front();
        }
    }

    /// Frames of which nothing was read, if everything before `place` was.
    fn from(&self, place: u64) -> Vec<i64> {
        let unread = self.0.iter().filter(|mark| mark.span.start >= place);
        unread.map(|mark| mark.number).collect()
    }

    /// Removes all unread frames, or only one; the others move up.
    fn take_from(&mut self, place: u64, only: Option<i64>) -> Vec<Mark> {
        let mut taken = Vec::new();
        let mut gone = 0;
        for mut mark in std::mem::take(&mut self.0) {
            let is_wanted = only.is_none_or(|number| number == mark.number);
            if is_wanted && mark.span.start >= place {
                gone += mark.span.end - mark.span.start;
                taken.push(mark);
            } else {
                mark.span = mark.span.start - gone..mark.span.end - gone;
                self.0.push_back(mark);
            }
        }
        taken
    }
}

impl Outbox {
    /// The first marked frame that the runner has not begun to read.
    pub(crate) fn first_unread(&self) -> Option<i64> {
        self.lock().unread().first().copied()
    }

    /// Takes back the marked frames of which nothing was read, or only one; returns their numbers.
    pub(crate) fn take_back(&self, only: Option<i64>) -> Vec<i64> {
        let mut inner = self.lock();
        let unread = inner.unread();
        if unread.is_empty() || only.is_some_and(|number| !unread.contains(&number)) {
            return Vec::new();
        }
        let unread = match inner.pipe.as_deref().map(empty) {
            None => Bytes::new(),
            Some(Ok(unread)) => unread,
            Some(Err(error)) => {
                tracing::warn!(%error, "cannot take unread frames back from a runner");
                return Vec::new();
            }
        };
        let taken = inner.take_back(unread, only);
        if !inner.closed {
            // A broken pipe shows at the next write.
            let _ = inner.write();
        }
        let is_left = !inner.queue.is_empty();
        drop(inner);
        if is_left {
            self.queued.notify_one();
        }
        taken
    }
}

impl Inner {
    /// The numbers of the marked frames that are unread now.
    fn unread(&self) -> Vec<i64> {
        match self.marks.0.is_empty() {
            true => Vec::new(),
            false => self.marks.from(self.place()),
        }
    }

    /// The position up to which the runner has read.
    fn place(&self) -> u64 {
        let unread = match self.pipe.as_deref().map(|pipe| rustix::io::ioctl_fionread(pipe.as_fd()))
        {
            Some(Ok(unread)) => unread,
            _ => 0,
        };
        self.sent.saturating_sub(unread)
    }

    /// `unread` was written, and comes before the queue.
    fn take_back(&mut self, unread: Bytes, only: Option<i64>) -> Vec<i64> {
        self.sent -= unread.len() as u64;
        let taken = self.marks.take_from(self.sent, only);
        let mut left = VecDeque::new();
        let mut at = self.sent;
        for piece in std::iter::once(unread).chain(std::mem::take(&mut self.queue)) {
            let span = at..at + piece.len() as u64;
            at = span.end;
            left.extend(without(&piece, span, &taken));
        }
        self.bytes = left.iter().map(Bytes::len).sum();
        self.queue = left;
        taken.into_iter().map(|mark| mark.number).collect()
    }
}

/// The parts of a piece outside of these frames.
fn without(piece: &Bytes, span: Range<u64>, taken: &[Mark]) -> Vec<Bytes> {
    let within = |place: u64| (place.clamp(span.start, span.end) - span.start) as usize;
    let mut parts = Vec::new();
    let mut from = 0;
    for mark in taken {
        parts.push(piece.slice(from..within(mark.span.start)));
        from = within(mark.span.end);
    }
    parts.push(piece.slice(from..));
    parts.retain(|part| !part.is_empty());
    parts
}

/// Reads everything in a pipe from its other end.
fn empty(pipe: &pipe::Sender) -> io::Result<Bytes> {
    let size = rustix::pipe::fcntl_getpipe_size(pipe.as_fd())?;
    let path = format!("/proc/self/fd/{}", pipe.as_fd().as_raw_fd());
    let nonblocking = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let mut end = std::fs::OpenOptions::new().read(true).custom_flags(nonblocking).open(path)?;
    let mut unread = BytesMut::zeroed(size);
    let len = match end.read(&mut unread) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
        read => read?,
    };
    unread.truncate(len);
    Ok(unread.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn pipe() -> (Outbox, pipe::Receiver) {
        let (sender, receiver) = pipe::pipe().unwrap();
        sender.writable().await.unwrap();
        (Outbox::new(1 << 20, Some(sender)), receiver)
    }

    fn line(letter: char, len: usize) -> Bytes {
        Bytes::from(format!("{}\n", letter.to_string().repeat(len - 1)))
    }

    fn read(receiver: &pipe::Receiver, len: usize) -> String {
        let mut text = vec![0; len];
        let len = match receiver.try_read(&mut text) {
            Ok(len) => len,
            Err(error) => {
                assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
                0
            }
        };
        String::from_utf8(text[..len].to_vec()).unwrap()
    }

    /// The runner may stop reading at any byte.
    #[tokio::test]
    async fn what_was_not_begun_is_taken_back_and_the_rest_is_read_as_it_was_written() {
        for already in 0..=20 {
            let (outbox, receiver) = pipe().await;
            outbox.push_marked(1, line('a', 4)).unwrap();
            outbox.push(line('b', 4)).unwrap();
            outbox.push_marked(2, line('c', 4)).unwrap();
            outbox.push_marked(3, line('d', 4)).unwrap();
            outbox.push(line('e', 4)).unwrap();
            receiver.readable().await.unwrap();
            let mut text = read(&receiver, already);
            let (numbers, whole) = match already {
                0 => (vec![1, 2, 3], "bbb\neee\n"),
                1..=8 => (vec![2, 3], "aaa\nbbb\neee\n"),
                9..=12 => (vec![3], "aaa\nbbb\nccc\neee\n"),
                _ => (vec![], "aaa\nbbb\nccc\nddd\neee\n"),
            };
            assert_eq!(outbox.first_unread(), numbers.first().copied(), "{already} read");
            assert_eq!(outbox.take_back(None), numbers, "{already} read");
            assert_eq!(outbox.first_unread(), None);
            assert_eq!(outbox.take_back(None), [0_i64; 0]);
            outbox.push(line('f', 4)).unwrap();
            text += &read(&receiver, 100);
            assert_eq!(text, format!("{whole}fff\n"), "{already} read");
        }
    }

    #[tokio::test]
    async fn what_the_pipe_has_no_room_for_is_taken_back_too() {
        let (outbox, receiver) = pipe().await;
        outbox.push_marked(1, line('a', 60_000)).unwrap();
        outbox.push_marked(2, line('b', 60_000)).unwrap();
        outbox.push(line('c', 4)).unwrap();
        outbox.push_marked(3, line('d', 60_000)).unwrap();
        receiver.readable().await.unwrap();
        assert_eq!(read(&receiver, 10), "a".repeat(10));
        assert_eq!(outbox.take_back(None), [2, 3]);
        let mut left = String::new();
        let read_all = async {
            while !left.ends_with("ccc\n") {
                receiver.readable().await.unwrap();
                left += &read(&receiver, 200_000);
            }
        };
        tokio::select! {
            () = read_all => {}
            over = outbox.write_queued() => panic!("{over:?}"),
        }
        assert_eq!(left, format!("{}\nccc\n", "a".repeat(60_000 - 11)));
    }

    #[tokio::test]
    async fn a_runner_that_is_gone_leaves_what_it_has_not_read() {
        let (outbox, receiver) = pipe().await;
        outbox.push_marked(1, line('a', 8)).unwrap();
        outbox.push_marked(2, line('b', 8)).unwrap();
        receiver.readable().await.unwrap();
        assert_eq!(read(&receiver, 8), "aaaaaaa\n");
        drop(receiver);
        // The next write shows that it is gone, and unread frames can still be taken back.
        assert!(outbox.push(line('c', 8)).is_err());
        assert_eq!(outbox.take_back(None), [2]);
    }

    #[tokio::test]
    async fn frames_of_a_transport_with_frames_are_unread_until_they_are_fetched() {
        let outbox = Outbox::new(1 << 20, None);
        outbox.push_marked(1, line('a', 4)).unwrap();
        outbox.push(line('b', 4)).unwrap();
        outbox.push_marked(2, line('c', 4)).unwrap();
        assert_eq!(outbox.next().await.unwrap(), "aaa");
        assert_eq!(outbox.first_unread(), Some(2));
        assert_eq!(outbox.take_back(None), [2]);
        assert_eq!(outbox.next().await.unwrap(), "bbb");
    }

    #[test]
    fn marks_of_frames_that_were_read_are_let_go() {
        let mut marks = Marks::default();
        for number in 0..1000 {
            marks.push(number, number as u64 * 1000, 1000);
        }
        marks.forget_read(1_000_000);
        assert_eq!(marks.0.len(), 65);
        assert_eq!(marks.from(0)[0], 935);
    }
}
