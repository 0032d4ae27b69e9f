//! The model context of one run, within the context window.
//!
//! Invariant: static parts come first, and a request starts with the previous request, unless something was dropped.
//! Whole exchanges are dropped, oldest first; the run's own event always stays.

use crate::client::{self, Client};
use crate::compaction::{self, Checkpoint, Work};
use crate::config::Config;
use crate::history::{self, Exchange, Span};
use crate::limits::Limits;
use crate::media::{self, HiddenArtifacts};
use crate::model::Models;
use crate::results::Results;
use crate::retrieval::Earlier;
use crate::{event, reading, tokens};
use greenroom_sdk::protocol::{ContentElement, MessageContent};
use greenroom_sdk::{ModelMessage, Object, Role, RunCtx, RunFailure, Value};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The share of the history budget that stays verbatim when the rest is summarized; a single exchange may take more.
const KEPT_PERCENT: u64 = 40;
const KEPT_ALONE_PERCENT: u64 = 60;
/// An oversized request is cut to this share, so that not every following request must be cut again.
const CUT_TO_PERCENT: u64 = 80;
/// History is read up to this multiple of the budget.
const READ_TIMES: u64 = 2;
/// The share of the budget for the results of one round, and for one result if there is no room.
const RESULTS_SHARE: u64 = 2;
const RESULT_SHARE: u64 = 32;

/// Earlier messages with which tools are searched.
const SAID_BEFORE: usize = 2;

pub(crate) struct Context {
    system: ModelMessage,
    checkpoint: Option<Checkpoint>,
    exchanges: Vec<Exchange>,
    extra: Vec<ModelMessage>,
    /// The message of the run's event, after the calls that it answers.
    event: Vec<ModelMessage>,
    run: Vec<ModelMessage>,
    results: Results,
    artifacts: HiddenArtifacts,
    /// Tokens of the tools in a request.
    tools_tokens: u64,
    /// The number of leading messages that were counted, and their tokens.
    counted: Option<(usize, u64)>,
}

impl Context {
    /// Prompt, summary, history from there on, `extra`, the run's event.
    pub(crate) async fn assemble(
        ctx: &RunCtx,
        config: &Config,
        models: &Models<'_>,
        extra: Vec<ModelMessage>,
    ) -> Result<Self, RunFailure> {
        let tools_tokens = tools_tokens(ctx, config);
        let checkpoint = compaction::load(ctx).await;
        let span = Span {
            after_seq: checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.covers_until),
            tokens_max: budget(models, tools_tokens).saturating_mul(READ_TIMES),
        };
        let mut exchanges = history::read(ctx, config, span).await?;
        let event = history::continued(ctx, &mut exchanges)
            .unwrap_or_else(|| vec![event::message(ctx, config)]);
        let past = exchanges.iter().rev().flat_map(|exchange| exchange.messages.iter().rev());
        let artifacts = HiddenArtifacts::find(ctx, event.iter().rev().chain(past)).await;
        Ok(Self {
            system: ModelMessage::text(Role::System, prompt(ctx, config)),
            checkpoint,
            exchanges,
            extra,
            event,
            run: Vec::new(),
            results: Results::default(),
            artifacts,
            tools_tokens,
            counted: None,
        })
    }

    /// What the conversation so far has to do with the choice of tools.
    pub(crate) fn earlier(&self) -> Earlier {
        let newest_first = || self.exchanges.iter().rev();
        let offered = newest_first().map(|one| &one.tools).find(|tools| !tools.is_empty());
        let said = newest_first().take(SAID_BEFORE).filter_map(|one| one.messages.first());
        let text = |message: &ModelMessage| message.content.as_ref().map(MessageContent::text);
        Earlier {
            offered: offered.cloned().unwrap_or_default(),
            said: said.filter_map(text).collect(),
        }
    }

    /// Adds a message of this run: the model's turns, results, messages that arrived meanwhile.
    pub(crate) fn push(&mut self, message: ModelMessage) {
        self.run.push(message);
    }

    /// Adds the results of one round, cut to what the context window allows.
    pub(crate) async fn push_results(
        &mut self,
        ctx: &RunCtx,
        models: &Models<'_>,
        mut results: Vec<ModelMessage>,
    ) {
        let budget = budget(models, self.tools_tokens) / RESULTS_SHARE;
        self.results.fit(ctx, &mut results, budget).await;
        self.run.extend(results);
    }

    /// How results were cut, for the metadata of the answer.
    pub(crate) fn cuts(&self) -> Object {
        self.results.recorded()
    }

    /// The next request, within the context window.
    pub(crate) async fn request(
        &mut self,
        ctx: &RunCtx,
        models: &mut Models<'_>,
    ) -> Result<Vec<ModelMessage>, RunFailure> {
        let budget = budget(models, self.tools_tokens);
        let mut messages = self.messages(models);
        let mut size = self.size(models, &messages, budget).await;
        // Estimates of parts deviate in the same proportion as the whole.
        while size > budget && self.cut(ctx, size, tokens::of_messages(&messages), budget).await {
            messages = self.messages(models);
            size = self.size(models, &messages, budget).await;
        }
        Ok(messages)
    }

    /// Summarizes all but the newest exchanges if they take too much.
    pub(crate) async fn compact(
        &mut self,
        ctx: &RunCtx,
        config: &Config,
        models: &Models<'_>,
        limits: &mut Limits,
    ) {
        let budget = budget(models, self.tools_tokens);
        let limit = budget.saturating_mul(config.compact_at_percent) / 100;
        let messages = self.messages(models);
        let size = self.size(models, &messages, limit).await;
        if size <= limit {
            return;
        }
        let estimate = tokens::of_messages(&messages);
        let real = |tokens: u64| scaled(tokens, size, estimate);
        let fixed = tokens::of_message(&self.system)
            + tokens::of_messages(&self.event)
            + tokens::of_messages(&self.extra);
        let room = budget.saturating_sub(real(fixed));
        let sizes: Vec<u64> = self
            .exchanges
            .iter()
            .map(|exchange| real(tokens::of_messages(&exchange.messages)))
            .collect();
        let kept = kept(&sizes, room);
        let covered: Vec<Exchange> = self.exchanges.drain(..sizes.len() - kept).collect();
        let Some(last) = covered.last() else { return };
        let next = self.exchanges.first().map(|exchange| exchange.first_seq - 1);
        let own = ctx.context.transcript_seq.map(|seq| seq - 1);
        let work = Work {
            before: self.checkpoint.as_ref(),
            exchanges: &covered,
            covers_until: next.or(own).unwrap_or(last.first_seq),
            tokens_before: size,
            budget,
            limits,
        };
        self.checkpoint = Some(compaction::compact(ctx, models, work).await);
        self.counted = None;
    }

    /// All messages in order, in a form that the model supports.
    fn messages(&self, models: &Models<'_>) -> Vec<ModelMessage> {
        let summary = self.checkpoint.as_ref().and_then(Checkpoint::message);
        let past = self.exchanges.iter().flat_map(|exchange| &exchange.messages);
        let all = std::iter::once(&self.system)
            .chain(&summary)
            .chain(past)
            .chain(&self.extra)
            .chain(&self.event)
            .chain(&self.run);
        all.map(|message| self.artifacts.shown(message, models.current())).collect()
    }

    /// The tokens of the messages; counted only if the estimate exceeds `enough`.
    async fn size(&mut self, models: &Models<'_>, messages: &[ModelMessage], enough: u64) -> u64 {
        let estimate = tokens::of_messages(messages);
        let known = match self.counted {
            Some((first, tokens)) if first <= messages.len() => {
                estimate.min(tokens + tokens::of_messages(&messages[first..]))
            }
            _ => estimate,
        };
        if known <= enough {
            return known;
        }
        let (bare, media) = without_media(messages);
        let size = models.count(&bare).await + media * tokens::PER_MEDIA;
        self.counted = Some((messages.len(), size));
        size
    }

    /// Drops the oldest exchanges, else cuts long results, else drops `extra`; false if nothing is left to drop.
    async fn cut(&mut self, ctx: &RunCtx, size: u64, estimate: u64, budget: u64) -> bool {
        let excess = size.saturating_sub(budget.saturating_mul(CUT_TO_PERCENT) / 100);
        let mut freed = 0;
        let mut is_cut = false;
        while freed < excess && !self.exchanges.is_empty() {
            let dropped = self.exchanges.remove(0);
            freed += scaled(tokens::of_messages(&dropped.messages), size, estimate);
            is_cut = true;
        }
        let results = self.run.iter_mut().filter(|message| message.role == Role::Tool);
        for result in results {
            if freed >= excess {
                break;
            }
            let saved = self.results.shorten(ctx, result, budget / RESULT_SHARE).await;
            freed += scaled(saved, size, estimate);
            is_cut |= saved > 0;
        }
        if !is_cut && !self.extra.is_empty() {
            self.extra.clear();
            is_cut = true;
        }
        self.counted = None;
        is_cut
    }
}

/// Tokens for messages: the window minus tools and response.
fn budget(models: &Models<'_>, tools_tokens: u64) -> u64 {
    let window = models.window();
    let known = models.current().metadata.get("max_output_tokens").and_then(Value::as_u64);
    let answer = known.unwrap_or(window / 4).min(window / 2);
    window.saturating_sub(answer).saturating_sub(tools_tokens).max(window / 8)
}

/// Tokens of the largest tools that one request may offer.
fn tools_tokens(ctx: &RunCtx, config: &Config) -> u64 {
    let mut sizes: Vec<u64> = ctx.resources.tools.iter().map(tokens::of_tool).collect();
    sizes.sort_unstable_by(|one, other| other.cmp(one));
    // Three tools are the agent's own.
    let own = 2 * tokens::of_tool(&history::search_tool()) + tokens::of_tool(&reading::tool());
    sizes.iter().take(config.tools_in_prompt).sum::<u64>() + own
}

/// How many of the newest exchanges to keep.
fn kept(sizes: &[u64], room: u64) -> usize {
    let mut sum = 0;
    let newest = sizes.iter().rev().take_while(|size| {
        sum += **size;
        sum <= room * KEPT_PERCENT / 100
    });
    match newest.count() {
        0 if sizes.last().is_some_and(|size| *size <= room * KEPT_ALONE_PERCENT / 100) => 1,
        kept => kept,
    }
}

fn scaled(tokens: u64, size: u64, estimate: u64) -> u64 {
    let product = u128::from(tokens) * u128::from(size) / u128::from(estimate.max(1));
    u64::try_from(product).unwrap_or(u64::MAX)
}

/// Messages without media, and the number of removed media.
fn without_media(messages: &[ModelMessage]) -> (Vec<ModelMessage>, u64) {
    let mut count = 0;
    let bare = messages.iter().map(|message| {
        let media = media::parts(message).iter().filter(|part| part.media().is_some()).count();
        if media == 0 {
            return message.clone();
        }
        count += media as u64;
        let texts = media::parts(message).iter().filter(|part| part.media().is_none());
        let texts: Vec<ContentElement> = texts.cloned().collect();
        ModelMessage { content: Some(MessageContent::Parts(texts)), ..message.clone() }
    });
    (bare.collect(), count)
}

/// The configured prompt, skill cards, the meaning of frames, and the date.
fn prompt(ctx: &RunCtx, config: &Config) -> String {
    let cards = ctx.resources.extra.get("skills").and_then(Value::as_array);
    let word = |card: &Value, key: &str| card[key].as_str().unwrap_or_default().to_owned();
    let cards: Vec<String> = cards
        .into_iter()
        .flatten()
        .map(|card| format!("- {}: {}", word(card, "name"), word(card, "description")))
        .collect();
    // Without the tool's name: wires rename tools.
    let skills = (!cards.is_empty()).then(|| {
        format!(
            "Skills, each to be read with the tool for it before it is used:\n{}",
            cards.join("\n")
        )
    });
    let configured =
        Some(config.prompt.trim()).filter(|prompt| !prompt.is_empty()).map(str::to_owned);
    let client = Client::is_watching(ctx).then(|| client::NOTE.to_owned());
    let note = Some(event::NOTE.to_owned());
    let parts = [configured, skills, note, client, Some(today(ctx, config))];
    parts.into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

/// Only the date, so that the prompt is the same all day.
fn today(ctx: &RunCtx, config: &Config) -> String {
    let name = Some(config.timezone.as_str()).filter(|zone| !zone.is_empty());
    let name = name.or(ctx.runtime.timezone.as_deref()).unwrap_or("UTC");
    let zone = TimeZone::get(name).unwrap_or(TimeZone::UTC);
    let now = Timestamp::now().to_zoned(zone);
    format!("Today is {} ({name}).", now.strftime("%A, %Y-%m-%d"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_exchanges_that_fit_are_kept() {
        assert_eq!(kept(&[10, 10, 10, 10], 60), 2);
        assert_eq!(kept(&[10, 10], 1000), 2);
        assert_eq!(kept(&[10, 50], 100), 1);
        assert_eq!(kept(&[10, 70], 100), 0);
        assert_eq!(kept(&[], 100), 0);
    }
}
