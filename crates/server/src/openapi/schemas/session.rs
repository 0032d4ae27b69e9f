//! Signing in, and who is signed in.

use serde_json::{Value, json};

pub(super) fn all() -> [(String, Value); 3] {
    let secret = |name: &str, about: &str| {
        json!({"type": "object", "required": [name], "additionalProperties": false,
            "properties": {name: {"type": "string", "description": about}}})
    };
    let sign_in = json!({"oneOf": [secret("code", "Printed by `serve` and `greenroom open`; good once."),
        secret("token", "A token of this host's.")]});
    let session = json!({"type": "object", "required": ["name", "role", "answers"],
    "properties": {
        "name": {"type": "string", "description": "How facts name whoever it is: `admin` or `token:NAME`."},
        "role": {"enum": ["admin", "sender", "reader"]},
        "answers": {"type": "boolean", "description": "May answer approvals."},
        "agents": {"type": "array", "items": {"type": "string"},
            "description": "A sender's: the agents it may reach; absent where it may reach all."},
    }});
    let code = json!({"type": "object", "required": ["code", "expires_in_s"],
        "properties": {"code": {"type": "string"}, "expires_in_s": {"type": "integer", "minimum": 0}}});
    [("SignIn", sign_in), ("Session", session), ("SignInCode", code)]
        .map(|(name, schema)| (name.to_owned(), schema))
}
