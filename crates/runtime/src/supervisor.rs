//! The supervisor: a small process between the host and one runner process.
//!
//! Invariant: when it ends, no process of the runner's tree is left. It ends when the runner ends, when the
//! tree exceeds a limit, and when the host is gone (its end of the control socket closes).
//!
//! Descriptors at its start: 0 is the control socket, 1 the locked file that shows a later host that it
//! lives, 2 the runner's stderr. The runner's stdin and stdout arrive over the control socket with the job.

mod calls;
mod cgroup;
mod control;
mod cover;
mod home;
mod interpreter;
pub(crate) mod job;
mod reach;
mod sandbox;
mod stage;
pub(crate) mod system;
mod tree;
mod user;
mod watch;

use cgroup::Cgroup;
use job::{Ended, Job, Report};
use std::ffi::OsString;
use std::process::ExitCode;

pub use job::{Ended as ChildEnd, Network};
pub(crate) use user::remove_private;

pub(crate) use sandbox::{isolation_available, resolve, script_folder};

/// The argument that marks the second stage, the process which becomes the runner.
const EXEC_STAGE: &str = "--exec-stage";

/// Runs the supervisor (or its second stage) with the arguments after `Settings::supervisor`.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    match args.as_slice() {
        [stage, plan, outcome] if stage == EXEC_STAGE => stage::main(plan, outcome),
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
    let mut plan = sandbox::plan(job)?;
    let cgroup = job.confine.and_then(|_| Cgroup::create(job.processes, job.memory_mb));
    plan.cgroup = cgroup.as_ref().map(Cgroup::entrance);
    let (runner, outcome) = stage::spawn(job, &plan, stdio)?;
    if let Some(message) = outcome.error {
        tree::kill();
        return Err(message);
    }
    let isolation = std::iter::once(plan.isolation).chain(outcome.in_force).collect::<Vec<_>>();
    control::send(&Report::Started {
        pid: runner.as_raw_pid().unsigned_abs(),
        isolation: isolation.join("+"),
        warnings: [plan.warnings, outcome.warnings].concat(),
    });
    let (mut message, mut how) = watch::until_over(job, runner);
    tree::kill();
    if cgroup.is_some_and(|cgroup| cgroup.ran_out_of_memory()) {
        (message, how) = (watch::out_of_memory(job), Ended::Stopped);
    }
    Ok(Report::Ended { message, how })
}
