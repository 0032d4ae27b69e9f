//! The values of a form: defaults, the only model, and what is wrong with them.
//!
//! Invariant: a given value is never changed; an item that the form hides is not checked.

use super::DynamicFormItemSchema;
use crate::Object;
use serde_json::{Value, json};

/// Items that choose one model for text.
const MODEL: [&str; 3] = ["llm-model-selector", "select-llm-model", "model-selector"];
/// An item that chooses a model for text, and others to fall back to.
const MODEL_AND_FALLBACKS: &str = "model-fallback-selector";
/// Texts that stand for no choice.
const NONE: [&str; 3] = ["", "__none__", "__none"];

/// The values of a form: those given, and the defaults of the others. The first item for a model that has none
/// gets the only one that there is.
pub fn fill(form: &[DynamicFormItemSchema], given: &Object, only_model: Option<&str>) -> Object {
    let mut values = given.clone();
    for item in form {
        if !item.default.is_null() && !values.contains_key(&item.name) {
            values.insert(item.name.clone(), item.default.clone());
        }
    }
    let item = form.iter().find(|item| item.is_model());
    if let Some((item, model)) = item.zip(only_model)
        && is_empty(values.get(&item.name))
    {
        let value = match item.kind == MODEL_AND_FALLBACKS {
            true => {
                let fallbacks = values.get(&item.name).map(|value| value["fallbacks"].clone());
                json!({"primary": model, "fallbacks": fallbacks.filter(Value::is_array).unwrap_or(json!([]))})
            }
            false => model.into(),
        };
        values.insert(item.name.clone(), value);
    }
    values
}

/// What is wrong with the values of a form, one clause each.
pub fn problems(form: &[DynamicFormItemSchema], values: &Object) -> Vec<String> {
    let shown = form.iter().filter(|item| item.is_shown(values));
    shown.filter_map(|item| item.problem(values.get(&item.name))).collect()
}

/// The values that the form does not have.
pub fn unknown<'v>(form: &[DynamicFormItemSchema], values: &'v Object) -> Vec<&'v str> {
    let is_known = |key: &str| form.iter().any(|item| item.name == key);
    values.keys().map(String::as_str).filter(|key| !is_known(key)).collect()
}

impl DynamicFormItemSchema {
    fn is_model(&self) -> bool {
        self.kind == MODEL_AND_FALLBACKS || MODEL.contains(&self.kind.as_str())
    }

    /// Whether the item applies, given the other values. A condition of an unknown kind hides it.
    fn is_shown(&self, values: &Object) -> bool {
        let Some(condition) = self.extra.get("show_if").filter(|condition| condition.is_object())
        else {
            return true;
        };
        let field = condition["field"].as_str().unwrap_or_default();
        let value = values.get(field).unwrap_or(&Value::Null);
        let wanted = &condition["value"];
        match condition["operator"].as_str().unwrap_or("eq") {
            "eq" => value == wanted,
            "neq" => value != wanted,
            "in" => wanted.as_array().is_some_and(|wanted| wanted.contains(value)),
            _ => false,
        }
    }

    fn problem(&self, value: Option<&Value>) -> Option<String> {
        let name = &self.name;
        if is_empty(value) {
            return self.required.then(|| format!("`{name}` is required and empty"));
        }
        let value = value?;
        if let Some(kind) = self.mismatch(value) {
            return Some(format!("`{name}` must be {kind}"));
        }
        let is_option = |value: &str| self.options.iter().any(|option| option.name == value);
        match value.as_str() {
            Some(word) if self.kind == "select" && !self.options.is_empty() && !is_option(word) => {
                let names = self.options.iter().map(|option| format!("`{}`", option.name));
                let names = names.collect::<Vec<_>>().join(", ");
                Some(format!("`{name}` has no option `{word}`; there are {names}"))
            }
            _ => None,
        }
    }

    /// What a value of this item must be, if it is something else.
    fn mismatch(&self, value: &Value) -> Option<&'static str> {
        let (fits, kind) = match self.kind.as_str() {
            "string" | "text" | "select" | "secret" | "password" => (value.is_string(), "a text"),
            "integer" => (value.is_i64() || value.is_u64(), "an integer"),
            "float" | "number" => (value.is_number(), "a number"),
            "boolean" => (value.is_boolean(), "true or false"),
            "array[string]" => (value.is_array(), "a list"),
            _ => return None,
        };
        (!fits).then_some(kind)
    }
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => NONE.contains(&text.as_str()),
        Some(Value::Array(items)) => items.is_empty(),
        Some(Value::Object(fields)) => match fields.get("primary") {
            Some(primary) => is_empty(Some(primary)),
            None => fields.is_empty(),
        },
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(items: Value) -> Vec<DynamicFormItemSchema> {
        serde_json::from_value(items).unwrap()
    }

    fn object(value: Value) -> Object {
        value.as_object().cloned().unwrap()
    }

    fn local_agent() -> Vec<DynamicFormItemSchema> {
        form(json!([
            {"name": "model", "label": "Model", "type": "model-fallback-selector", "required": true,
                "default": {"primary": "", "fallbacks": []}},
            {"name": "rounds", "label": "Rounds", "type": "integer", "default": 5},
            {"name": "second", "label": "Second", "type": "llm-model-selector"},
        ]))
    }

    #[test]
    fn the_only_model_fills_the_first_item_for_one_and_nothing_that_was_given() {
        let filled = fill(&local_agent(), &Object::new(), Some("default"));
        assert_eq!(
            Value::Object(filled),
            json!({"model": {"primary": "default", "fallbacks": []}, "rounds": 5})
        );
        let given = object(json!({"model": "mine", "rounds": 2}));
        assert_eq!(fill(&local_agent(), &given, Some("default")), given);
        let plain =
            form(json!([{"name": "m", "label": "M", "type": "llm-model-selector", "default": ""}]));
        let filled = fill(&plain, &Object::new(), Some("default"));
        assert_eq!(Value::Object(filled), json!({"m": "default"}));
        let filled = fill(&plain, &Object::new(), None);
        assert_eq!(Value::Object(filled), json!({"m": ""}));
    }

    #[test]
    fn what_is_empty_wrong_or_unknown_is_named() {
        let values = fill(&local_agent(), &object(json!({"rounds": "2", "odd": 1})), None);
        assert_eq!(
            problems(&local_agent(), &values),
            ["`model` is required and empty", "`rounds` must be an integer"]
        );
        assert_eq!(unknown(&local_agent(), &values), ["odd"]);
        let select = form(json!([{"name": "tone", "label": "T", "type": "select",
            "options": [{"name": "calm", "label": "C"}, {"name": "loud", "label": "L"}]}]));
        assert_eq!(
            problems(&select, &object(json!({"tone": "shrill"}))),
            ["`tone` has no option `shrill`; there are `calm`, `loud`"]
        );
        assert_eq!(problems(&select, &object(json!({"tone": "calm"}))), [""; 0]);
    }

    #[test]
    fn a_hidden_item_is_not_asked_for() {
        let form = form(json!([
            {"name": "mode", "label": "Mode", "type": "string"},
            {"name": "key", "label": "Key", "type": "string", "required": true,
                "show_if": {"field": "mode", "operator": "eq", "value": "cloud"}},
        ]));
        assert_eq!(problems(&form, &object(json!({"mode": "local"}))), [""; 0]);
        assert_eq!(
            problems(&form, &object(json!({"mode": "cloud"}))),
            ["`key` is required and empty"]
        );
    }
}
