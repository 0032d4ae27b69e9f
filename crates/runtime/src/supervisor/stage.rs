//! The second stage: the process that restricts itself and then becomes the runner.
//!
//! Invariant: from `exec` on the runner has its own session, only descriptors 0, 1 and 2, only the
//! environment of its job, and in a sandbox nothing but what its plan opens and no capabilities.

use super::control::Stdio;
use super::job::Job;
use super::job::Network;
use super::sandbox::{self, Plan};
use super::{EXEC_STAGE, calls, user};
use rustix::fs::MemfdFlags;
use rustix::io::{Errno, FdFlags};
use rustix::process::{Pid, Resource, Rlimit, Signal};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
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
    pub(super) warnings: Vec<String>,
    /// What confines a child, besides Landlock.
    pub(super) in_force: Vec<String>,
}

/// Starts the second stage, hands it the plan in a nameless file, and waits until it is the runner.
pub(super) fn spawn(job: &Job, plan: &Plan, stdio: Stdio) -> Result<(Pid, Outcome), String> {
    let text =
        serde_json::to_vec(plan).map_err(|error| format!("cannot write the plan: {error}"))?;
    let no_way = |error: Errno| format!("cannot hand over the plan: {error}");
    // Inherited on purpose; this process has one thread, so no other child can get them.
    let file = rustix::fs::memfd_create("plan", MemfdFlags::empty()).map_err(no_way)?;
    write_all(&file, &text).map_err(no_way)?;
    let (outcome, outcome_write) = rustix::pipe::pipe().map_err(no_way)?;
    #[expect(
        clippy::disallowed_methods,
        reason = "the supervisor starts the runner: this is the place"
    )]
    let mut command = Command::new("/proc/self/exe");
    let child = command
        .args(&job.supervisor_args)
        .arg(EXEC_STAGE)
        .args([&file, &outcome_write].map(|descriptor| descriptor.as_raw_fd().to_string()))
        .env_clear()
        .stdin(stdio.stdin)
        .stdout(stdio.stdout)
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
pub(super) fn main(plan: &OsStr, outcome: &OsStr) -> ExitCode {
    let descriptors = Path::new("/proc/self/fd");
    let Ok(mut outcome) = File::options().write(true).open(descriptors.join(outcome)) else {
        return ExitCode::FAILURE;
    };
    let error = match become_runner(&descriptors.join(plan), &mut outcome) {
        Ok(Probed) => return ExitCode::SUCCESS,
        Err(message) => Outcome { error: Some(message), ..Outcome::default() },
    };
    // Without a reader there is no supervisor to report to.
    let _ = serde_json::to_writer(outcome, &error);
    ExitCode::FAILURE
}

/// Everything was done except starting the program.
struct Probed;

fn become_runner(plan: &Path, outcome: &mut File) -> Result<Probed, String> {
    let plan = std::fs::read(plan).map_err(|error| format!("cannot read the plan: {error}"))?;
    let mut plan: Plan =
        serde_json::from_slice(&plan).map_err(|error| format!("cannot read the plan: {error}"))?;
    rustix::process::setsid().map_err(|error| format!("cannot start a session: {error}"))?;
    limit_resources();
    close_descriptors_at_exec()?;
    let mut said = Outcome::default();
    if plan.restrict {
        sandbox::lift(&mut plan)?;
        said.warnings = sandbox::cover(&mut plan);
    }
    let memory = plan.confine.map(|_| limit_memory(&plan));
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
    if plan.restrict {
        let knows_ports = sandbox::enforce(&plan)?;
        calls::drop_capabilities()?;
        let network = plan.confine.map(|confine| confine.network);
        let unfiltered = calls::refuse(network);
        if let (Some(network), Some(memory)) = (network, memory) {
            let filtered = unfiltered.is_none();
            said.in_force.extend(filtered.then(|| "seccomp".to_owned()));
            said.in_force.push(reach(network, filtered, knows_ports, &mut said.warnings));
            said.in_force.push(memory.to_owned());
            said.in_force.push(format!("uid:{}", rustix::process::getuid().as_raw()));
        }
        said.warnings.extend(unfiltered);
    }
    #[expect(clippy::disallowed_methods, reason = "this process becomes the runner here")]
    let mut command = Command::new(&plan.program);
    command.args(&plan.args).env_clear().envs(&plan.env);
    if !said.warnings.is_empty() || !said.in_force.is_empty() {
        // A warning that cannot be reported must not prevent the start.
        let _ = serde_json::to_writer(outcome, &said);
    }
    if plan.probe {
        return Ok(Probed);
    }
    let error = command.exec();
    Err(format!("cannot execute `{}`: {error}", plan.program.display()))
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

/// Limits the network; warns if more stays reachable than was wanted.
fn reach(
    network: Network,
    filtered: bool,
    knows_ports: bool,
    warnings: &mut Vec<String>,
) -> String {
    match network {
        Network::Off if filtered => "net:off".to_owned(),
        Network::Port(port) if filtered && knows_ports => format!("net:{port}"),
        Network::Port(port) if filtered => {
            warnings.push(format!(
                "the kernel does not tell ports apart: the program can reach others than {port}"
            ));
            "net:tcp".to_owned()
        }
        // The warning about the filter says it already.
        Network::Off | Network::Port(_) | Network::On => "net:on".to_owned(),
    }
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
