//! Waits for what a runner writes next; where it has been quick, by looking instead of sleeping.
//!
//! Invariant: a look lasts `LOOK` at most, and one in vain ends the looking until the runner has been quick
//! again several times. Waking a core that sleeps can take longer than a whole call.

use rustix::io::Errno;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use tokio::net::unix::pipe;

const LOOK: Duration = Duration::from_micros(80);
/// A runner is quick that writes again within this, the time to wake up for it included.
const QUICK: Duration = Duration::from_micros(250);
/// How often in a row it has to be quick before anyone looks out for it.
const TIMES: u8 = 4;

#[derive(Default)]
pub(crate) struct Lookout {
    quick: u8,
}

impl Lookout {
    /// Reads from a pipe that was just found empty.
    pub(crate) async fn read(
        &mut self,
        pipe: &pipe::Receiver,
        chunk: &mut [u8],
    ) -> io::Result<usize> {
        if self.quick >= TIMES {
            // What has been read is dealt with first: the runner may be waiting for the answer.
            tokio::task::yield_now().await;
            if let Some(read) = look(pipe, chunk) {
                return read;
            }
            self.quick = 0;
        }
        let empty = Instant::now();
        loop {
            pipe.readable().await?;
            match pipe.try_read(chunk) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => {
                    let is_quick = empty.elapsed() < QUICK;
                    self.quick = if is_quick { self.quick.saturating_add(1) } else { 0 };
                    return read;
                }
            }
        }
    }
}

/// Asks the pipe itself: the runtime learns that there is something only where it sleeps.
fn look(pipe: &pipe::Receiver, chunk: &mut [u8]) -> Option<io::Result<usize>> {
    let begun = Instant::now();
    while begun.elapsed() < LOOK {
        match rustix::io::read(pipe.as_fd(), &mut *chunk) {
            Err(Errno::AGAIN) => std::hint::spin_loop(),
            read => return Some(read.map_err(io::Error::from)),
        }
    }
    None
}
