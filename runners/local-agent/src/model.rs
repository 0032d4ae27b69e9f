//! The model of a run: the one that was chosen, and those that stand in for it.
//!
//! Invariant: the host retries, the agent falls back; never to another model once a part of an answer came,
//! and never for a refusal that another model would not change. A silent model does not hold the run.

use crate::config::{Config, ToolCalling};
use crate::limits::Limits;
use crate::prompted::{self, Parsed, Screen};
use crate::texts::Texts;
use crate::turn::Turn;
use greenroom_sdk::protocol::{MessageContent, ModelResource};
use greenroom_sdk::{
    CountTokensParams, ModelInvokeParams, ModelMessage, ModelPermission, ModelStreamItem, Object,
    ProviderResponse, Role, RunCtx, RunFailure, ToolResource, Value, json,
};
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::timeout;

/// The conversation's own choice, made with `/model`.
pub(crate) const CHOSEN_MODEL: &str = "local_agent.model";

/// Codes that another model does not change.
const FINAL_CODES: [&str; 4] = ["unauthorized", "budget_exceeded", "cancelled", "limit.time"];

/// One question to the model.
pub(crate) struct Request<'r> {
    pub(crate) messages: Vec<ModelMessage>,
    /// What the model may call; none: it must answer.
    pub(crate) tools: &'r [ToolResource],
}

pub(crate) struct Models<'a> {
    ctx: &'a RunCtx,
    config: &'a Config,
    texts: Texts,
    /// The chosen one first, then those that stand in, in their order.
    chain: Vec<&'a ModelResource>,
    current: usize,
}

/// An answer that did not come to its end.
pub(crate) struct Broken {
    failure: RunFailure,
    /// A part of it had come.
    begun: bool,
}

impl<'a> Models<'a> {
    pub(crate) fn choose(ctx: &'a RunCtx, config: &'a Config) -> Result<Self, RunFailure> {
        let granted: Vec<&ModelResource> = ctx.resources.models.iter().filter(talks).collect();
        let find = |wanted: &str| granted.iter().copied().find(|model| model.model_id == wanted);
        let chosen = ctx.state.conversation.get(CHOSEN_MODEL).and_then(Value::as_str);
        // A choice of the past that is no longer granted is forgotten.
        let first = match (chosen.and_then(find), config.model.as_str()) {
            (Some(chosen), _) => Some(chosen),
            (None, "") => granted.first().copied(),
            (None, wanted) => find(wanted),
        };
        let texts = Texts::for_text(ctx.text());
        let Some(first) = first else {
            return Err(RunFailure::new("agent.no_model", texts.no_model(&config.model)));
        };
        let mut chain = vec![first];
        let names = config.fallback_models.iter();
        chain.extend(names.filter_map(|name| find(name)).filter(|model| **model != *first));
        Ok(Self { ctx, config, texts, chain, current: 0 })
    }

    pub(crate) fn current(&self) -> &'a ModelResource {
        self.chain[self.current]
    }

    /// Tokens that the model takes in all, question and answer.
    pub(crate) fn window(&self) -> u64 {
        let known = self.current().metadata.get("context_window").and_then(Value::as_u64);
        known.unwrap_or(self.config.context_tokens).max(1)
    }

    /// How many tokens the messages are; an estimate when the host cannot count.
    pub(crate) async fn count(&self, messages: &[ModelMessage]) -> u64 {
        let model_id = self.current().model_id.clone();
        let params = CountTokensParams { model_id, messages: Some(messages.to_vec()), text: None };
        match self.ctx.models().count_tokens(params).await {
            Ok(tokens) => tokens,
            Err(_) => estimate(messages),
        }
    }

    /// One answer of text, told to nobody; the run pays for it as for any other.
    pub(crate) async fn text(
        &self,
        messages: Vec<ModelMessage>,
        limits: &mut Limits,
    ) -> Result<String, RunFailure> {
        limits.check()?;
        let params = self.params(messages, &[]);
        let answer = timeout(self.patience(), self.ctx.models().invoke(params)).await;
        let response = answer.map_err(|_| self.silent())??;
        limits.count(usage(&response).unwrap_or(&Object::new()));
        self.ctx.set_usage(limits.usage().clone());
        Ok(response.text())
    }

    /// Moves on to the next model after an answer that broke; fails where another one would not help.
    pub(crate) fn fall_back(&mut self, broken: Broken) -> Result<(), RunFailure> {
        let is_last = self.current + 1 == self.chain.len();
        let is_final = FINAL_CODES.contains(&broken.failure.code.as_str());
        if broken.begun || is_last || is_final || self.ctx.is_cancelled() {
            return Err(broken.failure);
        }
        self.current += 1;
        Ok(())
    }

    /// Asks, and shows the answer as it comes.
    pub(crate) async fn ask(
        &self,
        request: &Request<'_>,
        limits: &mut Limits,
    ) -> Result<Turn, Broken> {
        let before = |failure| Broken { failure, begun: false };
        let params = self.params(request.messages.clone(), request.tools);
        if !is_granted(self.current(), ModelPermission::Stream) {
            let answer = timeout(self.patience(), self.ctx.models().invoke(params)).await;
            let answer = answer.map_err(|_| before(self.silent()))?;
            let response = answer.map_err(|error| before(error.into()))?;
            return self.whole(response, request, limits).await;
        }
        let opened = self.ctx.models().stream(params).await;
        let mut stream = opened.map_err(|error| before(error.into()))?;
        let mut answer = Answer::new(self.ctx, self.screen(request));
        loop {
            let item = match timeout(self.patience(), stream.next()).await {
                Ok(Some(Ok(item))) => item,
                Ok(None) => break,
                Ok(Some(Err(error))) => return Err(answer.broken(error.into())),
                Err(_) => return Err(answer.broken(self.silent())),
            };
            let taken = answer.take(item).await;
            taken.map_err(|failure| Broken { failure, begun: true })?;
        }
        let response = stream.response().cloned().unwrap_or_default();
        limits.count(usage(&response).or(answer.usage.as_ref()).unwrap_or(&Object::new()));
        self.turn(answer, response).await
    }

    /// An answer that came in one piece.
    async fn whole(
        &self,
        response: ProviderResponse,
        request: &Request<'_>,
        limits: &mut Limits,
    ) -> Result<Turn, Broken> {
        limits.count(usage(&response).unwrap_or(&Object::new()));
        let mut answer = Answer::new(self.ctx, self.screen(request));
        let begun = |failure| Broken { failure, begun: true };
        let text = response.text();
        answer.take(ModelStreamItem::TextDelta { text }).await.map_err(begun)?;
        let calls = response.segments.iter().filter_map(|segment| segment.get("tool_call"));
        for call in calls.filter_map(|call| serde_json::from_value(call.clone()).ok()) {
            answer.take(ModelStreamItem::ToolCallEnd(call)).await.map_err(begun)?;
        }
        self.turn(answer, response).await
    }

    async fn turn(&self, answer: Answer<'_>, response: ProviderResponse) -> Result<Turn, Broken> {
        let told = response.metadata.get("finish_reason").and_then(Value::as_str);
        let finish_reason = answer.finish_reason.clone().or(told.map(str::to_owned));
        let Some(screen) = answer.screen else {
            let Answer { text, calls, .. } = answer;
            return Ok(Turn { text, calls, segments: response.segments, finish_reason });
        };
        let (rest, Parsed { text_before: text, calls }) = screen.finish();
        let shown = if rest.is_empty() { Ok(()) } else { self.ctx.delta(&rest).await };
        shown.map_err(|failure| Broken { failure, begun: true })?;
        Ok(Turn { text, calls, segments: Vec::new(), finish_reason })
    }

    fn params(&self, mut messages: Vec<ModelMessage>, tools: &[ToolResource]) -> ModelInvokeParams {
        let options = self.config.model_options();
        let mut offered = None;
        if self.is_prompted() {
            messages = prompted::as_text(&messages);
            if !tools.is_empty() {
                add_to_prompt(&mut messages, &prompted::catalogue(tools));
            }
        } else if !tools.is_empty() {
            offered = Some(tools.iter().map(offer).collect());
        }
        ModelInvokeParams {
            tools: offered,
            extra_args: (!options.is_empty()).then_some(options),
            ..ModelInvokeParams::new(&self.current().model_id, messages)
        }
    }

    /// The model knows tools from its prompt alone.
    pub(crate) fn is_prompted(&self) -> bool {
        match self.config.tool_calling {
            ToolCalling::Native => false,
            ToolCalling::Prompted => true,
            ToolCalling::Auto => self.current().metadata.get("tool_calling") == Some(&false.into()),
        }
    }

    /// For answers that may hold calls as text: of what is offered, and of what was granted besides. Such a
    /// model may write a call even when it is asked to answer; nobody wants to read that.
    fn screen(&self, request: &Request<'_>) -> Option<Screen> {
        let known = request.tools.iter().chain(&self.ctx.resources.tools);
        let names: HashSet<String> = known.map(|tool| tool.tool_name.clone()).collect();
        (self.is_prompted() && !names.is_empty()).then(|| Screen::new(names))
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(self.config.model_timeout_s.max(1))
    }

    fn silent(&self) -> RunFailure {
        let model = &self.current().model_id;
        let said = self.texts.model_is_silent(model, self.patience().as_secs());
        RunFailure::new("model.timeout", said).retryable()
    }
}

/// An answer as it comes.
struct Answer<'a> {
    ctx: &'a RunCtx,
    text: String,
    calls: Vec<greenroom_sdk::ModelToolCall>,
    usage: Option<Object>,
    finish_reason: Option<String>,
    begun: bool,
    /// Holds back what may turn out to be a call.
    screen: Option<Screen>,
}

impl<'a> Answer<'a> {
    fn new(ctx: &'a RunCtx, screen: Option<Screen>) -> Self {
        Self {
            ctx,
            text: String::new(),
            calls: Vec::new(),
            usage: None,
            finish_reason: None,
            begun: false,
            screen,
        }
    }

    async fn take(&mut self, item: ModelStreamItem) -> Result<(), RunFailure> {
        self.begun |= !matches!(item, ModelStreamItem::Usage(_) | ModelStreamItem::Finish { .. });
        match item {
            ModelStreamItem::TextDelta { text } => {
                self.text.push_str(&text);
                let shown = match &mut self.screen {
                    Some(screen) => screen.push(&text),
                    None => text,
                };
                if !shown.is_empty() {
                    self.ctx.delta(&shown).await?;
                }
            }
            ModelStreamItem::ToolCallEnd(call) => self.calls.push(call),
            ModelStreamItem::Usage(usage) => self.usage = Some(usage),
            ModelStreamItem::Finish { reason } => self.finish_reason = Some(reason),
            ModelStreamItem::ReasoningDelta { .. }
            | ModelStreamItem::ToolCallStart { .. }
            | ModelStreamItem::ToolCallDelta { .. }
            | ModelStreamItem::Media { .. } => {}
        }
        Ok(())
    }

    fn broken(&self, failure: RunFailure) -> Broken {
        Broken { failure, begun: self.begun }
    }
}

/// A model that answers, not one that embeds or ranks.
pub(crate) fn talks(model: &&ModelResource) -> bool {
    is_granted(model, ModelPermission::Stream) || is_granted(model, ModelPermission::Invoke)
}

/// A resource that lists no operations says nothing about them.
fn is_granted(model: &ModelResource, operation: ModelPermission) -> bool {
    model.operations.is_empty() || model.operations.contains(&operation)
}

fn usage(response: &ProviderResponse) -> Option<&Object> {
    response.metadata.get("usage").and_then(Value::as_object)
}

/// A tool as a request offers it: its schema unchanged.
fn offer(tool: &ToolResource) -> Object {
    Object::from_iter([
        ("tool_name".to_owned(), tool.tool_name.as_str().into()),
        ("description".to_owned(), json!(tool.description)),
        ("parameters".to_owned(), Value::Object(tool.parameters.clone())),
    ])
}

fn add_to_prompt(messages: &mut Vec<ModelMessage>, more: &str) {
    match messages.first_mut().filter(|first| first.role == Role::System) {
        Some(first) => {
            let prompt = first.content.as_ref().map(MessageContent::text).unwrap_or_default();
            first.content = Some(MessageContent::Text(format!("{prompt}\n\n{more}")));
        }
        None => messages.insert(0, ModelMessage::text(Role::System, more)),
    }
}

/// Rather too many than too few: a token for three bytes, and the frame of each message.
pub(crate) fn estimate(messages: &[ModelMessage]) -> u64 {
    let bytes = |message: &ModelMessage| {
        let calls: usize = message.tool_calls.iter().map(|call| call.args.to_string().len()).sum();
        let text = message.content.as_ref().map(|content| content.text().len()).unwrap_or(0);
        (text + calls) as u64
    };
    messages.iter().map(|message| bytes(message).div_ceil(3) + 8).sum()
}
