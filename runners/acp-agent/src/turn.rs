//! One turn: a prompt, its updates and questions, and its end.
//!
//! Invariant: a session that a run leaves is idle or ended. After a cancellation the harness gets a short time to stop
//! by itself; then its processes are killed, without the run waiting for it.

use crate::config::Keys;
use crate::permission;
use crate::session::{Session, describe};
use crate::sessions::{Held, Sessions, Slot};
use crate::texts::Texts;
use crate::updates::{Output, Turn};
use crate::wire::{Inbound, WireError};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use greenroom_sdk::{RunCtx, RunFailure, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;

/// How long a harness may take to stop after `session/cancel`.
const CANCEL_GRACE: Duration = Duration::from_secs(3);

type Response = oneshot::Receiver<Result<Value, WireError>>;

/// How a turn ended that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finish {
    Complete,
    /// The answer was cut off.
    Length,
    /// A session of an earlier run had died: nothing was said or done.
    NotBegun,
}

/// A session in use by one run.
pub(crate) struct Driver<'a> {
    pub(crate) ctx: &'a RunCtx,
    pub(crate) sessions: &'a Arc<Sessions>,
    pub(crate) slot: &'a Arc<Slot>,
    pub(crate) title: &'a str,
    pub(crate) texts: Texts,
    pub(crate) memory_mb_max: u64,
    /// The session was open before this run.
    pub(crate) is_reused: bool,
}

/// How a turn went.
enum Ended {
    Answered(Value),
    Failed(WireError),
    /// The run was cancelled; the harness has not answered yet.
    Cancelled(Response),
}

impl Driver<'_> {
    /// Sends the prompt and reports what happens; the session is put back afterwards, if it can go on.
    pub(crate) async fn drive(
        &self,
        held: Held,
        mut session: Session,
        prompt: Vec<Value>,
    ) -> Result<Finish, RunFailure> {
        let mut turn = Turn::default();
        let inbox = session.connection.begin_turn();
        let params = json!({"sessionId": session.id, "prompt": prompt});
        let ended = match session.connection.begin("session/prompt", params).await {
            Ok(response) => self.follow(&session, inbox, response, &mut turn).await,
            Err(error) => Ended::Failed(error),
        };
        if let Some(gateway) = &session.gateway {
            gateway.end_run();
        }
        match ended {
            Ended::Answered(response) => {
                session.connection.end_turn();
                let outputs = turn.end(&response);
                // The host counts what goes through its gateway.
                let is_own = session.config.keys == Keys::Own;
                self.slot.keep(held, session);
                self.emit(outputs).await?;
                if let Some(usage) = turn.usage().filter(|_| is_own) {
                    self.ctx.set_usage(usage);
                }
                self.stop_reason(&response)
            }
            Ended::Failed(WireError::Closed) if self.is_reused && turn.is_silent() => {
                session.stop().await;
                Ok(Finish::NotBegun)
            }
            Ended::Failed(error) => {
                let outputs = turn.end(&Value::Null);
                let why = describe(&error, &mut session.process);
                let failure = self.failure(&error, &why);
                match error {
                    // The harness lives, and its session with it.
                    WireError::Refused { .. } => {
                        session.connection.end_turn();
                        self.slot.keep(held, session);
                    }
                    WireError::Closed => session.stop().await,
                }
                self.emit(outputs).await?;
                Err(failure)
            }
            Ended::Cancelled(response) => {
                let slot = Arc::clone(self.slot);
                // The next run of the conversation waits for this.
                self.sessions.tasks.spawn(wind_down(slot, held, session, response));
                Err(RunFailure::cancelled())
            }
        }
    }

    async fn follow(
        &self,
        session: &Session,
        mut inbox: Receiver<Inbound>,
        mut response: Response,
        turn: &mut Turn,
    ) -> Ended {
        let mut questions = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                () = self.ctx.cancellation().cancelled() => return Ended::Cancelled(response),
                Some(()) = questions.next() => {}
                inbound = inbox.recv() => match inbound {
                    Some(Inbound::Update(update)) => {
                        if self.emit(turn.update(&update)).await.is_err() {
                            return Ended::Cancelled(response);
                        }
                    }
                    Some(Inbound::Permission { id, params }) => {
                        let (call, outputs) = turn.asked(&params["toolCall"]);
                        if self.emit(outputs).await.is_err() {
                            return Ended::Cancelled(response);
                        }
                        questions.push(async move {
                            let answer = permission::ask(self.ctx, &call, &params["options"]).await;
                            session.connection.answer(&id, answer).await;
                        });
                    }
                    // It may have answered before it ended.
                    None => return match response.try_recv() {
                        Ok(Ok(response)) => Ended::Answered(response),
                        _ => Ended::Failed(WireError::Closed),
                    },
                },
                // All updates that came before it are in the inbox already, and were taken first.
                answer = &mut response => return match answer {
                    Ok(Ok(response)) => Ended::Answered(response),
                    Ok(Err(error)) => Ended::Failed(error),
                    Err(_) => Ended::Failed(WireError::Closed),
                },
            }
        }
    }

    async fn emit(&self, outputs: Vec<Output>) -> Result<(), RunFailure> {
        for output in outputs {
            match output {
                Output::Delta(text) => self.ctx.delta(&text).await?,
                Output::Result(result) => self.ctx.emit(result).await?,
            }
        }
        Ok(())
    }

    fn stop_reason(&self, response: &Value) -> Result<Finish, RunFailure> {
        match response["stopReason"].as_str() {
            Some("refusal") => Err(RunFailure::new("model.refused", self.texts.refused())),
            Some("cancelled") => Err(RunFailure::cancelled()),
            Some("max_turn_requests") => {
                Err(RunFailure::new("loop.max_rounds", self.texts.too_many_requests()))
            }
            // As other runners end an answer that was cut off.
            Some("max_tokens") => Ok(Finish::Length),
            _ => Ok(Finish::Complete),
        }
    }

    fn failure(&self, error: &WireError, why: &str) -> RunFailure {
        match error {
            _ if self.slot.was_over_memory() => {
                let text = self.texts.over_memory(self.title, self.memory_mb_max);
                RunFailure::new("harness.out_of_memory", text)
            }
            WireError::Closed => {
                RunFailure::new("harness.exited", self.texts.exited(self.title, why)).retryable()
            }
            WireError::Refused { .. } => RunFailure::new("harness.error", why),
        }
    }
}

/// Lets a cancelled turn end, or ends its processes.
async fn wind_down(slot: Arc<Slot>, held: Held, session: Session, response: Response) {
    let params = json!({"sessionId": session.id});
    session.connection.notify("session/cancel", params).await;
    // Questions that arrive from now on are cancelled.
    session.connection.end_turn();
    match tokio::time::timeout(CANCEL_GRACE, response).await {
        Ok(Ok(Ok(_))) => slot.keep(held, session),
        _ => session.stop().await,
    }
}
