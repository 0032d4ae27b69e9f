//! Starts a process under its supervisor and ends it.
//!
//! Invariant: dropping a `Process` or its `Control` kills the whole tree, because the supervisor sees the
//! control socket close. A start that is given up is awaited by the tasks, like every process.

use crate::relay::Relay;
use crate::spec::Settings;
use crate::supervisor::job::{Allowed, Ended, Job, Network, Report, TERMINATE};
use crate::supervisor::{Domain, Sandbox};
use crate::tasks::Tasks;
use rustix::fs::{FlockOperation, flock};
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
    sendmsg, socketpair,
};
use rustix::pipe::{PipeFlags, fcntl_setpipe_size, pipe_with};
use std::io::{self, IoSlice, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf, pipe};
use tokio::process::{Child, Command};
use tokio::task::AbortHandle;

/// Capacity of a runner's stdout, so that a busy runner is not blocked by every chunk that the host reads.
const PIPE_BYTES: usize = 256 * 1024;

pub(crate) struct Process {
    pub(crate) stdin: pipe::Sender,
    pub(crate) stdout: pipe::Receiver,
    pub(crate) stderr: pipe::Receiver,
    pub(crate) pid: u32,
    pub(crate) domain: Domain,
    pub(crate) warnings: Vec<String>,
    pub(crate) control: Control,
    pub(crate) reports: Reports,
}

/// Controls the process tree.
pub(crate) struct Control(Mutex<Option<OwnedWriteHalf>>);

/// Reports of the supervisor.
pub(crate) struct Reports {
    lines: Lines<BufReader<OwnedReadHalf>>,
    supervisor: Child,
    /// Serves the network of the process as long as its supervisor runs.
    _relay: Option<RelayTask>,
}

struct RelayTask(AbortHandle);

impl Drop for RelayTask {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The files of one process, unique among all hosts that ever used the folder.
pub(crate) struct ProcessFiles {
    pub(crate) lock: PathBuf,
    pub(crate) private: PathBuf,
}

impl ProcessFiles {
    pub(crate) fn new(run_dir: &Path, name: &str) -> io::Result<Self> {
        let name: String = plain(name).chars().take(40).collect();
        // Random, since the runner sees it: a process id would tell it where the host is.
        let lock = run_dir.join(format!("{name}-{:016x}.lock", getrandom::u64()?));
        Ok(Self { private: lock.with_extension("private"), lock })
    }
}

/// A name that is safe as a file name.
pub(crate) fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect()
}

/// A process whose supervisor has not reported yet. Dropping it kills what was started.
struct Starting {
    reports: Option<Reports>,
    tasks: Tasks,
}

impl Drop for Starting {
    fn drop(&mut self) {
        if let Some(mut reports) = self.reports.take()
            && tokio::runtime::Handle::try_current().is_ok()
        {
            let process = "a process that was given up while it started".to_owned();
            self.tasks.attend(process, async move { reports.gone().await });
        }
    }
}

impl Process {
    pub(crate) async fn start(
        job: Job,
        settings: &Settings,
        tasks: &Tasks,
    ) -> Result<Self, String> {
        let Spawned { stdin, stdout, stderr, control, handover, supervisor } =
            spawn(&job, settings).map_err(|error| format!("cannot start a supervisor: {error}"))?;
        let (read, write) = control.into_split();
        let relay = handover.map(|(allowed, socket)| {
            let relay = Relay::new(job.name.clone(), allowed);
            RelayTask(tasks.spawn(relay.serve(socket)))
        });
        let reports = Reports { lines: BufReader::new(read).lines(), supervisor, _relay: relay };
        let mut starting = Starting { reports: Some(reports), tasks: tasks.clone() };
        let report = match &mut starting.reports {
            Some(reports) => reports.next().await,
            None => None,
        };
        match (report, starting.reports.take()) {
            (Some(Report::Started { pid, domain, warnings }), Some(reports)) => {
                let control = Control(Mutex::new(Some(write)));
                Ok(Self { stdin, stdout, stderr, pid, domain, warnings, control, reports })
            }
            (Some(Report::Failed { message } | Report::Ended { message, .. }), _) => Err(message),
            _ => Err("the supervisor ended without a report".to_owned()),
        }
    }
}

impl Process {
    /// Guarantees that are missing, then everything else that an operator should know.
    pub(crate) fn shortcomings(&self) -> Vec<String> {
        self.domain.missing.iter().chain(&self.warnings).cloned().collect()
    }
}

impl Control {
    /// Asks every process of the tree to end.
    pub(crate) fn terminate(&self) {
        if let Some(control) = &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            // One byte always fits, and a supervisor that is gone has ended the tree.
            let _ = control.try_write(&[TERMINATE]);
        }
    }

    pub(crate) fn kill(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
    }
}

impl Reports {
    /// Waits until the tree is gone; returns why, as a clause, and how.
    pub(crate) async fn ended(&mut self) -> (String, Ended) {
        loop {
            match self.next().await {
                Some(Report::Ended { message, how }) => return (message, how),
                Some(Report::Failed { message }) => return (message, Ended::Stopped),
                Some(Report::Started { .. }) => {}
                None => return ("lost its supervisor".to_owned(), Ended::Stopped),
            }
        }
    }

    /// Waits until the supervisor has cleaned up.
    pub(crate) async fn gone(&mut self) {
        // Its reports have said everything that its exit code could.
        let _ = self.supervisor.wait().await;
    }

    async fn next(&mut self) -> Option<Report> {
        let line = self.lines.next_line().await.ok().flatten()?;
        serde_json::from_str(&line).ok()
    }
}

struct Spawned {
    stdin: pipe::Sender,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
    control: tokio::net::UnixStream,
    /// Brings the listeners of a process that may reach only this.
    handover: Option<(Allowed, OwnedFd)>,
    supervisor: Child,
}

fn spawn(job: &Job, settings: &Settings) -> io::Result<Spawned> {
    std::fs::create_dir_all(&settings.run_dir)?;
    // Locked here and inherited, so that the supervisor never lives without the lock.
    let lock = std::fs::File::create(&job.lock)?;
    flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
    let (ours, theirs) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    let (stdin_read, stdin) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stdout, stdout_write) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stderr, stderr_write) = pipe_with(PipeFlags::CLOEXEC)?;
    // Beyond a user's quota of pipe memory the default capacity has to do.
    let _ = fcntl_setpipe_size(&stdout, PIPE_BYTES);
    let (program, args) = settings.supervisor.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    #[expect(
        clippy::disallowed_methods,
        reason = "the runtime starts runner processes: this is the place"
    )]
    let mut command = Command::new(program);
    command.args(args).env_clear().process_group(0);
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    let supervisor = command
        .stdin(Stdio::from(theirs))
        .stdout(Stdio::from(lock))
        .stderr(Stdio::from(stderr_write))
        .spawn()?;
    let (handover, their_handover) = match &job.network {
        Network::Only(allowed) if job.sandbox != Sandbox::Off => {
            let (ours, theirs) =
                socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
            (Some((allowed.clone(), ours)), Some(theirs))
        }
        _ => (None, None),
    };
    let mut descriptors = vec![stdin_read.as_fd(), stdout_write.as_fd()];
    descriptors.extend(their_handover.as_ref().map(AsFd::as_fd));
    let control = send_job(ours, job, &descriptors)?;
    Ok(Spawned {
        stdin: pipe::Sender::from_owned_fd(stdin)?,
        stdout: pipe::Receiver::from_owned_fd(stdout)?,
        stderr: pipe::Receiver::from_owned_fd(stderr)?,
        control: tokio::net::UnixStream::from_std(control)?,
        handover,
        supervisor,
    })
}

/// Sends the descriptors with the first byte of the job.
fn send_job(
    control: OwnedFd,
    job: &Job,
    descriptors: &[std::os::fd::BorrowedFd<'_>],
) -> io::Result<std::os::unix::net::UnixStream> {
    let mut line = serde_json::to_vec(job)?;
    line.push(b'\n');
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(descriptors));
    let sent = sendmsg(&control, &[IoSlice::new(&line)], &mut ancillary, SendFlags::NOSIGNAL)?;
    let mut control = std::os::unix::net::UnixStream::from(control);
    control.write_all(&line[sent..])?;
    control.set_nonblocking(true)?;
    Ok(control)
}
