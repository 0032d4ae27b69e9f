//! AG-UI, and the routes of CopilotKit's runtime.

use super::Operation;
use crate::openapi::parts::{by_ref, json_body};
use serde_json::{Value, json};

pub(super) fn all() -> Vec<Operation> {
    vec![
        running(
            "/v1/agui/{id}",
            "agui_run",
            "Talk to an agent over AG-UI\nThe newest message becomes an event of conversation `threadId`; `runId` is \
             its key: the same `runId` again attaches to the same run. The stream ends with `RUN_FINISHED` or \
             `RUN_ERROR`. `resume` answers interrupts, and the run continues.",
        ),
        running("/v1/agui/agent/{id}/run", "copilot_run", "The same at CopilotKit's path"),
        running(
            "/v1/agui/agent/{id}/connect",
            "copilot_connect",
            "The stored thread, then its running runs live",
        ),
        Operation::post(
            "/v1/agui/agent/{id}/stop/{thread}",
            "copilot_stop",
            "agui",
            "Cancel an agent's runs in a thread",
        )
        .takes(&["agent_in_path", "thread_in_path", "workspace_id"])
        .answers("200", json_body("How many runs were cancelled.", stopped()))
        .refuses(&["404"]),
        Operation::get("/v1/agui/info", "copilot_info", "agui", "Agents and mode, for CopilotKit")
            .answers("200", json_body("The agents that the token may use.", info())),
    ]
}

fn running(path: &'static str, id: &str, about: &str) -> Operation {
    // Without a type: for generators the body is a text, for checkers each event is an object.
    let frame = json!({"description": "Server-sent events; the `data` of each is one AG-UI event as JSON."});
    let events = json!({"description": "The events of the run.",
        "headers": {"X-Request-Id": by_ref("headers", "X-Request-Id")},
        "content": {"text/event-stream": {"schema": frame}}});
    let mut operation = Operation::post(path, id, "agui", about)
        .takes(&["agent_in_path", "workspace_id", "last_event_id", "on_disconnect"])
        .answers("200", events)
        .refuses(&["404", "408", "409", "413", "415", "429"]);
    operation.described["requestBody"] = json!({"required": true, "content": {"application/json": {
        "schema": by_ref("schemas", "RunAgentInput")}}});
    operation
}

fn stopped() -> Value {
    json!({"type": "object", "required": ["stopped"],
        "properties": {"stopped": {"type": "integer", "minimum": 0}}})
}

fn info() -> Value {
    json!({"type": "object", "required": ["version", "agents", "mode"], "properties": {
        "version": {"type": "string"}, "agents": {"type": "object"}, "mode": {"const": "sse"}}})
}
