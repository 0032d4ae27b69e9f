//! The second stage: the process that restricts itself and then becomes the runner.
//!
//! Invariant: from `exec` on the runner has its own session, only descriptors 0, 1 and 2, only the
//! environment of its job, and in a sandbox nothing but what its plan opens and no capabilities.

use super::calls::{self, InternetSockets, Metadata, NamelessMemory, UnixSockets};
use super::control::Stdio;
use super::domain::{Domain, Sandbox};
use super::job::{Job, Network};
use super::landlock::{self, Version};
use super::mounts::{self, Failure};
use super::netns::{self, Link};
use super::sandbox::Plan;
use super::{EXEC_STAGE, session, user};
use rustix::fs::MemfdFlags;
use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, Resource, Rlimit, Signal};
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Open files of a runner: enough for a busy one, few enough that closing them all stays cheap.
const OPEN_FILES_MAX: u64 = 16_384;
/// Processes and threads of all runners of the user.
const USER_PROCESSES_MAX: u64 = 8192;

/// Address space that stacks and allocators reserve but do not use.
const DATA_SLACK_BYTES: u64 = 256 * 1024 * 1024;

/// The report of the second stage before it becomes the runner.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) error: Option<String>,
    /// Why it cannot have a view of the file system of its own.
    pub(super) no_view: Option<String>,
    pub(super) warnings: Vec<String>,
    pub(super) domain: Domain,
}

/// Starts the second stage, hands it the plan in a nameless file, and waits until it is the runner.
pub(super) fn spawn(job: &Job, plan: &Plan, stdio: &Stdio) -> Result<(Pid, Outcome), String> {
    let text =
        serde_json::to_vec(plan).map_err(|error| format!("cannot write the plan: {error}"))?;
    let no_way = |error: Errno| format!("cannot hand over the plan: {error}");
    // Inherited on purpose; this process has one thread, so no other child can get them.
    let file = rustix::fs::memfd_create("plan", MemfdFlags::empty()).map_err(no_way)?;
    write_all(&file, &text).map_err(no_way)?;
    let (outcome, outcome_write) = rustix::pipe::pipe().map_err(no_way)?;
    let copy = |descriptor: &OwnedFd| {
        descriptor.try_clone().map_err(|error| format!("cannot hand over a stream: {error}"))
    };
    if let Some(handover) = &stdio.handover {
        rustix::io::fcntl_setfd(handover, FdFlags::empty()).map_err(no_way)?;
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "the supervisor starts the runner: this is the place"
    )]
    let mut command = Command::new("/proc/self/exe");
    let child = command
        .args(&job.supervisor_args)
        .arg(EXEC_STAGE)
        .args([&file, &outcome_write].map(|descriptor| descriptor.as_raw_fd().to_string()))
        .args(stdio.handover.as_ref().map(|handover| handover.as_raw_fd().to_string()))
        .env_clear()
        .stdin(copy(&stdio.stdin)?)
        .stdout(copy(&stdio.stdout)?)
        .spawn()
        .map_err(|error| format!("cannot start a process: {error}"))?;
    drop(outcome_write);
    let mut said = Vec::new();
    // Ends when the runner is executed or the stage has failed: either closes the other end.
    File::from(outcome)
        .read_to_end(&mut said)
        .map_err(|error| format!("cannot hear of the start: {error}"))?;
    // A stage that warned and then failed has written twice.
    let outcomes = serde_json::Deserializer::from_slice(&said).into_iter::<Outcome>();
    let outcome = outcomes.map_while(Result::ok).last().unwrap_or_default();
    // Reaped by `tree`, together with everything else that ends below this process.
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    Ok((pid.ok_or("the kernel gave no process id")?, outcome))
}

/// Becomes the runner, or says why it cannot.
pub(super) fn main(plan: &OsStr, outcome: &OsStr, handover: Option<&OsString>) -> ExitCode {
    let descriptors = Path::new("/proc/self/fd");
    let Ok(mut outcome) = File::options().write(true).open(descriptors.join(outcome)) else {
        return ExitCode::FAILURE;
    };
    let error = match become_runner(&descriptors.join(plan), &mut outcome, handover) {
        Ok(Probed) => return ExitCode::SUCCESS,
        Err(message) => Outcome { error: Some(message), ..Outcome::default() },
    };
    // Without a reader there is no supervisor to report to.
    let _ = serde_json::to_writer(outcome, &error);
    ExitCode::FAILURE
}

/// Everything was done except starting the program.
struct Probed;

fn become_runner(
    plan: &Path,
    outcome: &mut File,
    handover: Option<&OsString>,
) -> Result<Probed, String> {
    let plan = std::fs::read(plan).map_err(|error| format!("cannot read the plan: {error}"))?;
    let mut plan: Plan =
        serde_json::from_slice(&plan).map_err(|error| format!("cannot read the plan: {error}"))?;
    rustix::process::setsid().map_err(|error| format!("cannot start a session: {error}"))?;
    limit_resources();
    close_descriptors_at_exec()?;
    let is_on = plan.sandbox != Sandbox::Off;
    let mut said = Outcome::default();
    said.domain.missing.clone_from(&plan.missing);
    let memory = is_on.then(|| limit_memory(&plan));
    match plan.view.as_ref().map(|view| mounts::enter(view, plan.user)) {
        Some(Err(Failure::Changed(why))) => return Err(why),
        Some(Err(Failure::Refused(why))) => {
            said.no_view = Some(why);
            let _ = serde_json::to_writer(outcome, &said);
            return Ok(Probed);
        }
        Some(Ok(())) | None => {}
    }
    let link = match handover.filter(|_| is_on) {
        Some(handover) => netns::enter(&plan.network, adopt(handover)?, plan.without)?,
        None if is_on && plan.network == Network::Off => netns::leave(plan.without),
        None => Link::default(),
    };
    plan.env.extend(link.env.clone());
    if is_on {
        calls::bound_capabilities();
    }
    if let Some(user) = plan.user {
        user::become_user(user)?;
    }
    // After the namespaces: a change of credentials would undo it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| format!("cannot follow the supervisor: {error}"))?;
    if rustix::process::getppid().map(Pid::as_raw_pid) != Some(plan.supervisor) {
        return Err("the supervisor is gone".to_owned());
    }
    std::env::set_current_dir(&plan.dir)
        .map_err(|error| format!("cannot enter `{}`: {error}", plan.dir.display()))?;
    if is_on {
        let sessions = sessions(&plan);
        confine(&plan, link, sessions.as_ref(), &mut said)?;
        apart(&plan, sessions, &mut said.domain)?;
        said.domain.parts.extend(memory.map(str::to_owned));
        said.domain.parts.push(format!("uid:{}", rustix::process::getuid().as_raw()));
        if let Some(refusal) = said.domain.refusal(plan.sandbox) {
            return Err(refusal);
        }
    }
    #[expect(clippy::disallowed_methods, reason = "this process becomes the runner here")]
    let mut command = Command::new(&plan.program);
    command.args(&plan.args).env_clear().envs(&plan.env);
    // A report that cannot be written must not prevent the start.
    let _ = serde_json::to_writer(outcome, &said);
    if plan.probe {
        return Ok(Probed);
    }
    let error = command.exec();
    Err(format!("cannot execute `{}`: {error}", plan.program.display()))
}

/// Gives up, for good, everything that is not part of the process's domain.
fn confine(
    plan: &Plan,
    link: Link,
    sessions: Option<&Result<(), String>>,
    said: &mut Outcome,
) -> Result<(), String> {
    let has_sessions = sessions.is_some_and(Result::is_ok);
    if plan.own_processes && !has_sessions && !mounts::hides_processes() {
        said.domain.missing.push(
            "no `/proc` of its own, which only root can give it: programs do not see themselves there, and \
             processes that left their group end with the runner only"
                .to_owned(),
        );
    }
    let version = match has_sessions {
        // Who is in it cannot mount: each session enters it instead.
        true => landlock::available(plan.without),
        false => landlock::enforce(plan, &link)?,
    };
    calls::drop_capabilities()?;
    let has_view = plan.view.is_some();
    // A view has no socket of other processes, and Landlock keeps the nameless namespace apart.
    let unix = match has_view && version.knows_scopes() {
        true => UnixSockets::Named,
        false => UnixSockets::Pairs,
    };
    let metadata = if has_view { Metadata::OfView } else { Metadata::Refused };
    let memory = match plan.counts_held {
        true => NamelessMemory::Counted,
        false => NamelessMemory::Refused,
    };
    let internet = InternetSockets::of(&plan.network, &link);
    let except = if has_sessions { session::CALLS } else { &[] };
    let unfiltered = calls::refuse(internet, unix, metadata, memory, except);
    let filtered = unfiltered.is_none();
    let domain = &mut said.domain;
    match version {
        Version(0) => domain.missing.push(
            "no Landlock: names and states of other processes are readable in `/proc`, and processes of \
             the same user can be signalled"
                .to_owned(),
        ),
        Version(number) => domain.parts.push(format!("landlock:{number}")),
    }
    if version != Version(0) && !version.knows_scopes() {
        domain.missing.push(format!(
            "Landlock {} knows no scopes: processes of the same user can be signalled, and Unix sockets \
             are refused everywhere",
            version.0
        ));
    }
    domain.parts.extend(has_view.then(|| "view".to_owned()));
    domain.parts.extend(filtered.then(|| "seccomp".to_owned()));
    let is_limited = match plan.network {
        Network::Off => filtered,
        Network::Only(_) => link.is_isolated || (filtered && version.knows_ports()),
        Network::On => true,
    };
    domain.parts.push(reach(&plan.network, &link, is_limited, &mut domain.missing));
    domain.missing.extend(link.missing);
    domain.missing.extend(unfiltered);
    Ok(())
}

/// Whether the sessions of the process can have views of their own, if they are to be apart.
fn sessions(plan: &Plan) -> Option<Result<(), String>> {
    let no_view = || Err("there is no file view".to_owned());
    plan.sessions_apart.then(|| if plan.view.is_some() { session::works() } else { no_view() })
}

/// Names the wall around each session; without any, the process is not started.
fn apart(
    plan: &Plan,
    sessions: Option<Result<(), String>>,
    domain: &mut Domain,
) -> Result<(), String> {
    let knows_scopes = landlock::available(plan.without).knows_scopes();
    match sessions {
        None => {}
        Some(Ok(())) => domain.parts.push("sessions:view".to_owned()),
        Some(Err(why)) if knows_scopes => {
            domain.parts.push("sessions:landlock".to_owned());
            domain.missing.push(format!(
                "no file view of its own for each session: names, sizes and times of other conversations' files can be \
                 seen, since {why}"
            ));
        }
        Some(Err(why)) => {
            return Err(format!(
                "this machine cannot keep its sessions apart from each other: {why}, and Landlock is older than \
                 version 6. Allow user namespaces, or share one sandbox with `sessions = {{ apart = false }}`"
            ));
        }
    }
    Ok(())
}

/// Best effort: a limit that cannot be set is not a reason to refuse the runner.
fn limit_resources() {
    let _ =
        rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
    let hard = rustix::process::getrlimit(Resource::Nofile).maximum.unwrap_or(OPEN_FILES_MAX);
    let files = Some(hard.min(OPEN_FILES_MAX));
    let _ = rustix::process::setrlimit(Resource::Nofile, Rlimit { current: files, maximum: files });
    // The supervisor measures the whole tree; this only keeps one process from outrunning it.
    let hard = rustix::process::getrlimit(Resource::Nproc).maximum.unwrap_or(USER_PROCESSES_MAX);
    let processes = Some(hard.min(USER_PROCESSES_MAX));
    let limit = Rlimit { current: processes, maximum: processes };
    let _ = rustix::process::setrlimit(Resource::Nproc, limit);
    // When memory runs out, the kernel should kill the runner rather than the host.
    let _ = std::fs::write("/proc/self/oom_score_adj", "500");
}

/// Limits memory by the cgroup if there is one, else by what one process may allocate; returns which. The
/// supervisor measures the whole tree in either case.
fn limit_memory(plan: &Plan) -> &'static str {
    let entered =
        plan.cgroup.as_ref().is_some_and(|entrance| std::fs::write(entrance, "0").is_ok());
    if entered {
        return "cgroup";
    }
    let bytes = Some(plan.memory_mb.saturating_mul(1024 * 1024).saturating_add(DATA_SLACK_BYTES));
    let _ = rustix::process::setrlimit(Resource::Data, Rlimit { current: bytes, maximum: bytes });
    "rlimit"
}

/// The network in force, e.g. `netns:8700` for its host alone; names what stays reachable besides.
fn reach(network: &Network, link: &Link, is_limited: bool, missing: &mut Vec<String>) -> String {
    let allowed = match network {
        Network::Off if is_limited => return "net:off".to_owned(),
        // That the filter is missing is reported already.
        Network::Off | Network::On => return "net:on".to_owned(),
        Network::Only(allowed) => allowed,
    };
    if !is_limited {
        missing.push("the kernel does not tell ports apart: every port can be reached".to_owned());
        return "net:tcp".to_owned();
    }
    let host = allowed.host.map(|host| host.port().to_string());
    let list = allowed.list.iter().map(ToString::to_string);
    let parts: Vec<String> = host.into_iter().chain(list).collect();
    format!("{}:{}", if link.is_isolated { "netns" } else { "net" }, parts.join(","))
}

/// The socket that the supervisor passed.
pub(super) fn adopt(number: &OsStr) -> Result<OwnedFd, String> {
    let number = number.to_str().and_then(|number| number.parse::<i32>().ok());
    let number = number.filter(|number| *number > 2).ok_or("the socket to the host is missing")?;
    #[expect(unsafe_code, reason = "the supervisor passes descriptors by number")]
    // SAFETY: the supervisor left this one open for this process, which uses it here only.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

fn close_descriptors_at_exec() -> Result<(), String> {
    let open = std::fs::read_dir("/proc/self/fd")
        .map_err(|error| format!("cannot list descriptors: {error}"))?;
    for entry in open.flatten() {
        let Some(number) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok())
        else {
            continue;
        };
        if number > 2 {
            #[expect(
                unsafe_code,
                reason = "a descriptor that some other program left open has no owner here"
            )]
            // SAFETY: the number comes from the kernel's list of this single-threaded process, and the
            // borrow ends before anything is closed.
            let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
            // The descriptor of the listing itself may be gone already.
            let _ = rustix::io::fcntl_setfd(descriptor, FdFlags::CLOEXEC);
        }
    }
    Ok(())
}

fn write_all(to: &impl AsFd, mut bytes: &[u8]) -> rustix::io::Result<()> {
    while !bytes.is_empty() {
        let written = rustix::io::write(to, bytes)?;
        bytes = &bytes[written..];
    }
    Ok(())
}
