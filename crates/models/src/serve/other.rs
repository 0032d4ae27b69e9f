//! Endpoints other than chat: lists, counts, embeddings, rankings.
//!
//! Invariant: one vector per input, in input order; rankings best first.

use super::json::{list, required_list, text};
use crate::ModelRequest;
use crate::scripted;
use base64::Engine;
use serde_json::{Value, json};

const NAME: &str = "scripted";

/// A list that clients of OpenAI, Anthropic and Codex can read.
pub(super) fn models() -> Value {
    json!({
        "object": "list", "data": [model(NAME)], "models": [{"slug": NAME, "name": NAME}],
        "has_more": false, "first_id": NAME, "last_id": NAME,
    })
}

pub(super) fn model(name: &str) -> Value {
    json!({
        "id": name, "object": "model", "type": "model", "created": 0, "owned_by": "greenroom",
        "display_name": name, "created_at": "1970-01-01T00:00:00Z", "context_length": 200_000,
    })
}

pub(super) fn gemini_models() -> Value {
    json!({"models": [gemini_model(NAME)]})
}

pub(super) fn gemini_model(name: &str) -> Value {
    json!({
        "name": format!("models/{}", name.trim_start_matches('/')), "displayName": NAME, "version": "1",
        "inputTokenLimit": 200_000, "outputTokenLimit": 64_000,
        "supportedGenerationMethods": ["generateContent", "countTokens", "embedContent"],
    })
}

pub(super) fn ollama_models() -> Value {
    json!({"models": [{"name": NAME, "model": NAME, "size": 0, "details": {"family": NAME}}]})
}

pub(super) fn tokens(request: &ModelRequest) -> u64 {
    scripted::request_tokens(request)
}

/// OpenAI; its own client requests base64.
pub(super) fn embeddings(body: &Value) -> Result<Value, String> {
    let inputs = inputs(body, "input")?;
    let base64 = text(body, "encoding_format") == Some("base64");
    let vectors = inputs.iter().enumerate().map(|(index, input)| {
        let vector = scripted::embed(input);
        let embedding = match base64 {
            true => json!(encoded(&vector)),
            false => json!(vector),
        };
        json!({"object": "embedding", "index": index, "embedding": embedding})
    });
    let count: u64 = inputs.iter().map(|input| scripted::tokens(input)).sum();
    let data: Vec<Value> = vectors.collect();
    let model = text(body, "model").unwrap_or(NAME);
    let usage = json!({"prompt_tokens": count, "total_tokens": count});
    Ok(json!({"object": "list", "data": data, "model": model, "usage": usage}))
}

pub(super) fn ollama_embed(body: &Value) -> Result<Value, String> {
    let vectors: Vec<_> =
        inputs(body, "input")?.iter().map(|input| scripted::embed(input)).collect();
    Ok(json!({"model": text(body, "model").unwrap_or(NAME), "embeddings": vectors}))
}

pub(super) fn cohere_embed(body: &Value) -> Result<Value, String> {
    let vectors: Vec<_> =
        inputs(body, "texts")?.iter().map(|input| scripted::embed(input)).collect();
    Ok(json!({"id": "embed", "embeddings": {"float": vectors}, "texts": list(body, "texts")}))
}

pub(super) fn gemini_embed(body: &Value) -> Result<Value, String> {
    Ok(json!({"embedding": gemini_vector(body)}))
}

pub(super) fn gemini_batch_embed(body: &Value) -> Result<Value, String> {
    let vectors: Vec<_> = required_list(body, "requests")?.iter().map(gemini_vector).collect();
    Ok(json!({"embeddings": vectors}))
}

fn gemini_vector(request: &Value) -> Value {
    let parts = request.get("content").map(|content| list(content, "parts")).unwrap_or_default();
    let said: String = parts.iter().filter_map(|part| text(part, "text")).collect();
    json!({"values": scripted::embed(&said)})
}

/// In the formats of Cohere and Jina (`results`) and of Voyage (`data`) at once.
pub(super) fn rerank(body: &Value) -> Result<Value, String> {
    let query = text(body, "query").ok_or("`query` is missing")?;
    let documents: Vec<String> = required_list(body, "documents")?.iter().map(document).collect();
    let top = body.get("top_n").or(body.get("top_k")).and_then(Value::as_u64);
    let top = top.and_then(|top| usize::try_from(top).ok()).unwrap_or(documents.len());
    let ranked = scripted::rerank(query, &documents, top);
    Ok(json!({
        "id": "rerank", "object": "list", "model": text(body, "model").unwrap_or(NAME),
        "results": ranked, "data": ranked,
    }))
}

fn document(document: &Value) -> String {
    let said = document.as_str().or(text(document, "text"));
    said.map_or_else(|| document.to_string(), str::to_owned)
}

/// A string, several, or tokens in place of a string.
fn inputs(body: &Value, key: &str) -> Result<Vec<String>, String> {
    match body.get(key) {
        Some(Value::String(input)) => Ok(vec![input.clone()]),
        Some(tokens @ Value::Array(items)) if items.first().is_some_and(Value::is_number) => {
            Ok(vec![tokens.to_string()])
        }
        Some(Value::Array(items)) => Ok(items.iter().map(document).collect()),
        _ => Err(format!("`{key}` is missing")),
    }
}

fn encoded(vector: &[f32]) -> String {
    let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
