//! The loop: ask the model, carry out what it asks for, ask again, answer.
//!
//! Invariant: a run has one final message; after the last round of tools the model is asked once more,
//! without tools.

use crate::config::Config;
use crate::{history, tools};
use greenroom_sdk::protocol::MessageContent;
use greenroom_sdk::{
    Message, ModelInvokeParams, ModelMessage, ModelStreamItem, ModelToolCall, Object,
    ProviderResponse, Role, RunCtx, RunFailure, RunResult, Value, json,
};

/// What one answer of the model comes to.
struct Turn {
    text: String,
    calls: Vec<ModelToolCall>,
    response: ProviderResponse,
}

pub(crate) struct Agent<'a> {
    ctx: &'a RunCtx,
    config: Config,
    model_id: String,
    usage: Object,
}

impl<'a> Agent<'a> {
    pub(crate) fn new(ctx: &'a RunCtx) -> Result<Self, RunFailure> {
        let config = Config::of(ctx)?;
        let granted = || ctx.resources.models.iter().map(|model| model.model_id.as_str());
        let model_id = match config.model.as_str() {
            "" => granted().next(),
            wanted => granted().find(|name| *name == wanted),
        };
        let Some(model_id) = model_id.map(str::to_owned) else {
            let message = match config.model.as_str() {
                "" => "this agent has no model: add `models = [\"NAME\"]` to its grant".to_owned(),
                wanted => format!("the model `{wanted}` is not granted to this agent"),
            };
            return Err(RunFailure::new("agent.no_model", message));
        };
        Ok(Self { ctx, config, model_id, usage: Object::new() })
    }

    pub(crate) async fn run(mut self) -> Result<(), RunFailure> {
        let mut messages = vec![ModelMessage::text(Role::System, self.prompt())];
        messages.extend(history::before(self.ctx, self.config.history_items).await?);
        messages.push(history::input(self.ctx));
        for round in 0..=self.config.max_tool_rounds {
            let may_call = round < self.config.max_tool_rounds;
            let turn = self.ask(&messages, may_call).await?;
            if turn.calls.is_empty() || !may_call {
                return self.finish(turn).await;
            }
            messages.push(asked(&turn));
            for call in &turn.calls {
                messages.push(tools::call(self.ctx, call).await?);
            }
        }
        Ok(())
    }

    /// The prompt, and the cards of the skills that can be read.
    fn prompt(&self) -> String {
        let cards = self.ctx.resources.extra.get("skills").and_then(Value::as_array);
        let word = |card: &Value, key: &str| card[key].as_str().unwrap_or_default().to_owned();
        let lines: Vec<String> = cards
            .into_iter()
            .flatten()
            .map(|card| format!("- {}: {}", word(card, "name"), word(card, "description")))
            .collect();
        match lines.is_empty() {
            true => self.config.prompt.clone(),
            false => format!(
                "{}\n\nSkills, to be read with `skill.read` before they are used:\n{}",
                self.config.prompt,
                lines.join("\n")
            ),
        }
    }

    async fn ask(&mut self, messages: &[ModelMessage], may_call: bool) -> Result<Turn, RunFailure> {
        let tools = self.ctx.resources.tools.iter().map(|tool| {
            Object::from_iter([
                ("tool_name".to_owned(), tool.tool_name.as_str().into()),
                ("description".to_owned(), json!(tool.description)),
                ("parameters".to_owned(), Value::Object(tool.parameters.clone())),
            ])
        });
        let tools: Vec<Object> = if may_call { tools.collect() } else { Vec::new() };
        let options = &self.config.options;
        let params = ModelInvokeParams {
            tools: (!tools.is_empty()).then_some(tools),
            extra_args: (!options.is_empty()).then(|| options.clone()),
            ..ModelInvokeParams::new(&self.model_id, messages.to_vec())
        };
        let mut stream = self.ctx.models().stream(params).await?;
        let (mut text, mut calls) = (String::new(), Vec::new());
        while let Some(item) = stream.next().await {
            match item? {
                ModelStreamItem::TextDelta { text: more } => {
                    self.ctx.delta(&more).await?;
                    text.push_str(&more);
                }
                ModelStreamItem::ToolCallEnd(call) => calls.push(call),
                ModelStreamItem::Usage(usage) => self.count(&usage),
                _ => {}
            }
        }
        let response = stream.response().cloned().unwrap_or_default();
        Ok(Turn { text, calls, response })
    }

    /// Sums what is known over the turns.
    fn count(&mut self, usage: &Object) {
        for (key, value) in usage {
            if let Some(more) = value.as_u64() {
                let sum = self.usage.get(key).and_then(Value::as_u64).unwrap_or(0) + more;
                self.usage.insert(key.clone(), sum.into());
            }
        }
    }

    async fn finish(self, turn: Turn) -> Result<(), RunFailure> {
        if !self.usage.is_empty() {
            self.ctx.set_usage(self.usage);
        }
        let media = |kind: &str| matches!(kind, "image" | "audio" | "video");
        let kind =
            |segment: &Object| segment.get("type").and_then(Value::as_str).map(str::to_owned);
        let shown = turn.response.segments.iter().any(|one| kind(one).is_some_and(|k| media(&k)));
        let message = Message {
            segments: shown
                .then(|| turn.response.segments.iter().cloned().map(Value::Object).collect()),
            ..Message::assistant(turn.text)
        };
        self.ctx.emit(RunResult::message_of(message)).await
    }
}

/// The model's turn as the next request repeats it.
fn asked(turn: &Turn) -> ModelMessage {
    let content = (!turn.text.is_empty()).then(|| MessageContent::Text(turn.text.clone()));
    ModelMessage {
        content,
        tool_calls: turn.calls.clone(),
        segments: Some(turn.response.segments.clone()),
        ..ModelMessage::text(Role::Assistant, "")
    }
}
