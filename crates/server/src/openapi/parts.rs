//! Shared parts of operations: parameters, headers, errors, pages.
//!
//! Invariant: a parameter or an error is described once and referred to by name.

use super::schemas::rules::{self, file_name, lifetime};
use crate::query::{LIMIT_DEFAULT, VALUE_BYTES_MAX};
use greenroom_protocol::api::platform::ApprovalStatus;
use greenroom_protocol::event::EVENT_ID_BYTES_MAX;
use greenroom_protocol::payload::StateScope;
use greenroom_store::types::DeliveryStatus;
use serde_json::{Map, Value, json};

/// Text without control characters.
pub(super) const PLAIN: &str = r"^[^\u0000-\u001f\u007f-\u009f]*$";

pub(super) fn by_ref(kind: &str, name: &str) -> Value {
    json!({"$ref": format!("#/components/{kind}/{name}")})
}

pub(super) fn parameter(name: &str) -> Value {
    by_ref("parameters", name)
}

pub(super) fn parameters(page_size_max: usize) -> Value {
    let mut parameters = common(page_size_max);
    if let (Value::Object(all), Value::Object(filters)) = (&mut parameters, filters()) {
        all.extend(filters);
    }
    parameters
}

/// Filters of lists.
fn filters() -> Value {
    let text = || json!({"type": "string", "maxLength": VALUE_BYTES_MAX, "pattern": PLAIN});
    let time = || json!({"type": "string", "format": "date-time"});
    let roles = crate::facts::ROLES;
    json!({
        "runner_id": query("runner_id", "Of this runner only, `plugin:AUTHOR/NAME/RUNNER`.", text()),
        "event_type": query("event_type", "Of this type of event only.", text()),
        "error_code": query("error_code", "Failed with this code only.", text()),
        "since": query("since", "At this time or later.", time()),
        "until": query("until", "Before this time.", time()),
        "actor_id": query("actor_id", "Of this actor only.", text()),
        "role": query("role", "Of this role only.", json!({"enum": roles})),
        "scope": query("scope", "Of this scope only.",
            json!({"enum": StateScope::ALL.map(StateScope::as_str)})),
        "optional": query("optional", "Answer 204 instead of 401 without a session.",
            json!({"type": "boolean", "default": false})),
        "prefix": query("prefix", "Keys with this prefix only.", text()),
        "mime": query("mime", "Of this type only, or of a family such as `image/*`.", text()),
        "minutes": query("minutes", "Length of the window, up to now.",
            json!({"enum": crate::overview::MINUTES, "default": 60})),
        "sent_by": query("sent_by", "Of this limited token only, as `token:NAME`.",
            text()),
    })
}

fn common(page_size_max: usize) -> Value {
    let text = || json!({"type": "string", "maxLength": VALUE_BYTES_MAX, "pattern": PLAIN});
    let not_empty = || json!({"type": "string", "minLength": 1, "maxLength": VALUE_BYTES_MAX, "pattern": PLAIN});
    let number = || json!({"type": "integer", "minimum": 0, "maximum": i64::MAX});
    let limit = json!({"type": "integer", "minimum": 1, "maximum": page_size_max,
        "default": LIMIT_DEFAULT.min(page_size_max)});
    let mut parts = json!({
        "workspace_id": query("workspace_id", "Default: `default`.",
            json!({"type": "string", "minLength": 1, "maxLength": EVENT_ID_BYTES_MAX, "pattern": PLAIN})),
        "conversation_id": query("conversation_id", "Of this conversation only.", text()),
        "actor": name_header("x-greenroom-actor", "For admins: the owner of the records."),
        "own_page": header("X-Greenroom", "`1` with a session or to sign in; not needed with a token."),
        "agent": query("agent", "Of this agent only.", text()),
        "status": query("status", "In this status only.", by_ref("schemas", "RunStatus")),
        "approval_status": query("status", "In this status only.",
            json!({"enum": ApprovalStatus::ALL.map(ApprovalStatus::as_str)})),
        "delivery_status": query("status", "In this status only.",
            json!({"enum": DeliveryStatus::ALL.map(DeliveryStatus::as_str)})),
        "surface": query("surface", "To this surface only.", text()),
        "run_id": query("run_id", "Of this run only.", text()),
        "method": query("method", "Of this method only, e.g. `history.page`.", text()),
        "code": query("code", "With this outcome only.",
            json!({"enum": crate::audit::codes().collect::<Vec<_>>()})),
        "denied": query("denied", "Refused calls only.",
            json!({"type": "boolean", "default": false})),
        "source": query("source", "From this source only.", text()),
        "cursor": query("cursor", "`next_cursor` of the previous page of the same list.", cursor("string".into())),
        "limit": query("limit", "Maximum number of items.", limit),
        "after": query("after", "Results after this number only.", number()),
        "q": {"name": "q", "in": "query", "required": true, "description": "Search text.",
            "schema": not_empty()},
        "name": query("name", "A file name, at most 255 bytes; no path.", file_name()),
        "for_conversation": query("conversation_id", "The conversation it belongs to; without one, \
            that of the first event that names it.", not_empty()),
        "expires_in_s": query("expires_in_s", "Seconds until it is deleted; without, it is kept.",
            lifetime()),
        "range": header("Range", "One range of bytes, from either end."),
        "if_range": header("If-Range", "`ETag` that the range must belong to."),
        "if_none_match": header("If-None-Match", "`ETag` of the cached bytes."),
        "artifact_id_in_path": in_path("The id of an artifact."),
        "direction": query("direction", "Which end to start from.",
            json!({"enum": ["backward", "forward"], "default": "backward"})),
        "last_event_id": {"name": "Last-Event-ID", "in": "header", "schema": number(),
            "description": "For streams: the number of the last result seen; overrides `after`."},
        "run_id_in_path": in_path("The id of a run."),
        "approval_id_in_path": in_path("The id of an approval."),
        "delivery_id_in_path": in_path("The id of a delivery."),
        "agent_in_path": in_path("The name of an agent."),
        "thread_in_path": {"name": "thread", "in": "path", "required": true,
            "description": "The id of a thread, which is a conversation.",
            "schema": id()},
        "event_id_in_path": in_path("The id of an event."),
        "conversation_id_in_path": in_path("The id of a conversation."),
    });
    add_of_one_route(&mut parts);
    parts
}

/// Parameters that one route has.
fn add_of_one_route(parts: &mut Value) {
    parts["on_disconnect"] = query(
        "on_disconnect",
        "What happens to the run when the reader disconnects before its end.",
        json!({"type": "string", "enum": ["continue", "stop"], "default": "continue"}),
    );
    parts["tool_server_in_path"] = in_path("The name of an MCP server.");
    parts["actor_source"] = name_header(
        "x-greenroom-source",
        "For admins: the source whose actor it is. Default: `api`.",
    );
    parts["actor_token"] = name_header(
        "x-greenroom-token",
        "For admins: the token whose actor it is, if that token has actors of its own.",
    );
    parts["model_name_in_path"] = json!({"name": "name", "in": "path", "required": true,
        "description": "The name of a granted model; for Gemini with `:` and an action.",
        "schema": {"type": "string", "maxLength": VALUE_BYTES_MAX, "pattern": PLAIN}});
    parts["file_token_in_path"] = in_path("The last part of the address.");
}

fn query(name: &str, about: &str, schema: Value) -> Value {
    json!({"name": name, "in": "query", "description": about, "schema": schema})
}

fn header(name: &str, about: &str) -> Value {
    json!({"name": name, "in": "header", "description": about, "schema": {"type": "string"}})
}

/// A header that is not empty.
fn name_header(name: &str, about: &str) -> Value {
    let mut header = header(name, about);
    header["schema"]["minLength"] = 1.into();
    header
}

fn in_path(about: &str) -> Value {
    json!({"name": "id", "in": "path", "required": true, "description": about,
        "schema": id()})
}

/// An id in a path.
fn id() -> Value {
    let mut id = rules::name();
    id["type"] = "string".into();
    id
}

/// What every cursor of this host looks like: a tag of 16 bytes and a position, as base64url.
pub(super) fn cursor_rules() -> Value {
    json!({"minLength": 22, "maxLength": VALUE_BYTES_MAX, "pattern": "^[A-Za-z0-9_-]*$"})
}

/// A cursor; `kind` is its JSON type.
fn cursor(kind: Value) -> Value {
    let mut cursor = cursor_rules();
    cursor["type"] = kind;
    cursor
}

pub(super) fn headers() -> Value {
    json!({
        "X-Request-Id": {"description": "The caller's id if valid, else a new one.",
            "required": true, "schema": {"type": "string"}},
        "Retry-After": {"description": "Seconds to wait before a retry.",
            "required": true, "schema": {"type": "integer", "minimum": 0}},
        "WWW-Authenticate": {"required": true, "schema": {"const": "Bearer"}},
    })
}

/// Every error status and its meaning.
const PROBLEMS: [(&str, &str); 15] = [
    ("400", "`invalid_argument`: the request is not as described here."),
    ("401", "`unauthorized`: no token or session, or an unknown one."),
    (
        "403",
        "`unauthorized`: the role, the `Host` header or the origin of the request is not allowed.",
    ),
    ("404", "`not_found`: it does not exist, or this token may not see it."),
    ("408", "`deadline_exceeded`: the body did not arrive in time."),
    (
        "409",
        "`invalid_argument`: the id was used with another body, several agents or sources match equally, or \
         another decision was made.",
    ),
    (
        "413",
        "`payload_too_large`: the body exceeds `limits.event_bytes`, `limits.artifact_bytes` for an artifact or \
         `limits.agui_bytes` for AG-UI.",
    ),
    ("415", "`invalid_argument`: the body is not JSON."),
    ("416", "`invalid_argument`: the range begins after the last byte."),
    ("426", "`invalid_argument`: this path takes WebSocket connections only."),
    (
        "429",
        "`rate_limited`: too many runs are queued and nothing was stored, or too many failed sign-ins.",
    ),
    ("500", "`runtime_error`: an internal error of the host."),
    ("502", "`runtime_error`: another server refused or did not answer."),
    ("503", "`runtime_error`: the host is stopping or cannot store anything now; retry."),
    ("405", "`invalid_argument`: the path does not support this method."),
];

pub(super) fn problems() -> Value {
    let problem = |(status, about): &(&str, &str)| {
        let mut headers = json!({"X-Request-Id": by_ref("headers", "X-Request-Id")});
        match *status {
            "401" => headers["WWW-Authenticate"] = by_ref("headers", "WWW-Authenticate"),
            "429" => headers["Retry-After"] = by_ref("headers", "Retry-After"),
            _ => {}
        }
        let mut response = json_body(about, by_ref("schemas", "Problem"));
        response["headers"] = headers;
        (format!("problem_{status}"), response)
    };
    let mut responses: Map<String, Value> = PROBLEMS.iter().map(problem).collect();
    let of_gateways = super::operations::gateway_responses();
    responses.extend(of_gateways.map(|(name, response)| (name.to_owned(), response)));
    Value::Object(responses)
}

pub(super) fn json_body(about: &str, schema: Value) -> Value {
    json!({"description": about, "headers": {"X-Request-Id": by_ref("headers", "X-Request-Id")},
        "content": {"application/json": {"schema": schema}}})
}

pub(super) fn event_stream(about: &str) -> Value {
    json!({"schema": {"type": "string", "description": about}})
}

pub(super) fn page_of(item: &str) -> Value {
    let mut next_cursor = cursor(json!(["string", "null"]));
    next_cursor["description"] = "`cursor` of the next page; null at the end.".into();
    let schema = json!({
        "type": "object",
        "required": ["items", "next_cursor", "has_more"],
        "properties": {
            "items": {"type": "array", "items": by_ref("schemas", item)},
            "next_cursor": next_cursor,
            "has_more": {"type": "boolean"},
        },
    });
    json_body("A page.", schema)
}
