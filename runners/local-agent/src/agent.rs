//! The loop: ask the model, carry out what it asks for, ask again, answer.
//!
//! Invariant: a run has one terminal. Every call of the model has its result before the model is asked again;
//! after the last round of tools the model is asked once more, without tools.

use crate::commands;
use crate::config::Config;
use crate::context::Context;
use crate::event;
use crate::knowledge;
use crate::limits::Limits;
use crate::model::{Models, Request};
use crate::steering::Steering;
use crate::texts::Texts;
use crate::tools::Toolbox;
use crate::turn::Turn;
use greenroom_sdk::{Message, Object, RunCtx, RunFailure, RunResult, SteeringItem, Value, json};
use std::collections::HashSet;
use std::time::Duration;

/// Where the loop stands.
enum State {
    /// The model is to be asked.
    Ask,
    /// The model wants tools.
    Act(Turn),
    /// The model has answered.
    Answer(Turn),
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
    /// The ids of the calls of each turn so far; none in one that has answered before the last.
    rounds: Vec<Vec<String>>,
    /// The arguments of calls that never reach the host: nobody else keeps them.
    own_arguments: Object,
    /// The events that joined the run, and behind how many turns.
    steered: Object,
    call_ids: HashSet<String>,
    citations: Vec<Value>,
    /// The last answer was empty.
    was_empty: bool,
}

/// Answers the run's event.
pub(crate) async fn run(ctx: &RunCtx) -> Result<(), RunFailure> {
    let config = Config::of(ctx)?;
    if config.commands && commands::run(ctx, &config).await? {
        return Ok(());
    }
    let limits = Limits::new(&config, Texts::for_text(ctx.text()));
    let (left, time_is_up) = (limits.time_left(), limits.time_is_up());
    let begun = within(left, Agent::begin(ctx, &config, limits)).await;
    begun.unwrap_or(Err(time_is_up))?.run().await
}

impl<'a> Agent<'a> {
    async fn begin(
        ctx: &'a RunCtx,
        config: &'a Config,
        mut limits: Limits,
    ) -> Result<Self, RunFailure> {
        let texts = Texts::for_text(ctx.text());
        let models = Models::choose(ctx, config)?;
        let found = knowledge::gather(ctx, config).await?;
        let (passages, citations) =
            found.map_or_else(Default::default, |found| (vec![found.message], found.citations));
        let mut context = Context::assemble(ctx, config, &models, passages).await?;
        context.compact(ctx, config, &models, &mut limits).await;
        Ok(Self {
            ctx,
            config,
            texts,
            models,
            toolbox: Toolbox::open(ctx, config).await?,
            context,
            limits,
            steering: Steering::new(ctx, config, texts),
            rounds: Vec::new(),
            own_arguments: Object::new(),
            steered: Object::new(),
            call_ids: HashSet::new(),
            citations,
            was_empty: false,
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
        }
    }

    async fn ask(&mut self) -> Result<State, RunFailure> {
        self.limits.check()?;
        let joined = self.steering.take().await?;
        self.join(joined);
        // Those for the question that is open: one that was answered has had its own.
        let rounds = self.rounds.iter().rev().take_while(|calls| !calls.is_empty()).count();
        let may_call = rounds < self.config.max_tool_rounds as usize;
        let tools = if may_call { self.toolbox.offered().to_vec() } else { Vec::new() };
        let mut turn = loop {
            // Anew for every model: the next one may take less.
            let messages = self.context.request(self.ctx, &mut self.models).await?;
            let request = Request { messages, tools: &tools };
            let asked = self.models.ask(&request, &mut self.limits);
            match self.steering.watch(asked).await? {
                Ok(turn) => break turn,
                Err(broken) => self.models.fall_back(broken)?,
            }
        };
        self.ctx.set_usage(self.limits.usage().clone());
        turn.distinguish(&mut self.call_ids);
        turn.limit_arguments();
        turn.correct(|name| self.toolbox.meant(name));
        if turn.is_empty() && turn.finish_reason.as_deref() == Some("content_filter") {
            let model = &self.models.current().model_id;
            return Err(RunFailure::new("model.refused", self.texts.refused(model)));
        }
        if !may_call {
            turn.calls.clear();
            return match turn.is_empty() {
                true => Err(RunFailure::new("loop.max_rounds", self.texts.rounds_used_up())),
                false => Ok(State::Answer(turn)),
            };
        }
        if turn.is_empty() {
            let model = &self.models.current().model_id;
            return match std::mem::replace(&mut self.was_empty, true) {
                true => Err(RunFailure::new("model.empty_answer", self.texts.empty_answer(model))),
                false => Ok(State::Ask),
            };
        }
        Ok(if turn.calls.is_empty() { State::Answer(turn) } else { State::Act(turn) })
    }

    async fn act(&mut self, turn: Turn) -> Result<State, RunFailure> {
        // What was said before the calls stands before them in the transcript.
        if !turn.text.trim().is_empty() {
            self.ctx.emit(RunResult::message(&turn.text)).await?;
        }
        self.rounds.push(turn.calls.iter().map(|call| call.id.clone()).collect());
        let granted = &self.ctx.resources.tools;
        let own =
            turn.calls.iter().filter(|call| granted.iter().all(|had| had.tool_name != call.name));
        self.own_arguments.extend(own.map(|call| (call.id.clone(), call.args.clone())));
        self.context.push(turn.message());
        let carried_out = self.toolbox.carry_out(&turn.calls, &mut self.limits);
        for result in self.steering.watch(carried_out).await?? {
            self.context.push(result);
        }
        Ok(State::Ask)
    }

    /// Tells the answer. Messages that came during it are the next question, unless there is nothing left to
    /// answer them with: then they get a run of their own.
    async fn answer(&mut self, turn: Turn) -> Result<Option<State>, RunFailure> {
        let joined = match self.limits.check() {
            Ok(()) => self.steering.take().await?,
            Err(_) => Vec::new(),
        };
        if joined.is_empty() {
            self.tell(&turn).await?;
            return self.end(&turn).await.map(|()| None);
        }
        self.rounds.push(Vec::new());
        self.context.push(turn.message());
        self.join(joined);
        self.tell(&turn).await?;
        self.was_empty = false;
        Ok(Some(State::Ask))
    }

    /// A run whose answer is not whole ends with the reason; any other ends by itself.
    async fn end(&self, turn: &Turn) -> Result<(), RunFailure> {
        match turn.finish_reason.as_deref() {
            Some(reason @ ("length" | "content_filter")) => {
                let usage = self.limits.usage().clone();
                self.ctx.emit(RunResult::completed(reason).with_usage(usage)).await
            }
            _ => Ok(()),
        }
    }

    async fn tell(&self, turn: &Turn) -> Result<(), RunFailure> {
        let mut metadata = Object::new();
        if !self.rounds.is_empty() {
            metadata.insert("rounds".to_owned(), json!(self.rounds));
        }
        let told = [("arguments", &self.own_arguments), ("steered", &self.steered)];
        for (key, value) in told.into_iter().filter(|(_, value)| !value.is_empty()) {
            metadata.insert(key.to_owned(), Value::Object(value.clone()));
        }
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

    /// Messages that came meanwhile are part of the question from here on.
    fn join(&mut self, items: Vec<SteeringItem>) {
        for item in items {
            self.context.push(event::steered(&item, self.config));
            self.steered.insert(item.event_id, self.rounds.len().into());
        }
    }
}

/// The future's output; `None` when the time is up before.
async fn within<T>(left: Option<Duration>, future: impl Future<Output = T>) -> Option<T> {
    match left {
        Some(left) => tokio::time::timeout(left, future).await.ok(),
        None => Some(future.await),
    }
}
