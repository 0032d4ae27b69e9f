//! Parses typed arguments: `key=value`, one JSON object, or free text.
//!
//! Invariant: every word becomes part of an argument, or the line is rejected with the reason.

use super::line::{Given, Word, words};
use super::schema::Schema;
use greenroom_sdk::{Object, Value};

/// Why a line is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Problem {
    /// Starts like a JSON object but is invalid.
    NotJson(String),
    /// Free text that no argument accepts.
    UnexpectedText(String),
    /// Free text in several places.
    Scattered,
    /// A duplicate argument that is not a list.
    Duplicate(String),
    /// A key leads into something other than an object.
    NotAnObject(String),
    /// An unclosed quote.
    Unclosed(String),
    /// Too long; one JSON object may be longer.
    TooLong,
}

/// Limit for arguments that are not JSON: finding unclosed quotes takes quadratic time.
const TYPED_BYTES_MAX: usize = 8 * 1024;

pub(crate) fn read(line: &str, schema: &Schema) -> Result<Object, Problem> {
    if line.starts_with('{') {
        return serde_json::from_str(line).map_err(|error| Problem::NotJson(error.to_string()));
    }
    if line.len() > TYPED_BYTES_MAX {
        return Err(Problem::TooLong);
    }
    let mut arguments = Object::new();
    let mut free: Vec<Vec<Word<'_>>> = Vec::new();
    let mut in_text = false;
    for word in words(line) {
        // In free text a key counts only if the tool knows it.
        let key = word.key.filter(|key| !in_text || schema.has(key));
        // In free text a `'` may be an apostrophe.
        let may_be_text = in_text && key.is_none() && word.given.text.starts_with('\'');
        if word.is_unclosed && !may_be_text {
            return Err(Problem::Unclosed(line[word.start..].to_owned()));
        }
        match key {
            Some(key) => put(&mut arguments, schema, key, &word.given)?,
            None if in_text => free.last_mut().into_iter().for_each(|run| run.push(word.clone())),
            None => free.push(vec![word]),
        }
        in_text = key.is_none();
    }
    match free.as_slice() {
        [] => Ok(arguments),
        [text] => assign_text(arguments, schema, line, text),
        _ => Err(Problem::Scattered),
    }
}

fn put(arguments: &mut Object, schema: &Schema, key: &str, given: &Given) -> Result<(), Problem> {
    let path = schema.path(key);
    let value = schema.read(&path, given);
    let (last, parents) = path.split_last().expect("a split has at least one part");
    let mut object = arguments;
    for name in parents {
        let inner = object.entry(*name).or_insert_with(|| Value::Object(Object::new()));
        object = inner.as_object_mut().ok_or_else(|| Problem::NotAnObject(key.to_owned()))?;
    }
    match (object.get_mut(*last), value) {
        (None, value) => {
            object.insert((*last).to_owned(), value);
        }
        (Some(Value::Array(existing)), Value::Array(more)) => existing.extend(more),
        (Some(_), _) => return Err(Problem::Duplicate(key.to_owned())),
    }
    Ok(())
}

/// Assigns free text to the field that accepts it.
fn assign_text(
    mut arguments: Object,
    schema: &Schema,
    line: &str,
    text: &[Word<'_>],
) -> Result<Object, Problem> {
    let (start, end) = (text[0].start, text[text.len() - 1].end);
    let raw = &line[start..end];
    let field = schema.open_field(&arguments).map(|field| field.name.to_owned());
    let Some(field) = field else { return Err(Problem::UnexpectedText(raw.to_owned())) };
    let given = match text {
        words if schema.is_list(&[&field]) => {
            for word in words {
                put(&mut arguments, schema, &field, &word.given)?;
            }
            return Ok(arguments);
        }
        [word] if word.key.is_none() => word.given.clone(),
        _ => Given { text: raw.to_owned(), is_quoted: false, json: None },
    };
    put(&mut arguments, schema, &field, &given)?;
    Ok(arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_sdk::json;

    fn note() -> Schema {
        let schema = json!({"type": "object", "required": ["text"], "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "at": {"type": "object", "properties": {"line": {"type": "integer"}}},
            "dotted.name": {"type": "integer"},
        }});
        Schema::from_contract(&schema)
    }

    fn typed(line: &str) -> Result<Value, Problem> {
        read(line, &note()).map(Value::Object)
    }

    #[test]
    fn all_forms_give_the_same_arguments() {
        let expected = json!({"text": "two  blanks", "count": 2});
        for line in [
            r#"text="two  blanks" count=2"#,
            r#"count=2 text='two  blanks'"#,
            r#"count=2 "two  blanks""#,
            r#""two  blanks" count=2"#,
            "two  blanks count=2",
            r#"{"text": "two  blanks", "count": 2}"#,
        ] {
            assert_eq!(typed(line), Ok(expected.clone()), "{line}");
        }
    }

    #[test]
    fn free_text_is_kept_as_typed() {
        for text in [
            r#"He said "hi  there"  twice"#,
            "it's fine, e=mc2 and  a=b",
            "rock 'n roll",
            "C:\\new\\table x",
            "提醒我  开会",
            "\"one\" \"two\"",
        ] {
            assert_eq!(typed(text), Ok(json!({"text": text})), "{text}");
        }
    }

    #[test]
    fn lists_are_appended_and_dots_are_paths() {
        let line = "x tags=a,b tags=c at.line=7 at.more=yes dotted.name=1";
        let expected = json!({"text": "x", "tags": ["a", "b", "c"],
            "at": {"line": 7, "more": "yes"}, "dotted.name": 1});
        assert_eq!(typed(line), Ok(expected));
    }

    #[test]
    fn unknown_keys_are_passed_to_the_host() {
        assert_eq!(typed("txt=hello"), Ok(json!({"txt": "hello"})));
    }

    #[test]
    fn invalid_lines_are_rejected_with_the_reason() {
        assert!(matches!(typed("{text: 1}"), Err(Problem::NotJson(_))));
        assert!(matches!(typed("{\"text\": 1} x"), Err(Problem::NotJson(_))));
        assert_eq!(typed("count=1 count=2"), Err(Problem::Duplicate("count".to_owned())));
        assert_eq!(typed("a count=1 b"), Err(Problem::Scattered));
        for line in ["text=\"two blanks", "\"two blanks", "'two blanks", "text='two", "text=“二 三"]
        {
            assert_eq!(typed(line), Err(Problem::Unclosed(line.to_owned())), "{line}");
        }
        for line in ["“a ".repeat(300_000), "a ".repeat(500_000), "“ x".repeat(300_000) + "”x"]
        {
            assert_eq!(typed(&line), Err(Problem::TooLong));
        }
        assert_eq!(typed("count=1 count.x=2"), Err(Problem::NotAnObject("count.x".to_owned())));
        let none = Schema::from_contract(&json!({"type": "object", "properties": {}}));
        assert_eq!(
            read("hello  you", &none),
            Err(Problem::UnexpectedText("hello  you".to_owned()))
        );
    }

    #[test]
    fn words_fill_the_one_list_that_is_required() {
        let schema = json!({"type": "object", "required": ["with"],
            "properties": {"with": {"type": "array", "items": {"type": "string"}}}});
        let read = read("ann \"bob b\"", &Schema::from_contract(&schema));
        assert_eq!(read.map(Value::Object), Ok(json!({"with": ["ann", "bob b"]})));
    }
}
