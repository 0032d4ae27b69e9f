//! The input schema of a tool, and typed text interpreted by it.
//!
//! Invariant: nothing is rejected here. Text that does not fit stays text, so that the host's validation, which is the
//! same for every caller, reports the error.

use super::line::Given;
use greenroom_sdk::{Object, Value, json};

/// Maximum chain of references.
const REFS_MAX: usize = 8;
/// JSON Schema types.
const TYPES: [&str; 7] = ["string", "integer", "number", "boolean", "array", "object", "null"];

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Schema(Value);

pub(crate) struct Field<'s> {
    pub(crate) name: &'s str,
    pub(crate) is_required: bool,
    pub(crate) schema: &'s Value,
}

impl Schema {
    pub(crate) fn new(schema: Object) -> Self {
        Self(Value::Object(schema))
    }

    /// Also from an informal contract, such as `{"mode": "string enum(day|range)"}` (seed 004 §8).
    pub(crate) fn from_contract(contract: &Value) -> Self {
        let fields = contract.as_object().filter(|fields| is_informal(fields));
        match fields {
            Some(fields) => Self(from_informal(fields)),
            None => Self(contract.clone()),
        }
    }

    /// Required fields first, in order.
    pub(crate) fn fields(&self) -> Vec<Field<'_>> {
        self.fields_of(&self.0)
    }

    fn fields_of<'s>(&'s self, schema: &'s Value) -> Vec<Field<'s>> {
        let schema = self.resolved(schema);
        let required: Vec<&str> =
            list(schema, "required").iter().filter_map(Value::as_str).collect();
        let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
            return Vec::new();
        };
        let mut fields: Vec<Field<'_>> = properties
            .iter()
            .map(|(name, field)| {
                let is_required = required.contains(&name.as_str());
                Field { name, is_required, schema: self.resolved(field) }
            })
            .collect();
        let position = |field: &Field<'_>| required.iter().position(|name| *name == field.name);
        fields.sort_by_key(|field| position(field).unwrap_or(usize::MAX));
        fields
    }

    /// The path of a key: itself if it is a property, else its parts between dots.
    pub(crate) fn path<'k>(&self, key: &'k str) -> Vec<&'k str> {
        match self.fields().iter().any(|field| field.name == key) {
            true => vec![key],
            false => key.split('.').collect(),
        }
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        let path = self.path(key);
        self.fields().iter().any(|field| field.name == path[0])
    }

    /// The field for text without a key: the one missing required field, else the first missing field that accepts
    /// text.
    pub(crate) fn open_field(&self, given: &Object) -> Option<Field<'_>> {
        let fields = self.fields().into_iter().filter(|field| !given.contains_key(field.name));
        let (mut required, optional): (Vec<_>, Vec<_>) = fields.partition(|f| f.is_required);
        if required.len() == 1 {
            return required.pop();
        }
        let takes_text = |field: &Field<'_>| self.kinds(field.schema).contains(&"string");
        required.into_iter().chain(optional).find(takes_text)
    }

    /// Required fields that are missing, in order.
    pub(crate) fn missing(&self, given: &Object) -> Vec<&str> {
        let fields = self.fields().into_iter().filter(|field| field.is_required);
        fields.map(|field| field.name).filter(|name| !given.contains_key(*name)).collect()
    }

    /// Interprets typed text by the schema at a path.
    pub(crate) fn read(&self, path: &[&str], given: &Given) -> Value {
        let mut schema = &self.0;
        for name in path {
            let fields = self.fields_of(schema);
            match fields.into_iter().find(|field| field.name == *name) {
                Some(field) => schema = field.schema,
                None => return anything(given),
            }
        }
        self.read_as(schema, given)
    }

    pub(crate) fn is_list(&self, path: &[&str]) -> bool {
        let fields = self.fields();
        let field = fields.iter().find(|field| path == [field.name]);
        field.is_some_and(|field| self.kinds(field.schema).contains(&"array"))
    }

    fn read_as(&self, schema: &Value, given: &Given) -> Value {
        let alternatives = self.alternatives(schema);
        if let Some(value) = alternatives.iter().find_map(|one| of_set(one, given)) {
            return value;
        }
        let mut kinds = self.kinds(schema);
        if kinds.is_empty() {
            return anything(given);
        }
        // Other types take precedence over text, unless quoted.
        kinds.sort_by_key(|kind| (*kind == "string") != given.is_quoted);
        let text = || Value::String(given.text.clone());
        let read = |kind: &&str| match *kind {
            "array" => self.read_list(&alternatives, given),
            kind => scalar(kind, given),
        };
        kinds.iter().find_map(read).unwrap_or_else(text)
    }

    /// A list as JSON or comma-separated.
    fn read_list(&self, alternatives: &[&Value], given: &Given) -> Option<Value> {
        if let Some(list) = given.json.as_ref().filter(|json| json.is_array()) {
            return Some(list.clone());
        }
        let items = alternatives.iter().find_map(|one| one.get("items")).unwrap_or(&Value::Null);
        let item = |text: &str| {
            let (text, json) = (text.trim().to_owned(), None);
            self.read_as(items, &Given { text, is_quoted: given.is_quoted, json })
        };
        let texts: Vec<&str> = match given.is_quoted {
            true => vec![&given.text],
            false => given.text.split([',', '\u{ff0c}']).filter(|text| !text.is_empty()).collect(),
        };
        Some(texts.into_iter().map(item).collect())
    }

    /// All alternatives of a value in `anyOf` and `oneOf`.
    fn alternatives<'s>(&'s self, schema: &'s Value) -> Vec<&'s Value> {
        let schema = self.resolved(schema);
        let among = list(schema, "anyOf").iter().chain(list(schema, "oneOf"));
        std::iter::once(schema).chain(among.map(|one| self.resolved(one))).collect()
    }

    pub(crate) fn kinds<'s>(&'s self, schema: &'s Value) -> Vec<&'s str> {
        let kinds = |one: &'s Value| match one.get("type") {
            Some(Value::String(kind)) => vec![kind.as_str()],
            Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        self.alternatives(schema).into_iter().flat_map(kinds).collect()
    }

    /// The enumerated values of a field.
    pub(crate) fn choices<'s>(&'s self, schema: &'s Value) -> Vec<&'s Value> {
        self.alternatives(schema).into_iter().flat_map(set).collect()
    }

    /// Follows local references.
    fn resolved<'s>(&'s self, schema: &'s Value) -> &'s Value {
        let mut schema = schema;
        for _ in 0..REFS_MAX {
            let local = schema.get("$ref").and_then(Value::as_str);
            let path = local.and_then(|reference| reference.strip_prefix('#'));
            match path.and_then(|path| self.0.pointer(path)) {
                Some(there) => schema = there,
                None => break,
            }
        }
        schema
    }
}

fn list<'s>(schema: &'s Value, key: &str) -> &'s [Value] {
    schema.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn set(schema: &Value) -> Vec<&Value> {
    list(schema, "enum").iter().chain(schema.get("const")).collect()
}

/// A value of an enumeration, ignoring case.
fn of_set(schema: &Value, given: &Given) -> Option<Value> {
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let values = set(schema);
    let exact = values.iter().find(|value| shown(value) == given.text);
    let near = || values.iter().find(|value| shown(value).eq_ignore_ascii_case(&given.text));
    exact.or_else(near).map(|value| (*value).clone())
}

fn scalar(kind: &str, given: &Given) -> Option<Value> {
    let text = given.text.as_str();
    match kind {
        "string" => Some(text.into()),
        "integer" => whole(text),
        "number" => {
            let fraction = || text.parse().ok().and_then(serde_json::Number::from_f64);
            whole(text).or_else(|| fraction().map(Value::Number))
        }
        "boolean" => match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" | "是" => Some(true.into()),
            "false" | "no" | "off" | "0" | "否" => Some(false.into()),
            _ => None,
        },
        "null" => (text == "null" && !given.is_quoted).then_some(Value::Null),
        "object" => {
            let object = given.json.clone().or_else(|| serde_json::from_str(text).ok());
            object.filter(Value::is_object)
        }
        _ => None,
    }
}

fn whole(text: &str) -> Option<Value> {
    let signed = text.parse::<i64>().map(Value::from);
    signed.ok().or_else(|| text.parse::<u64>().map(Value::from).ok())
}

/// Without a schema: JSON if it parses, else text.
fn anything(given: &Given) -> Value {
    let read = || serde_json::from_str(&given.text).ok();
    let json = given.json.clone().or_else(|| read().filter(|_| !given.is_quoted));
    json.unwrap_or_else(|| given.text.clone().into())
}

/// Whether an object describes each field informally, starting with a type. An input is an object, so `type` with
/// the value `object` is the keyword, not a field.
fn is_informal(fields: &Object) -> bool {
    let is_field = |(name, words): (&String, &Value)| {
        let words = words.as_str()?;
        Some(TYPES.contains(&first_word(words)) && (name != "type" || words != "object"))
    };
    fields.iter().all(|field| is_field(field).unwrap_or(false))
}

fn first_word(words: &str) -> &str {
    words.split(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default()
}

/// An informal contract as a schema.
fn from_informal(fields: &Object) -> Value {
    let mut properties = Object::new();
    let mut required = Vec::new();
    for (name, words) in in_natural_order(fields) {
        let kind = first_word(words);
        let mut field = json!({"type": kind, "description": words});
        if words.contains(" or null") {
            field["type"] = json!([kind, "null"]);
        }
        if let Some((choices, _)) =
            words.split_once("enum(").and_then(|(_, after)| after.split_once(')'))
        {
            field["enum"] = choices.split('|').collect();
        }
        if kind == "array" {
            field["items"] = json!({"type": "string"});
        }
        if !words.contains("optional") && !words.contains("required with") {
            required.push(name);
        }
        properties.insert(name.to_owned(), field);
    }
    json!({"type": "object", "properties": properties, "required": required})
}

/// Fields with their descriptions, free text first. JSON objects have lost the order of their fields; the
/// descriptions help: `string, 1 to 200 characters` is free text, `string RFC 3339 time` has a format, and a field
/// that refers to another (`after start_at`) follows it.
fn in_natural_order(fields: &Object) -> Vec<(&str, &str)> {
    let rank = |(name, words): &(&str, &str)| {
        let has_form = !matches!(words[first_word(words).len()..].chars().next(), None | Some(','));
        let mut parts = words.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        (has_form, parts.any(|part| part != *name && fields.contains_key(part)))
    };
    let from_informal = fields.iter().map(|(name, words)| (name.as_str(), words.as_str()));
    let mut sorted: Vec<(&str, &str)> =
        from_informal.map(|(name, words)| (name, words.unwrap_or_default())).collect();
    sorted.sort_by_key(rank);
    sorted
}

#[cfg(test)]
mod tests;
