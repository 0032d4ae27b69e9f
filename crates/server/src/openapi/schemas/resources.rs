//! Agents, runners, and what agents can be granted.

use super::{count, flag, list, object, object_with, text, text_or_null, texts, time};
use crate::openapi::parts::by_ref;
use serde_json::{Value, json};

pub(super) fn all() -> [(&'static str, Value); 7] {
    [
        ("RunnerProcess", runner_process()),
        ("Runner", runner()),
        ("Agent", agent()),
        ("Model", model()),
        ("Tool", tool()),
        ("ToolServer", tool_server()),
        (
            "Check",
            object(json!({"kind": {"enum": ["database", "model", "surface", "grant"]},
                "name": text(), "ok": flag(), "message": text()})),
        ),
    ]
}

fn runner_process() -> Value {
    let statuses = ["starting", "ready", "backing_off", "draining", "stopped", "disconnected"];
    object_with(
        json!({"name": text(), "status": {"enum": statuses}, "plugin": text_or_null(),
            "version": text_or_null(), "pid": {"type": ["integer", "null"]}, "restarts": count(),
            "last_error": text_or_null(), "runs_in_flight": count(), "isolation": text_or_null(),
            "warnings": texts()}),
        json!({"retry_in_ms": {"type": "integer", "minimum": 0,
            "description": "While `backing_off`: when the process is started again."}}),
    )
}

fn runner() -> Value {
    let mut failure = object(json!({"at": time(), "message": text()}));
    failure["type"] = json!(["object", "null"]);
    failure["description"] =
        "When and why the process was restarted last; kept once it is ready.".into();
    let offers = object(json!({"last_failure": failure,
        "runners": list(by_ref("schemas", "AgentRunnerManifest"))}));
    json!({"description": "A runner process and the runners it offers.",
        "allOf": [by_ref("schemas", "RunnerProcess"), offers]})
}

fn agent() -> Value {
    let part = || json!({"type": ["string", "null"], "description": "Null matches any."});
    object(json!({
        "name": text(), "runner_id": text(), "events": texts(), "commands": texts(),
        "scope": object(json!({"workspace": part(), "bot": part(), "conversation": part(),
            "actor": part()})),
        "filters": {"type": "object"},
        "queue": {"enum": ["serial", "parallel", "steer", "replace"]},
        "deadline_s": count(), "on_interrupt": {"enum": ["fail", "retry"]},
        "delivery": text_or_null(), "built_in": flag(), "runner_available": flag(),
    }))
}

fn model() -> Value {
    object_with(
        json!({"name": text(), "provider": text(),
            "model": {"type": "string", "description": "The provider's own name."},
            "kind": {"enum": ["chat", "embedding", "rerank"]},
            "has_price": {"type": "boolean", "description": "Whether its calls count in budgets."}}),
        json!({"context_window": {"type": ["integer", "null"]},
            "max_output_tokens": {"type": ["integer", "null"]}}),
    )
}

fn tool() -> Value {
    object(json!({"tool_name": text(), "description": text(), "source": text(),
        "risk": by_ref("schemas", "ToolRisk"), "timeout_s": count(),
        "parameters": {"type": "object", "description": "JSON Schema of its input."}}))
}

fn tool_server() -> Value {
    object_with(
        json!({"name": text(), "kind": {"enum": ["mcp", "module"]},
            "status": {"enum": ["starting", "ready", "backing_off", "sign_in_required", "stopped", "failed"]},
            "tools": count(), "warnings": texts(), "restarts": count()}),
        json!({"server": text_or_null(), "protocol_version": text_or_null(),
            "isolation": text_or_null(), "pid": {"type": ["integer", "null"]},
            "last_error": text_or_null(),
            "sign_in": {"enum": ["required", "done", null],
                "description": "Whether a user is signed in at the server, if it asks for that."}}),
    )
}
