//! Reads a parsed table key by key, records the known keys, and collects mistakes.
//!
//! Invariant: `None` means absent, or invalid and already reported; a reader never stops at a mistake.

use super::problem::Problem;
use std::cell::RefCell;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// State of reading one file.
pub(super) struct Context<'a> {
    /// Folder of the file; relative paths start here.
    pub dir: &'a Path,
    /// The file itself.
    pub file: PathBuf,
    pub surroundings: &'a super::Surroundings<'a>,
    pub agents: Vec<String>,
    pub surfaces: Vec<String>,
    pub tokens: Vec<String>,
    pub models: Vec<String>,
    pub tools: Vec<String>,
    pub runners: Vec<String>,
    pub knowledge: Vec<String>,
    pub problems: RefCell<Vec<Problem>>,
    /// Byte ranges that may hold a secret.
    pub hidden: RefCell<Vec<Range<usize>>>,
    /// Every secret that was resolved.
    pub secrets: RefCell<Vec<super::Secret>>,
}

impl Context<'_> {
    pub(super) fn report(&self, span: Range<usize>, message: String, hint: Option<String>) {
        self.problems.borrow_mut().push(Problem { span, message, hint });
    }

    pub(super) fn hide(&self, span: Range<usize>) {
        self.hidden.borrow_mut().push(span);
    }
}

/// A table to read.
pub(super) struct Reader<'a> {
    pub cx: &'a Context<'a>,
    /// Dotted name of the table; empty for the file itself.
    pub path: String,
    span: Range<usize>,
    table: &'a DeTable<'a>,
    known: Vec<&'static str>,
}

/// A value to read.
#[derive(Clone)]
pub(super) struct Value<'a> {
    pub cx: &'a Context<'a>,
    /// Dotted name of the key.
    pub path: String,
    pub span: Range<usize>,
    pub value: &'a DeValue<'a>,
}

impl<'a> Reader<'a> {
    pub(super) fn root(cx: &'a Context<'a>, table: &'a DeTable<'a>) -> Self {
        Self { cx, path: String::new(), span: 0..0, table, known: Vec::new() }
    }

    pub(super) fn get(&mut self, key: &'static str) -> Option<Value<'a>> {
        self.known.push(key);
        let value = self.table.get(key)?;
        Some(self.value(key, value))
    }

    /// Marks keys as known without reading them, after another mistake was reported.
    pub(super) fn knows(&mut self, keys: &[&'static str]) {
        self.known.extend(keys);
    }

    pub(super) fn require(&mut self, key: &'static str) -> Option<Value<'a>> {
        let value = self.get(key);
        if value.is_none() {
            let message = format!("`{}` has no `{key}`", self.path);
            self.cx.report(self.span.clone(), message, Some(format!("add `{key} = …`")));
        }
        value
    }

    /// Reports a mistake of the whole table.
    pub(super) fn fail<T>(&self, message: String, hint: &str) -> Option<T> {
        self.cx.report(self.span.clone(), message, Some(hint.to_owned()));
        None
    }

    /// Reports unknown keys.
    pub(super) fn finish(self) {
        for (key, value) in self.table.iter() {
            if !self.known.contains(&key.as_ref().as_ref()) {
                self.report_unknown(key.as_ref(), key.span(), value.span());
            }
        }
    }

    fn report_unknown(&self, key: &str, at: Range<usize>, value: Range<usize>) {
        if value.start >= at.end {
            self.cx.hide(value);
        }
        let (what, place) = match self.path.as_str() {
            "" => ("section", String::new()),
            path => ("key", format!(" in `{path}`")),
        };
        let hint = match nearest(key, self.known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known here: {}", list(self.known.iter().copied())),
        };
        self.cx.report(at, format!("unknown {what} `{}`{place}", clean(key)), Some(hint));
    }

    /// Every entry of a table with arbitrary keys, in the order of the file.
    pub(super) fn entries(&self) -> Vec<(&'a str, Range<usize>, Value<'a>)> {
        let entry = |key: &'a toml::Spanned<_>, value| {
            let name: &'a std::borrow::Cow<'a, str> = key.as_ref();
            (name.as_ref(), key.span(), self.value(name, value))
        };
        let mut entries: Vec<_> = self.table.iter().map(|(key, value)| entry(key, value)).collect();
        // The parser sorts keys; the spans have the order of the file.
        entries.sort_by_key(|(_, at, _)| at.start);
        entries
    }

    /// A section of named tables, such as `[agents.NAME]`, in the order of the file.
    pub(super) fn named<T, C: Default + FromIterator<(String, T)>>(
        &mut self,
        section: &'static str,
        read: impl Fn(Reader<'a>) -> Option<T>,
    ) -> C {
        let Some(section) = self.get(section).and_then(|value| value.table()) else {
            return C::default();
        };
        let mut items = Vec::new();
        for (name, at, value) in section.entries() {
            if !is_name(name) {
                let message = format!("`{}` is not a name for `{}`", clean(name), section.path);
                let hint = "names have 1 to 64 of the characters A-Z a-z 0-9 _ -";
                self.cx.report(at, message, Some(hint.to_owned()));
            }
            if let Some(item) = value.table().and_then(&read) {
                items.push((name.to_owned(), item));
            }
        }
        items.into_iter().collect()
    }

    fn value(&self, key: &str, value: &'a toml::Spanned<DeValue<'a>>) -> Value<'a> {
        let path = match self.path.as_str() {
            "" => clean(key),
            path => format!("{path}.{}", clean(key)),
        };
        Value { cx: self.cx, path, span: value.span(), value: value.as_ref() }
    }
}

impl<'a> Value<'a> {
    /// Reports a mistake in this value and returns `None`.
    pub(super) fn fail<T>(&self, message: impl Into<String>, hint: impl Into<String>) -> Option<T> {
        self.cx.report(self.span.clone(), message.into(), Some(hint.into()));
        None
    }

    fn mismatch<T>(&self, wanted: &str, hint: &str) -> Option<T> {
        let found = match self.value {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.fail(format!("`{}` must be {wanted}, not {found}", self.path), hint)
    }

    pub(super) fn text(&self) -> Option<&'a str> {
        match self.value {
            DeValue::String(text) => Some(text.as_ref()),
            _ => self.mismatch("a string", "write it in quotes"),
        }
    }

    pub(super) fn filled_text(&self) -> Option<&'a str> {
        match self.text()? {
            "" => self.fail(format!("`{}` is empty", self.path), "fill it, or leave the key out"),
            text => Some(text),
        }
    }

    pub(super) fn boolean(&self) -> Option<bool> {
        match self.value {
            DeValue::Boolean(value) => Some(*value),
            _ => self.mismatch("true or false", "write `true` or `false` without quotes"),
        }
    }

    pub(super) fn integer(&self, range: std::ops::RangeInclusive<u64>) -> Option<u64> {
        let DeValue::Integer(number) = self.value else {
            return self.mismatch("a whole number", "write it without quotes and without a point");
        };
        match u64::from_str_radix(number.as_str(), number.radix()) {
            Ok(value) if range.contains(&value) => Some(value),
            _ => self.fail(
                format!("`{}` must be between {} and {}", self.path, range.start(), range.end()),
                "leave it out to have the default",
            ),
        }
    }

    /// One of a closed set of words.
    pub(super) fn choice<T: Copy>(&self, words: &[(&'static str, T)]) -> Option<T> {
        let text = self.text()?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Some(*value);
        }
        let hint = match nearest(text, words.iter().map(|(word, _)| *word)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("one of: {}", list(words.iter().map(|(word, _)| *word))),
        };
        self.fail(format!("`{}` cannot be `{}`", self.path, clean(text)), hint)
    }

    pub(super) fn list<T>(&self, read: impl Fn(&Value<'a>) -> Option<T>) -> Option<Vec<T>> {
        let DeValue::Array(items) = self.value else {
            return self.mismatch("a list", "write `[…]`, also around a single value");
        };
        let item = |value: &'a toml::Spanned<DeValue<'a>>| {
            read(&Value { span: value.span(), value: value.as_ref(), ..self.clone() })
        };
        let all: Vec<Option<T>> = items.iter().map(item).collect();
        all.into_iter().collect()
    }

    pub(super) fn texts(&self) -> Option<Vec<String>> {
        self.list(|item| item.filled_text().map(str::to_owned))
    }

    pub(super) fn table(&self) -> Option<Reader<'a>> {
        match self.value {
            DeValue::Table(table) => Some(Reader {
                cx: self.cx,
                path: self.path.clone(),
                span: self.span.clone(),
                table,
                known: Vec::new(),
            }),
            _ => self.mismatch("a table", "write `{ KEY = VALUE }`, or a section in brackets"),
        }
    }

    pub(super) fn is_table(&self) -> bool {
        matches!(self.value, DeValue::Table(_))
    }

    /// A path, relative to the folder of the file.
    pub(super) fn path(&self) -> Option<PathBuf> {
        self.filled_text().map(|text| self.cx.dir.join(text))
    }

    /// The name of an entry elsewhere in the file.
    pub(super) fn reference(&self, what: &str, names: &[String]) -> Option<String> {
        let name = self.filled_text()?;
        if names.iter().any(|known| known == name) {
            return Some(name.to_owned());
        }
        let names = || names.iter().map(String::as_str);
        let hint = match nearest(name, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if names().next().is_none() => match what {
                "surface" => format!("add `[surfaces.{}]`", clean(name)),
                _ => format!("no {what} is configured"),
            },
            None => format!("configured: {}", list(names())),
        };
        self.fail(format!("there is no {what} `{}`", clean(name)), hint)
    }
}

/// The names in a section, before it is read.
pub(super) fn names(root: &DeTable<'_>, section: &str) -> Vec<String> {
    match root.get(section).map(toml::Spanned::as_ref) {
        Some(DeValue::Table(table)) => table.keys().map(|key| key.as_ref().to_string()).collect(),
        _ => Vec::new(),
    }
}

pub(super) fn is_name(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..=64).contains(&text.len()) && text.chars().all(allowed)
}

/// Text of the user in a message: one line of limited length.
pub fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(80).collect()
}

pub(super) fn nearest<'n>(text: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let text: String = text.chars().take(80).collect();
    names
        .map(|name| (strsim::damerau_levenshtein(&text, name), name))
        .filter(|(distance, name)| *distance <= 1 + name.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

pub(super) fn list<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    names.sort();
    names.join(", ")
}
