//! Checks a provider by requesting its list of models, which costs nothing.
//!
//! Invariant: no model is invoked; the check ends at its timeout; errors contain no key.

use super::{ProviderClient, read_error};
use crate::{Model, ModelError, ModelSettings, ProviderKind, presets};
use greenroom_outgoing::cause;
use reqwest::Response;
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Limit for a list of models; a longer list is ignored.
const LIST_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// No network: nothing to check.
    Scripted,
    /// The provider responds and lists the model, or has an unknown list format.
    Available,
    /// The provider responds, but its list lacks this model.
    Unlisted,
    /// The provider responds but has no list, so the key is unchecked.
    KeyUnchecked,
}

impl Model {
    /// Checks that the provider is reachable and accepts the key, without invoking the model.
    pub async fn probe(&self, timeout: Duration) -> Result<Probe, ModelError> {
        if self.script().is_some() {
            return Ok(Probe::Scripted);
        }
        let deadline = Instant::now() + timeout;
        let provider_client = self.provider_client()?;
        provider_client
            .probe_list(&list_url(self.settings())?, &self.settings().model, deadline)
            .await
    }
}

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

impl ProviderClient {
    async fn probe_list(
        &self,
        url: &str,
        model: &str,
        deadline: Instant,
    ) -> Result<Probe, ModelError> {
        let request = self.client.get(url).headers(self.headers.clone());
        let response = match timeout_at(deadline, request.send()).await {
            Err(_) => return Err(ModelError::Unavailable("no response in time".to_owned())),
            Ok(Err(error)) => return Err(self.redact(ModelError::Unavailable(cause(&error)))),
            Ok(Ok(response)) => response,
        };
        match response.status().as_u16() {
            200..300 => Ok(match contains_model(response, model, deadline).await {
                Some(false) => Probe::Unlisted,
                Some(true) | None => Probe::Available,
            }),
            401 | 403 | 500.. => Err(self.redact(read_error(response, deadline, None).await)),
            _ => Ok(Probe::KeyUnchecked),
        }
    }
}

/// Whether a list of models contains this one; `None` if the format is unknown.
async fn contains_model(mut response: Response, model: &str, deadline: Instant) -> Option<bool> {
    let mut body = Vec::new();
    while let Ok(Ok(Some(bytes))) = timeout_at(deadline, response.chunk()).await {
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
    fn every_provider_has_a_model_list_url() {
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
