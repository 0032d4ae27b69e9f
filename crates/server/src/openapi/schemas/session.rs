//! Sign-in and sessions.

use serde_json::{Value, json};

pub(super) fn all() -> [(&'static str, Value); 3] {
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
    [("SignIn", sign_in), ("Session", session), ("SignInCode", code)]
}
