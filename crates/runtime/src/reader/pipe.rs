//! Lines from the pipe of a process: as they come, or in batches while reads are delayed.
//!
//! Invariant: what was read is taken in before more is read; a pipe that fails has ended.

use super::Reader;
use crate::lines::{Line, Lines};
use rustix::io::Errno;
use std::io;
use tokio::net::unix::pipe;

/// Bytes per read; about what a busy runner writes between two reads.
const CHUNK_BYTES: usize = 128 * 1024;
/// Above this many bytes of unconsumed results the reader yields after every chunk.
const AHEAD_BYTES_MAX: usize = 1024 * 1024;

impl Reader {
    /// Reads lines until the pipe ends.
    pub(crate) async fn read_pipe(mut self, mut pipe: pipe::Receiver) {
        let mut lines = Lines::new(self.connection.limits.configured.line_bytes);
        let mut chunk = vec![0; CHUNK_BYTES];
        loop {
            match pipe.try_read(&mut chunk) {
                Ok(0) => return,
                Ok(length) => self.take_chunk(&mut lines, &chunk[..length]).await,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    pipe = match self.read_in_batches(pipe, &mut lines, &mut chunk).await {
                        Ok(pipe) => pipe,
                        Err(_) => return,
                    };
                    if pipe.readable().await.is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// Reads after each delay what the runner has written, until there is no delay or nothing was written. The
    /// pipe is not registered with the reactor meanwhile: every write would wake it.
    async fn read_in_batches(
        &mut self,
        pipe: pipe::Receiver,
        lines: &mut Lines,
        chunk: &mut [u8],
    ) -> io::Result<pipe::Receiver> {
        let Some(mut delay) = self.connection.read_delay() else { return Ok(pipe) };
        let pipe = pipe.into_nonblocking_fd()?;
        loop {
            tokio::time::sleep(delay).await;
            let mut has_read = false;
            // Until the pipe is empty: a runner that writes much must not wait for the next batch.
            loop {
                match rustix::io::read(&pipe, &mut *chunk) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(length) => self.take_chunk(lines, &chunk[..length]).await,
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => continue,
                    Err(error) => return Err(error.into()),
                }
                has_read = true;
            }
            match self.connection.read_delay().filter(|_| has_read) {
                Some(next) => delay = next,
                None => return pipe::Receiver::from_owned_fd_unchecked(pipe),
            }
        }
    }

    async fn take_chunk(&mut self, lines: &mut Lines, chunk: &[u8]) {
        lines.feed(chunk, |line| match line {
            Line::Whole(bytes) => self.take(bytes),
            Line::TooLong(head) => self.too_long("a line that is too long", head),
        });
        self.router.announce();
        if self.connection.waiting_bytes() > AHEAD_BYTES_MAX {
            // The tasks that consume the results may share this thread.
            tokio::task::yield_now().await;
        } else {
            tokio::task::coop::consume_budget().await;
        }
    }
}
