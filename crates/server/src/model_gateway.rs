//! The model gateway: the granted models of a run, in the wires of OpenAI, Anthropic and Google (decision 029).
//!
//! Invariant: a request is `models.invoke`, `models.stream` or `models.count_tokens` of its run and passes the
//! proxy like one from the runner; keys of providers stay in the host. Errors have the shape of the client's wire.

mod failure;
mod respond;

use crate::events::read_body_within;
use crate::router::App;
use crate::run_access;
use axum::extract::{Path, Request, State};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use axum::{Json, http::StatusCode};
use bytes::Bytes;
use failure::Failure;
use greenroom_host::RunProgram;
use greenroom_models::serve::gateway::{self, ClientRequest, InPath, Streaming, Wire};
use greenroom_models::{Model, ModelSettings, ToolSpec};
use greenroom_protocol::Object;
use greenroom_protocol::api::Method;
use greenroom_protocol::api::models::{
    CountTokensParams, ModelInvokeParams, ProviderResponse, TokenCount,
};
use serde_json::{Value, json};
use std::sync::Arc;

pub(crate) const PREFIX: &str = "/models/runs/";
/// The name of the first granted model.
const DEFAULT_MODEL: &str = "default";

pub(crate) async fn chat(
    State(app): State<App>,
    Path(run_id): Path<String>,
    request: Request,
) -> Response {
    generate(&app, Wire::OpenAiChat, &run_id, None, request).await
}

pub(crate) async fn responses(
    State(app): State<App>,
    Path(run_id): Path<String>,
    request: Request,
) -> Response {
    generate(&app, Wire::OpenAiResponses, &run_id, None, request).await
}

pub(crate) async fn messages(
    State(app): State<App>,
    Path(run_id): Path<String>,
    request: Request,
) -> Response {
    generate(&app, Wire::Anthropic, &run_id, None, request).await
}

pub(crate) async fn count_messages(
    State(app): State<App>,
    Path(run_id): Path<String>,
    request: Request,
) -> Response {
    let client = match Client::read(&app, Wire::Anthropic, &run_id, request).await {
        Ok(client) => client,
        Err(failure) => return failure.into_response(),
    };
    match client.count(None).await {
        Ok(tokens) => Json(json!({"input_tokens": tokens})).into_response(),
        Err(failure) => failure.into_response(),
    }
}

/// `models/NAME:ACTION` of Gemini.
pub(crate) async fn gemini(
    State(app): State<App>,
    Path((run_id, name)): Path<(String, String)>,
    request: Request,
) -> Response {
    let (model, action) = name.split_once(':').unwrap_or((&name, ""));
    let is_sse = request.uri().query().unwrap_or_default().split('&').any(|it| it == "alt=sse");
    let streaming = match (action, is_sse) {
        ("generateContent" | "countTokens", _) => Streaming::No,
        ("streamGenerateContent", true) => Streaming::Events,
        ("streamGenerateContent", false) => Streaming::Array,
        _ => {
            if let Err(denied) = run_access::program(&app, &request.into_parts().0, &run_id) {
                return Failure::denied(Wire::Gemini, denied).into_response();
            }
            let message = format!("there is no action `{}`", action.escape_debug());
            return Failure::new(Wire::Gemini, StatusCode::NOT_FOUND, message).into_response();
        }
    };
    let in_path = InPath { model, streaming };
    if action != "countTokens" {
        return generate(&app, Wire::Gemini, &run_id, Some(in_path), request).await;
    }
    let client = match Client::read(&app, Wire::Gemini, &run_id, request).await {
        Ok(client) => client,
        Err(failure) => return failure.into_response(),
    };
    match client.count(Some(in_path)).await {
        Ok(tokens) => Json(json!({"totalTokens": tokens})).into_response(),
        Err(failure) => failure.into_response(),
    }
}

pub(crate) async fn openai_models(
    State(app): State<App>,
    Path(run_id): Path<String>,
    parts: Parts,
) -> Response {
    list(&app, Wire::OpenAiChat, &run_id, &parts)
}

pub(crate) async fn anthropic_models(
    State(app): State<App>,
    Path(run_id): Path<String>,
    parts: Parts,
) -> Response {
    list(&app, Wire::Anthropic, &run_id, &parts)
}

pub(crate) async fn gemini_models(
    State(app): State<App>,
    Path(run_id): Path<String>,
    parts: Parts,
) -> Response {
    list(&app, Wire::Gemini, &run_id, &parts)
}

pub(crate) async fn openai_model(
    State(app): State<App>,
    Path((run_id, name)): Path<(String, String)>,
    parts: Parts,
) -> Response {
    show(&app, Wire::OpenAiChat, &run_id, &name, &parts)
}

pub(crate) async fn anthropic_model(
    State(app): State<App>,
    Path((run_id, name)): Path<(String, String)>,
    parts: Parts,
) -> Response {
    show(&app, Wire::Anthropic, &run_id, &name, &parts)
}

pub(crate) async fn gemini_model(
    State(app): State<App>,
    Path((run_id, name)): Path<(String, String)>,
    parts: Parts,
) -> Response {
    show(&app, Wire::Gemini, &run_id, &name, &parts)
}

fn list(app: &App, wire: Wire, run_id: &str, parts: &Parts) -> Response {
    let program = match run_access::program(app, parts, run_id) {
        Ok(program) => program,
        Err(denied) => return Failure::denied(wire, denied).into_response(),
    };
    let models = program.chat_models();
    let settings: Vec<&ModelSettings> = models.iter().map(|model| model.settings()).collect();
    Json(gateway::models(wire, &settings, DEFAULT_MODEL)).into_response()
}

fn show(app: &App, wire: Wire, run_id: &str, name: &str, parts: &Parts) -> Response {
    let shown = run_access::program(app, parts, run_id)
        .map_err(|denied| Failure::denied(wire, denied))
        .and_then(|program| choose(wire, &program, name));
    match shown {
        Ok(model) => Json(gateway::model_entry(wire, name, model.settings())).into_response(),
        Err(failure) => failure.into_response(),
    }
}

/// A granted model by its name. Clients with names of their own, also for requests besides the conversation, get
/// the granted model if there is one only: with several, a guess could be the wrong one.
fn choose(wire: Wire, program: &RunProgram, asked: &str) -> Result<Arc<Model>, Failure> {
    let mut models = program.chat_models();
    let asked = asked.strip_prefix("models/").unwrap_or(asked);
    if let Some(at) = models.iter().position(|model| model.settings().name == asked) {
        return Ok(models.swap_remove(at));
    }
    match models.len() {
        1.. if matches!(asked, "" | DEFAULT_MODEL) => Ok(models.swap_remove(0)),
        1 => Ok(models.swap_remove(0)),
        0 => Err(Failure::no_model(wire, "no model for chat is granted to this run".to_owned())),
        _ => {
            let names: Vec<String> =
                models.iter().map(|model| format!("`{}`", model.settings().name)).collect();
            let message = format!(
                "the model `{}` is not granted to this run; granted are {}",
                asked.chars().take(100).collect::<String>().escape_debug(),
                names.join(", ")
            );
            Err(Failure::no_model(wire, message))
        }
    }
}

/// A request with a valid token and a complete body.
struct Client {
    wire: Wire,
    program: RunProgram,
    body: Bytes,
}

impl Client {
    async fn read(app: &App, wire: Wire, run_id: &str, request: Request) -> Result<Self, Failure> {
        let (parts, body) = request.into_parts();
        let program = run_access::program(app, &parts, run_id)
            .map_err(|denied| Failure::denied(wire, denied))?;
        let bytes_max = app.host.settings().limits.call_bytes;
        let body = read_body_within(app, body, bytes_max).await;
        let body = body.map_err(|problem| Failure::of_problem(wire, &problem))?;
        Ok(Self { wire, program, body })
    }

    fn decode(&self, in_path: Option<InPath<'_>>, body: &[u8]) -> Result<ClientRequest, Failure> {
        let id = uuid::Uuid::new_v4().simple().to_string();
        ClientRequest::decode(self.wire, in_path, body, id)
            .map_err(|message| Failure::new(self.wire, StatusCode::BAD_REQUEST, message))
    }

    async fn count(&self, in_path: Option<InPath<'_>>) -> Result<u64, Failure> {
        // Google's clients put a whole request into a field where it has more than contents.
        let inner = serde_json::from_slice::<Value>(&self.body).ok();
        let inner = inner.and_then(|mut it| Some(it.get_mut("generateContentRequest")?.take()));
        let body = inner.map_or_else(|| self.body.clone(), |inner| inner.to_string().into());
        let request = self.decode(in_path, &body)?;
        let model = choose(self.wire, &self.program, request.model())?;
        let neutral = request.to_request(model.settings());
        let tools = (!neutral.tools.is_empty())
            .then(|| json!(neutral.tools.iter().map(tool).collect::<Vec<_>>()).to_string());
        let params = CountTokensParams {
            model_id: model.settings().name.clone(),
            messages: Some(neutral.messages),
            text: tools,
        };
        let counted = self.program.call(Method::ModelsCountTokens, &params).await;
        let counted = counted.map_err(|error| Failure::of_call(self.wire, &error))?;
        serde_json::from_str::<TokenCount>(counted.get())
            .map(|count| count.tokens)
            .map_err(|_| Failure::internal(self.wire))
    }
}

async fn generate(
    app: &App,
    wire: Wire,
    run_id: &str,
    in_path: Option<InPath<'_>>,
    request: Request,
) -> Response {
    let client = match Client::read(app, wire, run_id, request).await {
        Ok(client) => client,
        Err(failure) => return failure.into_response(),
    };
    match answer(app, client, in_path).await {
        Ok(response) => response,
        Err(failure) => failure.into_response(),
    }
}

async fn answer(
    app: &App,
    client: Client,
    in_path: Option<InPath<'_>>,
) -> Result<Response, Failure> {
    let (wire, mut request) = (client.wire, client.decode(in_path, &client.body)?);
    let model = choose(wire, &client.program, request.model())?;
    request.answer_as(&model.settings().name);
    let neutral = request.to_request(model.settings());
    let params = ModelInvokeParams {
        model_id: model.settings().name.clone(),
        messages: neutral.messages,
        tools: Some(neutral.tools.iter().map(tool).collect()),
        extra_args: Some(neutral.options),
    };
    if request.streaming() != Streaming::No {
        return respond::streamed(app, client.program, request, params).await;
    }
    let answered = client.program.call(Method::ModelsInvoke, &params).await;
    let answered = answered.map_err(|error| Failure::of_call(wire, &error))?;
    let response: Result<ProviderResponse, _> = serde_json::from_str(answered.get());
    let mut response = response.map_err(|_| Failure::internal(wire))?;
    for segment in &mut response.segments {
        respond::inline(&client.program, segment).await;
    }
    Ok(Json(request.whole(&response)).into_response())
}

fn tool(tool: &ToolSpec) -> Object {
    let mut object = Object::new();
    object.insert("name".to_owned(), tool.name.clone().into());
    if let Some(description) = &tool.description {
        object.insert("description".to_owned(), description.clone().into());
    }
    object.insert("parameters".to_owned(), tool.parameters.clone());
    object
}
