//! The values that answer an approval with a form.
//!
//! Invariant: accepted values match the schema that was asked for; fields that were left out get their defaults.

use greenroom_protocol::Object;
use greenroom_protocol::api::platform::TOOL_INPUT;
use greenroom_store::commands::Decision;
use greenroom_store::types::NewApproval;
use greenroom_tools::schema::Schema;
use serde_json::Value;

/// Largest values, as JSON text.
const VALUES_BYTES_MAX: usize = 64 * 1024;

/// The values to store with a decision, as JSON text; none where nothing was asked. An error says what is wrong.
pub(super) fn values(
    asked: &NewApproval,
    decision: Decision,
    given: Option<Object>,
) -> Result<Option<String>, String> {
    if asked.action != TOOL_INPUT {
        return match given {
            Some(_) => Err("this approval asks for no `values`".to_owned()),
            None => Ok(None),
        };
    }
    if decision == Decision::Deny {
        return Ok(None);
    }
    let payload: Value = serde_json::from_str(&asked.payload).unwrap_or_default();
    let Some(schema) = payload.get("requested_schema") else {
        // An address to open has no values.
        return match given.is_none_or(|given| given.is_empty()) {
            true => Ok(Some("{}".to_owned())),
            false => Err("this question has no fields: `values` must be left out".to_owned()),
        };
    };
    let values = Value::Object(completed(schema, given.unwrap_or_default()));
    let text = values.to_string();
    if text.len() > VALUES_BYTES_MAX {
        return Err(format!("`values` have at most {VALUES_BYTES_MAX} bytes"));
    }
    let schema = Schema::compile(schema).map_err(|error| error.to_string())?;
    schema.check(&values).map_err(|failure| format!("`values`: {}", failure.message))?;
    Ok(Some(text))
}

fn completed(schema: &Value, mut values: Object) -> Object {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        if let Some(default) = property.get("default") {
            values.entry(name.clone()).or_insert_with(|| default.clone());
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_store::types::ApprovalKind;
    use serde_json::json;

    fn asked(action: &str, payload: Value) -> NewApproval {
        NewApproval {
            approval_id: "apr_1".to_owned(),
            nonce: "n".to_owned(),
            kind: ApprovalKind::Call,
            agent: "a".to_owned(),
            runner_id: "plugin:a/b/c".to_owned(),
            actor: None,
            action: action.to_owned(),
            target: "{}".to_owned(),
            payload: payload.to_string(),
            delivery: None,
            expires_at: 0,
        }
    }

    fn object(value: Value) -> Option<Object> {
        value.as_object().cloned()
    }

    #[test]
    fn values_match_the_form_and_defaults_fill_it() {
        let form = asked(
            TOOL_INPUT,
            json!({"mode": "form", "requested_schema": {"type": "object", "required": ["name"],
                "properties": {"name": {"type": "string", "minLength": 1},
                    "size": {"type": "string", "enum": ["s", "l"], "default": "l"}}}}),
        );
        let given = values(&form, Decision::Allow, object(json!({"name": "x"}))).unwrap().unwrap();
        let given: Value = serde_json::from_str(&given).unwrap();
        assert_eq!(given, json!({"name": "x", "size": "l"}));
        for wrong in [json!({}), json!({"name": ""}), json!({"name": "x", "size": "m"})] {
            assert!(values(&form, Decision::Allow, object(wrong)).is_err());
        }
        assert_eq!(values(&form, Decision::Deny, None), Ok(None));
    }

    #[test]
    fn only_questions_take_values() {
        let call = asked("tool.call", json!({"path": "/"}));
        assert!(values(&call, Decision::Allow, object(json!({"path": "/etc"}))).is_err());
        assert_eq!(values(&call, Decision::Allow, None), Ok(None));
        let url = asked(TOOL_INPUT, json!({"mode": "url", "url": "https://example.com"}));
        assert_eq!(values(&url, Decision::Allow, None), Ok(Some("{}".to_owned())));
        assert!(values(&url, Decision::Allow, object(json!({"a": 1}))).is_err());
    }
}
