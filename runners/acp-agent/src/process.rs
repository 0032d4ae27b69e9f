//! One harness process with everything that it started.
//!
//! Invariant: nothing of it outlives this value: its process group is killed, and whatever left the group is found by
//! a mark in its environment.

use crate::settings::Wall;
use crate::wall::{Enclosure, WayOut};
use crate::workspace::Place;
use rustix::io::FdFlags;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio_util::task::TaskTracker;

/// The variable that marks all processes of a session.
pub(crate) const MARK: &str = "GREENROOM_SESSION";
/// How long a process may take to end after SIGTERM.
const TERMINATE_GRACE: Duration = Duration::from_secs(1);
/// Lines of the log that an error message contains.
const LOG_LINES: usize = 8;
/// Rounds of killing what has left the group: a process may fork while it is looked for.
const ROUNDS: usize = 5;

pub(crate) struct Process {
    child: Child,
    group: Option<Pid>,
    mark: String,
    log: Arc<Mutex<VecDeque<String>>>,
}

/// What to start.
pub(crate) struct Launch<'a> {
    pub(crate) command: &'a [String],
    pub(crate) place: &'a Place,
    pub(crate) env: &'a BTreeMap<String, String>,
    pub(crate) wall: Option<&'a Wall>,
    /// What the harness reaches the host by.
    pub(crate) gateway: Option<SocketAddr>,
}

/// A process that was started.
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) streams: Streams,
    /// What leads out of its network.
    pub(crate) ways: Vec<WayOut>,
}

/// The streams of the protocol.
pub(crate) type Streams = (ChildStdout, ChildStdin);

impl Process {
    pub(crate) async fn start(launch: &Launch<'_>, tasks: &TaskTracker) -> Result<Started, String> {
        let program = launch.command.first().ok_or("the harness has no command")?;
        let mark = launch.place.id.as_str();
        let mut env = launch.env.clone();
        env.insert(MARK.to_owned(), mark.to_owned());
        let Commanded { mut command, handover } = match launch.wall {
            None => {
                let mut command = plain(launch.command)?;
                command.current_dir(&launch.place.work).envs(&env);
                Commanded { command, handover: None }
            }
            Some(wall) => {
                let enclosure = wall.enclose(launch.place, launch.command, &env, launch.gateway)?;
                enclosed(wall, mark, enclosure)?
            }
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        let mut child =
            command.spawn().map_err(|error| format!("cannot start `{program}`: {error}"))?;
        let group = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let log = Arc::<Mutex<VecDeque<String>>>::default();
        let streams = (child.stdout.take(), child.stdin.take(), child.stderr.take());
        let (Some(output), Some(input), Some(errors)) = streams else {
            return Err(format!("`{program}` has no standard streams"));
        };
        tasks.spawn(keep_log(errors, Arc::clone(&log)));
        let process = Self { child, group, mark: mark.to_owned(), log };
        drop(command);
        let ways = match handover {
            None => Vec::new(),
            Some((socket, enclosure)) => {
                let told = tokio::task::spawn_blocking(move || enclosure.hand_over(&socket));
                told.await.map_err(|error| error.to_string()).flatten()?
            }
        };
        Ok(Started { process, streams: (output, input), ways })
    }

    /// Asks it to end, and ends it.
    pub(crate) async fn stop(mut self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::TERM);
        }
        let _ = tokio::time::timeout(TERMINATE_GRACE, self.child.wait()).await;
        // The rest of the tree is killed with this value.
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<String> {
        let status = self.child.try_wait().ok().flatten()?;
        Some(format!("it ended with {status}"))
    }

    /// The last lines of its log.
    pub(crate) fn log(&self) -> String {
        let log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

/// A command, and what its process must be told.
pub(crate) struct Commanded {
    pub(crate) command: Command,
    pub(crate) handover: Option<(UnixStream, Enclosure)>,
}

#[expect(
    clippy::disallowed_methods,
    reason = "the harness is a child of the runner, inside the runner's sandbox"
)]
fn plain(words: &[String]) -> Result<Command, String> {
    let (program, args) = words.split_first().ok_or("the harness has no command")?;
    let mut command = Command::new(program);
    command.args(args);
    Ok(command)
}

/// The host's program, which becomes the command of the enclosure behind its wall.
pub(crate) fn enclosed(wall: &Wall, mark: &str, enclosure: Enclosure) -> Result<Commanded, String> {
    let (ours, theirs) = UnixStream::pair().map_err(|error| error.to_string())?;
    let mut command = plain(&wall.command)?;
    // No secret: this environment is that of the program, the other one comes over the socket.
    command.arg(theirs.as_raw_fd().to_string()).env_clear().env(MARK, mark);
    #[expect(unsafe_code, reason = "only the child may inherit the socket")]
    // SAFETY: between `fork` and `exec` it makes one system call.
    unsafe {
        command.pre_exec(move || Ok(rustix::io::fcntl_setfd(theirs.as_fd(), FdFlags::empty())?));
    }
    Ok(Commanded { command, handover: Some((ours, enclosure)) })
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        kill_marked(&self.mark);
    }
}

/// Kills every process of a session.
pub(crate) fn kill_marked(mark: &str) {
    for _ in 0..ROUNDS {
        let left = marked(mark);
        if left.is_empty() {
            return;
        }
        for pid in left {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// The memory of all processes of a session, in MiB.
pub(crate) fn memory_mb(mark: &str) -> u64 {
    let page = rustix::param::page_size() as u64;
    let resident = |pid: Pid| {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", pid.as_raw_pid())).ok()?;
        statm.split(' ').nth(1)?.parse::<u64>().ok()
    };
    marked(mark).into_iter().filter_map(resident).sum::<u64>() * page / (1024 * 1024)
}

/// The processes with a mark. Zombies have no environment any more.
fn marked(mark: &str) -> Vec<Pid> {
    let wanted = format!("{MARK}={mark}");
    let own = rustix::process::getpid();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| {
        Pid::from_raw(entry.file_name().to_str()?.parse().ok()?).filter(|pid| *pid != own)
    });
    let is_marked = |pid: &Pid| {
        let environment =
            std::fs::read(format!("/proc/{}/environ", pid.as_raw_pid())).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
    };
    pids.filter(is_marked).collect()
}

/// Passes the log on, and keeps its end.
async fn keep_log(errors: ChildStderr, log: Arc<Mutex<VecDeque<String>>>) {
    let mut lines = BufReader::new(errors).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        eprintln!("{line}");
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() == LOG_LINES {
            log.pop_front();
        }
        log.push_back(line.chars().take(400).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_process_that_left_the_group_ends_with_the_session() {
        let tasks = TaskTracker::new();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pid");
        let script = format!(
            "setsid sh -c 'echo $$ > {0}.part; mv {0}.part {0}; sleep 600' & sleep 600",
            file.display()
        );
        let command = ["sh", "-c", &script].map(str::to_owned);
        let config = crate::config::Config::default();
        let owner = crate::workspace::Owner {
            agent: format!("test-{}", std::process::id()),
            workspace_id: None,
            conversation_id: "c".to_owned(),
            bot_id: None,
            thread_id: None,
        };
        let (place, _lease) = Place::prepare(folder.path(), &owner, &config).await.unwrap();
        let mark = place.id.clone();
        let env = BTreeMap::new();
        let launch =
            Launch { command: &command, place: &place, env: &env, wall: None, gateway: None };
        let Started { process, streams: _streams, .. } =
            Process::start(&launch, &tasks).await.unwrap();
        let pid = loop {
            match std::fs::read_to_string(&file) {
                Ok(pid) => break pid.trim().to_owned(),
                Err(_) => tokio::task::yield_now().await,
            }
        };
        assert!(memory_mb(&mark) < 1000 && marked(&mark).len() >= 3);
        process.stop().await;
        let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        assert!(state.is_empty() || state.contains(") Z "), "{state}");
        assert!(marked(&mark).is_empty());
    }
}
