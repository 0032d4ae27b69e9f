//! A typed command: its name and words. The slash may be the full-width one of Chinese keyboards.
//!
//! Invariant: nothing typed is lost or changed: spaces in quotes and free text stay, and what is not an argument is
//! free text with its position in the line.

use greenroom_sdk::Value;
use serde_json::Deserializer;

/// Prefixes of a command.
pub(crate) const SLASHES: [char; 2] = ['/', '／'];

/// `/name rest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line<'t> {
    pub(crate) name: &'t str,
    pub(crate) rest: &'t str,
}

impl<'t> Line<'t> {
    /// `//` is an escape: such a text is not a command.
    pub(crate) fn parse(text: &'t str) -> Option<Self> {
        let line = text.trim().strip_prefix(SLASHES)?;
        let end = line.find(char::is_whitespace).unwrap_or(line.len());
        let (name, rest) = line.split_at(end);
        (!name.is_empty() && !name.starts_with(SLASHES)).then(|| Self { name, rest: rest.trim() })
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Given {
    pub(crate) text: String,
    pub(crate) is_quoted: bool,
    /// The JSON value, if it was typed as a list or an object.
    pub(crate) json: Option<Value>,
}

/// One word of the line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Word<'t> {
    /// The key of `key=value`.
    pub(crate) key: Option<&'t str>,
    pub(crate) given: Given,
    /// It starts with an unclosed quote.
    pub(crate) is_unclosed: bool,
    /// Its position in the line.
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// The words of a line in order.
pub(crate) fn words(line: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(start) = next_word(line, at) {
        let key = key(&line[start..]);
        let value_at = start + key.map_or(0, |key| key.len() + 1);
        let value = &line[value_at..];
        let is_unclosed = value.starts_with(['"', '“', '\'']) && quoted(value).is_none();
        let (given, length) = given(value);
        at = value_at + length;
        words.push(Word { key, given, is_unclosed, start, end: at });
    }
    words
}

fn next_word(line: &str, from: usize) -> Option<usize> {
    line[from..].find(|c: char| !c.is_whitespace()).map(|skipped| from + skipped)
}

/// The key of `key=…`: letters, digits, `_`, `-` and dots, starting with a letter or `_`.
fn key(text: &str) -> Option<&str> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let end = text.find(|c: char| !is_part(c))?;
    let (key, rest) = text.split_at(end);
    let starts_well = key.starts_with(|c: char| c.is_alphabetic() || c == '_');
    (starts_well && rest.starts_with('=')).then_some(key)
}

/// The value at the start of a text, and its length in bytes.
fn given(text: &str) -> (Given, usize) {
    let whole = quoted(text).or_else(|| json(text)).filter(|(_, end)| ends_word(text, *end));
    whole.unwrap_or_else(|| {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let bare = Given { text: text[..end].to_owned(), is_quoted: false, json: None };
        (bare, end)
    })
}

fn ends_word(text: &str, at: usize) -> bool {
    text[at..].chars().next().is_none_or(char::is_whitespace)
}

/// A list or an object, including spaces.
fn json(text: &str) -> Option<(Given, usize)> {
    if !text.starts_with(['[', '{']) {
        return None;
    }
    let mut values = Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    let end = values.byte_offset();
    let given = Given { text: text[..end].to_owned(), is_quoted: false, json: Some(value) };
    Some((given, end))
}

/// A quoted text. Single quotes have no escapes; the others support `\"`, `\\`, `\n` and `\t`.
fn quoted(text: &str) -> Option<(Given, usize)> {
    let mut chars = text.char_indices();
    let (closing, has_escapes) = match chars.next()?.1 {
        '"' => ('"', true),
        '“' => ('”', true),
        '\'' => ('\'', false),
        _ => return None,
    };
    let mut taken = String::new();
    while let Some((at, c)) = chars.next() {
        match c {
            _ if c == closing => {
                let given = Given { text: taken, is_quoted: true, json: None };
                return Some((given, at + c.len_utf8()));
            }
            '\\' if has_escapes => taken.push_str(&escaped(chars.next()?.1)),
            _ => taken.push(c),
        }
    }
    None
}

/// The character of `\c`; an unknown escape is kept as typed.
fn escaped(c: char) -> String {
    match c {
        'n' => "\n".to_owned(),
        't' => "\t".to_owned(),
        '"' | '“' | '”' | '\\' => c.to_string(),
        _ => format!("\\{c}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_sdk::json;

    fn typed(line: &str) -> Vec<(Option<&str>, String, bool)> {
        let parts = |word: Word<'_>| (word.key.map(str::len), word.given);
        let words = words(line).into_iter().map(parts);
        words.map(|(key, given)| (key.map(|_| "key"), given.text, given.is_quoted)).collect()
    }

    #[test]
    fn a_command_has_a_name_and_a_rest_and_two_slashes_are_an_escape() {
        let line = |name, rest| Some(Line { name, rest });
        assert_eq!(Line::parse("  /fs.read  a.txt "), line("fs.read", "a.txt"));
        assert_eq!(Line::parse("/help"), line("help", ""));
        assert_eq!(Line::parse("/note\n{\"a\":1}"), line("note", "{\"a\":1}"));
        assert_eq!(Line::parse("／help calendar"), line("help", "calendar"));
        for text in ["hi /help", "//help", "／／help", "/", "/ help", ""] {
            assert_eq!(Line::parse(text), None, "{text}");
        }
    }

    #[test]
    fn quotes_escapes_and_repeated_blanks_survive() {
        for (line, text) in [
            (r#"k="two  blanks""#, "two  blanks"),
            (r#"k="say \"hi\" \\ there""#, r#"say "hi" \ there"#),
            (r#"k="a\nb\tc\d""#, "a\nb\tc\\d"),
            (r"k='C:\new\table  x'", r"C:\new\table  x"),
            ("k=“中文  引号”", "中文  引号"),
            ("k=\"\"", ""),
        ] {
            assert_eq!(typed(line), [(Some("key"), text.to_owned(), true)], "{line}");
        }
    }

    #[test]
    fn an_incomplete_quote_is_a_bare_word() {
        for line in [r#"k="unclosed"#, "k='a'b", "k=it's", "k=[1", "k={x}", "k=a\\nb"] {
            let bare = line[2..].to_owned();
            assert_eq!(typed(line), [(Some("key"), bare, false)], "{line}");
        }
    }

    #[test]
    fn lists_and_objects_may_contain_spaces() {
        let line = r#"tags=["a b", "c"] at={"x": [1, 2]} rest"#;
        let given: Vec<_> = words(line).into_iter().map(|word| word.given.json).collect();
        assert_eq!(given, [Some(json!(["a b", "c"])), Some(json!({"x": [1, 2]})), None]);
    }

    #[test]
    fn keys_are_names_and_everything_else_is_free() {
        for (line, key) in [
            ("input.mode=day", Some("input.mode")),
            ("if-version=3", Some("if-version")),
            ("标题=午餐", Some("标题")),
            ("2+x=4", None),
            ("=4", None),
            ("http://a/?q=1", None),
        ] {
            assert_eq!(words(line)[0].key, key, "{line}");
        }
        let words = words("a  b=c");
        assert_eq!((words[0].start, words[0].end), (0, 1));
        assert_eq!((words[1].start, words[1].end), (3, 6));
    }
}
