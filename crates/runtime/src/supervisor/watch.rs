//! Watches a running process and measures its tree.
//!
//! Invariant: returns within one tick once the process has ended, a limit is exceeded or the host is gone.

use super::control::{self, Word};
use super::job::{Ended, Job};
use super::meter::Meter;
use super::tree;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, WaitStatus, pidfd_open};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// How often the tree is measured, unless measuring takes long.
const TICK: Duration = Duration::from_millis(100);
/// At first fork bombs are detected within 10 ms: most start immediately, and few processes are killed
/// faster.
const TICK_AT_FIRST: Duration = Duration::from_millis(10);
const FIRST_TICKS: u32 = 50;
/// The highest priority.
const FIRST: i32 = -20;
/// Measuring processes may take one part in this many of a processor.
const PAUSE_PER_MEASURE: u32 = 20;
/// On a busy machine most of the time that a measure takes is waiting; it must not postpone the next for long.
const PAUSE_MAX: Duration = Duration::from_millis(400);

/// Returns why it ended, as a clause about the process, and how.
pub(super) fn until_over(job: &Job, runner: Pid, mut meter: Meter) -> (String, Ended) {
    // Held open so that the kernel keeps the entry that the runner's sandbox refers to.
    let _proc_entry = std::fs::File::open(format!("/proc/{}", runner.as_raw_pid()));
    // Where it is allowed, this process takes precedence over the thousands that a runner may start. It uses
    // little CPU.
    let _ = rustix::process::setpriority_process(None, FIRST);
    let exit = pidfd_open(runner, PidfdFlags::empty()).ok();
    let (mut pause, mut ticks) = (TICK_AT_FIRST, 0_u32);
    loop {
        wait_for_news(exit.as_ref().map(|pidfd| pidfd.as_fd()), pause);
        match control::listen() {
            Word::HostGone => return ("was stopped with the host".to_owned(), Ended::Stopped),
            Word::Terminate => tree::signal_all(Signal::TERM),
            Word::Nothing => {}
        }
        if let Some(status) = tree::reap(Some(runner)) {
            return describe(status);
        }
        if let Some(broken) = meter.exceeded(job) {
            return (broken, Ended::Stopped);
        }
        ticks = ticks.saturating_add(1);
        let tick = if ticks < FIRST_TICKS { TICK_AT_FIRST } else { TICK };
        pause = tick.max((meter.looked_for * PAUSE_PER_MEASURE).min(PAUSE_MAX));
    }
}

fn wait_for_news(exit: Option<BorrowedFd<'_>>, pause: Duration) {
    let control = std::io::stdin();
    let mut descriptors = vec![PollFd::new(&control, PollFlags::IN)];
    if let Some(exit) = &exit {
        descriptors.push(PollFd::new(exit, PollFlags::IN));
    }
    // After an interrupted wait the caller checks everything anyway.
    let pause = Timespec::try_from(pause).ok();
    let _ = poll(&mut descriptors, pause.as_ref());
}

fn describe(status: WaitStatus) -> (String, Ended) {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => (format!("exited with code {code}"), Ended::Exited(code)),
        (None, Some(signal)) => (format!("was killed by signal {signal}"), Ended::Killed(signal)),
        (None, None) => ("ended".to_owned(), Ended::Stopped),
    }
}
