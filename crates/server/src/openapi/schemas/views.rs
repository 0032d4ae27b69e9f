//! What an interface for people is told.

use crate::openapi::parts::by_ref;
use serde_json::{Map, Value, json};

pub(super) fn all() -> Map<String, Value> {
    let own = [
        ("Grant", grant()),
        ("Story", story()),
        ("Bound", bound()),
        ("AgentInFull", agent()),
        ("TriedEvent", tried()),
        ("Overview", overview()),
        ("StateEntry", state()),
        ("Delivery", delivery()),
    ];
    own.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

fn optional() -> Value {
    json!({"type": ["string", "null"]})
}

fn names() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn time() -> Value {
    json!({"type": "string", "format": "date-time"})
}

fn or_null(schema: Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

fn approvals() -> Value {
    json!({"type": "object", "additionalProperties": {"enum": ["never", "ask", "always"]}})
}

fn reason() -> Value {
    json!({"enum": ["named", "only_match", "before_built_in", "narrower_scope", "more_filters",
        "exact_event_type", null]})
}

fn grant() -> Value {
    let pull = || {
        json!({"type": "object", "required": ["reach", "operations"], "properties": {
            "reach": {"enum": ["none", "conversation", "workspace"]}, "operations": names()}})
    };
    let offer = || {
        json!({"type": "object", "required": ["names", "operations"],
            "properties": {"names": names(), "operations": names()}})
    };
    json!({"type": "object", "description": "What a run may do, frozen.",
    "required": ["agent", "runner_id", "config", "history", "events", "artifacts", "state",
        "storage", "actions", "models", "tools", "knowledge", "methods", "skills", "risks",
        "steering"],
    "properties": {
        "hash": {"type": "string"}, "agent": {"type": "string"},
        "runner_id": {"type": "string"},
        "config": {"type": ["object", "null"], "description": "Null for senders."},
        "history": pull(), "events": pull(), "artifacts": pull(),
        "state": names(), "storage": names(), "actions": approvals(),
        "models": offer(), "tools": offer(), "knowledge": offer(),
        "methods": names(), "skills": names(), "risks": approvals(),
        "steering": {"type": "boolean"},
    }})
}

fn bound() -> Value {
    json!({"type": "object", "description": "How a run came to its agent.",
    "required": ["agent", "reason", "beside", "queue", "deadline_s", "on_interrupt", "delivery",
        "steers", "waited_ms"],
    "properties": {
        "agent": {"type": "string"}, "reason": reason(), "beside": names(),
        "queue": {"enum": ["serial", "parallel", "steer", "replace"]},
        "deadline_s": count(), "on_interrupt": {"enum": ["fail", "retry"]},
        "delivery": optional(), "steers": {"type": "boolean"},
        "waited_ms": {"type": ["integer", "null"], "minimum": 0},
    }})
}

fn story() -> Value {
    let list = |required: &[&str]| json!({"type": "array", "items": {"type": "object", "required": required}});
    let cut = ["event", "model_calls", "deliveries", "approvals", "diagnostics", "replays"];
    let flags: Map<String, Value> =
        cut.iter().map(|name| ((*name).to_owned(), json!({"type": "boolean"}))).collect();
    json!({"type": "object",
    "required": ["run", "event", "binding", "grant", "runner", "model_calls", "deliveries",
        "approvals", "diagnostics", "replay_of", "replays", "truncated"],
    "properties": {
        "run": by_ref("schemas", "RunView"),
        "event": or_null(by_ref("schemas", "Event")),
        "binding": by_ref("schemas", "Bound"),
        "grant": or_null(by_ref("schemas", "Grant")),
        "runner": {"type": "object", "required": ["runner_id", "isolation", "name", "status"],
            "properties": {"runner_id": {"type": "string"}, "isolation": optional(),
                "name": optional(), "status": optional(), "plugin": optional(),
                "version": optional()}},
        "model_calls": list(&["model", "method", "at", "duration_ms", "input_tokens",
            "output_tokens", "cached_input_tokens", "tokens", "cost_usd", "outcome", "failed"]),
        "deliveries": {"type": "array", "items": by_ref("schemas", "Delivery")},
        "approvals": list(&["approval_id", "action", "status", "answered_by", "created_at",
            "answered_at"]),
        "diagnostics": list(&["kind", "message", "created_at"]),
        "replay_of": or_null(json!({"type": "object", "required": ["event_id", "run_id"],
            "properties": {"event_id": {"type": "string"}, "run_id": optional()}})),
        "replays": {"type": "array", "items": {"type": "object",
            "required": ["run_id", "event_id", "created_at"], "properties": {
                "run_id": optional(), "event_id": {"type": "string"}, "created_at": time()}}},
        "truncated": {"type": "object", "required": cut, "properties": flags},
    }})
}

fn agent() -> Value {
    let money = || json!({"type": ["number", "null"], "minimum": 0});
    json!({"allOf": [by_ref("schemas", "Agent"), {"type": "object",
    "required": ["budget", "config", "policy", "grant", "manifest", "runner"],
    "properties": {
        "budget": {"type": "object", "properties": {"run_usd": money(), "day_usd": money()}},
        "config": {"type": "object", "description": "Without secrets."},
        "policy": {"type": "object", "description": "What the binding allows."},
        "grant": or_null(by_ref("schemas", "Grant")),
        "manifest": or_null(by_ref("schemas", "AgentRunnerManifest")),
        "runner": {"type": ["object", "null"], "description": "The process that offers it."},
    }}]})
}

/// What happened in a step, or in all of them.
fn rates() -> Map<String, Value> {
    let maybe = |kind: &str| json!({"type": [kind, "null"], "minimum": 0});
    let counts = ["runs", "completed", "failed", "cancelled", "model_calls"];
    let rest = ["p50_ms", "p95_ms", "input_tokens", "output_tokens"];
    let counts = counts.into_iter().map(|name| (name.to_owned(), count()));
    let rest = rest.into_iter().map(|name| (name.to_owned(), maybe("integer")));
    counts.chain(rest).chain([("cost_usd".to_owned(), maybe("number"))]).collect()
}

fn overview() -> Value {
    let names: Vec<String> = rates().keys().cloned().collect();
    let totals = json!({"type": ["object", "null"], "required": names, "properties": rates()});
    let (mut step, mut with_time) = (rates(), names);
    step.insert("at".to_owned(), time());
    with_time.push("at".to_owned());
    json!({"type": "object",
    "required": ["now_at", "minutes", "step_s", "host", "store", "queue", "series", "models",
        "totals"],
    "properties": {
        "now_at": time(), "minutes": count(), "step_s": count(),
        "host": {"type": "object", "required": ["version", "started_at", "memory_bytes", "epoch"]},
        "store": {"type": "object", "required": ["kind", "ok", "sync", "size_bytes"]},
        "queue": {"type": "object",
            "required": ["queued", "running", "waiting_approvals", "deliveries_waiting",
                "deliveries_failed", "deliveries_unknown"]},
        "series": {"type": "array",
            "items": {"type": "object", "required": with_time, "properties": step}},
        "models": {"type": "array", "items": {"type": "object",
            "required": ["name", "provider", "configured", "calls", "failed", "input_tokens",
                "output_tokens", "cost_usd", "last_ok_at", "last_error"]}},
        "totals": totals,
    }})
}

fn delivery() -> Value {
    json!({"type": "object",
    "required": ["delivery_id", "surface", "target", "conversation_id", "run_id", "sequence",
        "status", "attempts", "error", "created_at", "updated_at", "next_attempt_at"],
    "properties": {
        "delivery_id": {"type": "string"}, "surface": {"type": "string"},
        "target": {"type": "string", "description": "Deliveries of one target keep their order."},
        "conversation_id": optional(), "run_id": {"type": "string"}, "sequence": count(),
        "status": {"enum": ["pending", "claimed", "done", "failed", "unknown", "discarded"]},
        "attempts": count(), "error": optional(), "created_at": time(), "updated_at": time(),
        "next_attempt_at": or_null(time()),
        "payload": {"type": ["object", "null"],
            "description": "What is sent; with one delivery only."},
    }})
}

fn state() -> Value {
    json!({"type": "object",
    "required": ["scope", "agent", "runner_id", "conversation_id", "actor", "subject", "key",
        "value", "value_truncated", "preview", "size_bytes", "version", "updated_at",
        "expires_at"],
    "properties": {
        "scope": {"type": "string"}, "agent": optional(), "runner_id": optional(),
        "conversation_id": optional(), "actor": {"type": ["object", "null"]},
        "subject": {"type": ["object", "null"]}, "key": {"type": "string"},
        "value": {"description": "Null when it is too large."},
        "value_truncated": {"type": "boolean"}, "preview": optional(),
        "size_bytes": count(), "version": count(), "updated_at": time(),
        "expires_at": or_null(time()),
    }})
}

fn tried() -> Value {
    let candidate = json!({"type": "object",
        "required": ["agent", "built_in", "matches", "chosen", "why"], "properties": {
            "agent": {"type": "string"}, "built_in": {"type": "boolean"},
            "matches": {"type": "boolean"}, "chosen": {"type": "boolean"}, "why": names()}});
    json!({"type": "object",
    "required": ["agent", "outcome", "reason", "tie", "candidates", "binding", "grant",
        "resources", "runner_available"],
    "properties": {
        "agent": optional(), "outcome": {"enum": ["run", "unbound", "tie", "unknown_agent"]},
        "reason": reason(), "tie": names(),
        "candidates": {"type": "array", "items": candidate},
        "binding": {"type": ["object", "null"]},
        "grant": or_null(by_ref("schemas", "Grant")),
        "resources": or_null(by_ref("schemas", "AgentResources")),
        "runner_available": {"type": "boolean"},
    }})
}
