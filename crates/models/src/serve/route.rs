//! Routes by path.
//!
//! Invariant: paths are matched by suffix, so clients may use any prefix.

use super::{
    Call, DecodedRequest, Problem, Streaming, Wire, anthropic, chat, gemini, ollama, other,
    responses,
};
use serde_json::{Value, json};

pub(super) enum Route {
    Model(Wire, Box<DecodedRequest>),
    /// Handled without the script.
    Other(Value),
}

type Read = fn(&Call<'_>, &Value) -> Result<Route, String>;

pub(super) fn find(call: &Call<'_>) -> Result<Route, Problem> {
    match call.method {
        "GET" | "HEAD" => get(call),
        "POST" => post(call),
        _ => Err(problem(None, 405, "only GET and POST are allowed")),
    }
}

fn get(call: &Call<'_>) -> Result<Route, Problem> {
    let path = call.path.trim_end_matches('/');
    let value = match path.rsplit_once("/models") {
        Some((before, "")) if before.ends_with("v1beta") => other::gemini_models(),
        Some((_, "")) => other::models(),
        Some((before, name)) if before.ends_with("v1beta") => other::gemini_model(name),
        Some((_, name)) => other::model(name.trim_start_matches('/')),
        None if path.ends_with("/api/tags") => other::ollama_models(),
        None if path.ends_with("/api/version") => json!({"version": env!("CARGO_PKG_VERSION")}),
        None if path.is_empty() => json!({"server": "greenroom dev model-server"}),
        None => return Err(unknown(path)),
    };
    Ok(Route::Other(value))
}

fn post(call: &Call<'_>) -> Result<Route, Problem> {
    let path = call.path.trim_end_matches('/');
    let (wire, read): (Wire, Read) = match path {
        _ if path.ends_with("/chat/completions") => {
            (Wire::OpenAiChat, |_, body| Ok(model(Wire::OpenAiChat, chat::decode(body)?)))
        }
        _ if path.ends_with("/responses") => (Wire::OpenAiResponses, |_, body| {
            Ok(model(Wire::OpenAiResponses, responses::decode(body)?))
        }),
        _ if path.ends_with("/messages/count_tokens") => {
            let read = |_: &Call<'_>, body: &Value| {
                let tokens = other::tokens(&anthropic::decode(body)?.request);
                Ok(Route::Other(json!({"input_tokens": tokens})))
            };
            (Wire::Anthropic, read)
        }
        _ if path.ends_with("/messages") => {
            (Wire::Anthropic, |_, body| Ok(model(Wire::Anthropic, anthropic::decode(body)?)))
        }
        _ if path.ends_with("/api/chat") => {
            (Wire::Ollama, |_, body| Ok(model(Wire::Ollama, ollama::decode(body)?)))
        }
        _ if path.ends_with("/api/embed") => {
            (Wire::Ollama, |_, body| other::ollama_embed(body).map(Route::Other))
        }
        _ if path.ends_with("/embeddings") => {
            (Wire::OpenAiChat, |_, body| other::embeddings(body).map(Route::Other))
        }
        _ if path.ends_with("/v2/embed") => {
            (Wire::OpenAiChat, |_, body| other::cohere_embed(body).map(Route::Other))
        }
        _ if path.ends_with("/rerank") => {
            (Wire::OpenAiChat, |_, body| other::rerank(body).map(Route::Other))
        }
        _ if path.contains(':') => (Wire::Gemini, gemini_action),
        _ => return Err(unknown(path)),
    };
    let body = serde_json::from_slice::<Value>(call.body)
        .map_err(|error| problem(Some(wire), 400, &format!("the body is not JSON: {error}")))?;
    read(call, &body).map_err(|message| problem(Some(wire), 400, &message))
}

/// `models/NAME:ACTION`.
fn gemini_action(call: &Call<'_>, body: &Value) -> Result<Route, String> {
    let last = call.path.rsplit('/').next().unwrap_or_default();
    let (name, action) = last.split_once(':').unwrap_or((last, ""));
    let sse = call.query.split('&').any(|pair| pair == "alt=sse");
    let streaming = match action {
        "generateContent" => Streaming::No,
        "streamGenerateContent" if sse => Streaming::Events,
        "streamGenerateContent" => Streaming::Array,
        "countTokens" => {
            let inner = body.get("generateContentRequest").unwrap_or(body);
            let decoded = gemini::decode(inner, name, Streaming::No)?;
            return Ok(Route::Other(json!({"totalTokens": other::tokens(&decoded.request)})));
        }
        "embedContent" => return other::gemini_embed(body).map(Route::Other),
        "batchEmbedContents" => return other::gemini_batch_embed(body).map(Route::Other),
        _ => return Err(format!("unknown action `{action}`")),
    };
    Ok(model(Wire::Gemini, gemini::decode(body, name, streaming)?))
}

fn model(wire: Wire, decoded: DecodedRequest) -> Route {
    Route::Model(wire, Box::new(decoded))
}

fn unknown(path: &str) -> Problem {
    problem(None, 404, &format!("unknown path `{path}`"))
}

fn problem(wire: Option<Wire>, status: u16, message: &str) -> Problem {
    Problem { wire, status, message: message.to_owned() }
}
