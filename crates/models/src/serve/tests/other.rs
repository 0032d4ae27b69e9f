//! Lists, counts, vectors and rankings.

use super::*;
use base64::Engine;
use serde_json::json;

const SCRIPT: &str = "[[rule]]\nanswer = 'x'";

#[tokio::test]
async fn models_are_listed_in_the_format_of_the_client() {
    for (address, pointer) in [
        ("/v1/models", "/data/0/id"),
        ("/v1/models/scripted", "/id"),
        ("/v1beta/models", "/models/0/displayName"),
        ("/api/tags", "/models/0/name"),
    ] {
        let got = send(SCRIPT, "GET", address, &Value::Null).await;
        let Got::Whole { status: 200, body, .. } = got else { panic!("{got:?}") };
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body.pointer(pointer), Some(&json!("scripted")), "{body}");
    }
    let got = send(SCRIPT, "GET", "/v1beta/models/gemini-x", &Value::Null).await;
    assert!(
        matches!(&got, Got::Whole { body, .. } if body.contains(r#""name":"models/gemini-x""#)),
        "{got:?}"
    );
}

#[tokio::test]
async fn tokens_are_counted_as_the_scripted_model_counts_them() {
    // Four for the message overhead, two for eight characters.
    let messages = json!({"model": "m", "messages": [{"role": "user", "content": "12345678"}]});
    let counted = whole(SCRIPT, "/v1/messages/count_tokens", &messages).await;
    assert_eq!(counted, json!({"input_tokens": 6}));
    let contents = json!({"contents": [{"parts": [{"text": "12345678"}]}]});
    let address = "/v1beta/models/m:countTokens";
    assert_eq!(whole(SCRIPT, address, &contents).await, json!({"totalTokens": 6}));
    let wrapped = json!({"generateContentRequest": contents});
    assert_eq!(whole(SCRIPT, address, &wrapped).await, json!({"totalTokens": 6}));
}

#[tokio::test]
async fn vectors_are_the_same_in_every_format() {
    let expected = json!(crate::scripted::embed("a cat"));
    let openai =
        whole(SCRIPT, "/v1/embeddings", &json!({"model": "m", "input": ["x", "a cat"]})).await;
    assert_eq!(
        (&openai["data"][1]["index"], &openai["data"][1]["embedding"]),
        (&json!(1), &expected)
    );
    let encoded = json!({"model": "m", "input": "a cat", "encoding_format": "base64"});
    let encoded = whole(SCRIPT, "/v1/embeddings", &encoded).await;
    let bytes = encoded["data"][0]["embedding"].as_str().unwrap();
    let bytes = base64::engine::general_purpose::STANDARD.decode(bytes).unwrap();
    let floats = bytes.chunks_exact(4).map(|four| f32::from_le_bytes(four.try_into().unwrap()));
    assert_eq!(json!(floats.collect::<Vec<_>>()), expected);
    let ollama = whole(SCRIPT, "/api/embed", &json!({"model": "m", "input": "a cat"})).await;
    assert_eq!(ollama["embeddings"][0], expected);
    let cohere = whole(SCRIPT, "/v2/embed", &json!({"model": "m", "texts": ["a cat"]})).await;
    assert_eq!(cohere["embeddings"]["float"][0], expected);
    let content = json!({"content": {"parts": [{"text": "a cat"}]}});
    let one = whole(SCRIPT, "/v1beta/models/m:embedContent", &content).await;
    assert_eq!(one["embedding"]["values"], expected);
    let batch = json!({"requests": [content]});
    let batch = whole(SCRIPT, "/v1beta/models/m:batchEmbedContents", &batch).await;
    assert_eq!(batch["embeddings"][0]["values"], expected);
}

#[tokio::test]
async fn documents_are_ranked() {
    let request =
        json!({"query": "red fox", "documents": ["a dog", {"text": "the red fox"}], "top_n": 1});
    let body = whole(SCRIPT, "/v1/rerank", &request).await;
    assert_eq!(body["results"], json!([{"index": 1, "relevance_score": 1.0}]));
    assert_eq!(body["data"], body["results"]);
}
