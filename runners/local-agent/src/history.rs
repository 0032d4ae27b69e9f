//! The conversation so far, as a model reads it.
//!
//! Invariant: a tool's result always follows the call it answers, so that any provider takes the history.

use greenroom_sdk::protocol::{ContentElement, MessageContent};
use greenroom_sdk::{
    HistoryPageParams, ModelMessage, ModelToolCall, Object, Role, RunCtx, RunFailure,
    TranscriptItem, TranscriptRole, Value,
};

/// The items before the run's own event, oldest first.
pub(crate) async fn before(ctx: &RunCtx, items: u32) -> Result<Vec<ModelMessage>, RunFailure> {
    if items == 0 || !ctx.context.available_apis.history_page {
        return Ok(Vec::new());
    }
    let params = HistoryPageParams { limit: items, ..HistoryPageParams::default() };
    let page = ctx.history().page(params).await?;
    Ok(messages(&page.items))
}

/// The event of this run: its text and what came with it.
pub(crate) fn input(ctx: &RunCtx) -> ModelMessage {
    let media: Vec<ContentElement> =
        ctx.input.contents.iter().filter(|part| part.media().is_some()).cloned().collect();
    if media.is_empty() {
        return ModelMessage::text(Role::User, ctx.text());
    }
    let text = ContentElement::Text { text: ctx.text().to_owned() };
    let parts = std::iter::once(text).chain(media).collect();
    let content = Some(MessageContent::Parts(parts));
    ModelMessage { content, ..ModelMessage::text(Role::User, "") }
}

fn messages(items: &[TranscriptItem]) -> Vec<ModelMessage> {
    let mut messages: Vec<ModelMessage> = Vec::new();
    for item in items {
        let text = item.text.clone().unwrap_or_default();
        match item.role {
            TranscriptRole::User => messages.push(ModelMessage::text(Role::User, text)),
            TranscriptRole::Assistant => messages.push(ModelMessage::text(Role::Assistant, text)),
            TranscriptRole::Tool => messages.extend(tool_turn(item, text)),
            TranscriptRole::System | TranscriptRole::Event => {}
        }
    }
    messages
}

/// A call and its result; an item that does not say which call it answers is none for a model.
fn tool_turn(item: &TranscriptItem, text: String) -> Vec<ModelMessage> {
    let word = |key: &str| item.metadata.get(key).and_then(Value::as_str).map(str::to_owned);
    let (Some(id), Some(name)) = (word("tool_call_id"), word("tool_name")) else {
        return Vec::new();
    };
    let output = item.metadata.get("tool_agent_output");
    let args = output.and_then(|output| output.get("tool_call_args")).cloned();
    let args = args.unwrap_or_else(|| Value::Object(Object::new()));
    let call = ModelToolCall {
        id: id.clone(),
        name: name.clone(),
        args,
        args_text: None,
        args_error: None,
    };
    let asked = ModelMessage {
        content: None,
        tool_calls: vec![call],
        ..ModelMessage::text(Role::Assistant, "")
    };
    vec![asked, crate::tools::result(&id, &name, text)]
}

pub(crate) const SEARCH_HISTORY: &str = "search_history";

pub(crate) fn search_tool() -> greenroom_sdk::ToolResource {
    greenroom_sdk::ToolResource { tool_name: SEARCH_HISTORY.to_owned(), ..Default::default() }
}

pub(crate) async fn search(
    _ctx: &RunCtx,
    _args: &Object,
) -> Result<Value, greenroom_sdk::AgentAPIError> {
    Ok(Value::Null)
}
