//! One session of a runner: a process with a domain tighter than that of the runner which starts it.
//!
//! Invariant: of the runner's folder a session sees its own part only, whatever the runner itself sees; where the domain
//! cannot be entered, the program is not started. The runner describes the session over the socket that it passes.

use super::calls::{self, InternetSockets, Metadata, NamelessMemory, UnixSockets};
use super::job::{Allowed, Network, Way};
use super::landlock;
use super::netns::{self, Link};
use super::sandbox::{self, Plan};
use super::{narrow, stage, system};
use rustix::process::{Pid, Signal, WaitOptions};
use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// What a runner needs to give each of its sessions a view of its own; the sessions have none of it.
pub(super) const CALLS: &[i64] = &[
    libc::SYS_unshare,
    libc::SYS_mount,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_mount_setattr,
];
/// `CLOSE_RANGE_CLOEXEC`.
const CLOSE_AT_EXEC: u32 = 4;

/// What a runner writes to the socket before it closes its half.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Wanted {
    command: Vec<String>,
    dir: PathBuf,
    /// The whole environment.
    env: BTreeMap<String, String>,
    /// The runner's own folder, which is only readable.
    pub(super) own: PathBuf,
    /// Folders of which nothing exists but what is in `write` and `read`.
    pub(super) covered: Vec<PathBuf>,
    pub(super) write: Vec<PathBuf>,
    pub(super) read: Vec<PathBuf>,
    /// Shown as `/tmp` too.
    pub(super) temporary: PathBuf,
    /// Whether it has a network of its own, in which only `listen` leads out.
    isolated: bool,
    /// Addresses that lead to the runner.
    listen: Vec<SocketAddr>,
}

/// Why a session did not start.
#[derive(Debug, Serialize)]
struct Refused {
    error: String,
}

/// Becomes the session described at this descriptor.
pub(super) fn main(socket: &OsStr) -> ExitCode {
    let mut socket = stage::adopt(socket).map(UnixStream::from).ok();
    match start(&mut socket) {
        Ok(ended) => ended,
        Err(error) => {
            // Without a reader there is no runner to report to.
            let _ = socket.map(|socket| serde_json::to_writer(socket, &Refused { error }));
            ExitCode::FAILURE
        }
    }
}

/// Each process closes the socket as soon as it has nothing to say: when all have, the program is running.
fn start(connection: &mut Option<UnixStream>) -> Result<ExitCode, String> {
    let mut socket = connection.as_ref().ok_or("the socket to the runner is missing")?;
    let mut text = Vec::new();
    socket.read_to_end(&mut text).map_err(|error| format!("cannot read it: {error}"))?;
    let wanted: Wanted =
        serde_json::from_slice(&text).map_err(|error| format!("cannot read it: {error}"))?;
    close_descriptors_at_exec()?;
    match namespaces() {
        Ok(()) => {}
        Err(_) if landlock::available(super::Without::default()).knows_scopes() => {
            return become_program(&wanted, Link::default(), HasView::No);
        }
        Err(why) => return Err(format!("this machine cannot keep sessions apart: {why}")),
    }
    // The runner asks the process group to end: this process waits for the program.
    ignore(Signal::TERM);
    match fork()? {
        Some(first) => {
            connection.take();
            let_go_of_streams();
            Ok(wait(first))
        }
        None => first(&wanted, connection),
    }
}

/// The first process in the namespaces of the session: it starts the program, and everything ends with it.
fn first(wanted: &Wanted, connection: &mut Option<UnixStream>) -> Result<ExitCode, String> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| format!("cannot follow the runner: {error}"))?;
    let link = match connection {
        Some(socket) if wanted.isolated => network(wanted, socket)?,
        _ => Link::default(),
    };
    narrow::enter(wanted)?;
    match fork()? {
        Some(program) => {
            connection.take();
            let_go_of_streams();
            Ok(wait(program))
        }
        None => become_program(wanted, link, HasView::Yes),
    }
}

/// A network of its own, whose listeners the runner serves.
fn network(wanted: &Wanted, socket: &UnixStream) -> Result<Link, String> {
    netns::isolate().map_err(|error| format!("it cannot have a network of its own: {error}"))?;
    let listeners = wanted.listen.iter().map(|address| {
        let listener = netns::listen_at(*address);
        let listener =
            listener.map_err(|error| format!("cannot listen at `{address}`: {error}"))?;
        Ok((Way::Forward(*address), listener))
    });
    let listeners = listeners.collect::<Result<Vec<(Way, OwnedFd)>, String>>()?;
    netns::send(socket, &listeners)?;
    Ok(Link { is_isolated: true, ..Link::default() })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HasView {
    Yes,
    No,
}

/// Gives up everything that is not the session's, and becomes the program.
fn become_program(wanted: &Wanted, mut link: Link, view: HasView) -> Result<ExitCode, String> {
    restore(Signal::TERM);
    let network = match (wanted.isolated, link.is_isolated) {
        (false, _) => Network::On,
        (true, _) => Network::Only(Allowed { host: None, list: Vec::new() }),
    };
    if !link.is_isolated {
        link.ports.extend(wanted.listen.iter().map(SocketAddr::port));
    }
    let (program, args) = wanted.command.split_first().ok_or("the session has no command")?;
    std::env::set_current_dir(&wanted.dir)
        .map_err(|error| format!("cannot enter `{}`: {error}", wanted.dir.display()))?;
    let (read, write) = rules(wanted);
    let internet = InternetSockets::of(&network, &link);
    let plan = Plan::of_session(read, write, network);
    calls::bound_capabilities();
    let version = landlock::enforce(&plan, &link)?;
    calls::drop_capabilities()?;
    let has_view = view == HasView::Yes;
    // Abstract names are the network's: in one of its own there are no others.
    let are_own = has_view && (version.knows_scopes() || link.is_isolated);
    let unix = if are_own { UnixSockets::Named } else { UnixSockets::Pairs };
    let metadata = if has_view { Metadata::OfView } else { Metadata::Refused };
    let memory = NamelessMemory::Refused;
    if let Some(unfiltered) = calls::refuse(internet, unix, metadata, memory, &[]) {
        return Err(unfiltered);
    }
    #[expect(clippy::disallowed_methods, reason = "this process becomes the program here")]
    let error = Command::new(program).args(args).env_clear().envs(&wanted.env).exec();
    Err(format!("cannot execute `{program}`: {error}"))
}

/// What Landlock opens: in a view the second wall, without one the only one.
fn rules(wanted: &Wanted) -> (BTreeSet<PathBuf>, BTreeSet<PathBuf>) {
    let hidden: Vec<PathBuf> = wanted.covered.iter().map(|path| sandbox::resolve(path)).collect();
    let named = system::paths().into_iter().chain(wanted.read.iter().cloned());
    let read = named.map(|path| sandbox::resolve(&path));
    let read = read.flat_map(|path| match hidden.iter().any(|folder| path.starts_with(folder)) {
        // Named although what is around it is covered.
        true => vec![path],
        false => sandbox::without_hidden(&path, &hidden),
    });
    let write = wanted.write.iter().chain([&wanted.temporary]);
    let mut write: BTreeSet<PathBuf> = write.map(|path| sandbox::resolve(path)).collect();
    write.extend(narrow::has_temporary().then(|| narrow::TEMPORARY.into()));
    (read.collect(), write)
}

/// Whether a session can have namespaces here. The answer is of a process that ends.
pub(super) fn works() -> Result<(), String> {
    let (mut answer, ours) = UnixStream::pair().map_err(|error| error.to_string())?;
    match fork()? {
        None => {
            drop(answer);
            let tried = try_out();
            let _ = (&ours).write_all(tried.err().unwrap_or_default().as_bytes());
            std::process::exit(0);
        }
        Some(child) => {
            drop(ours);
            let mut why = String::new();
            let read = answer.read_to_string(&mut why).map_err(|error| error.to_string());
            wait(child);
            read?;
            if why.is_empty() { Ok(()) } else { Err(why) }
        }
    }
}

fn try_out() -> Result<(), String> {
    // A change of the user has taken its own files in `/proc` from it.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable);
    namespaces()?;
    match fork()? {
        None => {
            let is_well = narrow::own_processes().is_ok() && netns::isolate().is_ok();
            std::process::exit(i32::from(!is_well));
        }
        Some(child) if wait(child) == ExitCode::SUCCESS => Ok(()),
        Some(_) => Err("a process cannot have a `/proc` and a network of its own".to_owned()),
    }
}

/// Enters namespaces in which this process may mount; its next child is the first process there.
fn namespaces() -> Result<(), String> {
    let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    let flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNS | UnshareFlags::NEWPID;
    netns::unshare(flags).map_err(|error| format!("cannot create namespaces: {error}"))?;
    for (file, text) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        let written = std::fs::write(Path::new("/proc/self").join(file), text);
        written.map_err(|error| format!("cannot write `/proc/self/{file}`: {error}"))?;
    }
    Ok(())
}

fn fork() -> Result<Option<Pid>, String> {
    #[expect(unsafe_code, reason = "the library of the system has no safe way to fork")]
    // SAFETY: this process has one thread.
    let child = unsafe { libc::fork() };
    match child {
        0 => Ok(None),
        child => {
            let pid = Pid::from_raw(child).filter(|_| child > 0);
            let failed = || format!("cannot fork: {}", std::io::Error::last_os_error());
            pid.map(Some).ok_or_else(failed)
        }
    }
}

/// Without `/proc`, of which a runner in Landlock sees its own part only.
fn close_descriptors_at_exec() -> Result<(), String> {
    #[expect(unsafe_code, reason = "rustix has no `close_range`")]
    // SAFETY: it sets a flag of the descriptors of this process and closes none.
    let result = unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, CLOSE_AT_EXEC) };
    match result {
        0 => Ok(()),
        _ => Err(format!("cannot close descriptors: {}", std::io::Error::last_os_error())),
    }
}

/// The streams belong to the program: who reads them sees the end when it ends.
fn let_go_of_streams() {
    let nothing = File::options().read(true).write(true).open("/dev/null");
    if let Ok(nothing) = nothing {
        let _ = rustix::stdio::dup2_stdin(&nothing);
        let _ = rustix::stdio::dup2_stdout(&nothing);
    }
}

/// Waits for this child, reaps all others, and ends as it did.
fn wait(child: Pid) -> ExitCode {
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == child => {
                let status = std::process::ExitStatus::from_raw(status.as_raw());
                let signal = status.signal().map(|signal| 128 + signal);
                let code = status.code().or(signal).and_then(|code| u8::try_from(code).ok());
                return ExitCode::from(code.unwrap_or(1));
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return ExitCode::FAILURE,
        }
    }
}

fn ignore(signal: Signal) {
    handle(signal, libc::SIG_IGN);
}

fn restore(signal: Signal) {
    handle(signal, libc::SIG_DFL);
}

fn handle(signal: Signal, handler: libc::sighandler_t) {
    #[expect(
        unsafe_code,
        reason = "rustix leaves handlers of signals to the library of the system"
    )]
    // SAFETY: neither of the two handlers is code of this process.
    unsafe {
        libc::signal(signal.as_raw(), handler);
    }
}
