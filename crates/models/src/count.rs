//! Counts the tokens of a request: with the provider's endpoint where there is one, else with a tokenizer.
//!
//! Invariant: a provider counts the request as it would be sent. The tokenizer is OpenAI's `o200k_base`, loaded
//! on first use; for other models its count is approximate.

use crate::wires::{self, PreparedRequest};
use crate::{Model, ModelError, ModelRequest, ModelSettings, ProviderKind, presets, scripted};
use greenroom_protocol::api::models::{CountTokensParams, ModelMessage};
use greenroom_protocol::{ContentElement, MessageContent, Role};
use serde_json::{Value, json};
use std::sync::LazyLock;
use tiktoken::CoreBpe;
use tokio::time::Instant;

/// OpenAI's overhead per message, per name and before the response.
const PER_MESSAGE: u64 = 3;
const PER_NAME: u64 = 1;
const PER_RESPONSE: u64 = 3;
/// An image of 1024 × 1024 pixels in full detail, as OpenAI counts it.
const PER_IMAGE: u64 = 765;
/// An estimate for other media: about a page, or a minute.
const PER_MEDIA: u64 = 1_500;

/// Takes about 25 MB once loaded.
static TOKENIZER: LazyLock<CoreBpe> = LazyLock::new(tiktoken::encoding::o200k_base);

impl Model {
    pub async fn count_tokens(
        &self,
        params: &CountTokensParams,
        deadline: Instant,
    ) -> Result<u64, ModelError> {
        let mut messages = params.messages.clone().unwrap_or_default();
        if self.script().is_some() {
            let text = params.text.as_deref().map_or(0, scripted::tokens);
            let request = ModelRequest { messages, ..ModelRequest::default() };
            return Ok(scripted::request_tokens(&request) + text);
        }
        if let Some(endpoint) = CountEndpoint::of(self.settings()) {
            let text = params.text.clone().map(|text| ModelMessage::text(Role::User, text));
            messages.extend(text);
            let request = ModelRequest { messages, ..ModelRequest::default() };
            let (url, body) = endpoint.request(self.settings(), &request)?;
            match self.provider_client()?.json(&url, &body, deadline).await {
                Ok(response) => return endpoint.read(&response),
                // It speaks the wire but has no count endpoint.
                Err(ModelError::Rejected { status: 404 | 405 | 501, .. }) => {}
                Err(error) => return Err(error),
            }
            return count_locally(request.messages, None).await;
        }
        count_locally(messages, params.text.clone()).await
    }
}

/// On a blocking thread: loading the table takes a tenth of a second, long texts take longer.
async fn count_locally(
    messages: Vec<ModelMessage>,
    text: Option<String>,
) -> Result<u64, ModelError> {
    let count = tokio::task::spawn_blocking(move || {
        let mut count = text.as_deref().map_or(0, text_tokens);
        if !messages.is_empty() {
            count += messages.iter().map(message_tokens).sum::<u64>() + PER_RESPONSE;
        }
        count
    });
    count.await.map_err(|error| ModelError::Unavailable(error.to_string()))
}

pub fn text_tokens(text: &str) -> u64 {
    u64::try_from(TOKENIZER.count(text)).unwrap_or(u64::MAX)
}

fn message_tokens(message: &ModelMessage) -> u64 {
    let content = match &message.content {
        None => 0,
        Some(MessageContent::Text(text)) => text_tokens(text),
        Some(MessageContent::Parts(parts)) => parts.iter().map(part_tokens).sum(),
    };
    let name = message.name.as_deref().map_or(0, |name| PER_NAME + text_tokens(name));
    let calls = message.tool_calls.iter().map(|call| {
        let args = call.args_text.clone().unwrap_or_else(|| call.args.to_string());
        PER_MESSAGE + text_tokens(&call.name) + text_tokens(&args)
    });
    PER_MESSAGE + content + name + calls.sum::<u64>()
}

fn part_tokens(part: &ContentElement) -> u64 {
    match part {
        ContentElement::Text { text } => text_tokens(text),
        ContentElement::Image(_) => PER_IMAGE,
        _ => PER_MEDIA,
    }
}

/// The count endpoint of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CountEndpoint {
    Anthropic,
    Gemini,
}

impl CountEndpoint {
    fn of(settings: &ModelSettings) -> Option<Self> {
        match settings.provider {
            ProviderKind::Anthropic => Some(Self::Anthropic),
            ProviderKind::Gemini => Some(Self::Gemini),
            _ => None,
        }
    }

    fn request(
        self,
        settings: &ModelSettings,
        request: &ModelRequest,
    ) -> Result<(String, Value), ModelError> {
        let base = presets::base_url(settings)?;
        let whole = wires::request(&PreparedRequest::new(settings, request)?)?.body;
        let keep = |keys: &[&str]| -> Value {
            let fields = whole.as_object().into_iter().flatten();
            let fields = fields.filter(|(name, _)| keys.contains(&name.as_str()));
            fields.map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        match self {
            Self::Anthropic => {
                let body =
                    keep(&["model", "messages", "system", "tools", "tool_choice", "thinking"]);
                Ok((presets::join(&base, "/messages/count_tokens"), body))
            }
            Self::Gemini => {
                let model = settings.model.trim_start_matches("models/");
                let mut inner = keep(&["contents", "systemInstruction", "tools"]);
                inner["model"] = format!("models/{model}").into();
                let url = presets::join(&base, &format!("/models/{model}:countTokens"));
                Ok((url, json!({"generateContentRequest": inner})))
            }
        }
    }

    fn read(self, response: &Value) -> Result<u64, ModelError> {
        let count = match self {
            Self::Anthropic => response.get("input_tokens"),
            Self::Gemini => response.get("totalTokens"),
        };
        let count = count.and_then(Value::as_u64);
        count.ok_or_else(|| ModelError::InvalidResponse("it contains no count".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_protocol::content::MediaElement;

    /// Counts that OpenAI publishes for `o200k_base`.
    #[test]
    fn token_counts_match_openai() {
        for (text, tokens) in [
            ("", 0),
            ("antidisestablishmentarianism", 6),
            ("2 + 2 = 4", 7),
            ("お誕生日おめでとう", 8),
            ("tiktoken is great!", 6),
        ] {
            assert_eq!(text_tokens(text), tokens, "{text}");
        }
        // A special token in a text is plain text.
        assert!(text_tokens("<|endoftext|>") > 1);
    }

    #[test]
    fn one_very_long_word_is_counted() {
        assert!(text_tokens(&"a".repeat(300_000)) > 1_000);
        assert!(text_tokens(&" ".repeat(300_000)) > 100);
    }

    #[test]
    fn messages_have_overhead_and_images_an_estimate() {
        let text = ModelMessage::text(Role::User, "2 + 2 = 4");
        assert_eq!(message_tokens(&text), 3 + 7);
        let image = ContentElement::Image(MediaElement::default());
        let mut seen = ModelMessage::text(Role::User, "");
        seen.content = Some(MessageContent::Parts(vec![
            ContentElement::Text { text: "2 + 2 = 4".to_owned() },
            image,
        ]));
        assert_eq!(message_tokens(&seen), 3 + 7 + 765);
    }

    #[test]
    fn count_endpoints_get_the_request_as_it_would_be_sent() {
        let request = ModelRequest {
            messages: vec![
                ModelMessage::text(Role::System, "be brief"),
                ModelMessage::text(Role::User, "hi"),
            ],
            ..ModelRequest::default()
        };
        let mut anthropic = ModelSettings::new("m", ProviderKind::Anthropic, "claude-x");
        anthropic.base_url = Some("https://h".to_owned());
        let (url, body) = CountEndpoint::Anthropic.request(&anthropic, &request).unwrap();
        assert_eq!(url, "https://h/v1/messages/count_tokens");
        let keys: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["messages", "model", "system"]);
        let mut gemini = ModelSettings::new("m", ProviderKind::Gemini, "gemini-x");
        gemini.base_url = Some("https://h".to_owned());
        let (url, body) = CountEndpoint::Gemini.request(&gemini, &request).unwrap();
        assert_eq!(url, "https://h/v1beta/models/gemini-x:countTokens");
        let expected = json!({"generateContentRequest": {
            "model": "models/gemini-x",
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "systemInstruction": {"parts": [{"text": "be brief"}]},
        }});
        assert_eq!(body, expected);
        assert_eq!(CountEndpoint::Anthropic.read(&json!({"input_tokens": 14})), Ok(14));
        assert_eq!(CountEndpoint::Gemini.read(&json!({"totalTokens": 31})), Ok(31));
        assert!(CountEndpoint::Gemini.read(&json!({})).is_err());
    }
}
