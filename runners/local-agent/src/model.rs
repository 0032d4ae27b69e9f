//! The model of a run: the chosen one and its fallbacks.
//!
//! Invariant: the host retries, the agent falls back; never once a part of a response was sent, and never for an error
//! that another model would not avoid. An idle model times out.

use crate::config::{Config, ToolCalling};
use crate::limits::Limits;
use crate::prompted::{self, Parsed, Screen};
use crate::stream::{Shown, Stream};
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

/// The model chosen for the conversation with `/model`.
pub(crate) const CHOSEN_MODEL: &str = "local_agent.model";

/// Error codes that another model would not avoid.
const FINAL_CODES: [&str; 4] = ["unauthorized", "budget_exceeded", "cancelled", "limit.time"];

/// One model request.
pub(crate) struct Request<'r> {
    pub(crate) messages: Vec<ModelMessage>,
    pub(crate) tools: &'r [ToolResource],
    /// Whether the model may call them, or must answer.
    pub(crate) may_call: bool,
    /// For a client that shows the response as it is written.
    pub(crate) shown: Option<Shown<'r>>,
}

pub(crate) struct Models<'a> {
    ctx: &'a RunCtx,
    config: &'a Config,
    texts: Texts,
    /// The chosen model, then its fallbacks in order.
    chain: Vec<&'a ModelResource>,
    current: usize,
}

/// A response that failed.
pub(crate) struct FailedResponse {
    failure: RunFailure,
    /// Whether a part of it was received.
    started: bool,
}

impl<'a> Models<'a> {
    pub(crate) fn choose(ctx: &'a RunCtx, config: &'a Config) -> Result<Self, RunFailure> {
        let granted: Vec<&ModelResource> =
            ctx.resources.models.iter().filter(is_chat_model).collect();
        let find = |wanted: &str| granted.iter().copied().find(|model| model.model_id == wanted);
        let chosen = ctx.state.conversation.get(CHOSEN_MODEL).and_then(Value::as_str);
        // A chosen model that is no longer granted is ignored.
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

    /// The context window in tokens.
    pub(crate) fn window(&self) -> u64 {
        let known = self.current().metadata.get("context_window").and_then(Value::as_u64);
        known.unwrap_or(self.config.context_tokens).max(1)
    }

    /// The tokens of messages; an estimate if the host cannot count.
    pub(crate) async fn count(&self, messages: &[ModelMessage]) -> u64 {
        let model_id = self.current().model_id.clone();
        let params = CountTokensParams { model_id, messages: Some(messages.to_vec()), text: None };
        match self.ctx.models().count_tokens(params).await {
            Ok(tokens) => tokens,
            Err(_) => estimate(messages),
        }
    }

    /// One text response that is not shown; its cost counts for the run.
    pub(crate) async fn text(
        &self,
        messages: Vec<ModelMessage>,
        limits: &mut Limits,
    ) -> Result<String, RunFailure> {
        limits.check()?;
        let params = self.params(messages, &[]);
        let result = timeout(self.idle_timeout(), self.ctx.models().invoke(params)).await;
        let response = result.map_err(|_| self.idle_timeout_error())??;
        limits.count(usage(&response).unwrap_or(&Object::new()));
        self.ctx.set_usage(limits.usage().clone());
        Ok(response.text())
    }

    /// Switches to the next model after a failed response; an error if another model would not help.
    pub(crate) fn fall_back(&mut self, failed: FailedResponse) -> Result<(), RunFailure> {
        let is_last = self.current + 1 == self.chain.len();
        let is_final = FINAL_CODES.contains(&failed.failure.code.as_str());
        if failed.started || is_last || is_final || self.ctx.is_cancelled() {
            return Err(failed.failure);
        }
        self.current += 1;
        Ok(())
    }

    /// Sends a request and streams the response.
    pub(crate) async fn request(
        &self,
        request: &Request<'_>,
        limits: &mut Limits,
    ) -> Result<Turn, FailedResponse> {
        let before = |failure| FailedResponse { failure, started: false };
        let mut params = self.params(request.messages.clone(), request.tools);
        if !request.may_call && params.tools.is_some() {
            let options = params.extra_args.get_or_insert_default();
            options.insert("tool_choice".to_owned(), "none".into());
        }
        if !is_granted(self.current(), ModelPermission::Stream) {
            let response_state =
                timeout(self.idle_timeout(), self.ctx.models().invoke(params)).await;
            let response_state = response_state.map_err(|_| before(self.idle_timeout_error()))?;
            let response = response_state.map_err(|error| before(error.into()))?;
            return self.whole(response, request, limits).await;
        }
        let opened = self.ctx.models().stream(params).await;
        let mut stream = opened.map_err(|error| before(error.into()))?;
        let mut response_state = ResponseState::new(self.ctx, self.screen(request));
        response_state.stream = request.shown.map(|shown| Stream::new(self.ctx, shown));
        loop {
            let item = match timeout(self.idle_timeout(), stream.next()).await {
                Ok(Some(Ok(item))) => item,
                Ok(None) => break,
                Ok(Some(Err(error))) => return Err(response_state.failed(error.into())),
                Err(_) => return Err(response_state.failed(self.idle_timeout_error())),
            };
            let taken = response_state.take(item).await;
            taken.map_err(|failure| FailedResponse { failure, started: true })?;
        }
        let flushed = response_state.flush().await;
        flushed.map_err(|failure| FailedResponse { failure, started: true })?;
        let response = stream.response().cloned().unwrap_or_default();
        limits.count(usage(&response).or(response_state.usage.as_ref()).unwrap_or(&Object::new()));
        self.turn(response_state, response).await
    }

    /// A response in one piece.
    async fn whole(
        &self,
        response: ProviderResponse,
        request: &Request<'_>,
        limits: &mut Limits,
    ) -> Result<Turn, FailedResponse> {
        limits.count(usage(&response).unwrap_or(&Object::new()));
        let mut response_state = ResponseState::new(self.ctx, self.screen(request));
        let started = |failure| FailedResponse { failure, started: true };
        let text = response.text();
        response_state.take(ModelStreamItem::TextDelta { text }).await.map_err(started)?;
        let calls = response.segments.iter().filter_map(|segment| segment.get("tool_call"));
        for call in calls.filter_map(|call| serde_json::from_value(call.clone()).ok()) {
            response_state.take(ModelStreamItem::ToolCallEnd(call)).await.map_err(started)?;
        }
        self.turn(response_state, response).await
    }

    async fn turn(
        &self,
        response_state: ResponseState<'_>,
        response: ProviderResponse,
    ) -> Result<Turn, FailedResponse> {
        let reason = response.metadata.get("finish_reason").and_then(Value::as_str);
        let finish_reason = response_state.finish_reason.clone().or(reason.map(str::to_owned));
        let Some(screen) = response_state.screen else {
            let ResponseState { text, calls, .. } = response_state;
            return Ok(Turn { text, calls, segments: response.segments, finish_reason });
        };
        let (rest, Parsed { text_before: text, calls }) = screen.finish();
        let shown = if rest.is_empty() { Ok(()) } else { self.ctx.delta(&rest).await };
        shown.map_err(|failure| FailedResponse { failure, started: true })?;
        Ok(Turn { text, calls, segments: Vec::new(), finish_reason })
    }

    fn params(&self, mut messages: Vec<ModelMessage>, tools: &[ToolResource]) -> ModelInvokeParams {
        let mut options = self.config.model_options();
        if let Some(key) = self.ctx.context.session_key.clone() {
            options.entry("cache_key").or_insert_with(|| key.into());
        }
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

    /// Whether the model gets tools through its prompt.
    pub(crate) fn is_prompted(&self) -> bool {
        match self.config.tool_calling {
            ToolCalling::Native => false,
            ToolCalling::Prompted => true,
            ToolCalling::Auto => self.current().metadata.get("tool_calling") == Some(&false.into()),
        }
    }

    /// For responses that may contain calls as text: of offered and of other granted tools. Such a model may write a call
    /// even when it should answer; it must not be shown.
    fn screen(&self, request: &Request<'_>) -> Option<Screen> {
        let known = request.tools.iter().chain(&self.ctx.resources.tools);
        let names: HashSet<String> = known.map(|tool| tool.tool_name.clone()).collect();
        (self.is_prompted() && !names.is_empty()).then(|| Screen::new(names))
    }

    fn idle_timeout(&self) -> Duration {
        Duration::from_secs(self.config.model_timeout_s.max(1))
    }

    fn idle_timeout_error(&self) -> RunFailure {
        let model = &self.current().model_id;
        let message = self.texts.model_timeout(model, self.idle_timeout().as_secs());
        RunFailure::new("model.timeout", message).retryable()
    }
}

/// A response while it is received.
struct ResponseState<'a> {
    ctx: &'a RunCtx,
    text: String,
    calls: Vec<greenroom_sdk::ModelToolCall>,
    usage: Option<Object>,
    finish_reason: Option<String>,
    started: bool,
    /// Holds back text that may be a call.
    screen: Option<Screen>,
    /// Shows reasoning and arguments.
    stream: Option<Stream<'a>>,
}

impl<'a> ResponseState<'a> {
    fn new(ctx: &'a RunCtx, screen: Option<Screen>) -> Self {
        Self {
            ctx,
            text: String::new(),
            calls: Vec::new(),
            usage: None,
            finish_reason: None,
            started: false,
            screen,
            stream: None,
        }
    }

    async fn take(&mut self, item: ModelStreamItem) -> Result<(), RunFailure> {
        self.started |= !matches!(item, ModelStreamItem::Usage(_) | ModelStreamItem::Finish { .. });
        match item {
            ModelStreamItem::TextDelta { text } => {
                self.flush().await?;
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
            ModelStreamItem::ReasoningDelta { text } => {
                if let Some(stream) = &mut self.stream {
                    stream.reasoning(&text).await?;
                }
            }
            ModelStreamItem::ToolCallStart { id, name } => {
                if let Some(stream) = &mut self.stream {
                    stream.call(&id, &name).await?;
                }
            }
            ModelStreamItem::ToolCallDelta { id, args_text } => {
                if let Some(stream) = &mut self.stream {
                    stream.arguments(&id, &args_text).await?;
                }
            }
            ModelStreamItem::Media { .. } => {}
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), RunFailure> {
        match &mut self.stream {
            Some(stream) => stream.flush().await,
            None => Ok(()),
        }
    }

    fn failed(&self, failure: RunFailure) -> FailedResponse {
        FailedResponse { failure, started: self.started }
    }
}

/// Whether it is a chat model.
pub(crate) fn is_chat_model(model: &&ModelResource) -> bool {
    is_granted(model, ModelPermission::Stream) || is_granted(model, ModelPermission::Invoke)
}

/// A resource without operations allows all of them.
fn is_granted(model: &ModelResource, operation: ModelPermission) -> bool {
    model.operations.is_empty() || model.operations.contains(&operation)
}

fn usage(response: &ProviderResponse) -> Option<&Object> {
    response.metadata.get("usage").and_then(Value::as_object)
}

/// A tool in a request, with unchanged schema.
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

/// A high estimate: one token per three bytes, plus overhead per message.
pub(crate) fn estimate(messages: &[ModelMessage]) -> u64 {
    let bytes = |message: &ModelMessage| {
        let calls: usize = message.tool_calls.iter().map(|call| call.args.to_string().len()).sum();
        let text = message.content.as_ref().map(|content| content.text().len()).unwrap_or(0);
        (text + calls) as u64
    };
    messages.iter().map(|message| bytes(message).div_ceil(3) + 8).sum()
}
