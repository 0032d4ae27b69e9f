//! The loop: request the model, execute its tool calls, repeat, reply.
//!
//! Invariant: a run has one terminal result. Every tool call has its result before the next request; after the last
//! round of tools the model is requested once more and may call none.

use crate::client::Client;
use crate::commands;
use crate::config::Config;
use crate::context::Context;
use crate::event;
use crate::knowledge;
use crate::limits::Limits;
use crate::model::{Models, Request};
use crate::record::Record;
use crate::steering::Steering;
use crate::stream::Shown;
use crate::texts::Texts;
use crate::tools::{Executed, Toolbox};
use crate::turn::Turn;
use greenroom_sdk::{
    Message, ModelToolCall, Object, RunCtx, RunFailure, RunResult, SteeringItem, Value, json,
};
use std::collections::HashSet;
use std::time::Duration;

enum State {
    /// Request the model.
    Ask,
    /// Execute the model's tool calls.
    Act(Turn),
    /// Send the model's answer.
    Answer(Turn),
    /// Leave calls to the client, which ends the run.
    HandOver(Vec<ModelToolCall>),
}

struct Agent<'a> {
    ctx: &'a RunCtx,
    config: &'a Config,
    texts: Texts,
    models: Models<'a>,
    toolbox: Toolbox<'a>,
    context: Context,
    limits: Limits,
    steering: Steering<'a>,
    record: Record,
    call_ids: HashSet<String>,
    citations: Vec<Value>,
    /// The last response was empty.
    was_empty: bool,
    /// Responses in a row that the provider could not read.
    unreadable: u32,
}

/// Responses in a row that a provider may fail to read.
const UNREADABLE_MAX: u32 = 3;

pub(crate) async fn run(ctx: &RunCtx) -> Result<(), RunFailure> {
    let config = Config::load(ctx)?;
    if commands::run(ctx, &config).await? {
        return Ok(());
    }
    let limits = Limits::new(&config, Texts::for_text(ctx.text()));
    let (left, time_is_up) = (limits.time_left(), limits.time_is_up());
    let agent = within(left, Agent::start(ctx, &config, limits)).await;
    agent.unwrap_or(Err(time_is_up))?.run().await
}

impl<'a> Agent<'a> {
    async fn start(
        ctx: &'a RunCtx,
        config: &'a Config,
        mut limits: Limits,
    ) -> Result<Self, RunFailure> {
        let texts = Texts::for_text(ctx.text());
        let models = Models::choose(ctx, config)?;
        let retrieved = knowledge::gather(ctx, config).await?;
        let client = Client::read(ctx);
        let (mut extra, citations) = retrieved.map_or_else(Default::default, |retrieved| {
            (vec![retrieved.message], retrieved.citations)
        });
        extra.extend(client.message());
        let mut context = Context::assemble(ctx, config, &models, extra).await?;
        let earlier = context.earlier();
        context.compact(ctx, config, &models, &mut limits).await;
        Ok(Self {
            ctx,
            config,
            texts,
            models,
            toolbox: Toolbox::open(ctx, config, client, &earlier).await?,
            context,
            limits,
            steering: Steering::new(ctx, config, texts),
            record: Record::default(),
            call_ids: HashSet::new(),
            citations,
            was_empty: false,
            unreadable: 0,
        })
    }

    async fn run(mut self) -> Result<(), RunFailure> {
        let mut state = State::Ask;
        loop {
            let left = self.limits.time_left();
            state = match within(left, self.step(state)).await {
                Some(Ok(Some(next))) => next,
                Some(Ok(None)) => return Ok(()),
                Some(Err(failure)) => return Err(failure),
                None => return Err(self.limits.time_is_up()),
            };
        }
    }

    /// One step; `None` after the last.
    async fn step(&mut self, state: State) -> Result<Option<State>, RunFailure> {
        match state {
            State::Ask => self.ask().await.map(Some),
            State::Act(turn) => self.act(turn).await.map(Some),
            State::Answer(turn) => self.answer(turn).await,
            State::HandOver(calls) => self.hand_over(calls).await.map(|()| None),
        }
    }

    async fn ask(&mut self) -> Result<State, RunFailure> {
        self.limits.check()?;
        let joined = self.steering.take().await?;
        self.join(joined);
        // Only rounds of the open question count: an answered one had its own.
        let may_call = self.record.open_rounds() < self.config.max_tool_rounds as usize;
        // After the last round the tools stay in the request, which thus begins as the one before.
        let tools = match self.config.max_tool_rounds {
            0 => Vec::new(),
            _ => self.toolbox.offered().to_vec(),
        };
        let mut turn = loop {
            // Built for every model: the next one may have a smaller window.
            let messages = self.context.request(self.ctx, &mut self.models).await?;
            let toolbox = &self.toolbox;
            let resolve_name = |name: &str| toolbox.resolve_name(name);
            let shown = Shown { used: &self.call_ids, resolve_name: &resolve_name };
            let shown = Client::is_watching(self.ctx).then_some(shown);
            let request = Request { messages, tools: &tools, may_call, shown };
            let response = self.models.request(&request, &mut self.limits);
            match self.steering.watch(response).await? {
                Ok(turn) => break turn,
                Err(failed) => self.models.fall_back(failed)?,
            }
        };
        self.ctx.set_usage(self.limits.usage().clone());
        turn.make_ids_unique(&mut self.call_ids);
        turn.limit_arguments();
        turn.correct_names(|name| self.toolbox.resolve_name(name));
        if turn.is_empty() && turn.finish_reason.as_deref() == Some("content_filter") {
            let model = &self.models.current().model_id;
            return Err(RunFailure::new("model.refused", self.texts.answer_filtered(model)));
        }
        if !may_call {
            turn.calls.clear();
            return match turn.is_empty() {
                true => Err(RunFailure::new("loop.max_rounds", self.texts.round_limit_reached())),
                false => Ok(State::Answer(turn)),
            };
        }
        if turn.is_unreadable() {
            return self.repeat_unreadable();
        }
        self.unreadable = 0;
        if turn.is_empty() {
            let model = &self.models.current().model_id;
            return match std::mem::replace(&mut self.was_empty, true) {
                true => Err(RunFailure::new("model.empty_answer", self.texts.empty_answer(model))),
                false => Ok(State::Ask),
            };
        }
        Ok(if turn.calls.is_empty() { State::Answer(turn) } else { State::Act(turn) })
    }

    /// The model is told that its answer was not readable, and writes it again.
    fn repeat_unreadable(&mut self) -> Result<State, RunFailure> {
        self.unreadable += 1;
        if self.unreadable > UNREADABLE_MAX {
            let model = &self.models.current().model_id;
            return Err(RunFailure::new("model.malformed_call", self.texts.malformed_call(model)));
        }
        self.context.push(event::malformed_call());
        Ok(State::Ask)
    }

    async fn act(&mut self, turn: Turn) -> Result<State, RunFailure> {
        // Text before the calls precedes them in the transcript.
        if !turn.text.trim().is_empty() {
            self.ctx.emit(RunResult::message(&turn.text)).await?;
        }
        self.record.round(&turn, &self.ctx.resources.tools);
        self.context.push(turn.message());
        let (of_client, calls): (Vec<_>, Vec<_>) =
            turn.calls.into_iter().partition(|call| self.toolbox.is_of_client(call));
        if !calls.is_empty() {
            let results = self.toolbox.execute(&calls, &mut self.limits);
            let Executed { messages, warnings } = self.steering.watch(results).await??;
            self.record.warnings(warnings);
            self.context.push_results(self.ctx, &self.models, messages).await;
        }
        Ok(if of_client.is_empty() { State::Ask } else { State::HandOver(of_client) })
    }

    /// Ends the run with calls that the client answers in its next event.
    async fn hand_over(&self, calls: Vec<ModelToolCall>) -> Result<(), RunFailure> {
        for call in calls {
            let started = RunResult::tool_started(call.id, call.name, call.args);
            self.ctx.emit(started).await?;
        }
        // Without text: only for the run that continues.
        let metadata = Some(self.metadata());
        let recorded = Message { metadata, ..Message::assistant(String::new()) };
        self.ctx.emit(RunResult::message_of(recorded)).await?;
        let usage = self.limits.usage().clone();
        self.ctx.emit(RunResult::completed("tool_calls").with_usage(usage)).await
    }

    /// What later runs need to know of this one.
    fn metadata(&self) -> Object {
        let cuts = Value::Object(self.context.cuts());
        let tools = json!(self.toolbox.chosen());
        self.record.metadata([("cut", cuts), ("tools", tools)])
    }

    /// Sends the answer. Messages that arrived during it are the next question, unless a limit is reached: then they get
    /// their own run.
    async fn answer(&mut self, turn: Turn) -> Result<Option<State>, RunFailure> {
        let joined = match self.limits.check() {
            Ok(()) => self.steering.take().await?,
            Err(_) => Vec::new(),
        };
        if joined.is_empty() {
            self.send_answer(&turn).await?;
            return self.end(&turn).await.map(|()| None);
        }
        self.record.answer();
        self.context.push(turn.message());
        self.join(joined);
        self.send_answer(&turn).await?;
        self.was_empty = false;
        Ok(Some(State::Ask))
    }

    /// A truncated or filtered answer ends with that reason.
    async fn end(&self, turn: &Turn) -> Result<(), RunFailure> {
        match turn.finish_reason.as_deref() {
            Some(reason @ ("length" | "content_filter")) => {
                let usage = self.limits.usage().clone();
                self.ctx.emit(RunResult::completed(reason).with_usage(usage)).await
            }
            _ => Ok(()),
        }
    }

    async fn send_answer(&self, turn: &Turn) -> Result<(), RunFailure> {
        let mut metadata = self.metadata();
        let citations = knowledge::cited(&turn.text, &self.citations);
        if !citations.is_empty() {
            metadata.insert("citations".to_owned(), Value::Array(citations));
        }
        if let Some(reason) = turn.finish_reason.as_deref().filter(|reason| *reason != "stop") {
            metadata.insert("finish_reason".to_owned(), reason.into());
        }
        let message = Message {
            segments: turn.shown_segments(),
            metadata: (!metadata.is_empty()).then_some(metadata),
            ..Message::assistant(turn.text.clone())
        };
        self.ctx.emit(RunResult::message_of(message)).await
    }

    /// Messages that arrived meanwhile become part of the question.
    fn join(&mut self, items: Vec<SteeringItem>) {
        for item in items {
            self.context.push(event::steered(&item, self.config));
            self.record.joined(item.event_id);
        }
    }
}

/// The future's output; `None` after a timeout.
async fn within<T>(left: Option<Duration>, future: impl Future<Output = T>) -> Option<T> {
    match left {
        Some(left) => tokio::time::timeout(left, future).await.ok(),
        None => Some(future.await),
    }
}
