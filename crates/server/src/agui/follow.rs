//! A stream of AG-UI events from a run, live.
//!
//! Invariant: it ends with exactly one terminal event, whatever becomes of the run, the host or the speed of the
//! reader: a reader that lags is brought up from the store, and a run whose results are gone ends as it ended.

use super::event::Event;
use super::interrupt;
use super::translate::Translator;
use crate::router::App;
use crate::standing::Standing;
use crate::stream::{KEEP_ALIVE, respond};
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

/// So long nothing comes before it is looked whether the run waits for an answer: what it told before it asked
/// is then shown first.
const QUIET: Duration = Duration::from_millis(50);

/// Where a stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    /// The run's beginning.
    Start,
    /// Behind this number: an earlier stream ended there, in good order.
    Behind(i64),
    /// Behind this number: an earlier stream was cut off there, and this one is the rest of it.
    CutOff(i64),
}

/// What to follow.
pub(crate) struct Following {
    pub(crate) workspace: String,
    /// Of whoever reads.
    pub(crate) language: Language,
    pub(crate) translator: Translator,
    pub(crate) from: From,
    /// Events that come before those of the run.
    pub(crate) first: Vec<Event>,
    /// Whoever reads may answer what the run asks: the stream ends with the question.
    pub(crate) answers: bool,
    /// The run may have asked something before.
    pub(crate) may_wait: bool,
    pub(crate) standing: Standing,
}

struct Follow {
    app: App,
    what: Following,
    results: Subscription,
    after: i64,
    /// Something came since the last look at the run.
    moved: bool,
    asked: broadcast::Receiver<Arc<str>>,
    close: CancellationToken,
    _open: TaskTrackerToken,
    first: BytesMut,
}

/// Follows a run; nothing when there is no such run.
pub(crate) async fn follow(app: &App, what: Following) -> Result<Option<Response>, StoreError> {
    let asked = app.host.approval_requests();
    let run_id = what.translator.stream().run_id.clone();
    let Some(results) = app.host.subscribe(&what.workspace, &run_id, 0).await? else {
        return Ok(None);
    };
    let mut first = BytesMut::new();
    what.first.iter().for_each(|event| event.write(&mut first, None));
    let (close, open) = (app.streams.close.clone(), app.streams.open.token());
    let follow = Follow {
        app: app.clone(),
        what,
        results,
        after: 0,
        moved: false,
        asked,
        close,
        _open: open,
        first,
    };
    Ok(Some(respond(stream::unfold(follow, |mut follow| async move {
        let bytes = follow.next().await?;
        Some((bytes, follow))
    }))))
}

impl Follow {
    /// The next bytes; nothing once the stream is complete.
    async fn next(&mut self) -> Option<Bytes> {
        if !self.first.is_empty() {
            return Some(self.first.split().freeze());
        }
        while !self.what.translator.is_over() {
            let bytes = self.step().await;
            if !bytes.is_empty() {
                return Some(bytes);
            }
        }
        None
    }

    async fn step(&mut self) -> Bytes {
        let quiet = if self.what.may_wait { QUIET } else { KEEP_ALIVE };
        tokio::select! {
            biased;
            () = self.what.standing.lost() => {
                let message = "whoever opened this stream is signed out: sign in again";
                frames(self.what.translator.broken("unauthorized", message), None)
            }
            next = self.results.next() => match next {
                Ok(Some(part)) => {
                    let records = part.batch.records.iter().filter(|one| one.sequence > self.after);
                    let records: Vec<ResultRecord> = records.cloned().collect();
                    self.take(&records).await
                }
                Ok(None) => self.look_again().await,
                Err(error) => self.lost(&error),
            },
            // What has come is seen before the end.
            () = self.close.cancelled() => {
                let message = "the host is stopping: come back with the same `runId`";
                frames(self.what.translator.broken(run_code::HOST_INTERRUPTED, message), None)
            }
            asked = self.asked.recv(), if self.what.answers && !self.what.may_wait => {
                let run_id = &self.what.translator.stream().run_id;
                // One that lags behind the news does not know whether it has missed some of its own.
                self.what.may_wait = asked.map_or(true, |asking| *asking == **run_id);
                Bytes::new()
            }
            () = tokio::time::sleep(quiet) => match self.what.may_wait {
                true => self.ask().await,
                false => Bytes::from_static(b": keep-alive\n\n"),
            },
        }
    }

    async fn take(&mut self, records: &[ResultRecord]) -> Bytes {
        let mut out = BytesMut::new();
        for record in records {
            self.moved = true;
            let number = record.sequence;
            let shown = match self.what.from {
                From::Start => true,
                From::Behind(last) | From::CutOff(last) => number > last,
            };
            if let From::Behind(last) = self.what.from
                && (self.after <= last && number > last)
            {
                // The stream before this one closed what it had open.
                self.what.translator.close();
            }
            self.after = number;
            if record.kind == kind::RUN_COMPLETED
                && self.what.translator.asked
                && self.what.answers
                && shown
            {
                let asked = self.ask().await;
                out.extend_from_slice(&asked);
                if !asked.is_empty() {
                    break;
                }
            }
            let recorded = self.recorded(record, shown).await;
            let events = self.what.translator.take(record, recorded);
            if shown {
                write(&mut out, &events, Some(number));
            }
        }
        out.freeze()
    }

    /// The host's own record of a call that the runner tells the end of.
    async fn recorded(&self, record: &ResultRecord, shown: bool) -> Option<serde_json::Value> {
        if record.kind != kind::TOOL_CALL_COMPLETED || !shown {
            return None;
        }
        let data: serde_json::Value = serde_json::from_str(record.data.get()).ok()?;
        let (call, run_id) =
            (data["tool_call_id"].as_str()?, &self.what.translator.stream().run_id);
        let Following { workspace, language, .. } = &self.what;
        let output = self.app.host.tool_output(workspace, run_id, call, *language).await;
        output.unwrap_or_else(|error| {
            tracing::warn!(%error, "the record of a tool call cannot be read");
            None
        })
    }

    /// Ends the stream with what the run waits for, if it does.
    async fn ask(&mut self) -> Bytes {
        self.what.may_wait = false;
        if !self.what.answers {
            return Bytes::new();
        }
        let (workspace, translator) = (&self.what.workspace, &mut self.what.translator);
        let run_id = translator.stream().run_id.clone();
        match interrupt::pending(&self.app, workspace, &run_id).await {
            Ok(approvals) if approvals.is_empty() => Bytes::new(),
            Ok(approvals) => {
                let place = (self.after, self.what.language);
                let interrupts = approvals.iter().map(|approval| {
                    interrupt::of(approval, place, |call| translator.call_id(call))
                });
                let interrupts = interrupts.collect();
                frames(translator.interrupted(interrupts), None)
            }
            Err(error) => self.lost(&error),
        }
    }

    /// The subscription is over and the run is not, or its results are gone.
    async fn look_again(&mut self) -> Bytes {
        let (workspace, run_id) = (&self.what.workspace, &self.what.translator.stream().run_id);
        let run = match self.app.host.run(workspace, run_id).await {
            Ok(run) => run,
            Err(error) => return self.lost(&error),
        };
        let is_open = |run: &RunView| run.status.is_open();
        if !self.moved && !run.as_ref().is_some_and(is_open) {
            return self.as_it_ended(run.as_ref());
        }
        self.moved = false;
        match self.app.host.subscribe(workspace, run_id, self.after).await {
            Ok(Some(results)) => {
                self.results = results;
                Bytes::new()
            }
            Ok(None) => self.as_it_ended(None),
            Err(error) => self.lost(&error),
        }
    }

    fn as_it_ended(&mut self, run: Option<&RunView>) -> Bytes {
        let translator = &mut self.what.translator;
        let error = run.and_then(|run| run.error.clone());
        frames(
            match (run.map(|run| run.status), error) {
                (Some(RunStatus::Completed), _) => translator.ended(),
                (_, Some(error)) => translator.broken(&error.code, error.message),
                _ => translator.broken("not_found", "the results of this run are gone"),
            },
            None,
        )
    }

    fn lost(&mut self, error: &StoreError) -> Bytes {
        tracing::warn!(%error, "an AG-UI reader was cut off");
        let message = "the run cannot be followed now: come back with the same `runId`";
        frames(self.what.translator.broken("runtime_error", message), None)
    }
}

pub(crate) fn frames(events: Vec<Event>, number: Option<i64>) -> Bytes {
    let mut out = BytesMut::new();
    write(&mut out, &events, number);
    out.freeze()
}

/// The last event of a result carries its number: a reader that has it has them all.
fn write(out: &mut BytesMut, events: &[Event], number: Option<i64>) {
    for (index, event) in events.iter().enumerate() {
        event.write(out, number.filter(|_| index + 1 == events.len()));
    }
}
