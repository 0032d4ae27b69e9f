//! Parses calls in a model's text, in prose or in code fences.
//!
//! Invariant: an object that is not a call stays text; an invalid call becomes a call with an error, which is never
//! executed. Text after the first call is dropped: such models continue with invented results.

use super::lead::Seen;
use greenroom_sdk::{ModelToolCall, Object, Value};
use std::hash::{BuildHasher, Hasher, RandomState};

/// Keys that models use for the tool's name; the first is the documented one.
const NAMES: [&str; 4] = ["tool", "name", "function", "tool_name"];
const ARGS: [&str; 4] = ["args", "arguments", "parameters", "input"];
/// Keys that may accompany name and arguments.
const ASIDES: [&str; 2] = ["id", "type"];
const QUOTES: [char; 2] = ['"', '\''];
/// The first key of a call must end within this many bytes after the brace.
const KEY_BYTES_MAX: usize = 64;

/// A parsed response.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Parsed {
    /// The text before the first call; everything if there is none.
    pub(crate) text_before: String,
    pub(crate) calls: Vec<ModelToolCall>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// No call from here on.
    Nothing,
    /// Possibly the start of a call: more text is needed.
    Perhaps {
        start: usize,
    },
    Calls {
        start: usize,
        end: usize,
        calls: Vec<Draft>,
    },
}

/// A call without an id.
#[derive(Debug, PartialEq)]
pub(super) struct Draft {
    name: String,
    args: Result<Object, (String, String)>,
}

/// Whether more text may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum More {
    MayCome,
    Never,
}

/// Parses a complete response. There is no call before `from`; the `seen` part stays text.
pub(super) fn parse(
    text: &str,
    from: usize,
    seen: &Seen,
    is_known: &dyn Fn(&str) -> bool,
) -> Parsed {
    let (mut from, mut text_end, mut drafts) = (from, text.len(), Vec::new());
    while let Next::Calls { start, end, calls } = next(text, from, is_known, More::Never) {
        if drafts.is_empty() {
            text_end = seen.lead(&text[..start]);
        }
        drafts.extend(calls);
        from = end;
    }
    // Ids must be unique over all responses and runs of the conversation.
    let random = RandomState::new().build_hasher().finish();
    let calls = drafts.into_iter().enumerate().map(|(index, draft)| {
        let (args, wrong) = match draft.args {
            Ok(args) => (Value::Object(args), None),
            Err(wrong) => (Value::Null, Some(wrong)),
        };
        let (args_text, args_error) = wrong.unzip();
        let id = format!("call_{random:016x}_{index}");
        ModelToolCall { id, name: draft.name, args, args_text, args_error }
    });
    Parsed { text_before: text[..text_end].to_owned(), calls: calls.collect() }
}

/// The first call from `from` on.
pub(super) fn next(text: &str, from: usize, is_known: &dyn Fn(&str) -> bool, more: More) -> Next {
    let mut from = from;
    while let Some(offset) = text[from..].find('{') {
        let start = from + offset;
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                let end = start + values.byte_offset();
                let calls = calls(&value, is_known);
                if !calls.is_empty() {
                    return Next::Calls { start, end, calls };
                }
                from = end;
            }
            Some(Err(error)) if error.is_eof() && more == More::MayCome => {
                return Next::Perhaps { start };
            }
            wrong => {
                let error = wrong.and_then(Result::err).map(|error| error.to_string());
                match invalid_call(text, start, is_known, error.unwrap_or_default()) {
                    Some((_, None)) if more == More::MayCome => return Next::Perhaps { start },
                    Some((draft, end)) => {
                        let end = end.unwrap_or(text.len());
                        return Next::Calls { start, end, calls: vec![draft] };
                    }
                    None if more == More::MayCome && may_become_call(&text[start + 1..]) => {
                        return Next::Perhaps { start };
                    }
                    None => from = start + 1,
                }
            }
        }
    }
    Next::Nothing
}

/// The calls in an object; empty if it is something else.
fn calls(value: &Value, is_known: &dyn Fn(&str) -> bool) -> Vec<Draft> {
    let Some(object) = value.as_object() else { return Vec::new() };
    if let Some(Value::Array(several)) = object.get("tool_calls").or(object.get("calls")) {
        return several.iter().flat_map(|one| calls(one, is_known)).collect();
    }
    // `{"type": "function", "function": {"name": …, "arguments": …}}`, `{"tool_call": {…}}`
    if let Some(inner @ Value::Object(_)) = object.get("function").or(object.get("tool_call")) {
        return calls(inner, is_known);
    }
    Vec::from_iter(call(object, is_known))
}

fn call(object: &Object, is_known: &dyn Fn(&str) -> bool) -> Option<Draft> {
    let named = NAMES.iter().find_map(|key| Some((*key, object.get(*key)?.as_str()?)));
    let (key, name) = named?;
    let args = ARGS.iter().find_map(|key| Some((*key, object.get(*key)?)));
    let ours = |other: &String| {
        let other = other.as_str();
        other == key || args.is_some_and(|(key, _)| other == key) || ASIDES.contains(&other)
    };
    let is_bare = object.keys().all(ours);
    let is_call = match (is_known(name), key) {
        // The documented key: intended as a call, even of an unknown tool.
        (true, "tool") => true,
        (false, "tool") => args.is_some(),
        (true, _) => is_bare,
        (false, _) => is_bare && matches!(args, Some(("args" | "arguments", Value::Object(_)))),
    };
    is_call.then(|| Draft { name: name.to_owned(), args: arguments(args.map(|(_, args)| args)) })
}

fn arguments(args: Option<&Value>) -> Result<Object, (String, String)> {
    let wrong =
        |value: &Value| Err((value.to_string(), "the arguments are not a JSON object".to_owned()));
    match args {
        None | Some(Value::Null) => Ok(Object::new()),
        Some(Value::Object(args)) => Ok(args.clone()),
        Some(Value::String(text)) => match serde_json::from_str(text) {
            Ok(Value::Object(args)) => Ok(args),
            Ok(other) => wrong(&other),
            Err(error) => Err((text.clone(), error.to_string())),
        },
        Some(other) => wrong(other),
    }
}

/// An intended call of a known tool that is not valid JSON, and its end, if it has one.
fn invalid_call(
    text: &str,
    start: usize,
    is_known: &dyn Fn(&str) -> bool,
    error: String,
) -> Option<(Draft, Option<usize>)> {
    let inside = text[start + 1..].trim_start();
    let colon = inside[..inside.floor_char_boundary(KEY_BYTES_MAX)].find(':')?;
    let key = inside[..colon].trim().trim_matches(QUOTES);
    if !NAMES.contains(&key) {
        return None;
    }
    let rest = inside[colon + 1..].trim_start();
    let name = rest.strip_prefix(QUOTES)?.split(QUOTES).next()?;
    if !is_known(name) {
        return None;
    }
    let end = closing(&text[start..]).map(|end| start + end);
    let written = text[start..end.unwrap_or(text.len())].trim_end().to_owned();
    Some((Draft { name: name.to_owned(), args: Err((written, error)) }, end))
}

/// Whether text after a brace may become a call.
fn may_become_call(inside: &str) -> bool {
    let inside = inside.trim_start().trim_start_matches(QUOTES);
    let is_open = |value: &str| {
        let value = value.trim_start();
        value.is_empty() || value.strip_prefix(QUOTES).is_some_and(|name| !name.contains(QUOTES))
    };
    NAMES.iter().any(|key| {
        let value =
            inside.strip_prefix(key).map(|rest| rest.trim_start_matches(QUOTES).trim_start());
        let follows =
            |value: &str| value.is_empty() || value.strip_prefix(':').is_some_and(is_open);
        key.starts_with(inside) || value.is_some_and(follows)
    })
}

/// The end of the first balanced braces.
fn closing(text: &str) -> Option<usize> {
    let mut braces = Braces::default();
    text.bytes().position(|byte| braces.close_with(byte)).map(|at| at + 1)
}

/// Open braces outside of strings.
#[derive(Debug, Default)]
pub(super) struct Braces {
    depth: usize,
    in_text: bool,
    escaped: bool,
}

impl Braces {
    /// Whether this byte closes the outermost one.
    pub(super) fn close_with(&mut self, byte: u8) -> bool {
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' if self.in_text => self.escaped = true,
            b'"' => self.in_text = !self.in_text,
            b'{' if !self.in_text => self.depth += 1,
            b'}' if !self.in_text => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_sdk::json;

    fn known(name: &str) -> bool {
        ["fs.read", "clock"].contains(&name)
    }

    fn whole(text: &str) -> Parsed {
        parse(text, 0, &Seen::default(), &known)
    }

    /// The text before the calls, and each call as name and arguments, or its error.
    fn read(text: &str) -> (String, Vec<(String, Value)>) {
        let parsed = whole(text);
        let calls = parsed.calls.into_iter().map(|call| {
            let args = call.args_error.map_or(call.args, |error| json!({"!": error}));
            (call.name, args)
        });
        (parsed.text_before, calls.collect())
    }

    fn one(name: &str, args: Value) -> Vec<(String, Value)> {
        vec![(name.to_owned(), args)]
    }

    #[test]
    fn calls_are_found_in_prose_and_fences_in_all_common_formats() {
        let args = json!({"path": "a"});
        for text in [
            r#"{"tool": "fs.read", "args": {"path": "a"}}"#,
            r#"{"name": "fs.read", "arguments": {"path": "a"}}"#,
            r#"{"function": "fs.read", "parameters": {"path": "a"}}"#,
            r#"{"args": {"path": "a"}, "tool": "fs.read", "thought": "I need it"}"#,
            r#"{"name": "fs.read", "arguments": "{\"path\": \"a\"}"}"#,
            r#"{"type": "function", "function": {"name": "fs.read", "arguments": {"path": "a"}}}"#,
            r#"{"tool_call": {"name": "fs.read", "arguments": {"path": "a"}}}"#,
            r#"{"tool_call": {"tool": "fs.read", "args": {"path": "a"}}}"#,
            r#"{"tool_calls": [{"function": {"name": "fs.read", "arguments": "{\"path\": \"a\"}"}}]}"#,
            "```json\n{\"tool\": \"fs.read\", \"args\": {\"path\": \"a\"}}\n```",
            "```\n[{\"tool\": \"fs.read\", \"args\": {\"path\": \"a\"}}]\n```",
            "<tool_call>\n{\"name\": \"fs.read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>",
            "`{\"tool\": \"fs.read\", \"args\": {\"path\": \"a\"}}`",
        ] {
            assert_eq!(read(text), (String::new(), one("fs.read", args.clone())), "{text}");
            let prose = format!("I look.\n\n{text}\n\nResult: nothing of it is true.");
            assert_eq!(
                read(&prose),
                ("I look.".to_owned(), one("fs.read", args.clone())),
                "{text}"
            );
        }
    }

    #[test]
    fn several_calls_keep_their_order_and_braces_in_texts_are_texts() {
        let text = "Both {at once}:\n{\"tool\": \"fs.read\", \"args\": {\"path\": \"}{ \\\" }\", \"o\": {\"d\": {}}}}\n\
                    then\n```\n{\"tool\": \"clock\"}\n```";
        let (before, calls) = read(text);
        assert_eq!(before, "Both {at once}:");
        let first = ("fs.read".to_owned(), json!({"path": "}{ \" }", "o": {"d": {}}}));
        assert_eq!(calls, [first, ("clock".to_owned(), json!({}))]);
        let ids = whole(text).calls.into_iter().chain(whole(text).calls);
        let ids: std::collections::HashSet<String> = ids.map(|call| call.id).collect();
        assert_eq!(ids.len(), 4);
    }

    #[test]
    fn an_invalid_call_has_an_error() {
        for text in [
            r#"{"tool": "fs.read", "args": {"path": "a",}}"#,
            r#"{"tool": "fs.read", "args": {"path": "a""#,
            r#"{tool: "fs.read", args: {path: "a"}}"#,
            r#"{'tool': 'fs.read', 'args': {'path': 'a'}}"#,
            r#"{"name": "fs.read", "arguments": "{\"path\": "}"#,
            r#"{"tool": "fs.read", "args": ["a"]}"#,
        ] {
            let parsed = whole(&format!("So: {text}"));
            assert_eq!(parsed.text_before, "So:", "{text}");
            let [call] = &parsed.calls[..] else { panic!("{text}: {parsed:?}") };
            assert_eq!((call.name.as_str(), &call.args), ("fs.read", &Value::Null), "{text}");
            assert!(call.args_error.as_deref().is_some_and(|error| !error.is_empty()), "{text}");
            assert!(call.args_text.as_deref().is_some_and(|wrote| wrote.contains('a')), "{text}");
        }
    }

    #[test]
    fn a_clear_call_of_an_unknown_tool_is_a_call() {
        let calls = read(r#"{"tool": "fs.raed", "args": {}}"#).1;
        assert_eq!(calls, one("fs.raed", json!({})));
        assert_eq!(read(r#"{"name": "x", "arguments": {}}"#).1, one("x", json!({})));
    }

    #[test]
    fn other_objects_stay_text() {
        for text in [
            "Nothing to call.",
            r#"{"name": "Ann", "age": 7}"#,
            r#"{"name": "clock", "description": "tells the time", "parameters": {"type": "object"}}"#,
            r#"{"data": {"tool": "clock", "args": {}}}"#,
            "fn main() { println!(\"{}\", 1); }",
            "{{template}} and {\"open",
            "```json\n{\"a\": 1}\n```\n",
            "",
        ] {
            assert_eq!(read(text), (text.to_owned(), Vec::new()));
        }
    }
}
