//! A live stream of AG-UI events for a run.
//!
//! Invariant: it ends with exactly one terminal event, whatever happens to the run or the host. A slow reader
//! catches up from the store; a run whose results were removed ends with its recorded status.

use super::event::Event;
use super::interrupt;
use super::translate::Translator;
use crate::access::Caller;
use crate::response::Problem;
use crate::router::App;
use crate::stream::{KEEP_ALIVE, respond};
use crate::stream_access::StreamAccess;
use axum::response::Response;
use bytes::{Bytes, BytesMut};
use futures_util::stream;
use greenroom_host::Subscription;
use greenroom_protocol::error::run_code;
use greenroom_protocol::result::kind;
use greenroom_protocol::{RunStatus, RunView};
use greenroom_store::StoreError;
use greenroom_store::types::ResultRecord;
use greenroom_tools::ui::Language;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Idle time before checking whether the run waits for an approval, so that its earlier results are sent
/// first.
const QUIET_PERIOD: Duration = Duration::from_millis(50);

/// Where a stream starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamStart {
    /// At the first result.
    Beginning,
    /// After this sequence number, where an earlier stream ended regularly.
    After(i64),
    /// After this sequence number, where an earlier stream was interrupted; this one continues it.
    Reconnect(i64),
}

/// The query parameter of [`OnDisconnect`].
pub(crate) const ON_DISCONNECT: &str = "on_disconnect";

/// What happens to a run whose reader disconnects before the end of the stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnDisconnect {
    /// It continues.
    Continue,
    /// It is cancelled: for a server between the user and the host, which disconnects only to stop the run.
    Stop,
}

impl OnDisconnect {
    pub(crate) fn parse(given: Option<&str>, caller: &Caller) -> Result<Self, Problem> {
        match given {
            None | Some("continue") => Ok(Self::Continue),
            Some("stop") => caller.require_cancel().map(|()| Self::Stop),
            Some(_) => Err(Problem::invalid("`on_disconnect` is `continue` or `stop`")),
        }
    }
}

pub(crate) struct FollowOptions {
    pub(crate) workspace: String,
    pub(crate) language: Language,
    pub(crate) translator: Translator,
    pub(crate) from: StreamStart,
    /// Events before those of the run.
    pub(crate) first: Vec<Event>,
    /// The reader may answer approvals: the stream ends with the question.
    pub(crate) answers: bool,
    /// The run may already be waiting for an approval.
    pub(crate) may_be_waiting: bool,
    pub(crate) on_disconnect: OnDisconnect,
    pub(crate) access: StreamAccess,
}

struct Follower {
    app: App,
    options: FollowOptions,
    results: Subscription,
    after: i64,
    /// Results arrived since the last subscription.
    progressed: bool,
    asked: broadcast::Receiver<Arc<str>>,
    close: CancellationToken,
    _open: TaskTrackerToken,
    first: BytesMut,
}

impl Drop for Follower {
    fn drop(&mut self) {
        let FollowOptions { workspace, translator, on_disconnect, .. } = &self.options;
        if *on_disconnect == OnDisconnect::Stop && !translator.is_over() {
            self.app.host.cancel_later(workspace, &translator.stream().run_id);
        }
    }
}

/// Follows a run; `None` if it does not exist.
pub(crate) async fn follow(
    app: &App,
    options: FollowOptions,
) -> Result<Option<Response>, StoreError> {
    let asked = app.host.approval_requests();
    let run_id = options.translator.stream().run_id.clone();
    let Some(results) = app.host.subscribe(&options.workspace, &run_id, 0).await? else {
        return Ok(None);
    };
    let mut first = BytesMut::new();
    options.first.iter().for_each(|event| event.write(&mut first, None));
    let (close, open) = (app.streams.close.clone(), app.streams.open.token());
    let follower = Follower {
        app: app.clone(),
        options,
        results,
        after: 0,
        progressed: false,
        asked,
        close,
        _open: open,
        first,
    };
    Ok(Some(respond(stream::unfold(follower, |mut follower| async move {
        let bytes = follower.next().await?;
        Some((bytes, follower))
    }))))
}

impl Follower {
    /// The next bytes; `None` once the stream is complete.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.first.is_empty() {
            return Some(self.first.split().freeze());
        }
        while !self.options.translator.is_over() {
            let bytes = self.step().await;
            if !bytes.is_empty() {
                return Some(bytes);
            }
        }
        None
    }

    async fn step(&mut self) -> Bytes {
        let quiet = if self.options.may_be_waiting { QUIET_PERIOD } else { KEEP_ALIVE };
        tokio::select! {
            biased;
            () = self.options.access.revoked() => {
                let message = "signed out: sign in again";
                frames(self.options.translator.abort("unauthorized", message), None)
            }
            next = self.results.next() => match next {
                Ok(Some(part)) => {
                    let records = part.batch.records.iter().filter(|one| one.sequence > self.after);
                    let records: Vec<ResultRecord> = records.cloned().collect();
                    self.take(&records).await
                }
                Ok(None) => self.resubscribe().await,
                Err(error) => self.abort(&error),
            },
            // Results are sent before the end.
            () = self.close.cancelled() => {
                let message = "the host is stopping: reconnect with the same `runId`";
                frames(self.options.translator.abort(run_code::HOST_INTERRUPTED, message), None)
            }
            asked = self.asked.recv(), if self.options.answers && !self.options.may_be_waiting => {
                let run_id = &self.options.translator.stream().run_id;
                // A lagging receiver may have missed a notification for this run.
                self.options.may_be_waiting = asked.map_or(true, |asking| *asking == **run_id);
                Bytes::new()
            }
            () = tokio::time::sleep(quiet) => match self.options.may_be_waiting {
                true => self.interrupt_if_waiting().await,
                false => Bytes::from_static(b": keep-alive\n\n"),
            },
        }
    }

    async fn take(&mut self, records: &[ResultRecord]) -> Bytes {
        let mut out = BytesMut::new();
        for record in records {
            self.progressed = true;
            let number = record.sequence;
            let shown = match self.options.from {
                StreamStart::Beginning => true,
                StreamStart::After(last) | StreamStart::Reconnect(last) => number > last,
            };
            if let StreamStart::After(last) = self.options.from
                && (self.after <= last && number > last)
            {
                // The earlier stream already ended its open message.
                self.options.translator.close();
            }
            self.after = number;
            if record.kind == kind::RUN_COMPLETED
                && self.options.translator.action_requested
                && self.options.answers
                && shown
            {
                let interrupt = self.interrupt_if_waiting().await;
                out.extend_from_slice(&interrupt);
                if !interrupt.is_empty() {
                    break;
                }
            }
            let recorded = self.tool_record(record, shown).await;
            let events = self.options.translator.take(record, recorded);
            if shown {
                write(&mut out, &events, Some(number));
            }
        }
        out.freeze()
    }

    /// The host's own record of a completed tool call.
    async fn tool_record(&self, record: &ResultRecord, shown: bool) -> Option<serde_json::Value> {
        if record.kind != kind::TOOL_CALL_COMPLETED || !shown {
            return None;
        }
        let data: serde_json::Value = serde_json::from_str(record.data.get()).ok()?;
        let (call, run_id) =
            (data["tool_call_id"].as_str()?, &self.options.translator.stream().run_id);
        let FollowOptions { workspace, language, .. } = &self.options;
        let output = self.app.host.tool_output(workspace, run_id, call, *language).await;
        output.unwrap_or_else(|error| {
            tracing::warn!(%error, run_id, tool_call_id = call, "cannot read the record of a tool call");
            None
        })
    }

    /// Ends the stream with the pending approvals of the run, if any.
    async fn interrupt_if_waiting(&mut self) -> Bytes {
        self.options.may_be_waiting = false;
        if !self.options.answers {
            return Bytes::new();
        }
        let (workspace, translator) = (&self.options.workspace, &mut self.options.translator);
        let run_id = translator.stream().run_id.clone();
        match interrupt::pending(&self.app, workspace, &run_id).await {
            Ok(approvals) if approvals.is_empty() => Bytes::new(),
            Ok(approvals) => {
                let position = (self.after, self.options.language);
                let interrupts = approvals.iter().map(|approval| {
                    interrupt::from_approval(approval, position, |call| translator.call_id(call))
                });
                let interrupts = interrupts.collect();
                frames(translator.interrupted(interrupts), None)
            }
            Err(error) => self.abort(&error),
        }
    }

    /// The subscription ended but the run did not, or its results were removed.
    async fn resubscribe(&mut self) -> Bytes {
        let (workspace, run_id) =
            (&self.options.workspace, &self.options.translator.stream().run_id);
        let run = match self.app.host.run(workspace, run_id).await {
            Ok(run) => run,
            Err(error) => return self.abort(&error),
        };
        let is_open = |run: &RunView| run.status.is_open();
        if !self.progressed && !run.as_ref().is_some_and(is_open) {
            return self.finish_by_status(run.as_ref());
        }
        self.progressed = false;
        match self.app.host.subscribe(workspace, run_id, self.after).await {
            Ok(Some(results)) => {
                self.results = results;
                Bytes::new()
            }
            Ok(None) => self.finish_by_status(None),
            Err(error) => self.abort(&error),
        }
    }

    fn finish_by_status(&mut self, run: Option<&RunView>) -> Bytes {
        let translator = &mut self.options.translator;
        let error = run.and_then(|run| run.error.clone());
        frames(
            match (run.map(|run| run.status), error) {
                (Some(RunStatus::Completed), _) => translator.finish(),
                (_, Some(error)) => translator.abort(&error.code, error.message),
                _ => translator.abort("not_found", "the results of this run were removed"),
            },
            None,
        )
    }

    fn abort(&mut self, error: &StoreError) -> Bytes {
        tracing::warn!(%error, run_id = self.options.translator.stream().run_id, "AG-UI stream aborted by a store error");
        let message = "the run cannot be followed now: reconnect with the same `runId`";
        frames(self.options.translator.abort("runtime_error", message), None)
    }
}

pub(crate) fn frames(events: Vec<Event>, number: Option<i64>) -> Bytes {
    let mut out = BytesMut::new();
    write(&mut out, &events, number);
    out.freeze()
}

/// Only the last event of a result carries its number: a reader that has it has received all of them.
fn write(out: &mut BytesMut, events: &[Event], number: Option<i64>) {
    for (index, event) in events.iter().enumerate() {
        event.write(out, number.filter(|_| index + 1 == events.len()));
    }
}
