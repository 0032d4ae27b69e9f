//! How many tokens a request has: the provider's count where there is one, a real tokenizer otherwise.
//!
//! Invariant: a provider's count is that of the request as it would be sent. The tokenizer is OpenAI's
//! `o200k_base`, loaded when it is first asked; for other models its count is near, not exact.

use crate::wires::{self, Ask};
use crate::{Model, ModelError, ModelRequest, ModelSettings, ProviderKind, presets, scripted};
use greenroom_protocol::api::models::{CountTokensParams, ModelMessage};
use greenroom_protocol::{ContentElement, MessageContent, Role};
use serde_json::{Value, json};
use std::sync::LazyLock;
use tiktoken::CoreBpe;
use tokio::time::Instant;

/// What OpenAI's models put around every message, around a name and in front of the answer.
const PER_MESSAGE: u64 = 3;
const PER_NAME: u64 = 1;
const BEFORE_ANSWER: u64 = 3;
/// An image of 1024 × 1024 pixels in full detail, as OpenAI counts it.
const PER_IMAGE: u64 = 765;
/// Other media, whose length nobody has measured: about a page, or a minute.
const PER_MEDIA: u64 = 1_500;

/// About 25 MB once it is loaded.
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
        if let Some(question) = Question::of(self.settings()) {
            let text = params.text.clone().map(|text| ModelMessage::text(Role::User, text));
            messages.extend(text);
            let request = ModelRequest { messages, ..ModelRequest::default() };
            let (url, body) = question.ask(self.settings(), &request)?;
            match self.caller()?.json(&url, &body, deadline).await {
                Ok(answer) => return question.read(&answer),
                // It speaks the wire and has no counter.
                Err(ModelError::Refused { status: 404 | 405 | 501, .. }) => {}
                Err(error) => return Err(error),
            }
            return counted(request.messages, None).await;
        }
        counted(messages, params.text.clone()).await
    }
}

/// Counting takes time: loading the table a tenth of a second, long texts more.
async fn counted(messages: Vec<ModelMessage>, text: Option<String>) -> Result<u64, ModelError> {
    let count = tokio::task::spawn_blocking(move || {
        let mut count = text.as_deref().map_or(0, text_tokens);
        if !messages.is_empty() {
            count += messages.iter().map(message_tokens).sum::<u64>() + BEFORE_ANSWER;
        }
        count
    });
    count.await.map_err(|error| ModelError::Unavailable(error.to_string()))
}

/// Tokens of a text alone.
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

/// How a provider is asked to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Question {
    Anthropic,
    Gemini,
}

impl Question {
    fn of(settings: &ModelSettings) -> Option<Self> {
        match settings.provider {
            ProviderKind::Anthropic => Some(Self::Anthropic),
            ProviderKind::Gemini => Some(Self::Gemini),
            _ => None,
        }
    }

    fn ask(
        self,
        settings: &ModelSettings,
        request: &ModelRequest,
    ) -> Result<(String, Value), ModelError> {
        let base = presets::base_url(settings)?;
        let whole = wires::request(&Ask::new(settings, request)?)?.body;
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

    fn read(self, answer: &Value) -> Result<u64, ModelError> {
        let count = match self {
            Self::Anthropic => answer.get("input_tokens"),
            Self::Gemini => answer.get("totalTokens"),
        };
        let count = count.and_then(Value::as_u64);
        count.ok_or_else(|| ModelError::Garbled("it has no count".to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_protocol::content::MediaElement;

    /// Counts that OpenAI publishes for `o200k_base`.
    #[test]
    fn texts_have_the_tokens_that_openai_says() {
        for (text, tokens) in [
            ("", 0),
            ("antidisestablishmentarianism", 6),
            ("2 + 2 = 4", 7),
            ("お誕生日おめでとう", 8),
            ("tiktoken is great!", 6),
        ] {
            assert_eq!(text_tokens(text), tokens, "{text}");
        }
        // A special token in a text is a text.
        assert!(text_tokens("<|endoftext|>") > 1);
    }

    #[test]
    fn a_text_that_is_one_endless_word_is_counted_too() {
        assert!(text_tokens(&"a".repeat(300_000)) > 1_000);
        assert!(text_tokens(&" ".repeat(300_000)) > 100);
    }

    #[test]
    fn messages_have_a_frame_and_images_an_estimate() {
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
    fn providers_that_count_are_asked_with_the_request_as_it_would_be_sent() {
        let request = ModelRequest {
            messages: vec![
                ModelMessage::text(Role::System, "be brief"),
                ModelMessage::text(Role::User, "hi"),
            ],
            ..ModelRequest::default()
        };
        let mut anthropic = ModelSettings::new("m", ProviderKind::Anthropic, "claude-x");
        anthropic.base_url = Some("https://h".to_owned());
        let (url, body) = Question::Anthropic.ask(&anthropic, &request).unwrap();
        assert_eq!(url, "https://h/v1/messages/count_tokens");
        let keys: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["messages", "model", "system"]);
        let mut gemini = ModelSettings::new("m", ProviderKind::Gemini, "gemini-x");
        gemini.base_url = Some("https://h".to_owned());
        let (url, body) = Question::Gemini.ask(&gemini, &request).unwrap();
        assert_eq!(url, "https://h/v1beta/models/gemini-x:countTokens");
        let expected = json!({"generateContentRequest": {
            "model": "models/gemini-x",
            "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
            "systemInstruction": {"parts": [{"text": "be brief"}]},
        }});
        assert_eq!(body, expected);
        assert_eq!(Question::Anthropic.read(&json!({"input_tokens": 14})), Ok(14));
        assert_eq!(Question::Gemini.read(&json!({"totalTokens": 31})), Ok(31));
        assert!(Question::Gemini.read(&json!({})).is_err());
    }
}
