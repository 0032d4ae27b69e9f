//! The conversation so far: read in pages, and searched.
//!
//! Invariant: reading ends right before the run's own event and is bounded; an exchange is complete or omitted.

mod exchange;

pub(crate) use exchange::Exchange;

use crate::client;
use crate::commands;
use crate::config::Config;
use crate::event;
use crate::tokens;
use greenroom_sdk::protocol::NewEvent;
use greenroom_sdk::{
    AgentAPIError, ErrorCode, HistoryPageParams, HistorySearchParams, ModelMessage, Object, Role,
    RunCtx, RunFailure, SearchHit, ToolResource, TranscriptItem, TranscriptRole, Value, json,
};
use std::collections::HashMap;

pub(crate) const SEARCH_HISTORY: &str = "search_history";

/// Page size.
const PAGE_ITEMS: u32 = 200;
/// Default and maximum number of search hits.
const HITS: u32 = 8;
const HITS_MAX: u64 = 20;
/// Longest text of a hit.
const HIT_CHARS_MAX: usize = 600;

/// The part of the conversation to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    /// Only items after this sequence number.
    pub(crate) after_seq: i64,
    /// The oldest exchanges beyond this are omitted.
    pub(crate) tokens_max: u64,
}

/// The newest exchanges of the span.
pub(crate) async fn read(
    ctx: &RunCtx,
    config: &Config,
    span: Span,
) -> Result<Vec<Exchange>, RunFailure> {
    let access = &ctx.context;
    if !access.has_history_before || !access.available_apis.history_page {
        return Ok(Vec::new());
    }
    let mut params = HistoryPageParams {
        limit: PAGE_ITEMS,
        include_artifacts: true,
        ..HistoryPageParams::default()
    };
    let (mut newest_first, mut read_tokens) = (Vec::new(), 0);
    loop {
        let page = ctx.history().page(params.clone()).await?;
        let mut is_over = !page.has_more;
        for item in page.items.into_iter().rev() {
            if item.seq <= span.after_seq {
                is_over = true;
                break;
            }
            read_tokens += tokens::of_text(item.text.as_deref().unwrap_or_default());
            newest_first.push(item);
        }
        params.before_cursor = page.next_cursor;
        if is_over || params.before_cursor.is_none() || read_tokens > span.tokens_max {
            break;
        }
    }
    newest_first.reverse();
    let mut items: Vec<TranscriptItem> = newest_first;
    // Commands are not for the model.
    items.retain(|item| !is_cancel(item, config));
    let known = events(ctx, &items).await;
    let message = |item: &TranscriptItem| {
        let known = item.event_id.as_ref().and_then(|id| known.get(id));
        event::from_item(item, known, config)
    };
    let results = |item: &TranscriptItem| {
        let known = item.event_id.as_ref().and_then(|id| known.get(id));
        let of_client = known.filter(|event| event.event_type == client::TOOL_RESULT);
        of_client.map(|event| results(&event.data)).unwrap_or_default()
    };
    let mut exchanges = exchange::exchanges(items, &message, &results);
    let messages = exchanges.iter_mut().flat_map(|exchange| &mut exchange.messages);
    messages.filter(|message| message.role == Role::Assistant).for_each(event::escape_answer);
    Ok(exchanges)
}

/// The messages of the run's own event if it brings the results that the last exchange waits for: that exchange with
/// them, which thus stays in the request.
pub(crate) fn continued(ctx: &RunCtx, exchanges: &mut Vec<Exchange>) -> Option<Vec<ModelMessage>> {
    let mut last = exchanges.pop()?;
    let results = match ctx.event.event_type.as_str() {
        client::TOOL_RESULT => results(&ctx.event.data),
        _ => Vec::new(),
    };
    if last.is_answered_by(&results) {
        last.answer(&results);
        return Some(last.messages);
    }
    last.give_up();
    exchanges.push(last);
    None
}

fn results(data: &Object) -> Vec<Value> {
    data.get("results").and_then(Value::as_array).cloned().unwrap_or_default()
}

fn is_cancel(item: &TranscriptItem, config: &Config) -> bool {
    let text = item.text.as_deref().unwrap_or_default();
    item.role == TranscriptRole::User && commands::is_cancel(text, config)
}

/// Submitted events, by id, for items for which the transcript is not enough.
async fn events(ctx: &RunCtx, items: &[TranscriptItem]) -> HashMap<String, NewEvent> {
    let mut known = HashMap::new();
    if !ctx.context.available_apis.event_get {
        return known;
    }
    let framed = items.iter().filter(|item| exchange::is_input(item) && event::is_framed(item));
    for event_id in framed.filter_map(|item| item.event_id.as_ref()) {
        // A removed event is shown without its data.
        let Ok(view) = ctx.events().get(event_id).await else { continue };
        if let Ok(event) = serde_json::from_value(view.event) {
            known.insert(event_id.clone(), event);
        }
    }
    known
}

/// The tool with which the model searches earlier messages.
pub(crate) fn search_tool() -> ToolResource {
    let parameters = json!({
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Words to look for"},
            "limit": {"type": "integer", "minimum": 1, "maximum": HITS_MAX,
                "description": "How many hits"}
        },
        "required": ["query"],
        "additionalProperties": false
    });
    ToolResource {
        tool_name: SEARCH_HISTORY.to_owned(),
        description: Some(
            "Searches everything that was said in this conversation, also what you no longer see. \
             Use it before you say that you do not know something the user told you."
                .to_owned(),
        ),
        parameters: parameters.as_object().cloned().unwrap_or_default(),
        ..ToolResource::default()
    }
}

/// Executes a call of [`search_tool`].
pub(crate) async fn search(ctx: &RunCtx, args: &Object) -> Result<Value, AgentAPIError> {
    let query = args.get("query").and_then(Value::as_str).map(str::trim).unwrap_or_default();
    if query.is_empty() {
        let problem = AgentAPIError::new(ErrorCode::InvalidArgument, "`query` must be a text");
        return Err(problem.detail("schema", Value::Object(search_tool().parameters)));
    }
    let limit = args.get("limit").and_then(Value::as_u64).map(|limit| limit.clamp(1, HITS_MAX));
    let limit = limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(HITS);
    let params = HistorySearchParams { top_k: limit * 2, ..HistorySearchParams::new(query) };
    let results = ctx.history().search_with(params).await?;
    let hits = results.iter().filter(|found| !is_search(&found.item)).take(limit as usize);
    Ok(json!({"query": query, "items": hits.map(hit).collect::<Vec<_>>()}))
}

/// Results of this tool are not results of their own.
fn is_search(item: &TranscriptItem) -> bool {
    item.metadata.get("tool_name").and_then(Value::as_str) == Some(SEARCH_HISTORY)
}

fn hit(hit: &SearchHit) -> Value {
    let text = hit.item.text.as_deref().unwrap_or_default();
    let text = match text.chars().count() <= HIT_CHARS_MAX {
        true => text,
        false => &hit.snippet,
    };
    json!({"seq": hit.item.seq, "at": hit.item.created_at, "role": hit.item.role, "text": text})
}
