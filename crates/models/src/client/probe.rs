//! Whether a provider answers: its list of models is asked for, which costs nothing.
//!
//! Invariant: no model is called; the look ends with its limit; no key is in an error.

use super::{Caller, refused};
use crate::{Model, ModelError, ModelSettings, ProviderKind, presets};
use greenroom_outgoing::cause;
use reqwest::Response;
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Of a list of models; what comes behind is not looked at.
const LIST_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What a look at a provider showed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// No network: nothing to look at.
    Scripted,
    /// The provider answers and knows the model, as far as it says.
    Answers,
    /// The provider answers, and its list of models lacks this one.
    Unlisted,
    /// The provider answers and has no list, so that nothing is known of the key.
    KeyUnchecked,
}

impl Model {
    /// Looks whether the provider can be reached and takes the key, without calling the model.
    pub async fn probe(&self, limit: Duration) -> Result<Probe, ModelError> {
        if self.script().is_some() {
            return Ok(Probe::Scripted);
        }
        let until = Instant::now() + limit;
        let caller = self.caller()?;
        caller.look(&list_url(self.settings())?, &self.settings().model, until).await
    }
}

/// Where a provider lists its models.
fn list_url(settings: &ModelSettings) -> Result<String, ModelError> {
    let base = presets::base_url(settings)?;
    let path = match settings.provider {
        ProviderKind::Ollama => "/api/tags",
        ProviderKind::Gemini => "/models?pageSize=1000",
        ProviderKind::Anthropic => "/models?limit=1000",
        _ => "/models",
    };
    Ok(presets::join(&base, path))
}

impl Caller {
    async fn look(&self, url: &str, model: &str, until: Instant) -> Result<Probe, ModelError> {
        let request = self.client.get(url).headers(self.headers.clone());
        let response = match timeout_at(until, request.send()).await {
            Err(_) => return Err(ModelError::Unavailable("no answer in time".to_owned())),
            Ok(Err(error)) => return Err(self.clean(ModelError::Unavailable(cause(&error)))),
            Ok(Ok(response)) => response,
        };
        match response.status().as_u16() {
            200..300 => Ok(match lists(response, model, until).await {
                Some(false) => Probe::Unlisted,
                Some(true) | None => Probe::Answers,
            }),
            401 | 403 | 500.. => Err(self.clean(refused(response, until, None).await)),
            _ => Ok(Probe::KeyUnchecked),
        }
    }
}

/// Whether a list of models has this one; nothing when it is no list that we know.
async fn lists(mut response: Response, model: &str, until: Instant) -> Option<bool> {
    let mut body = Vec::new();
    while let Ok(Ok(Some(bytes))) = timeout_at(until, response.chunk()).await {
        body.extend_from_slice(&bytes);
        if body.len() > LIST_BYTES_MAX {
            return None;
        }
    }
    let body: Value = serde_json::from_slice(&body).ok()?;
    let items = body.get("data").or_else(|| body.get("models"))?.as_array()?;
    let names = items.iter().flat_map(|item| [item.get("id"), item.get("name"), item.get("model")]);
    let names: Vec<&str> = names.flatten().filter_map(Value::as_str).collect();
    let plain =
        |name: &str| name.trim_start_matches("models/").trim_end_matches(":latest").to_owned();
    (!names.is_empty()).then(|| names.iter().any(|name| plain(name) == plain(model)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wire_has_a_list_of_models() {
        for (provider, kind, expected) in [
            ("openai", ProviderKind::OpenAiChat, "https://api.openai.com/v1/models"),
            (
                "anthropic",
                ProviderKind::Anthropic,
                "https://api.anthropic.com/v1/models?limit=1000",
            ),
            ("ollama", ProviderKind::Ollama, "http://localhost:11434/api/tags"),
        ] {
            let mut settings = ModelSettings::new("m", kind, "x");
            provider.clone_into(&mut settings.provider_name);
            assert_eq!(list_url(&settings).unwrap(), expected);
        }
    }
}
