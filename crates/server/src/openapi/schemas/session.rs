//! Sign-in and sessions.

use serde_json::{Value, json};

pub(super) fn all() -> [(&'static str, Value); 5] {
    let secret = |name: &str, about: &str| {
        json!({"type": "object", "required": [name], "additionalProperties": false,
            "properties": {name: {"type": "string", "description": about}}})
    };
    let sign_in = json!({"oneOf": [secret("code", "Printed by `serve` and `greenroom open`; valid once."),
        secret("token", "A token of this host.")]});
    let session = json!({"type": "object", "required": ["name", "role", "answers"],
    "properties": {
        "name": {"type": "string", "description": "The caller's name in facts: `admin` or `token:NAME`."},
        "role": {"enum": ["admin", "sender", "reader"]},
        "answers": {"type": "boolean", "description": "May answer approvals."},
        "agents": {"type": "array", "items": {"type": "string"},
            "description": "For senders: the agents it may use; absent when it may use all."},
    }});
    let code = json!({"type": "object", "required": ["code", "expires_in_s"],
        "properties": {"code": {"type": "string"}, "expires_in_s": {"type": "integer", "minimum": 0}}});
    let id = |about: &str| {
        json!({"type": "string", "minLength": 1, "maxLength": 384, "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]+$",
            "description": about})
    };
    let mut source = id("The source whose actor it is, without `/`. Default: `api`.");
    source["type"] = json!(["string", "null"]);
    source["pattern"] = "^[^/\\u0000-\\u001f\\u007f-\\u009f]+$".into();
    let new_token = json!({"type": "object", "required": ["actor_id"], "additionalProperties": false,
    "properties": {
        "actor_id": id("The actor that the token speaks for."),
        "source": source,
        "agents": {"type": ["array", "null"], "items": {"type": "string"},
            "description": "The agents that it may use. Default: those of the minting token."},
        "answers": {"type": "boolean", "default": false,
            "description": "May answer approvals in its conversations, if the minting token may."},
        "expires_in_s": {"type": ["integer", "null"], "minimum": 1, "maximum": 3600, "default": 900},
    }});
    let token = json!({"type": "object", "required": ["token", "actor_id", "source", "expires_at"],
        "properties": {"token": {"type": "string"}, "actor_id": {"type": "string"},
            "source": {"type": "string"}, "expires_at": {"type": "string", "format": "date-time"}}});
    [
        ("SignIn", sign_in),
        ("Session", session),
        ("SignInCode", code),
        ("NewActorToken", new_token),
        ("ActorToken", token),
    ]
}
