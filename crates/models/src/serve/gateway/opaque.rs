//! Opaque reasoning of any provider, as one string that every client stores and sends back.
//!
//! Invariant: what comes back is exactly what was sent; a string that the gateway did not make is dropped,
//! because another provider's signature would make the request invalid.

use super::Wire;
use crate::{ModelSettings, ProviderKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use greenroom_protocol::Object;
use greenroom_protocol::api::models::ModelStreamItem;
use serde_json::{Value, json};

/// Marks data of the gateway. All of it is base64, because clients of Gemini decode signatures.
const PREFIX: &str = "greenroom1";

/// Puts the data of a reasoning item into a string.
pub(super) fn seal(item: &mut ModelStreamItem) {
    let ModelStreamItem::Media { segment } = item else { return };
    if segment.get("type") == Some(&"reasoning".into())
        && let Some(data) = segment.get_mut("data")
    {
        *data = STANDARD.encode(format!("{PREFIX}{data}")).into();
    }
}

/// Restores the data of a segment that a client sent back.
pub(super) fn open(wire: Wire, target: &ModelSettings, segment: &mut Object) {
    if segment.get("type") != Some(&"reasoning".into()) {
        return;
    }
    let sealed = segment.remove("data");
    let data = sealed.as_ref().and_then(Value::as_str).and_then(unsealed);
    // Most clients of chat completions send back the text alone, and providers with that field need it.
    let field = || {
        let is_openai = matches!(target.provider_name.as_str(), "openai" | "azure");
        let takes_text = target.provider == ProviderKind::OpenAiChat && !is_openai;
        (wire == Wire::OpenAiChat && takes_text)
            .then(|| json!({"wire": "openai_chat", "field": "reasoning_content"}))
    };
    if let Some(data) = data.or_else(field) {
        segment.insert("data".to_owned(), data);
    }
}

fn unsealed(text: &str) -> Option<Value> {
    // Some clients encode it again, in the other alphabet.
    let text = text.trim_end_matches('=').replace('-', "+").replace('_', "/");
    let bytes = STANDARD_NO_PAD.decode(text).ok()?;
    serde_json::from_slice(bytes.strip_prefix(PREFIX.as_bytes())?).ok()
}
