//! Token counts, embeddings and rankings of scripted models: crude, offline and deterministic.
//!
//! Invariant: vectors have unit length; texts that share words are closer than texts that do not.

use crate::ModelRequest;
use greenroom_protocol::api::models::RankedDocument;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

const DIMENSIONS: usize = 256;

/// One token per four ASCII characters, and one per other character.
pub fn tokens(text: &str) -> u64 {
    let ascii = text.chars().filter(char::is_ascii).count();
    let other = text.chars().count() - ascii;
    u64::try_from(ascii.div_ceil(4) + other).unwrap_or(u64::MAX)
}

/// The same for a request, plus four per message.
pub fn request_tokens(request: &ModelRequest) -> u64 {
    let messages = request.messages.iter().map(|message| {
        let calls = message
            .tool_calls
            .iter()
            .map(|call| tokens(&call.name) + tokens(&call.args.to_string()));
        4 + tokens(&super::facts::text_of(message)) + calls.sum::<u64>()
    });
    let tools = request.tools.iter().map(|tool| {
        let description = tool.description.as_deref().unwrap_or_default();
        tokens(&tool.name) + tokens(description) + tokens(&tool.parameters.to_string())
    });
    messages.sum::<u64>() + tools.sum::<u64>()
}

/// Every word changes a few dimensions, chosen by its hash.
pub fn embed(text: &str) -> Vec<f32> {
    let mut vector = vec![0.0_f32; DIMENSIONS];
    for word in words(text) {
        let digest = Sha256::digest(word.as_bytes());
        for pair in digest.chunks_exact(2).take(4) {
            let sign = if pair[1] & 1 == 0 { 1.0 } else { -1.0 };
            vector[usize::from(pair[0]) % DIMENSIONS] += sign;
        }
    }
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    match length > 0.0 {
        true => vector.iter_mut().for_each(|value| *value /= length),
        // A text without words still gets a direction.
        false => vector[0] = 1.0,
    }
    vector
}

/// The share of the query's words that a document contains, best first; ties keep their order.
pub fn rerank(query: &str, documents: &[String], top: usize) -> Vec<RankedDocument> {
    let query_words: BTreeSet<String> = words(query).collect();
    let mut ranked: Vec<RankedDocument> = documents
        .iter()
        .zip(0_u32..)
        .map(|(document, index)| {
            let has: BTreeSet<String> = words(document).collect();
            let shared = query_words.intersection(&has).count();
            RankedDocument {
                index,
                relevance_score: shared as f64 / query_words.len().max(1) as f64,
            }
        })
        .collect();
    ranked.sort_by(|a, b| b.relevance_score.total_cmp(&a.relevance_score));
    ranked.truncate(top);
    ranked
}

/// Words in lower case; every Chinese character is a word.
fn words(text: &str) -> impl Iterator<Item = String> {
    let spaced: String = text
        .to_lowercase()
        .chars()
        .flat_map(|c| match c {
            c if c.is_ascii_alphanumeric() => [Some(c), None, None],
            c if c.is_alphanumeric() => [Some(' '), Some(c), Some(' ')],
            _ => [Some(' '), None, None],
        })
        .flatten()
        .collect();
    spaced.split_whitespace().map(str::to_owned).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_have_unit_length_and_similar_texts_are_close() {
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let [cat, kitten, tax] =
            ["the cat sat on the mat", "a cat on a mat", "income tax return"].map(embed);
        for text in ["", "!!!", "今天", "hello"] {
            let vector = embed(text);
            assert!((dot(&vector, &vector) - 1.0).abs() < 1e-5, "{text}");
        }
        assert!(dot(&cat, &kitten) > dot(&cat, &tax) + 0.2);
        assert_eq!(embed("the cat sat on the mat"), cat);
    }

    #[test]
    fn documents_are_ranked_by_the_words_they_share_with_the_query() {
        let documents =
            ["nothing here", "今天的会议", "red fox", "a red quick fox"].map(str::to_owned);
        let ranked = |query, top| {
            rerank(query, &documents, top)
                .iter()
                .map(|r| (r.index, r.relevance_score))
                .collect::<Vec<_>>()
        };
        assert_eq!(ranked("quick fox", 2), [(3, 1.0), (2, 0.5)]);
        assert_eq!(ranked("今天", 1), [(1, 1.0)]);
        assert_eq!(ranked("zebra", 4), [(0, 0.0), (1, 0.0), (2, 0.0), (3, 0.0)]);
    }
}
