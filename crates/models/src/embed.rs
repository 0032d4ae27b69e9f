//! Embeddings.
//!
//! Invariant: one vector per input, in input order, all of one length and finite; any other response is an
//! error.

use crate::options::Options;
use crate::{Model, ModelError, ModelSettings, ProviderKind, presets, scripted};
use greenroom_protocol::Object;
use greenroom_protocol::api::models::ModelEmbedParams;
use serde_json::{Value, json};
use tokio::time::Instant;

pub(crate) const INPUTS_MAX: usize = 4096;
pub(crate) const INPUT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Most texts per request.
const OPENAI_BATCH: usize = 1024;
const GEMINI_BATCH: usize = 100;
const COHERE_BATCH: usize = 96;

/// Request and response formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    OpenAi,
    Gemini,
    Ollama,
    Cohere,
}

impl Model {
    /// The vectors, and the usage if the provider reports it.
    pub async fn embed(
        &self,
        params: &ModelEmbedParams,
        deadline: Instant,
    ) -> Result<(Vec<Vec<f32>>, Option<Object>), ModelError> {
        check_size(params.inputs.iter())?;
        if self.script().is_some() {
            let vectors = params.inputs.iter().map(|input| scripted::embed(input)).collect();
            let tokens = params.inputs.iter().map(|input| scripted::tokens(input)).sum();
            return Ok((vectors, Some(input_usage(tokens))));
        }
        let shape = shape(self.settings())?;
        let url = url(self.settings(), shape)?;
        let mut vectors: Vec<Vec<f32>> = Vec::new();
        let mut tokens = Some(0_u64);
        for batch in params.inputs.chunks(shape.batch()) {
            let body = shape.body(self.settings(), batch)?;
            let answer = self.provider_client()?.json(&url, &body, deadline).await?;
            vectors.extend(shape.read(&answer, batch.len())?);
            tokens = tokens.zip(shape.tokens(&answer)).map(|(sum, more)| sum.saturating_add(more));
        }
        check_vectors(&vectors)?;
        let usage = tokens.filter(|_| !vectors.is_empty()).map(input_usage);
        Ok((vectors, usage))
    }
}

/// Rejects oversized input before anything is sent.
pub(crate) fn check_size<'a>(
    texts: impl Iterator<Item = &'a String> + Clone,
) -> Result<(), ModelError> {
    let (count, bytes) = (texts.clone().count(), texts.map(String::len).sum::<usize>());
    match count > INPUTS_MAX || bytes > INPUT_BYTES_MAX {
        true => Err(ModelError::InvalidRequest(format!(
            "{count} texts with {bytes} bytes exceed the limit of {INPUTS_MAX} texts and {INPUT_BYTES_MAX} bytes"
        ))),
        false => Ok(()),
    }
}

/// The usage of a call without output.
pub(crate) fn input_usage(tokens: u64) -> Object {
    let fields = [("input_tokens", tokens), ("output_tokens", 0), ("total_tokens", tokens)];
    fields.into_iter().map(|(name, count)| (name.to_owned(), count.into())).collect()
}

fn shape(settings: &ModelSettings) -> Result<Shape, ModelError> {
    match settings.provider {
        ProviderKind::OpenAiChat | ProviderKind::OpenAiResponses if is_cohere(settings) => {
            Ok(Shape::Cohere)
        }
        ProviderKind::OpenAiChat | ProviderKind::OpenAiResponses => Ok(Shape::OpenAi),
        ProviderKind::Gemini => Ok(Shape::Gemini),
        ProviderKind::Ollama => Ok(Shape::Ollama),
        ProviderKind::Anthropic | ProviderKind::Scripted => Err(ModelError::Unsupported("embed")),
    }
}

/// Cohere's native API, not its OpenAI-compatible one.
fn is_cohere(settings: &ModelSettings) -> bool {
    let base = settings.base_url.as_deref().unwrap_or_default().trim_end_matches('/');
    settings.provider_name == "cohere" && base.ends_with("/v2")
}

fn url(settings: &ModelSettings, shape: Shape) -> Result<String, ModelError> {
    let base = presets::base_url(settings)?;
    let path = match shape {
        Shape::OpenAi => "/embeddings".to_owned(),
        Shape::Cohere => "/embed".to_owned(),
        Shape::Ollama => "/api/embed".to_owned(),
        Shape::Gemini => {
            format!("/models/{}:batchEmbedContents", settings.model.trim_start_matches("models/"))
        }
    };
    Ok(presets::join(&base, &path))
}

impl Shape {
    fn batch(self) -> usize {
        match self {
            Self::OpenAi | Self::Ollama => OPENAI_BATCH,
            Self::Gemini => GEMINI_BATCH,
            Self::Cohere => COHERE_BATCH,
        }
    }

    fn body(self, settings: &ModelSettings, texts: &[String]) -> Result<Value, ModelError> {
        let model = &settings.model;
        let options = Options::new(&settings.options, &Object::new())?;
        let mut body = match self {
            Self::OpenAi => json!({"model": model, "input": texts, "encoding_format": "float"}),
            Self::Ollama => json!({"model": model, "input": texts}),
            Self::Cohere => json!({
                "model": model, "texts": texts, "input_type": "search_document",
                "embedding_types": ["float"],
            }),
            Self::Gemini => {
                let name = format!("models/{}", model.trim_start_matches("models/"));
                let requests = texts.iter().map(|text| {
                    let mut one = json!({"model": name, "content": {"parts": [{"text": text}]}});
                    one.as_object_mut().into_iter().for_each(|one| options.merge_rest_into(one));
                    one
                });
                return Ok(json!({"requests": requests.collect::<Vec<_>>()}));
            }
        };
        body.as_object_mut().into_iter().for_each(|body| options.merge_rest_into(body));
        Ok(body)
    }

    fn read(self, answer: &Value, expected: usize) -> Result<Vec<Vec<f32>>, ModelError> {
        let list = match self {
            Self::OpenAi => answer.get("data"),
            Self::Gemini | Self::Ollama => answer.get("embeddings"),
            Self::Cohere => answer.pointer("/embeddings/float"),
        };
        let list = list
            .and_then(Value::as_array)
            .ok_or_else(|| invalid_response("it contains no vectors"))?;
        if list.len() != expected {
            let text = format!("{} vectors for {expected} texts", list.len());
            return Err(ModelError::InvalidResponse(text));
        }
        let mut vectors = vec![Vec::new(); expected];
        for (at, item) in list.iter().enumerate() {
            let (at, values) = match self {
                Self::OpenAi => (index_of(item, at)?, item.get("embedding")),
                Self::Gemini => (at, item.get("values")),
                Self::Ollama | Self::Cohere => (at, Some(item)),
            };
            let slot = vectors.get_mut(at).filter(|slot| slot.is_empty());
            let slot = slot.ok_or_else(|| invalid_response("its vectors have wrong indexes"))?;
            *slot = vector(values)?;
        }
        Ok(vectors)
    }

    fn tokens(self, answer: &Value) -> Option<u64> {
        let count = match self {
            Self::OpenAi => {
                answer.pointer("/usage/prompt_tokens").or(answer.pointer("/usage/total_tokens"))
            }
            Self::Ollama => answer.get("prompt_eval_count"),
            Self::Cohere => answer.pointer("/meta/billed_units/input_tokens"),
            Self::Gemini => None,
        };
        count?.as_u64()
    }
}

/// The index of a vector; its position if it has none.
fn index_of(item: &Value, at: usize) -> Result<usize, ModelError> {
    match item.get("index") {
        None => Ok(at),
        Some(index) => {
            let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
            index.ok_or_else(|| invalid_response("its vectors have wrong indexes"))
        }
    }
}

fn vector(values: Option<&Value>) -> Result<Vec<f32>, ModelError> {
    let values = values.and_then(Value::as_array).filter(|values| !values.is_empty());
    let values = values.ok_or_else(|| invalid_response("a vector is empty"))?;
    let numbers = values.iter().map(|value| {
        // f32 is narrower than JSON numbers; what does not fit is infinite and rejected.
        let number = value.as_f64().map(|number| number as f32).filter(|number| number.is_finite());
        number.ok_or_else(|| invalid_response("a vector contains something other than a number"))
    });
    numbers.collect()
}

fn check_vectors(vectors: &[Vec<f32>]) -> Result<(), ModelError> {
    match vectors.windows(2).all(|pair| pair[0].len() == pair[1].len()) {
        true => Ok(()),
        false => Err(invalid_response("its vectors have different lengths")),
    }
}

pub(crate) fn invalid_response(text: &str) -> ModelError {
    ModelError::InvalidResponse(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(provider: &str, base_url: &str) -> ModelSettings {
        let preset = presets::find(provider).unwrap();
        let mut settings = ModelSettings::new("m", preset.kind, "some-model");
        settings.provider_name = provider.to_owned();
        settings.base_url = Some(base_url.to_owned());
        settings
    }

    #[test]
    fn every_provider_gets_its_own_format() {
        let texts = ["a".to_owned(), "b".to_owned()];
        let mut openai = settings("openai", "https://h/v1");
        openai.options.insert("dimensions".to_owned(), json!(64));
        for (settings, address, body) in [
            (
                openai,
                "https://h/v1/embeddings",
                json!({"model": "some-model", "input": ["a", "b"], "encoding_format": "float", "dimensions": 64}),
            ),
            (
                settings("gemini", "https://h"),
                "https://h/v1beta/models/some-model:batchEmbedContents",
                json!({"requests": [
                    {"model": "models/some-model", "content": {"parts": [{"text": "a"}]}},
                    {"model": "models/some-model", "content": {"parts": [{"text": "b"}]}},
                ]}),
            ),
            (
                settings("ollama", "http://h:11434"),
                "http://h:11434/api/embed",
                json!({"model": "some-model", "input": ["a", "b"]}),
            ),
            (
                settings("cohere", "https://api.cohere.com/v2"),
                "https://api.cohere.com/v2/embed",
                json!({
                    "model": "some-model", "texts": ["a", "b"], "input_type": "search_document",
                    "embedding_types": ["float"],
                }),
            ),
        ] {
            let shape = shape(&settings).unwrap();
            assert_eq!(url(&settings, shape).unwrap(), address);
            assert_eq!(shape.body(&settings, &texts).unwrap(), body);
        }
        let anthropic = settings("anthropic", "https://h");
        assert_eq!(shape(&anthropic), Err(ModelError::Unsupported("embed")));
    }

    #[test]
    fn vectors_come_back_in_the_order_of_the_texts() {
        let openai = json!({
            "data": [{"index": 1, "embedding": [3, 4.5]}, {"index": 0, "embedding": [1, 2]}],
            "usage": {"prompt_tokens": 7},
        });
        let expected = vec![vec![1.0, 2.0], vec![3.0, 4.5]];
        assert_eq!(Shape::OpenAi.read(&openai, 2).unwrap(), expected);
        assert_eq!(Shape::OpenAi.tokens(&openai), Some(7));
        let plain = json!([[1, 2], [3, 4.5]]);
        let gemini = json!({"embeddings": [{"values": [1, 2]}, {"values": [3, 4.5]}]});
        assert_eq!(Shape::Gemini.read(&gemini, 2).unwrap(), expected);
        assert_eq!(Shape::Ollama.read(&json!({"embeddings": plain}), 2).unwrap(), expected);
        assert_eq!(
            Shape::Cohere.read(&json!({"embeddings": {"float": plain}}), 2).unwrap(),
            expected
        );
    }

    #[test]
    fn a_response_with_wrong_counts_indexes_or_values_is_rejected() {
        for answer in [
            json!({}),
            json!({"data": [{"index": 0, "embedding": [1]}]}),
            json!({"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}),
            json!({"data": [{"index": 0, "embedding": [1]}, {"index": 2, "embedding": [1]}]}),
            json!({"data": [{"index": 0, "embedding": [1]}, {"index": -1, "embedding": [1]}]}),
            json!({"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": []}]}),
            json!({"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [null]}]}),
            json!({"data": [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1e300]}]}),
        ] {
            let read = Shape::OpenAi.read(&answer, 2);
            assert!(matches!(read, Err(ModelError::InvalidResponse(_))), "{answer}");
        }
        assert!(check_vectors(&[vec![1.0], vec![1.0, 2.0]]).is_err());
    }

    #[test]
    fn oversized_input_is_rejected() {
        let many = vec![String::new(); INPUTS_MAX + 1];
        assert!(check_size(many.iter()).is_err());
        assert!(check_size([String::from("x")].iter()).is_ok());
        assert!(check_size(["x".repeat(INPUT_BYTES_MAX + 1)].iter()).is_err());
    }
}
