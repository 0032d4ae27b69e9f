//! Large tool results: cut to a share of the context window, head and tail, the rest in an artifact.
//!
//! Invariant: a cut result says how much is left out and how to read it. How a result was cut is recorded with the
//! answer, so that the next run gives the model the same text.

use crate::reading::READ_ARTIFACT;
use crate::tokens;
use greenroom_sdk::protocol::MessageContent;
use greenroom_sdk::{ArtifactOptions, ModelMessage, Object, RunCtx, Value, json};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// The smallest share of a result; a shorter one is never cut.
const TOKENS_MIN: u64 = 120;
/// Tokens of the note between head and tail.
const NOTE_TOKENS: u64 = 60;

/// How a result was cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cut {
    tokens: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    artifact_id: Option<String>,
}

/// The cut results of a run, by call id.
#[derive(Debug, Default)]
pub(crate) struct Results {
    cuts: BTreeMap<String, Cut>,
    whole: HashMap<String, String>,
}

impl Results {
    /// Cuts the results of one round to their shares of a budget.
    pub(crate) async fn fit(&mut self, ctx: &RunCtx, results: &mut [ModelMessage], budget: u64) {
        let sizes: Vec<u64> = results.iter().map(|result| tokens::of_text(&text(result))).collect();
        for ((result, size), share) in results.iter_mut().zip(&sizes).zip(shares(&sizes, budget)) {
            if *size > share {
                self.shorten(ctx, result, share).await;
            }
        }
    }

    /// Cuts a result; returns the saved tokens.
    pub(crate) async fn shorten(
        &mut self,
        ctx: &RunCtx,
        result: &mut ModelMessage,
        tokens_max: u64,
    ) -> u64 {
        let tokens = tokens_max.max(TOKENS_MIN);
        let before = text(result);
        let size = tokens::of_text(&before);
        if size <= tokens * 5 / 4 {
            return 0;
        }
        let id = result.tool_call_id.clone().unwrap_or_default();
        let artifact_id = match self.cuts.get(&id) {
            Some(cut) => cut.artifact_id.clone(),
            // What it read is in an artifact already.
            None if result.name.as_deref() == Some(READ_ARTIFACT) => None,
            None => store(ctx, &id, &before).await,
        };
        let whole = self.whole.entry(id.clone()).or_insert(before);
        let cut = Cut { tokens, artifact_id };
        let short = cut.apply(whole);
        let after = tokens::of_text(&short);
        result.content = Some(MessageContent::Text(short));
        self.cuts.insert(id, cut);
        size.saturating_sub(after)
    }

    /// For the metadata of the answer.
    pub(crate) fn recorded(&self) -> Object {
        self.cuts.iter().map(|(id, cut)| (id.clone(), json!(cut))).collect()
    }
}

impl Cut {
    /// As recorded with an answer.
    pub(crate) fn read(recorded: &Value) -> Option<Self> {
        serde_json::from_value(recorded.clone()).ok()
    }

    /// The head and the tail of a text, and a note on what is left out between them.
    pub(crate) fn apply(&self, whole: &str) -> String {
        let room = self.tokens.saturating_sub(NOTE_TOKENS);
        let head = tokens::start(whole, room * 2 / 3);
        let tail = tokens::end(&whole[head.len()..], room / 3);
        let left_out = &whole[head.len()..whole.len() - tail.len()];
        if left_out.is_empty() {
            return whole.to_owned();
        }
        let (count, total) = (left_out.chars().count(), whole.chars().count());
        let next = match &self.artifact_id {
            Some(id) => {
                let place = json!({"artifact_id": id, "offset": head.len()});
                format!("read them with {READ_ARTIFACT} {place}")
            }
            None => "ask for less at a time".to_owned(),
        };
        format!("{head}\n[cut: {count} of {total} characters are left out here; {next}]\n{tail}")
    }
}

/// Shares a budget: what small results do not need is for the large ones.
fn shares(sizes: &[u64], budget: u64) -> Vec<u64> {
    let mut order: Vec<usize> = (0..sizes.len()).collect();
    order.sort_by_key(|at| sizes[*at]);
    let (mut shares, mut left) = (vec![0; sizes.len()], budget);
    for (done, at) in order.into_iter().enumerate() {
        let share = left / (sizes.len() - done) as u64;
        shares[at] = sizes[at].min(share);
        left -= shares[at];
    }
    shares
}

/// Stores a whole result; none if the run may not, or the host fails.
async fn store(ctx: &RunCtx, call_id: &str, whole: &str) -> Option<String> {
    let apis = &ctx.context.available_apis;
    if !apis.artifact_read || !apis.artifact_create {
        return None;
    }
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = call_id.chars().take(64).map(safe).collect();
    let options = ArtifactOptions {
        name: Some(format!("result-{name}.txt")),
        mime_type: Some("text/plain".to_owned()),
        ..ArtifactOptions::default()
    };
    let stored = ctx.artifacts().create(whole.as_bytes(), options).await;
    stored.ok().map(|artifact| artifact.artifact_id)
}

fn text(result: &ModelMessage) -> String {
    result.content.as_ref().map(MessageContent::text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_results_leave_their_share_to_large_ones() {
        assert_eq!(shares(&[10, 1000, 1000], 610), [10, 300, 300]);
        assert_eq!(shares(&[10, 20], 1000), [10, 20]);
        assert_eq!(shares(&[], 1000), [0; 0]);
    }

    #[test]
    fn a_cut_text_has_its_head_its_tail_and_the_way_to_the_rest() {
        let whole = format!("<begin>{}<end>", "word ".repeat(10_000));
        let cut = Cut { tokens: 400, artifact_id: Some("art_1".to_owned()) };
        let short = cut.apply(&whole);
        assert!(short.starts_with("<begin>word") && short.ends_with("word <end>"), "{short}");
        assert!(tokens::of_text(&short) <= 420, "{}", tokens::of_text(&short));
        let offset = short.find("\n[cut: ").unwrap();
        let note = format!("artifact.read {{\"artifact_id\":\"art_1\",\"offset\":{offset}}}");
        assert!(short.contains(&note), "{short}");
        assert_eq!(cut.apply("short"), "short");
    }
}
