//! The supervisor: a small process between the host and one runner process.
//!
//! Invariant: when it ends, no process of the runner's tree is left. It ends when the runner ends, when the
//! tree exceeds a limit, and when the host is gone (its end of the control socket closes).
//!
//! Descriptors at its start: 0 is the control socket, 1 the locked file that shows a later host that it
//! lives, 2 the runner's stderr. The runner's stdin and stdout arrive over the control socket with the job.

mod calls;
mod cgroup;
mod claim;
mod control;
mod domain;
mod held;
mod home;
mod installation;
mod interpreter;
pub(crate) mod job;
mod landlock;
mod meter;
mod mounts;
mod narrow;
pub(crate) mod netns;
mod remove;
mod sandbox;
mod session;
mod stage;
mod system;
mod tree;
mod usage;
mod user;
mod view;
mod watch;

use cgroup::Cgroup;
use job::{Ended, Job, Report};
use meter::Meter;
use rustix::process::Pid;
use sandbox::{Files, Plan};
use stage::Outcome;
use std::ffi::OsString;
use std::process::ExitCode;

pub use domain::{Domain, Sandbox, Without};
pub use job::{Allowed, Ended as ChildEnd, Network};
pub use remove::remove_all;
pub use user::UserIds;
pub(crate) use user::remove_private;

pub(crate) use sandbox::{isolation_available, resolve};

/// The argument that marks the second stage, the process which becomes the runner.
const EXEC_STAGE: &str = "--exec-stage";

/// The argument that marks a session which a runner starts.
const SESSION: &str = "--session";

/// Runs the supervisor (or its second stage) with the arguments after `Settings::supervisor`.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    match args.as_slice() {
        [stage, plan, outcome, handover @ ..] if stage == EXEC_STAGE => {
            stage::main(plan, outcome, handover.first())
        }
        [word, socket] if word == SESSION => session::main(socket),
        _ => supervise(),
    }
}

fn supervise() -> ExitCode {
    crate::make_undumpable();
    let (job, stdio) = match control::receive_job() {
        Ok(received) => received,
        // Without a job there is nothing to supervise: the host went away between two steps.
        Err(_) => return ExitCode::FAILURE,
    };
    let ended = run(&job, stdio).unwrap_or_else(|message| Report::Failed { message });
    control::send(&ended);
    remove_private(&job.private);
    let _ = std::fs::remove_file(&job.lock);
    ExitCode::SUCCESS
}

fn run(job: &Job, stdio: control::Stdio) -> Result<Report, String> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
        .map_err(|error| format!("cannot become the reaper of the runner's tree: {error}"))?;
    let is_on = job.sandbox != Sandbox::Off;
    let cgroup = is_on.then(|| Cgroup::create(job.threads, job.memory_mb)).flatten();
    let (runner, plan, outcome) = start(job, cgroup.as_ref(), &stdio)?;
    drop(stdio);
    if let Some(message) = outcome.error {
        tree::kill();
        return Err(message);
    }
    control::send(&Report::Started {
        pid: runner.as_raw_pid().unsigned_abs(),
        domain: plan.unconfined().unwrap_or(outcome.domain),
        warnings: [plan.warnings, outcome.warnings].concat(),
    });
    let meter = Meter::new(job, vec![plan.private], plan.counts_held);
    let (mut message, mut how) = watch::until_over(job, runner, meter);
    tree::kill();
    if cgroup.is_some_and(|cgroup| cgroup.ran_out_of_memory()) {
        (message, how) = (meter::out_of_memory(job), Ended::Stopped);
    }
    Ok(Report::Ended { message, how })
}

/// Starts the process in a view of the file system of its own; where that is not allowed, without one.
fn start(
    job: &Job,
    cgroup: Option<&Cgroup>,
    stdio: &control::Stdio,
) -> Result<(Pid, Plan, Outcome), String> {
    let attempt = |files: Files| {
        let mut plan = sandbox::plan(job, files)?;
        plan.cgroup = cgroup.map(Cgroup::entrance);
        let (pid, outcome) = stage::spawn(job, &plan, stdio)?;
        Ok::<_, String>((pid, plan, outcome))
    };
    let first = match job.without.namespaces {
        true => Files::Shared("it is told to do without namespaces".to_owned()),
        false => Files::View,
    };
    let (pid, plan, outcome) = attempt(first)?;
    let Some(why) = outcome.no_view else { return Ok((pid, plan, outcome)) };
    tree::kill();
    remove_private(&job.private);
    attempt(Files::Shared(why))
}
