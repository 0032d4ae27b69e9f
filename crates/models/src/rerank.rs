//! Reranking with the API formats of Cohere, Jina and Voyage.
//!
//! Invariant: every document at most once, by its index in the request; best first; at most `top_k`.

use crate::embed::{check_size, input_usage, invalid_response};
use crate::options::Options;
use crate::{Model, ModelError, ModelSettings, ProviderKind, presets, scripted};
use greenroom_protocol::Object;
use greenroom_protocol::api::models::{ModelRerankParams, RankedDocument};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tokio::time::Instant;

impl Model {
    /// The ranking, and the usage if the provider reports it.
    pub async fn rerank(
        &self,
        params: &ModelRerankParams,
        deadline: Instant,
    ) -> Result<(Vec<RankedDocument>, Option<Object>), ModelError> {
        check_size(params.documents.iter().chain([&params.query]))?;
        let top = top_k(params);
        if self.script().is_some() {
            let ranked = scripted::rerank(&params.query, &params.documents, top);
            let documents = params.documents.iter().map(|document| scripted::tokens(document));
            let tokens = scripted::tokens(&params.query) + documents.sum::<u64>();
            return Ok((ranked, Some(input_usage(tokens))));
        }
        let url = url(self.settings())?;
        if params.documents.is_empty() {
            return Ok((Vec::new(), None));
        }
        let body = body(self.settings(), params)?;
        let answer = self.provider_client()?.json(&url, &body, deadline).await?;
        let tokens = answer.pointer("/usage/total_tokens").and_then(Value::as_u64);
        Ok((read(&answer, params.documents.len(), top)?, tokens.map(input_usage)))
    }
}

fn top_k(params: &ModelRerankParams) -> usize {
    let top = params.top_k.and_then(|top| usize::try_from(top).ok());
    top.unwrap_or(usize::MAX).min(params.documents.len())
}

fn url(settings: &ModelSettings) -> Result<String, ModelError> {
    if !matches!(settings.provider, ProviderKind::OpenAiChat | ProviderKind::OpenAiResponses) {
        return Err(ModelError::Unsupported("rerank"));
    }
    let base = presets::base_url(settings)?;
    // Cohere reranks in its native API only.
    let base = match base.strip_suffix("/compatibility/v1") {
        Some(host) if settings.provider_name == "cohere" => format!("{host}/v2"),
        _ => base,
    };
    Ok(presets::join(&base, "/rerank"))
}

fn body(settings: &ModelSettings, params: &ModelRerankParams) -> Result<Value, ModelError> {
    let mut body = json!({
        "model": settings.model, "query": params.query, "documents": params.documents,
    });
    let voyage = settings.base_url.as_deref().is_some_and(|base| base.contains("voyageai"));
    let top = if voyage { "top_k" } else { "top_n" };
    if let Some(fields) = body.as_object_mut() {
        fields.insert(top.to_owned(), top_k(params).into());
        Options::new(&settings.options, &Object::new())?.merge_rest_into(fields);
    }
    Ok(body)
}

/// `results` of Cohere and Jina, `data` of Voyage.
fn read(answer: &Value, documents: usize, top: usize) -> Result<Vec<RankedDocument>, ModelError> {
    let list = answer.get("results").or(answer.get("data")).and_then(Value::as_array);
    let list = list.ok_or_else(|| invalid_response("it contains no results"))?;
    let mut seen = BTreeSet::new();
    let mut ranked = Vec::new();
    for item in list {
        let index = item.get("index").and_then(Value::as_u64);
        let index = index.and_then(|index| u32::try_from(index).ok());
        let index = index.filter(|index| (*index as usize) < documents && seen.insert(*index));
        let index = index
            .ok_or_else(|| invalid_response("it contains an unknown or duplicate document"))?;
        let score = item.get("relevance_score").or(item.get("score")).and_then(Value::as_f64);
        let relevance_score = score.ok_or_else(|| invalid_response("a document has no score"))?;
        ranked.push(RankedDocument { index, relevance_score });
    }
    // Some endpoints do not sort. The sort is stable.
    ranked.sort_by(|a, b| b.relevance_score.total_cmp(&a.relevance_score));
    ranked.truncate(top);
    Ok(ranked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(top_k: Option<u32>) -> ModelRerankParams {
        ModelRerankParams {
            model_id: "m".to_owned(),
            query: "q".to_owned(),
            documents: vec!["a".to_owned(), "b".to_owned(), "c".to_owned()],
            top_k,
        }
    }

    fn settings(provider: &str, base_url: Option<&str>) -> ModelSettings {
        let preset = presets::find(provider).unwrap();
        let mut settings = ModelSettings::new("m", preset.kind, "rerank-1");
        settings.provider_name = provider.to_owned();
        settings.base_url = base_url.map(str::to_owned);
        settings
    }

    #[test]
    fn every_provider_gets_its_own_url_and_format() {
        let jina = settings("openai-compatible", Some("https://api.jina.ai/v1"));
        let voyage = settings("openai-compatible", Some("https://api.voyageai.com/v1"));
        assert_eq!(url(&jina).unwrap(), "https://api.jina.ai/v1/rerank");
        assert_eq!(url(&settings("cohere", None)).unwrap(), "https://api.cohere.ai/v2/rerank");
        let expected = |top: &str, count: usize| {
            let mut body = json!({"model": "rerank-1", "query": "q", "documents": ["a", "b", "c"]});
            body[top] = count.into();
            body
        };
        assert_eq!(body(&jina, &params(Some(2))).unwrap(), expected("top_n", 2));
        assert_eq!(body(&voyage, &params(None)).unwrap(), expected("top_k", 3));
        assert_eq!(url(&settings("gemini", None)), Err(ModelError::Unsupported("rerank")));
    }

    #[test]
    fn rankings_are_sorted_and_truncated() {
        let one = |index: u32, relevance_score: f64| RankedDocument { index, relevance_score };
        let jina = json!({"results": [
            {"index": 2, "relevance_score": 0.1, "document": {"text": "c"}},
            {"index": 0, "relevance_score": 0.9},
            {"index": 1, "relevance_score": 0.1},
        ]});
        assert_eq!(read(&jina, 3, 3).unwrap(), [one(0, 0.9), one(2, 0.1), one(1, 0.1)]);
        assert_eq!(read(&jina, 3, 1).unwrap(), [one(0, 0.9)]);
        let voyage = json!({"object": "list", "data": [{"index": 0, "relevance_score": 1}]});
        assert_eq!(read(&voyage, 3, 3).unwrap(), [one(0, 1.0)]);
    }

    #[test]
    fn a_ranking_of_unknown_documents_is_rejected() {
        for answer in [
            json!({"ranked": []}),
            json!({"results": [{"index": 3, "relevance_score": 1}]}),
            json!({"results": [{"index": -1, "relevance_score": 1}]}),
            json!({"results": [{"index": 0, "relevance_score": 1}, {"index": 0, "relevance_score": 1}]}),
            json!({"results": [{"index": 0}]}),
        ] {
            assert!(matches!(read(&answer, 3, 3), Err(ModelError::InvalidResponse(_))), "{answer}");
        }
    }
}
