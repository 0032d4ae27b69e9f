//! Templates with placeholders: `{{text}}`, `{{match.1}}`, `{{last_tool_result}}`, `{{match.day | date}}`.
//!
//! Invariant: a parsed template can always be filled; unknown placeholders are rejected when parsing.

use super::day::date;
use super::facts::Facts;
use super::{readable, spoken};
use regex_lite::{Captures, Regex};
use serde_json::Value;
use std::time::SystemTime;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    Placeholder { placeholder: Placeholder, filter: Filter },
}

/// Applied to the text of a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filter {
    AsIs,
    /// Parsed as JSON.
    Json,
    /// The date that it mentions.
    Date,
    /// The time of day that it mentions, and one hour later.
    Time,
    HourLater,
    /// A tool result as readable lines.
    Readable,
    /// Name and time of a tool result.
    Title,
}

const FILTERS: [(&str, Filter); 6] = [
    ("json", Filter::Json),
    ("date", Filter::Date),
    ("time", Filter::Time),
    ("hour_later", Filter::HourLater),
    ("told", Filter::Readable),
    ("named", Filter::Title),
];

#[derive(Debug, Clone, PartialEq)]
enum Placeholder {
    Text,
    System,
    LastToolResult,
    LastToolName,
    Tools,
    Turn,
    Round,
    Today,
    Group(usize),
    Named(String),
}

/// The values of placeholders.
pub(super) struct Source<'a> {
    pub facts: &'a Facts<'a>,
    pub captures: Option<&'a Captures<'a>>,
    pub now: SystemTime,
}

impl Template {
    /// `regex`: the rule's, for its groups.
    pub(super) fn parse(text: &str, regex: Option<&Regex>) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (inner, after) =
                after.split_once("}}").ok_or_else(|| "`{{` is not closed".to_owned())?;
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let (name, filter) = match inner.split_once('|') {
                Some((name, filter)) => (name.trim(), Filter::parse(filter.trim())?),
                None => (inner.trim(), Filter::AsIs),
            };
            parts.push(Part::Placeholder { placeholder: Placeholder::parse(name, regex)?, filter });
            rest = after;
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Ok(Self(parts))
    }

    pub(super) fn fill(&self, source: &Source<'_>) -> String {
        let texts = self.0.iter().map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::Placeholder { placeholder, filter } => {
                filter.apply(placeholder.fill(source), source.now)
            }
        });
        texts.collect()
    }

    /// The value of a string in JSON arguments: with `{{… | json}}` alone, the JSON value that the text contains, if
    /// any.
    fn value(&self, source: &Source<'_>) -> Value {
        let text = self.fill(source);
        match self.0.as_slice() {
            [Part::Placeholder { filter: Filter::Json, .. }] => {
                serde_json::from_str(&text).unwrap_or(Value::String(text))
            }
            _ => Value::String(text),
        }
    }
}

impl Filter {
    fn parse(name: &str) -> Result<Self, String> {
        let filter = FILTERS.iter().find(|(known, _)| *known == name);
        let names = || FILTERS.map(|(name, _)| format!("`{name}`")).join(", ");
        filter
            .map(|(_, filter)| *filter)
            .ok_or_else(|| format!("unknown filter `{name}`, expected one of {}", names()))
    }

    fn apply(self, text: String, now: SystemTime) -> String {
        match self {
            Self::AsIs | Self::Json => text,
            Self::Date => spoken::day(&text, now),
            Self::Time => spoken::time(&text),
            Self::HourLater => spoken::hour_later(&text),
            Self::Readable => readable::readable(&text),
            Self::Title => readable::title(&text),
        }
    }
}

/// Checks all templates in a JSON value, including keys.
pub(super) fn check_value(value: &Value, regex: Option<&Regex>) -> Result<(), String> {
    match value {
        Value::String(text) => Template::parse(text, regex).map(drop),
        Value::Array(items) => items.iter().try_for_each(|item| check_value(item, regex)),
        Value::Object(fields) => fields.iter().try_for_each(|(name, field)| {
            Template::parse(name, regex)?;
            check_value(field, regex)
        }),
        _ => Ok(()),
    }
}

/// Fills all templates in a JSON value that was checked with the same regex.
pub(super) fn fill_value(value: &Value, regex: Option<&Regex>, source: &Source<'_>) -> Value {
    match value {
        Value::String(text) => match Template::parse(text, regex) {
            Ok(template) => template.value(source),
            Err(_) => value.clone(),
        },
        Value::Array(items) => items.iter().map(|item| fill_value(item, regex, source)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, field)| {
                let name = Template::parse(name, regex).map(|name| name.fill(source));
                let name = name.unwrap_or_default();
                (name, fill_value(field, regex, source))
            })
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}

impl Placeholder {
    fn parse(name: &str, regex: Option<&Regex>) -> Result<Self, String> {
        let placeholder = match name {
            "text" => Self::Text,
            "system" => Self::System,
            "last_tool_result" => Self::LastToolResult,
            "last_tool_name" => Self::LastToolName,
            "tools" => Self::Tools,
            "turn" => Self::Turn,
            "round" => Self::Round,
            "today" => Self::Today,
            _ => return Self::group(name, regex),
        };
        Ok(placeholder)
    }

    fn group(name: &str, regex: Option<&Regex>) -> Result<Self, String> {
        let Some(group) = name.strip_prefix("match.") else {
            return Err(format!(
                "`{{{{{name}}}}}` is unknown, expected text, system, match.N, match.NAME, \
                 last_tool_result, last_tool_name, tools, turn, round, today"
            ));
        };
        let regex = regex.ok_or_else(|| format!("`{{{{{name}}}}}` needs `when.regex`"))?;
        let known = regex.capture_names().flatten().any(|known| known == group);
        match group.parse::<usize>() {
            Ok(number) if number < regex.captures_len() => Ok(Self::Group(number)),
            Err(_) if known => Ok(Self::Named(group.to_owned())),
            _ => Err(format!("`when.regex` has no group `{group}`")),
        }
    }

    fn fill(&self, source: &Source<'_>) -> String {
        let facts = source.facts;
        match self {
            Self::Text => facts.text.clone(),
            Self::System => facts.system.clone(),
            Self::LastToolResult => {
                facts.results.last().map(|result| result.text.clone()).unwrap_or_default()
            }
            Self::LastToolName => {
                facts.results.last().map(|result| result.name.to_owned()).unwrap_or_default()
            }
            Self::Tools => facts.offered.join(", "),
            Self::Turn => facts.turn.to_string(),
            Self::Round => facts.round.to_string(),
            Self::Today => date(source.now),
            Self::Group(number) => {
                group_text(source.captures.and_then(|captures| captures.get(*number)))
            }
            Self::Named(name) => {
                group_text(source.captures.and_then(|captures| captures.name(name)))
            }
        }
    }
}

fn group_text(group: Option<regex_lite::Match<'_>>) -> String {
    group.map(|group| group.as_str().to_owned()).unwrap_or_default()
}
