//! Stored facts as the API returns them.
//!
//! Invariant: every read is by workspace; every list is paged, and a cursor is valid for its list only.

mod agents;
mod audit;
mod deliveries;
mod lists;
mod overview;
mod runs;
mod senders;
mod story;
mod tools;
mod work;

pub use lists::{StateQuery, mime};
pub use overview::Window;
pub use story::Audience;

use crate::binding::unlisted_warning;
use crate::feed::write_json;
use crate::host::Host;
use crate::ids::{Moment, rfc3339};
use bytes::BytesMut;
use deliveries::delivery_view;
use greenroom_protocol::{ModelCalls, Object, RunView};
use greenroom_store::reads::Direction;
use greenroom_store::reads::conversations::{Position, Reach, Span};
use greenroom_store::reads::runs::RunFilter;
use greenroom_store::reads::search::{Hit, SearchQuery};
use greenroom_store::reads::spend::RunSpend;
use greenroom_store::sql::Tx;
use greenroom_store::types::{ApprovalRow, EventRow, ItemRow, RunRow};
use greenroom_store::{StoreError, reads};
use greenroom_tools::ui::{self, Language};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Diagnostics and approvals shown with a run.
const DIAGNOSTICS_SHOWN: i64 = 100;

/// Bytes of a page of history, not counting its first item.
const PAGE_BYTES_MAX: usize = 8 << 20;

#[derive(Debug, Serialize)]
pub struct Page<T> {
    pub items: Vec<T>,
    pub next_cursor: Option<String>,
    pub has_more: bool,
}

/// Results of a run after a number.
#[derive(Debug, Serialize)]
pub struct ResultPage {
    pub items: Vec<Box<RawValue>>,
    /// The number after which the next page starts.
    pub next_cursor: Option<i64>,
    pub has_more: bool,
}

/// The part of a transcript to read.
#[derive(Debug, Clone)]
pub struct HistoryQuery {
    pub cursor: Option<String>,
    pub direction: Direction,
    pub limit: usize,
    /// The reader's language, for texts of the host itself.
    pub language: Language,
    /// Without items of these events, as first and last number in the conversation.
    pub hidden: Vec<[i64; 2]>,
}

impl Host {
    /// Runs, newest first; none if the cursor does not belong to this list. With a filter that matches few runs,
    /// a page may be short although more follow.
    pub async fn runs(
        &self,
        workspace: &str,
        filter: RunFilter,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Option<Page<RunView>>, StoreError> {
        let domain = runs::domain(workspace, &filter);
        let domain: Vec<&str> = domain.iter().map(String::as_str).collect();
        let Ok(before) = self.position(&domain, cursor) else { return Ok(None) };
        let owner = workspace.to_owned();
        let filter = runs::by_time(filter);
        let read = move |tx: &mut dyn Tx| runs::page(tx, &owner, &filter, before.as_deref(), limit);
        let (rows, next) = self.store().read(read).await?;
        let has_more = next.is_some();
        let items = rows.into_iter().map(run_view).collect();
        Ok(Some(self.page(&domain, items, next, has_more)))
    }

    /// Results after a number.
    pub async fn results(
        &self,
        workspace: &str,
        run_id: &str,
        after: i64,
        limit: usize,
        language: Language,
    ) -> Result<Option<ResultPage>, StoreError> {
        let (owner, id) = (workspace.to_owned(), run_id.to_owned());
        let read = self.store().read(move |tx| {
            if reads::runs::get(tx, &owner, &id)?.is_none() {
                return Ok(None);
            }
            reads::results::page(tx, &id, after, limit + 1).map(Some)
        });
        let Some(records) = read.await? else { return Ok(None) };
        let (mut records, has_more) = cut(records, limit);
        self.add_cards(workspace, run_id, &mut records, language).await?;
        let next_cursor = records.last().map(|record| record.sequence);
        let (mut buffer, mut moment) = (BytesMut::new(), Moment::default());
        let items = records.iter().map(|record| {
            buffer.clear();
            write_json(&mut buffer, run_id, record, &mut moment);
            let text = String::from_utf8_lossy(&buffer).into_owned();
            RawValue::from_string(text).map_err(|error| StoreError::Refused(error.to_string()))
        });
        Ok(Some(ResultPage { items: items.collect::<Result<_, _>>()?, next_cursor, has_more }))
    }

    /// Conversations, the most recently used first.
    pub async fn conversations(
        &self,
        workspace: &str,
        reach: Reach,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Option<Page<Value>>, StoreError> {
        let domain = ["conversations", workspace];
        let Ok(before) = self.position(&domain, cursor) else { return Ok(None) };
        let before = before.and_then(|position| {
            let (at, id) = position.split_once(' ')?;
            Some((at.parse::<i64>().ok()?, id.to_owned()))
        });
        let owner = workspace.to_owned();
        let wanted = limit as i64 + 1;
        let rows = self.store().read(move |tx| {
            let before = before.as_ref().map(|(at, id)| (*at, id.as_str()));
            reads::conversations::page(tx, &owner, &reach, before, wanted)
        });
        let (rows, has_more) = cut(rows.await?, limit);
        let next = rows.last().map(|row| format!("{} {}", row.updated_at, row.conversation_id));
        let item = |row: greenroom_store::types::ConversationRow| {
            json!({"conversation_id": row.conversation_id, "workspace_id": workspace,
                "events": row.event_seq, "items": row.transcript_seq,
                "created_at": rfc3339(row.created_at), "updated_at": rfc3339(row.updated_at)})
        };
        let items = rows.into_iter().map(item).collect();
        Ok(Some(self.page(&domain, items, next, has_more)))
    }

    /// A page of a transcript, always oldest item first. Backward (the default) starts with the newest page.
    /// The outer `None`: the cursor does not belong here; the inner: the conversation does not exist.
    pub async fn history(
        &self,
        workspace: &str,
        conversation: &str,
        reach: Reach,
        query: HistoryQuery,
    ) -> Result<Option<Option<Page<Value>>>, StoreError> {
        let domain = ["history", workspace, conversation];
        let Ok(position) = self.position(&domain, query.cursor.as_deref()) else { return Ok(None) };
        let position = position.and_then(|place| Position::parse(&place));
        let mut span = Span::whole(query.direction, query.limit as i64);
        span.hidden = query.hidden;
        match query.direction {
            Direction::Backward => span.before = position.unwrap_or(Position::END),
            Direction::Forward => span.after = position.unwrap_or(Position::START),
        }
        let (owner, id) = (workspace.to_owned(), conversation.to_owned());
        let read = self.store().read(move |tx| {
            if reads::conversations::within(tx, &owner, &id, &reach)?.is_none() {
                return Ok(None);
            }
            reads::conversations::history_within(tx, &owner, &id, &span, PAGE_BYTES_MAX).map(Some)
        });
        let Some((mut rows, has_more)) = read.await? else { return Ok(Some(None)) };
        let next = rows.last().map(|row| Position::of(row).to_string());
        if query.direction == Direction::Backward {
            rows.reverse();
        }
        let items = rows.into_iter().map(|row| item_view(row, query.language)).collect();
        Ok(Some(Some(self.page(&domain, items, next, has_more))))
    }

    /// The items of a conversation that match a search, the best first; none if it does not exist.
    pub async fn search(
        &self,
        query: SearchQuery,
        language: Language,
    ) -> Result<Option<Page<Value>>, StoreError> {
        let read = self.store().read(move |tx| {
            let id = query.conversation.as_deref().unwrap_or_default();
            if reads::conversations::within(tx, &query.workspace, id, &query.reach)?.is_none() {
                return Ok(None);
            }
            reads::search::search(tx, &query).map(Some)
        });
        Ok(read.await?.map(|hits| Page {
            items: hits.into_iter().map(|hit| hit_view(hit, language)).collect(),
            next_cursor: None,
            has_more: false,
        }))
    }

    /// Whether the conversation exists within reach.
    pub async fn reaches(
        &self,
        workspace: &str,
        conversation: &str,
        reach: &Reach,
    ) -> Result<bool, StoreError> {
        if *reach == Reach::All {
            return Ok(true);
        }
        let (owner, id, reach) = (workspace.to_owned(), conversation.to_owned(), reach.clone());
        let read = self.store().read(move |tx| {
            reads::conversations::within(tx, &owner, &id, &reach).map(|row| row.is_some())
        });
        read.await
    }

    /// Events with this id, one per source that used it.
    pub async fn events_by_id(
        &self,
        workspace: &str,
        event_id: &str,
    ) -> Result<Vec<Value>, StoreError> {
        let (workspace, id) = (workspace.to_owned(), event_id.to_owned());
        let rows = self.store().read(move |tx| reads::events::by_id(tx, &workspace, &id)).await?;
        Ok(rows.into_iter().map(event_view).collect())
    }

    /// The event log, newest first.
    pub async fn events(
        &self,
        workspace: &str,
        conversation: Option<&str>,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Option<Page<Value>>, StoreError> {
        let domain = ["events", workspace, conversation.unwrap_or_default()];
        let Ok(position) = self.position(&domain, cursor) else { return Ok(None) };
        let before = position.and_then(|seq| seq.parse().ok()).unwrap_or(i64::MAX);
        let (owner, conversation) = (workspace.to_owned(), conversation.map(str::to_owned));
        let wanted = limit as i64 + 1;
        let rows = self.store().read(move |tx| {
            reads::events::page(tx, &owner, conversation.as_deref(), before, wanted)
        });
        let (rows, has_more) = cut(rows.await?, limit);
        let next = rows.last().map(|row| row.seq.to_string());
        let items = rows.into_iter().map(event_view).collect();
        Ok(Some(self.page(&domain, items, next, has_more)))
    }

    /// The position of a cursor; `Err` if it does not belong here.
    pub(crate) fn position(
        &self,
        domain: &[&str],
        cursor: Option<&str>,
    ) -> Result<Option<String>, ()> {
        match cursor {
            None => Ok(None),
            Some(cursor) => self.shared.cursors.open(domain, cursor).map(Some).ok_or(()),
        }
    }

    pub(crate) fn page<T>(
        &self,
        domain: &[&str],
        items: Vec<T>,
        next: Option<String>,
        has_more: bool,
    ) -> Page<T> {
        let next = next.filter(|_| has_more);
        Page {
            items,
            next_cursor: next.map(|next| self.shared.cursors.seal(domain, &next)),
            has_more,
        }
    }
}

/// One more row than a page holds was read, to know whether more follow.
fn cut<T>(mut rows: Vec<T>, limit: usize) -> (Vec<T>, bool) {
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    (rows, has_more)
}

pub(crate) fn run_view(run: RunRow) -> RunView {
    RunView {
        run_id: run.run_id,
        event_id: run.event_id,
        agent: run.agent,
        runner_id: run.runner_id,
        conversation_id: run.conversation_id,
        workspace_id: run.workspace_id,
        status: run.status,
        attempt: run.attempt,
        created_at: rfc3339(run.created_at),
        started_at: run.started_at.map(rfc3339),
        finished_at: run.finished_at.map(rfc3339),
        error: run.error,
        usage: run.usage.and_then(|usage| serde_json::from_str(&usage).ok()),
        last_sequence: run.last_seq,
        isolation: run.isolation,
        model_calls: None,
        extra: Object::new(),
    }
}

/// Without calls the cost is known: 0.
fn model_calls(spend: RunSpend) -> ModelCalls {
    let none = (spend.calls == 0).then_some(0);
    ModelCalls {
        calls: spend.calls,
        unpriced: spend.unpriced,
        tokens: spend.tokens.or(none),
        cost_usd: spend.cost_micro.or(none).map(|micro| micro as f64 / 1_000_000.0),
    }
}

pub(crate) fn item_view(row: ItemRow, language: Language) -> Value {
    let body: Value = serde_json::from_str(&row.body).unwrap_or_default();
    let mut item = json!({
        "item_id": row.item_id, "conversation_id": row.conversation_id,
        "thread_id": row.thread_id, "seq": row.seq, "role": row.role,
        "event_id": row.event_id, "run_id": row.run_id, "actor": body["actor"],
        "text": row.text, "segments": body["segments"], "artifacts": body["artifacts"],
        "metadata": body["metadata"], "created_at": rfc3339(row.created_at),
    });
    if row.role == "tool" {
        item["content"] = item["text"].clone();
        show(&mut item["metadata"], language);
    }
    item
}

/// Removes display hints of a tool result: readers get the card made from them (seed 004 §9).
fn show(metadata: &mut Value, language: Language) {
    let hints = metadata["tool_agent_output"].as_object_mut().and_then(|o| o.remove("ui_hints"));
    let options = ui::Options { language, ..ui::Options::default() };
    if let Some(schema) = hints.and_then(|hints| ui::compile(&hints, &options)) {
        metadata["ui_schema"] = schema;
    }
}

/// A search hit, with the parts that match.
pub(crate) fn hit_view(hit: Hit, language: Language) -> Value {
    let marks: Vec<Value> =
        hit.highlights.iter().map(|mark| json!({"start": mark.start, "end": mark.end})).collect();
    let mut item = item_view(hit.item, language);
    item["score"] = hit.score.into();
    item["snippet"] = hit.snippet.into();
    item["highlights"] = marks.into();
    item
}

pub(crate) fn event_view(row: EventRow) -> Value {
    let body: Value =
        row.body.and_then(|body| serde_json::from_str(&body).ok()).unwrap_or_default();
    let mut view = json!({
        "event_id": row.event_id, "source": row.source, "event_type": row.event_type,
        "conversation_id": row.conversation_id, "conversation_seq": row.conversation_seq,
        "run_id": row.run_id, "seq": row.seq, "created_at": rfc3339(row.created_at),
        "trigger": body["trigger"], "raw_ref": body["raw_ref"],
        "event": if row.source == "host" { body.clone() } else { body["event"].clone() },
    });
    if let Some(sender) = row.sender {
        view["sent_by"] = sender.into();
    }
    if body["bound"]["unlisted"] == true {
        let agent = body["event"]["agent"].as_str().unwrap_or_default();
        view["warnings"] = json!([unlisted_warning(agent, &row.event_type)]);
    }
    view
}

/// An approval of a run, without the nonce that an answer needs.
fn approval_view(row: &ApprovalRow) -> Value {
    json!({"approval_id": row.request.approval_id, "action": row.request.action,
        "status": row.status.as_str(), "answered_by": row.answered_by,
        "created_at": rfc3339(row.created_at), "answered_at": row.answered_at.map(rfc3339)})
}
