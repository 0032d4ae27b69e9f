//! Local token estimates, rather too high than too low.
//!
//! Invariant: more text is never fewer tokens; the estimate is above what common tokenizers count for prose in any
//! script.

use greenroom_sdk::protocol::{ContentElement, MessageContent};
use greenroom_sdk::{ModelMessage, ToolResource, Value};

/// Overhead of a message, a call, a tool.
const FRAME: u64 = 8;
/// An image, a recording, a file.
pub(crate) const PER_MEDIA: u64 = 1600;

pub(crate) fn of_messages(messages: &[ModelMessage]) -> u64 {
    messages.iter().map(of_message).sum()
}

pub(crate) fn of_message(message: &ModelMessage) -> u64 {
    let content = match &message.content {
        None => 0,
        Some(MessageContent::Text(text)) => of_text(text),
        Some(MessageContent::Parts(parts)) => parts.iter().map(of_part).sum(),
    };
    let calls = message.tool_calls.iter().map(|call| {
        let args = call.args_text.clone().unwrap_or_else(|| call.args.to_string());
        FRAME + of_text(&call.id) + of_text(&call.name) + of_text(&args)
    });
    // Of the segments, only reasoning adds to content and calls.
    let segments = message.segments.iter().flatten();
    let thoughts = segments.filter(|one| one.get("type") == Some(&"reasoning".into()));
    let thoughts = thoughts.map(|one| of_text(&Value::Object(one.clone()).to_string()));
    FRAME + content + calls.sum::<u64>() + thoughts.sum::<u64>()
}

pub(crate) fn of_tool(tool: &ToolResource) -> u64 {
    let schema = Value::Object(tool.parameters.clone()).to_string();
    let description = tool.description.as_deref().unwrap_or_default();
    FRAME + of_text(&tool.tool_name) + of_text(description) + of_text(&schema)
}

/// Two tokens per five ASCII characters, one per other character, two beyond the basic plane.
pub(crate) fn of_text(text: &str) -> u64 {
    text.chars().map(of_char).sum::<u64>().div_ceil(5)
}

/// The start of a text, with at most this many tokens.
pub(crate) fn shorten(text: &str, tokens_max: u64) -> String {
    if of_text(text) <= tokens_max {
        return text.to_owned();
    }
    // One token is reserved for the ellipsis.
    format!("{}…", start(text, tokens_max.saturating_sub(1)))
}

/// The longest start of a text with at most this many tokens.
pub(crate) fn start(text: &str, tokens_max: u64) -> &str {
    let bytes = fitting(text.chars(), tokens_max);
    &text[..bytes]
}

/// The longest end of a text with at most this many tokens.
pub(crate) fn end(text: &str, tokens_max: u64) -> &str {
    let bytes = fitting(text.chars().rev(), tokens_max);
    &text[text.len() - bytes..]
}

/// The bytes of the first characters with at most this many tokens.
fn fitting(chars: impl Iterator<Item = char>, tokens_max: u64) -> usize {
    let mut left = tokens_max * 5;
    let mut bytes = 0;
    for c in chars {
        let weight = of_char(c);
        if weight > left {
            break;
        }
        left -= weight;
        bytes += c.len_utf8();
    }
    bytes
}

/// In fifths of a token.
fn of_char(c: char) -> u64 {
    match c {
        '\0'..='\x7f' => 2,
        '\u{80}'..='\u{ffff}' => 5,
        _ => 10,
    }
}

fn of_part(part: &ContentElement) -> u64 {
    match part {
        ContentElement::Text { text } => of_text(text),
        _ => PER_MEDIA,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_sdk::Role;

    #[test]
    fn the_estimate_counts_letters_by_script_and_media_by_the_piece() {
        assert_eq!(of_text("hello"), 2);
        assert_eq!(of_text("你好"), 2);
        assert_eq!(of_text("🦀"), 2);
        assert_eq!(of_message(&ModelMessage::text(Role::User, "hello")), FRAME + 2);
        assert_eq!(shorten("hello world", 3), "hello…");
        assert_eq!(shorten("hello world", 5), "hello world");
        let image = ContentElement::Image(Default::default());
        assert_eq!(of_part(&image), PER_MEDIA);
    }
}
