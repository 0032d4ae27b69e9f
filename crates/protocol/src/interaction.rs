//! Questions of a runner to the user, with fields and buttons, and their answers.
//!
//! Invariant: a parsed request can be shown and answered as it is; an answer is accepted for its own request
//! only. A request is in the `metadata` of a message whose text says the same to readers without forms; its
//! answer is an event of its own.

use crate::Object;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// The key of a request in the metadata of its message, and of an answer in the input of its event.
pub const INTERACTION: &str = "interaction";
/// The type of the event that an answer is.
pub const INTERACTION_SUBMITTED: &str = "interaction.submitted";
/// Largest request or answer, as JSON.
pub const INTERACTION_BYTES_MAX: usize = 256 * 1024;
const FIELDS_MAX: usize = 50;
const ACTIONS_MAX: usize = 20;
const OPTIONS_MAX: usize = 100;
const ID_CHARS_MAX: usize = 255;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InteractionRequest {
    /// Chosen by the runner, unique within its run.
    pub interaction_id: String,
    #[serde(default)]
    pub kind: InteractionKind,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default)]
    pub fields: Vec<InteractionField>,
    /// Buttons; without any, the answer is only its values.
    #[serde(default)]
    pub actions: Vec<InteractionAction>,
    /// Unix seconds; default: half an hour, at most a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<i64>,
    /// For surfaces without forms.
    pub fallback_text: String,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InteractionKind {
    #[default]
    Form,
    Confirmation,
    Choice,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InteractionField {
    pub id: String,
    pub label: String,
    #[serde(rename = "type")]
    pub kind: InteractionFieldKind,
    #[serde(default)]
    pub required: bool,
    #[serde(default)]
    pub options: Vec<InteractionOption>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placeholder: Option<String>,
    #[serde(default)]
    pub default: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InteractionFieldKind {
    Text,
    Textarea,
    Select,
    Multiselect,
    Number,
    Boolean,
    File,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InteractionOption {
    pub value: String,
    pub label: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct InteractionAction {
    pub id: String,
    pub label: String,
    #[serde(default)]
    pub style: InteractionStyle,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum InteractionStyle {
    #[default]
    Default,
    Primary,
    Danger,
}

/// The answer of a user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InteractionSubmission {
    pub interaction_id: String,
    #[serde(default)]
    pub action_id: Option<String>,
    #[serde(default)]
    pub values: Object,
}

impl InteractionRequest {
    /// Reads and checks a request; an error is a clause that says what is wrong.
    pub fn parse(value: &Value) -> Result<Self, String> {
        if value.to_string().len() > INTERACTION_BYTES_MAX {
            return Err(format!("it has more than {INTERACTION_BYTES_MAX} bytes"));
        }
        let request: Self =
            serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
        let id = request.interaction_id.chars().count();
        if !(1..=ID_CHARS_MAX).contains(&id) {
            return Err(format!("`interaction_id` must have 1 to {ID_CHARS_MAX} characters"));
        }
        if request.fields.len() > FIELDS_MAX || request.actions.len() > ACTIONS_MAX {
            return Err(format!(
                "at most {FIELDS_MAX} fields and {ACTIONS_MAX} actions are allowed"
            ));
        }
        unique("field", request.fields.iter().map(|field| field.id.as_str()))?;
        unique("action", request.actions.iter().map(|action| action.id.as_str()))?;
        for field in &request.fields {
            unique("option", field.options.iter().map(|option| option.value.as_str()))?;
            let is_choice = [InteractionFieldKind::Select, InteractionFieldKind::Multiselect]
                .contains(&field.kind);
            if is_choice && !(1..=OPTIONS_MAX).contains(&field.options.len()) {
                return Err(format!("field `{}` needs 1 to {OPTIONS_MAX} options", field.id));
            }
        }
        Ok(request)
    }

    /// Whether an answer fits; an error is a clause that says what is wrong.
    pub fn check(&self, answer: &InteractionSubmission) -> Result<(), String> {
        let is_action = |id: &str| self.actions.iter().any(|action| action.id == id);
        match answer.action_id.as_deref() {
            Some(id) if !is_action(id) => return Err(format!("there is no action `{id}`")),
            None if !self.actions.is_empty() => {
                let ids: Vec<String> =
                    self.actions.iter().map(|action| format!("`{}`", action.id)).collect();
                return Err(format!("`action_id` must be one of {}", ids.join(", ")));
            }
            _ => {}
        }
        let unknown = answer.values.keys().find(|id| !self.fields.iter().any(|f| f.id == **id));
        if let Some(id) = unknown {
            return Err(format!("there is no field `{id}`"));
        }
        self.fields.iter().try_for_each(|field| field.check(answer.values.get(&field.id)))
    }

    /// The files of an answer: ids of fields, each with the id of an artifact.
    pub fn files<'a>(&'a self, answer: &'a InteractionSubmission) -> Vec<(&'a str, &'a str)> {
        let files = self.fields.iter().filter(|field| field.kind == InteractionFieldKind::File);
        let given = files.filter_map(|field| {
            let value = answer.values.get(&field.id)?.as_str()?;
            Some((field.id.as_str(), value))
        });
        given.filter(|(_, artifact_id)| !artifact_id.is_empty()).collect()
    }
}

impl InteractionField {
    fn check(&self, value: Option<&Value>) -> Result<(), String> {
        let id = &self.id;
        let is_empty = match value {
            None | Some(Value::Null) => true,
            Some(Value::String(text)) => text.is_empty(),
            Some(Value::Array(items)) => items.is_empty(),
            Some(_) => false,
        };
        let Some(value) = value.filter(|_| !is_empty) else {
            return match self.required {
                true => Err(format!("field `{id}` is required")),
                false => Ok(()),
            };
        };
        let is_option =
            |value: &Value| self.options.iter().any(|option| *value == option.value.as_str());
        let (fits, kind) = match self.kind {
            InteractionFieldKind::Text | InteractionFieldKind::Textarea => {
                (value.is_string(), "a text")
            }
            InteractionFieldKind::Number => (value.is_number(), "a number"),
            InteractionFieldKind::Boolean => (value.is_boolean(), "true or false"),
            InteractionFieldKind::Select => (is_option(value), "one of its options"),
            InteractionFieldKind::Multiselect => (
                value.as_array().is_some_and(|items| items.iter().all(is_option)),
                "a list of its options",
            ),
            // Whether there is such an artifact is for the host to say.
            InteractionFieldKind::File => (value.is_string(), "the id of an artifact"),
        };
        if fits { Ok(()) } else { Err(format!("field `{id}` must be {kind}")) }
    }
}

fn unique<'a>(what: &str, mut ids: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    match ids.find(|id| id.is_empty() || !seen.insert(*id)) {
        Some("") => Err(format!("an empty id of {what}s")),
        Some(id) => Err(format!("the {what} `{id}` occurs twice")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request() -> Value {
        json!({"interaction_id": "i1", "kind": "form", "title": "Order", "fallback_text": "Reply yes or no.",
            "fields": [
                {"id": "size", "label": "Size", "type": "select", "required": true,
                    "options": [{"value": "s", "label": "Small"}, {"value": "l", "label": "Large"}]},
                {"id": "note", "label": "Note", "type": "textarea"},
                {"id": "count", "label": "Count", "type": "number"}],
            "actions": [{"id": "yes", "label": "Yes", "style": "primary"}, {"id": "no", "label": "No"}]})
    }

    fn checked(answer: Value) -> Result<(), String> {
        let request = InteractionRequest::parse(&request()).unwrap();
        let mut answer = answer;
        answer["interaction_id"] = "i1".into();
        request.check(&serde_json::from_value(answer).unwrap())
    }

    #[test]
    fn an_answer_must_fit_its_request() {
        assert_eq!(
            checked(json!({"action_id": "yes", "values": {"size": "s", "count": 2}})),
            Ok(())
        );
        for (answer, problem) in [
            (json!({"values": {"size": "s"}}), "`action_id` must be one of `yes`, `no`"),
            (json!({"action_id": "maybe", "values": {"size": "s"}}), "there is no action `maybe`"),
            (json!({"action_id": "yes"}), "field `size` is required"),
            (
                json!({"action_id": "yes", "values": {"size": "xl"}}),
                "field `size` must be one of its options",
            ),
            (
                json!({"action_id": "yes", "values": {"size": "s", "count": "2"}}),
                "field `count` must be a number",
            ),
            (
                json!({"action_id": "yes", "values": {"size": "s", "colour": "red"}}),
                "there is no field `colour`",
            ),
        ] {
            assert_eq!(checked(answer).unwrap_err(), problem);
        }
    }

    #[test]
    fn a_request_that_cannot_be_answered_is_refused() {
        let with = |change: fn(&mut Value)| {
            let mut value = request();
            change(&mut value);
            InteractionRequest::parse(&value).unwrap_err()
        };
        assert_eq!(with(|r| r["fields"][1]["id"] = "size".into()), "the field `size` occurs twice");
        assert_eq!(with(|r| r["actions"][1]["id"] = "".into()), "an empty id of actions");
        assert_eq!(
            with(|r| r["fields"][0]["options"] = json!([])),
            "field `size` needs 1 to 100 options"
        );
        assert!(with(|r| r["kind"] = "dance".into()).contains("unknown variant"));
        assert!(with(|r| r["interaction_id"] = "".into()).contains("1 to 255 characters"));
        assert!(
            with(|r| r["title"] = "x".repeat(300_000).into()).contains("more than 262144 bytes")
        );
    }
}
