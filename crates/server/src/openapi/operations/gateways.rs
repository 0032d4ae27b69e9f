//! The gateways for programs of a run: MCP, and the wires of model providers.

use super::Operation;
use crate::openapi::parts::by_ref;
use serde_json::{Value, json};

pub(super) fn all() -> Vec<Operation> {
    mcp().into_iter().chain(models()).collect()
}

fn mcp() -> Vec<Operation> {
    let path = crate::mcp_gateway::PATH;
    let mut post = of_run(Operation::post(
        path,
        "mcp_message",
        "gateways",
        "Send one message of MCP\nStreamable HTTP with the token of the run: its granted tools, and the host's own \
         methods as tools. The answer to `tools/call` is a stream where the client accepts one.",
    ))
    .answers("200", answer("The response of JSON-RPC, which may be an error."))
    .answers("202", json!({"description": "A notification was accepted.",
        "headers": {"X-Request-Id": by_ref("headers", "X-Request-Id")}}))
    .answers("400", answer("The message or the version of the protocol is not valid."))
    .refuses(&["404", "408", "413"]);
    post.described["requestBody"] = body("One message of JSON-RPC 2.0.");
    vec![
        post,
        of_run(Operation::get(
            path,
            "mcp_stream",
            "gateways",
            "Not offered: answers come with each POST",
        ))
        .refuses(&["404", "405"]),
        of_run(Operation::new(
            "delete",
            path,
            "mcp_end_session",
            "gateways",
            "End the session that `Mcp-Session-Id` names, and cancel its calls",
        ))
        .answers(
            "204",
            json!({"description": "It has ended.",
            "headers": {"X-Request-Id": by_ref("headers", "X-Request-Id")}}),
        )
        .refuses(&["404"]),
    ]
}

fn models() -> Vec<Operation> {
    let ask = |path, id: &str, about: &str| {
        let mut operation = of_provider(Operation::post(path, id, "gateways", about));
        operation.described["requestBody"] =
            body("The request, as the provider's clients send it.");
        operation
    };
    let read =
        |path, id: &str, about: &str| of_provider(Operation::get(path, id, "gateways", about));
    let named = |operation: Operation| operation.takes(&["run_id_in_path", "model_name_in_path"]);
    vec![
        ask(
            "/models/runs/{id}/openai/v1/chat/completions",
            "openai_chat",
            "Chat completions of OpenAI, answered by a granted model\nWith the token of the run.",
        ),
        ask(
            "/models/runs/{id}/openai/v1/responses",
            "openai_responses",
            "Responses of OpenAI, answered by a granted model\nNothing is stored: `previous_response_id` has no effect.",
        ),
        read(
            "/models/runs/{id}/openai/v1/models",
            "openai_models",
            "The granted models, for clients of OpenAI",
        ),
        named(read("/models/runs/{id}/openai/v1/models/{name}", "openai_model", "One of them")),
        ask(
            "/models/runs/{id}/anthropic/v1/messages",
            "anthropic_messages",
            "Messages of Anthropic, answered by a granted model",
        ),
        ask(
            "/models/runs/{id}/anthropic/v1/messages/count_tokens",
            "anthropic_count",
            "Count the tokens of a request",
        ),
        read(
            "/models/runs/{id}/anthropic/v1/models",
            "anthropic_models",
            "The granted models, for clients of Anthropic",
        ),
        named(read(
            "/models/runs/{id}/anthropic/v1/models/{name}",
            "anthropic_model",
            "One of them",
        )),
        named(ask(
            "/models/runs/{id}/gemini/v1beta/models/{name}",
            "gemini_action",
            "`MODEL:generateContent`, `MODEL:streamGenerateContent` or `MODEL:countTokens` of Gemini",
        )),
        read(
            "/models/runs/{id}/gemini/v1beta/models",
            "gemini_models",
            "The granted models, for clients of Gemini",
        ),
        named(read("/models/runs/{id}/gemini/v1beta/models/{name}", "gemini_model", "One of them")),
        named(ask(
            "/models/runs/{id}/gemini/v1/models/{name}",
            "gemini_v1_action",
            "The same under the version that newer clients of Gemini use",
        )),
        read("/models/runs/{id}/gemini/v1/models", "gemini_v1_models", "The granted models"),
        named(read("/models/runs/{id}/gemini/v1/models/{name}", "gemini_v1_model", "One of them")),
    ]
}

/// Needs the token of the run in the path.
fn of_run(mut operation: Operation) -> Operation {
    operation.described["security"] = json!([{"run_token": []}]);
    operation.takes(&["run_id_in_path"])
}

/// Answers in the shapes of a provider, errors too.
fn of_provider(operation: Operation) -> Operation {
    const ERRORS: [&str; 11] =
        ["400", "401", "402", "403", "404", "408", "413", "429", "500", "502", "504"];
    let refused = || by_ref("responses", "provider_error");
    let operation = of_run(operation).answers("200", by_ref("responses", "provider_answer"));
    let operation = operation.answers("503", refused());
    ERRORS.iter().fold(operation, |operation, status| operation.answers(status, refused()))
}

/// Responses that all of them share.
pub(in crate::openapi) fn responses() -> [(&'static str, Value); 2] {
    let error = "An error in the provider's shape. 401: the token is not that of this run, or the run has ended. \
                 402 and 429: the budget does not allow the call, or too many calls. 403: the runner's manifest \
                 does not ask for it. 404: the model is not granted. 502 and 503: the model's provider failed.";
    [("provider_answer", answer("As the provider answers.")), ("provider_error", answer(error))]
}

fn answer(about: &str) -> Value {
    json!({"description": about, "headers": {"X-Request-Id": by_ref("headers", "X-Request-Id")},
        "content": {"application/json": {"schema": {"type": ["object", "array"], "items": {}}},
            "text/event-stream": {"schema": {"type": "string"}}}})
}

fn body(about: &str) -> Value {
    json!({"required": true, "description": about,
        "content": {"application/json": {"schema": {"type": "object"}}}})
}
