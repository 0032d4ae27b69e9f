//! What was said before, for a session that could not be loaded.
//!
//! Invariant: it comes from the host's history, and stays short; without permission there is none.

use greenroom_sdk::{HistoryPageParams, RunCtx, TranscriptItem, TranscriptRole};

/// Earlier messages that are looked at.
const ITEMS: u32 = 30;
/// Longest summary, and longest text of one message in it.
const BYTES_MAX: usize = 12 * 1024;
const TEXT_CHARS_MAX: usize = 1200;

/// The summary as a part of the prompt.
pub(crate) async fn of(ctx: &RunCtx) -> Option<String> {
    if !ctx.context.available_apis.history_page {
        return None;
    }
    let params = HistoryPageParams { limit: ITEMS, ..HistoryPageParams::default() };
    match ctx.history().page(params).await {
        Ok(page) => summary(&page.items),
        Err(error) => {
            eprintln!("cannot read the history: {error}");
            None
        }
    }
}

fn summary(items: &[TranscriptItem]) -> Option<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut bytes = 0;
    for item in items.iter().rev() {
        let who = match item.role {
            TranscriptRole::User => "user",
            TranscriptRole::Assistant => "you",
            _ => continue,
        };
        let text = item.text.as_deref().unwrap_or_default().trim();
        if text.is_empty() {
            continue;
        }
        let text: String = text.chars().take(TEXT_CHARS_MAX).collect();
        let line = format!("{who}: {text}");
        bytes += line.len();
        if bytes > BYTES_MAX {
            break;
        }
        lines.push(line);
    }
    if lines.is_empty() {
        return None;
    }
    lines.reverse();
    let lines = lines.join("\n");
    Some(format!(
        "This conversation has an earlier part that you do not remember:\n\n{lines}\n\nThe next message is new."
    ))
}
