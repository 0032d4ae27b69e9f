//! Keeps one configured runner alive: start, serve, replace, back off, until it is stopped.
//!
//! Invariant: at most one process of a runner gets new runs, at most `draining_max` older ones finish theirs,
//! and the delay between failed starts grows.

mod attended;

use crate::connection::{Connection, ConnectionState, LAST_WORDS, Parts};
use crate::handshake;
use crate::outbox::Outbox;
use crate::process::{Control, Process, ProcessFiles};
use crate::registry::{Entry, Phase, whole};
use crate::runtime::Shared;
use crate::spec::{Limits, RunnerSpec};
use crate::wires::Codec;
use attended::{Attended, retire, write};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// A process that served for this many times its start delay does not raise the delay.
const HEALTHY_PER_DELAY: u32 = 10;

/// One generation of one configured runner.
pub(crate) struct Slot {
    pub(crate) shared: Arc<Shared>,
    pub(crate) spec: RunnerSpec,
    pub(crate) hidden: Vec<PathBuf>,
    pub(crate) generation: u64,
    pub(crate) stop: CancellationToken,
    /// Notified when files of the runner have changed.
    pub(crate) changed: Arc<Notify>,
}

/// A process without new runs, and the token that ends it immediately.
struct Draining {
    state: watch::Receiver<ConnectionState>,
    now: CancellationToken,
}

/// Why no process serves: a clause for everyone, and the last words for operators.
struct Fault {
    reason: String,
    last_words: Option<String>,
}

impl From<String> for Fault {
    fn from(reason: String) -> Self {
        Self { reason, last_words: None }
    }
}

/// A process that serves.
struct Serving {
    connection: Arc<Connection>,
    control: Arc<Control>,
}

/// Why a process stopped serving.
enum Served {
    Failed(String),
    /// Its files have changed, and this process runs the new ones.
    Replaced(Serving),
    /// The slot stops.
    Stopped,
}

impl Slot {
    pub(crate) async fn keep(self) {
        let limits = self.shared.settings.limits.clone();
        let mut failures = 0_u32;
        let mut delay = Duration::ZERO;
        let mut draining: VecDeque<Draining> = VecDeque::new();
        let mut successor = None;
        loop {
            let started = match successor.take() {
                // Even if the slot stops: this process has to be retired.
                Some(serving) => Ok(serving),
                None if self.stop.is_cancelled() => break,
                None => {
                    self.update(|entry| entry.phase = Phase::Starting);
                    tokio::select! {
                        started = self.start(true) => started,
                        () = self.stop.cancelled() => break,
                    }
                }
            };
            let fault = match started {
                Err(fault) => fault,
                Ok(serving) => {
                    let since = Instant::now();
                    let served = self.serve(&serving, &mut draining).await;
                    if since.elapsed() >= limits.healthy_after {
                        failures = 0;
                    } else if since.elapsed() >= delay * HEALTHY_PER_DELAY {
                        failures = failures.saturating_sub(1);
                    }
                    let last_words = match &served {
                        Served::Failed(reason) => serving.connection.last_words(reason),
                        _ => None,
                    };
                    self.retire(serving, &mut draining);
                    match served {
                        Served::Failed(reason) => Fault { reason, last_words },
                        Served::Replaced(by) => {
                            successor = Some(by);
                            continue;
                        }
                        Served::Stopped => break,
                    }
                }
            };
            failures += 1;
            delay = back_off_delay(failures, &limits);
            self.back_off(fault, delay).await;
        }
        self.update(|entry| entry.phase = Phase::Stopped);
    }

    /// Until the connection gets no more runs.
    async fn serve(&self, serving: &Serving, draining: &mut VecDeque<Draining>) -> Served {
        let connection = &serving.connection;
        let served = loop {
            let replaced = async {
                self.changed.notified().await;
                self.start(false).await
            };
            tokio::select! {
                () = connection.not_serving() => {
                    break connection.reason().map_or(Served::Stopped, Served::Failed);
                }
                reason = self.stdin_stalled(serving, draining) => break Served::Failed(reason),
                () = self.stop.cancelled() => break Served::Stopped,
                started = replaced => match started {
                    Ok(successor) => break Served::Replaced(successor),
                    Err(fault) => self.goes_on(fault),
                },
            }
        };
        let reason = match &served {
            Served::Replaced(_) => "was replaced because its files changed",
            Served::Failed(reason) => {
                self.gone(Phase::Starting);
                reason
            }
            Served::Stopped => {
                self.gone(Phase::Draining);
                "is stopping"
            }
        };
        connection.replace(reason.to_owned());
        connection.take_back();
        served
    }

    /// No process serves.
    fn gone(&self, phase: Phase) {
        self.update(|entry| {
            entry.connection = None;
            entry.pid = None;
            entry.phase = phase;
        });
    }

    /// New files that do not start leave the serving process in place.
    fn goes_on(&self, Fault { reason, last_words }: Fault) {
        let error = format!(
            "runner `{}` goes on as it was: with its files as they are now it {reason}",
            self.spec.name
        );
        tracing::warn!(%error, last_words, "changed files of a runner do not start");
        self.update(|entry| {
            entry.last_error = Some(error);
            entry.last_words = last_words;
        });
    }

    /// Waits for a stalled stdin, and for a free place among the draining processes.
    async fn stdin_stalled(&self, serving: &Serving, draining: &mut VecDeque<Draining>) -> String {
        let limits = &self.shared.settings.limits;
        loop {
            serving.connection.stdin_stalled().await;
            forget_gone(draining);
            if draining.len() < limits.draining_max {
                let timeout_s = limits.stdin_stall_timeout.as_secs_f32();
                return format!(
                    "has not read its input for {timeout_s} s, as if its code blocks: what it has not read goes to a new process"
                );
            }
        }
    }

    /// Lets the process finish its runs beside its successor.
    fn retire(&self, serving: Serving, draining: &mut VecDeque<Draining>) {
        let limits = &self.shared.settings.limits;
        let now = CancellationToken::new();
        draining
            .push_back(Draining { state: serving.connection.connection_state(), now: now.clone() });
        forget_gone(draining);
        if draining.len() > limits.draining_max
            && let Some(oldest) = draining.pop_front()
        {
            oldest.now.cancel();
        }
        self.shared.tasks.spawn(retire(serving, limits.stop_step, now));
    }

    async fn back_off(&self, fault: Fault, delay: Duration) {
        let Fault { reason, last_words } = fault;
        let error = format!("runner `{}` {reason}", self.spec.name);
        let retry_ms = delay.as_millis() as u64;
        tracing::warn!(%error, last_words, retry_ms, "a runner process failed");
        let until = Instant::now() + delay;
        self.update(|entry| {
            entry.phase = Phase::BackingOff { until };
            entry.pid = None;
            entry.last_failure = Some((SystemTime::now(), whole(&error, &last_words)));
            entry.last_error = Some(error);
            entry.last_words = last_words;
            entry.restarts += 1;
        });
        tokio::select! {
            () = tokio::time::sleep_until(until) => {}
            () = self.stop.cancelled() => {}
        }
    }

    /// Starts a process. Before it serves, it is published only if no other process does.
    async fn start(&self, is_alone: bool) -> Result<Serving, Fault> {
        let shared = &self.shared;
        let (settings, id) = (&shared.settings, shared.next_connection());
        let place = ProcessFiles::new(&settings.run_dir, &self.spec.name)
            .map_err(|error| format!("cannot be given a folder: {error}"))?;
        let mut job = self.spec.job(&self.hidden, place, settings);
        let codec = Codec::for_process(&self.spec, &settings.host_version, &mut job.env)?;
        let process = Process::start(job, settings, &shared.tasks);
        let process = timeout(settings.limits.configured.runner_start, process)
            .await
            .map_err(|_| "has a supervisor that does not start".to_owned())?
            .map_err(|error| format!("cannot be started: {error}"))?;
        let (pid, isolation, warnings) =
            (Some(process.pid), Some(process.domain.isolation()), process.shortcomings());
        let parts = Parts {
            id,
            runner: self.spec.name.as_str().into(),
            isolation: process.domain.isolation().into(),
            limits: settings.limits.clone(),
            cleaner: settings.cleaner.clone(),
            proxy: shared.proxy.clone(),
            tasks: shared.tasks.clone(),
            codec,
        };
        let outbox = Outbox::new(settings.limits.queue_bytes_max, Some(process.stdin));
        let connection = Connection::new(parts, outbox);
        let tell = |entry: &mut Entry| {
            entry.pid = pid;
            entry.isolation.clone_from(&isolation);
            entry.start_warnings.clone_from(&warnings);
        };
        if is_alone {
            self.update(tell);
        }
        let control = Arc::new(process.control);
        let serving = Serving { connection: connection.clone(), control: control.clone() };
        let attended = Attended {
            serving: Serving { connection: connection.clone(), control },
            reports: process.reports,
        };
        let process_name = format!("runner `{}`", self.spec.name);
        shared.tasks.attend(process_name, attended.attend(process.stdout, process.stderr));
        shared.tasks.spawn(write(connection.clone()));
        // A start that is given up before it is published must not leave the process behind.
        let guard = KillOnDrop(Some(serving.control.clone()));
        let pin = self.spec.plugin.as_deref();
        match handshake::admit(shared, &connection, self.generation, pin).await {
            Ok(()) => {
                guard.disarm();
                self.update(tell);
                Ok(serving)
            }
            Err(error) => {
                drop(guard);
                // The end of the process may explain more than the failed call does.
                let _ = timeout(LAST_WORDS, connection.gone()).await;
                Err(Fault { last_words: connection.last_words(&error), reason: error })
            }
        }
    }

    fn update(&self, update: impl FnOnce(&mut Entry)) {
        self.shared.registry.update(&self.spec.name, self.generation, update);
    }
}

fn back_off_delay(failures: u32, limits: &Limits) -> Duration {
    let factor = 2_u32.saturating_pow(failures.saturating_sub(1).min(20));
    limits.backoff_min.saturating_mul(factor).min(limits.configured.runner_backoff_max)
}

struct KillOnDrop(Option<Arc<Control>>);

impl KillOnDrop {
    fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for KillOnDrop {
    fn drop(&mut self) {
        if let Some(control) = &self.0 {
            control.kill();
        }
    }
}

fn forget_gone(draining: &mut VecDeque<Draining>) {
    draining.retain(|older| !matches!(*older.state.borrow(), ConnectionState::Gone { .. }));
}
