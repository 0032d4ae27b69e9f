//! Answers made for people: the story of a run, an agent in detail, the overview.

use super::{
    count, count_or_null, flag, list, object, object_with, or_null, text, text_or_null, texts, time,
};
use crate::openapi::parts::by_ref;
use greenroom_store::types::DeliveryStatus;
use serde_json::{Map, Value, json};

pub(super) fn all() -> [(&'static str, Value); 12] {
    [
        ("Grant", grant()),
        ("GrantPolicy", policy()),
        ("Story", story()),
        ("RunBinding", run_binding()),
        ("ModelCall", model_call()),
        ("AgentDetail", agent()),
        ("BindingTrial", trial()),
        ("Overview", overview()),
        ("ModelFigures", model_figures()),
        ("StateItem", state()),
        ("Delivery", delivery()),
        ("Interaction", interaction()),
    ]
}

fn interaction() -> Value {
    object(json!({"run_id": text(), "interaction_id": text(),
        "status": {"enum": ["pending", "answered", "expired"]},
        "request": by_ref("schemas", "InteractionRequest"),
        "created_at": time(), "expires_at": time(), "answered_at": or_null(time()),
        "answer": or_null(by_ref("schemas", "InteractionSubmission")),
        "answer_run_id": text_or_null()}))
}

fn approval_mode() -> Value {
    json!({"enum": ["never", "ask", "always"]})
}

fn approvals() -> Value {
    json!({"type": "object", "additionalProperties": approval_mode()})
}

fn risks() -> Value {
    let risks = ["read", "write", "destructive", "external"];
    let modes: Map<String, Value> =
        risks.iter().map(|risk| ((*risk).to_owned(), approval_mode())).collect();
    json!({"type": "object", "properties": modes})
}

fn threads() -> Value {
    json!({"enum": ["apart", "together"]})
}

fn reach() -> Value {
    json!({"enum": ["none", "conversation", "workspace"]})
}

fn reason() -> Value {
    json!({"enum": ["named", "only_match", "before_built_in", "slash_command",
        "narrower_scope", "more_filters",
        "exact_event_type", null]})
}

fn queue() -> Value {
    json!({"enum": ["serial", "parallel", "steer", "replace"]})
}

fn on_interrupt() -> Value {
    json!({"enum": ["fail", "retry"]})
}

fn usd_or_null() -> Value {
    json!({"type": ["number", "null"], "minimum": 0})
}

fn grant() -> Value {
    let pull = || object(json!({"reach": reach(), "operations": texts()}));
    let offer = || object(json!({"names": texts(), "operations": texts()}));
    let mut grant = object_with(
        json!({
            "agent": text(), "runner_id": text(),
            "config": {"type": ["object", "null"], "description": "Null for senders."},
            "history": pull(), "events": pull(), "artifacts": pull(),
            "threads": threads(), "state": texts(), "storage": texts(), "actions": approvals(),
            "models": offer(), "tools": offer(), "knowledge": offer(),
            "methods": texts(), "skills": texts(), "risks": risks(), "steering": flag(),
        }),
        json!({"hash": text(), "harness": approvals(),
            "files": list(object(json!({"file_id": text(), "name": text(), "path": text()})))}),
    );
    grant["description"] = "What a run may do, frozen.".into();
    grant
}

fn policy() -> Value {
    let all = json!({
        "models": texts(), "tools": texts(), "knowledge": texts(), "history": reach(),
        "event_log": reach(), "artifacts": reach(), "threads": threads(), "state": texts(),
        "storage": texts(),
        "actions": approvals(), "files": texts(), "skills": texts(), "modules": texts(),
        "risks": risks(),
    });
    let mut policy = object_with(all, json!({"harness": approvals()}));
    policy["description"] =
        "What the binding allows: patterns as written, defaults filled in.".into();
    policy
}

fn run_binding() -> Value {
    let mut binding = object(json!({
        "agent": text(), "reason": reason(), "beside": texts(), "queue": queue(),
        "deadline_s": count(), "on_interrupt": on_interrupt(), "delivery": text_or_null(),
        "steers": flag(), "waited_ms": count_or_null(),
    }));
    binding["description"] = "Why the agent was chosen for a run, and how it was queued.".into();
    binding
}

fn model_call() -> Value {
    object(json!({
        "model": text(), "method": text(), "at": time(), "duration_ms": count_or_null(),
        "input_tokens": count_or_null(), "output_tokens": count_or_null(),
        "cached_input_tokens": count_or_null(), "tokens": count_or_null(),
        "cost_usd": usd_or_null(),
        "outcome": {"type": ["string", "null"],
            "description": "The finish reason, an error code, `cancelled` or `interrupted`."},
        "failed": flag(),
    }))
}

fn story() -> Value {
    let cut = ["event", "model_calls", "deliveries", "approvals", "diagnostics", "replays"];
    let flags: Map<String, Value> = cut.iter().map(|name| ((*name).to_owned(), flag())).collect();
    object(json!({
        "run": by_ref("schemas", "RunView"),
        "event": or_null(by_ref("schemas", "Event")),
        "binding": by_ref("schemas", "RunBinding"),
        "grant": or_null(by_ref("schemas", "Grant")),
        "runner": object_with(
            json!({"runner_id": text(), "isolation": text_or_null(), "name": text_or_null(),
                "status": text_or_null()}),
            json!({"plugin": text_or_null(), "version": text_or_null()}),
        ),
        "model_calls": list(by_ref("schemas", "ModelCall")),
        "deliveries": list(by_ref("schemas", "Delivery")),
        "approvals": list(object(json!({"approval_id": text(), "action": text(),
            "status": by_ref("schemas", "ApprovalStatus"), "answered_by": text_or_null(),
            "created_at": time(), "answered_at": or_null(time())}))),
        "diagnostics": list(object(json!({"kind": text(), "message": text(),
            "created_at": time()}))),
        "replay_of": or_null(object(json!({"event_id": text(), "run_id": text_or_null()}))),
        "replays": list(object(json!({"run_id": text_or_null(), "event_id": text(),
            "created_at": time()}))),
        "truncated": object(flags.into()),
    }))
}

fn agent() -> Value {
    let detail = object(json!({
        "budget": object(json!({"run_usd": usd_or_null(), "day_usd": usd_or_null()})),
        "config": {"type": "object", "description": "Without secrets."},
        "policy": by_ref("schemas", "GrantPolicy"),
        "grant": or_null(by_ref("schemas", "Grant")),
        "manifest": or_null(by_ref("schemas", "AgentRunnerManifest")),
        "runner": or_null(by_ref("schemas", "RunnerProcess")),
    }));
    json!({"allOf": [by_ref("schemas", "Agent"), detail]})
}

/// Counts of one step of the series, or of all of them.
fn figures() -> Value {
    json!({
        "runs": count(), "completed": count(), "failed": count(), "cancelled": count(),
        "model_calls": count(), "p50_ms": count_or_null(), "p95_ms": count_or_null(),
        "input_tokens": count_or_null(), "output_tokens": count_or_null(),
        "cost_usd": usd_or_null(),
    })
}

fn overview() -> Value {
    let mut step = figures();
    step["at"] = time();
    object(json!({
        "now_at": time(), "minutes": count(), "step_s": count(),
        "host": object(json!({"version": text(), "started_at": time(),
            "memory_bytes": count_or_null(), "epoch": count()})),
        "store": object(json!({"kind": {"enum": ["sqlite", "postgres"]}, "ok": flag(),
            "sync": {"enum": ["full", "normal", null]}, "size_bytes": count_or_null()})),
        "queue": object(json!({"queued": count_or_null(), "running": count_or_null(),
            "waiting_approvals": count_or_null(), "deliveries_waiting": count_or_null(),
            "deliveries_failed": count_or_null(), "deliveries_unknown": count_or_null()})),
        "series": list(object(step)),
        "models": list(by_ref("schemas", "ModelFigures")),
        "totals": or_null(object(figures())),
    }))
}

fn model_figures() -> Value {
    object(json!({
        "name": text(), "provider": text_or_null(), "configured": flag(),
        "calls": count_or_null(), "failed": count_or_null(), "input_tokens": count_or_null(),
        "output_tokens": count_or_null(), "cost_usd": usd_or_null(), "last_ok_at": or_null(time()),
        "last_error": or_null(object(json!({"code": text(), "at": time()}))),
    }))
}

fn delivery() -> Value {
    object_with(
        json!({
            "delivery_id": text(), "surface": text(),
            "target": {"type": "string",
                "description": "Deliveries of one target keep their order."},
            "conversation_id": text_or_null(), "run_id": text(), "sequence": count(),
            "status": {"enum": DeliveryStatus::ALL.map(DeliveryStatus::as_str)},
            "attempts": count(), "error": text_or_null(), "created_at": time(),
            "updated_at": time(), "next_attempt_at": or_null(time()),
        }),
        json!({"payload": {"type": ["object", "null"],
            "description": "What is sent; present when one delivery is read."}}),
    )
}

fn state() -> Value {
    let person = || or_null(object(json!({"type": text(), "id": text()})));
    object(json!({
        "scope": by_ref("schemas", "StateScope"), "agent": text_or_null(),
        "runner_id": text_or_null(), "conversation_id": text_or_null(), "actor": person(),
        "subject": person(), "key": text(), "value": {"description": "Null when it is too large."},
        "value_truncated": flag(), "preview": text_or_null(), "size_bytes": count(),
        "version": count(), "updated_at": time(), "expires_at": or_null(time()),
    }))
}

fn trial() -> Value {
    let candidate = object(json!({"agent": text(), "built_in": flag(), "matches": flag(),
        "chosen": flag(), "why": texts()}));
    object(json!({
        "agent": text_or_null(), "outcome": {"enum": ["run", "unbound", "tie", "unknown_agent"]},
        "reason": reason(), "tie": texts(), "candidates": list(candidate),
        "binding": or_null(object(json!({"queue": queue(), "deadline_s": count(),
            "on_interrupt": on_interrupt(), "delivery": text_or_null()}))),
        "grant": or_null(by_ref("schemas", "Grant")),
        "resources": or_null(by_ref("schemas", "AgentResources")),
        "runner_available": flag(),
    }))
}
