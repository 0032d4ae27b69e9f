//! Programs that serve tools: MCP servers that stay, and methods of modules that run once.
//!
//! Invariant: a child reports what confines it; when it is over, no
//! process of its tree is left. At most `children_at_once` run to their end at once.

use crate::process::{Control, Process, ProcessFiles, Reports};
use crate::spec::Settings;
use crate::stderr::{self, LastLines};
use crate::supervisor::job::{Ended, Job, Network};
use crate::supervisor::{Domain, Sandbox};
use crate::tasks::Tasks;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

/// How much of a child's stderr is kept.
const STDERR_TAIL_BYTES: usize = 4096;
/// Time for output that was written before the end and is not read yet.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How long to wait for a killed tree; its supervisor continues without the host.
const CLEARING_MAX: Duration = Duration::from_secs(10);

/// One program to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChildSpec {
    /// What it serves, for the log.
    pub name: String,
    pub command: Vec<String>,
    /// Its working folder; empty for a private folder that is removed with it.
    pub dir: PathBuf,
    /// Whether it may write in `dir`, or only read there.
    pub owns_dir: bool,
    /// Its environment, besides `HOME`, `TMPDIR`, `PATH` and `LANG`.
    pub env: BTreeMap<String, String>,
    pub sandbox: Sandbox,
    /// Readable and writable besides `dir`.
    pub paths: Vec<PathBuf>,
    /// Those of `paths` that do not exist: once one does, the process needs a new sandbox to see it.
    pub absent_paths: Vec<PathBuf>,
    /// Hidden from it besides `Settings::hidden`, even inside `dir` or `paths`.
    pub hidden: Vec<PathBuf>,
    /// Limit on the processes of the tree.
    pub processes: u32,
    /// Limit on the threads of the tree.
    pub threads: u64,
    /// Limit on the memory of the tree.
    pub memory_mb: u64,
    /// Limit on what is in its folders.
    pub disk_mb: u64,
    /// Limit on the files and folders there.
    pub files: u64,
    pub network: Network,
}

impl Default for ChildSpec {
    fn default() -> Self {
        Self {
            name: String::new(),
            command: Vec::new(),
            dir: PathBuf::new(),
            owns_dir: false,
            env: BTreeMap::new(),
            sandbox: Sandbox::On,
            paths: Vec::new(),
            absent_paths: Vec::new(),
            hidden: Vec::new(),
            processes: 32,
            threads: 1024,
            memory_mb: 1024,
            disk_mb: 10_240,
            files: 500_000,
            network: Network::Off,
        }
    }
}

/// Starts children; cheap to clone.
#[derive(Debug, Clone)]
pub struct Children {
    settings: Arc<Settings>,
    tasks: Tasks,
    /// For programs that run to their end; the number of those that stay is configured.
    turns: Arc<Semaphore>,
}

/// What confines a program, and what is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    pub domain: Domain,
    pub warnings: Vec<String>,
}

/// A running program. Dropping it kills the whole tree.
pub struct Child {
    pub stdin: pipe::Sender,
    pub stdout: pipe::Receiver,
    pub hold: ChildHold,
}

/// A handle to a program without its streams. Dropping it kills the whole tree.
pub struct ChildHold {
    pub pid: u32,
    /// What is in force, e.g. `landlock:7+view+seccomp+net:off+rlimit+uid:65534`, or `off`.
    pub isolation: String,
    pub warnings: Vec<String>,
    control: Control,
    reports: Reports,
    last: LastLines,
}

/// A program that ran to its end.
#[derive(Debug)]
pub struct Finished {
    pub stdout: Vec<u8>,
    /// The end of its stderr.
    pub stderr_tail: String,
    pub ended: Ended,
    /// A clause about the program, e.g. `exited with code 1`.
    pub message: String,
    pub isolation: String,
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChildError {
    #[error("cannot be started: {0}")]
    Start(String),
    #[error("waited for its turn until its time was up, and was not started")]
    NoTurn,
    #[error("did not end in time")]
    Deadline { stderr_tail: String },
    #[error("wrote more than {bytes_max} bytes")]
    OutputTooLarge { bytes_max: usize, stderr_tail: String },
}

impl Children {
    pub fn new(settings: Settings) -> Self {
        Self::within(settings, Tasks::default())
    }

    pub(crate) fn within(settings: Settings, tasks: Tasks) -> Self {
        let turns = Arc::new(Semaphore::new(settings.limits.children_at_once()));
        Self { settings: Arc::new(settings), tasks, turns }
    }

    /// Returns what would confine a program: does everything except starting it.
    pub async fn probe(&self, spec: &ChildSpec) -> Result<Confinement, ChildError> {
        let job = Job { probe: true, ..self.job(spec)? };
        let Process { domain, warnings, control, mut reports, .. } = self.begin(job).await?;
        control.kill();
        let _ = timeout(CLEARING_MAX, reports.gone()).await;
        Ok(Confinement { domain, warnings })
    }

    /// Starts a program that stays and has a home. Its stderr goes to the log under its name.
    pub async fn start(&self, spec: &ChildSpec) -> Result<Child, ChildError> {
        let home = Some(self.settings.home_of(&spec.name));
        let process = self.begin(Job { home, ..self.job(spec)? }).await?;
        let warnings = process.shortcomings();
        let last = LastLines::new(self.settings.cleaner.clone());
        let limits = self.settings.limits.clone();
        let name = spec.name.as_str().into();
        let log = stderr::log(name, process.stderr, limits, last.clone());
        self.tasks.attend(format!("tool server `{}`", spec.name), log);
        let hold = ChildHold {
            pid: process.pid,
            isolation: process.domain.isolation(),
            warnings,
            control: process.control,
            reports: process.reports,
            last,
        };
        Ok(Child { stdin: process.stdin, stdout: process.stdout, hold })
    }

    /// Runs a program to its end once it is its turn: `input` is all it reads, and it may write
    /// `output_bytes_max`. When this returns, its tree is gone; when it is dropped, the tree is killed.
    pub async fn run(
        &self,
        spec: &ChildSpec,
        input: &[u8],
        deadline: Instant,
        output_bytes_max: usize,
    ) -> Result<Finished, ChildError> {
        // The semaphore is never closed.
        let turn = timeout_at(deadline, self.turns.acquire()).await;
        let _turn = turn.map_err(|_| ChildError::NoTurn)?;
        let mut tail = Tail::default();
        let process = timeout_at(deadline, self.begin(self.job(spec)?))
            .await
            .map_err(|_| ChildError::Deadline { stderr_tail: String::new() })??;
        let (isolation, warnings) = (process.domain.isolation(), process.shortcomings());
        let Process { stdin, stdout, stderr, control, mut reports, .. } = process;
        let mut output = Vec::new();
        let over = timeout_at(deadline, async {
            let talk = async {
                tokio::try_join!(
                    feed(stdin, input),
                    collect(stdout, &mut output, output_bytes_max),
                    tail.follow(stderr)
                )
            };
            let mut talk = std::pin::pin!(talk);
            // Its streams may end before it does, or after.
            tokio::select! {
                ended = reports.ended() => {
                    let rest = timeout(LAST_WORDS, &mut talk).await;
                    rest.unwrap_or(Ok(((), (), ()))).map(|_| ended)
                }
                said = &mut talk => match said {
                    Ok(_) => Ok(reports.ended().await),
                    Err(too_large) => Err(too_large),
                },
            }
        })
        .await;
        control.kill();
        let _ = timeout(CLEARING_MAX, reports.gone()).await;
        let stderr_tail = tail.text();
        match over {
            Ok(Ok((message, ended))) => {
                Ok(Finished { stdout: output, stderr_tail, ended, message, isolation, warnings })
            }
            Ok(Err(TooLarge)) => {
                Err(ChildError::OutputTooLarge { bytes_max: output_bytes_max, stderr_tail })
            }
            Err(_) => Err(ChildError::Deadline { stderr_tail }),
        }
    }

    fn job(&self, spec: &ChildSpec) -> Result<Job, ChildError> {
        let settings = &self.settings;
        let place = ProcessFiles::new(&settings.run_dir, &spec.name)
            .map_err(|error| ChildError::Start(error.to_string()))?;
        let hidden = settings.hidden.iter().chain(&spec.hidden).cloned().collect();
        Ok(Job {
            name: spec.name.clone(),
            command: spec.command.clone(),
            dir: spec.dir.clone(),
            owns_dir: spec.owns_dir,
            env: spec.env.clone(),
            sandbox: spec.sandbox,
            own_processes: false,
            sessions_apart: false,
            read: Vec::new(),
            paths: spec.paths.clone(),
            hidden,
            processes: spec.processes,
            threads: spec.threads,
            memory_mb: spec.memory_mb,
            disk_mb: spec.disk_mb,
            files: spec.files,
            private: place.private,
            home: None,
            lock: place.lock,
            network: spec.network.clone(),
            user: Some(settings.user_of("tool", &spec.name)),
            supervisor_args: settings.supervisor_args(),
            probe: false,
            without: settings.without,
        })
    }

    async fn begin(&self, job: Job) -> Result<Process, ChildError> {
        let settings = &self.settings;
        timeout(settings.limits.configured.runner_start, Process::start(job, settings, &self.tasks))
            .await
            .map_err(|_| ChildError::Start("its supervisor does not start".to_owned()))?
            .map_err(ChildError::Start)
    }
}

impl ChildHold {
    /// Waits until the whole tree is gone; a clause about the program says why.
    pub async fn ended(&mut self) -> (String, Ended) {
        let ended = self.reports.ended().await;
        self.reports.gone().await;
        ended
    }

    /// Asks every process of the tree to end.
    pub fn terminate(&self) {
        self.control.terminate();
    }

    pub fn kill(&self) {
        self.control.kill();
    }

    /// Its error on stderr before its end, in one line; empty when it wrote nothing.
    pub fn last_words(&self) -> String {
        self.last.complaint()
    }
}

struct TooLarge;

/// A program that does not read its input may still answer.
async fn feed(mut stdin: pipe::Sender, input: &[u8]) -> Result<(), TooLarge> {
    let _ = stdin.write_all(input).await;
    Ok(())
}

async fn collect(
    stdout: pipe::Receiver,
    output: &mut Vec<u8>,
    bytes_max: usize,
) -> Result<(), TooLarge> {
    let mut limited = stdout.take(bytes_max as u64 + 1);
    // An error of a pipe is its end.
    let _ = limited.read_to_end(output).await;
    if output.len() > bytes_max { Err(TooLarge) } else { Ok(()) }
}

/// The end of a text.
#[derive(Default)]
struct Tail(VecDeque<u8>);

impl Tail {
    async fn follow(&mut self, mut pipe: pipe::Receiver) -> Result<(), TooLarge> {
        let mut chunk = vec![0; STDERR_TAIL_BYTES];
        while let Ok(length) = pipe.read(&mut chunk).await {
            if length == 0 {
                break;
            }
            self.0.extend(&chunk[..length]);
            let surplus = self.0.len().saturating_sub(STDERR_TAIL_BYTES);
            self.0.drain(..surplus);
        }
        Ok(())
    }

    fn text(self) -> String {
        let bytes: Vec<u8> = self.0.into();
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}
