//! Lines from the pipe of a process: as they come, or in beats where the connection wants pauses.
//!
//! Invariant: what was read is taken in before more is read; a pipe that fails has ended.

use super::Reader;
use crate::lines::{Line, Lines};
use crate::lookout::Lookout;
use rustix::io::Errno;
use std::io;
use tokio::net::unix::pipe;

/// Read at once; about what a busy runner writes between two looks.
const CHUNK_BYTES: usize = 128 * 1024;
/// Results that may wait to be taken in before every chunk lets others have their turn.
const AHEAD_BYTES_MAX: usize = 1024 * 1024;

impl Reader {
    /// Reads lines until the pipe ends.
    pub(crate) async fn read_pipe(mut self, mut pipe: pipe::Receiver) {
        let mut lines = Lines::new(self.connection.limits.line_bytes_max);
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut lookout = Lookout::default();
        loop {
            let read = match pipe.try_read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    pipe = match self.read_in_beats(pipe, &mut lines, &mut chunk).await {
                        Ok(pipe) => pipe,
                        Err(_) => return,
                    };
                    lookout.read(&pipe, &mut chunk).await
                }
                read => read,
            };
            match read {
                Ok(0) => return,
                Ok(length) => self.take_chunk(&mut lines, &chunk[..length]).await,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// Reads what has gathered, for as long as the connection wants pauses and something comes. The runtime does
    /// not watch the pipe meanwhile: everything that is written would wake it.
    async fn read_in_beats(
        &mut self,
        pipe: pipe::Receiver,
        lines: &mut Lines,
        chunk: &mut [u8],
    ) -> io::Result<pipe::Receiver> {
        let Some(mut pause) = self.connection.pause() else { return Ok(pipe) };
        let pipe = pipe.into_nonblocking_fd()?;
        loop {
            tokio::time::sleep(pause).await;
            let mut has_come = false;
            // To the end: a runner that writes much is not to wait for the next beat.
            loop {
                match rustix::io::read(&pipe, &mut *chunk) {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Ok(length) => self.take_chunk(lines, &chunk[..length]).await,
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => continue,
                    Err(error) => return Err(error.into()),
                }
                has_come = true;
            }
            match self.connection.pause().filter(|_| has_come) {
                Some(next) => pause = next,
                None => return pipe::Receiver::from_owned_fd_unchecked(pipe),
            }
        }
    }

    async fn take_chunk(&mut self, lines: &mut Lines, chunk: &[u8]) {
        lines.feed(chunk, |line| match line {
            Line::Whole(bytes) => self.take(bytes),
            Line::TooLong(head) => self.too_long("a line that is too long", head),
        });
        self.announce();
        if self.connection.waiting_bytes() > AHEAD_BYTES_MAX {
            // Whoever takes the results in may have to share this thread.
            tokio::task::yield_now().await;
        } else {
            tokio::task::coop::consume_budget().await;
        }
    }
}
