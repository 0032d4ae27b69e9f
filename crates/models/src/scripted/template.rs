//! Texts with places: `{{text}}`, `{{match.1}}`, `{{last_tool_result}}`, `{{match.day | date}}`.
//!
//! Invariant: a template that was read can be filled; a place that does not exist is refused when it is read.

use super::day::date;
use super::facts::Facts;
use super::{spoken, telling};
use regex_lite::{Captures, Regex};
use serde_json::Value;
use std::time::SystemTime;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Template(Vec<Part>);

#[derive(Debug, Clone, PartialEq)]
enum Part {
    Text(String),
    Place { place: Place, filter: Filter },
}

/// What is made of the text of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filter {
    AsIs,
    /// The JSON value that it says.
    Json,
    /// The day that it speaks of.
    Date,
    /// The time of day that it speaks of, and an hour after it.
    Time,
    HourLater,
    /// A tool's result in lines that people read.
    Told,
    /// What a tool's result is about, by name and time.
    Named,
}

const FILTERS: [(&str, Filter); 6] = [
    ("json", Filter::Json),
    ("date", Filter::Date),
    ("time", Filter::Time),
    ("hour_later", Filter::HourLater),
    ("told", Filter::Told),
    ("named", Filter::Named),
];

#[derive(Debug, Clone, PartialEq)]
enum Place {
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

/// What places are filled from.
pub(super) struct Source<'a> {
    pub facts: &'a Facts<'a>,
    pub captures: Option<&'a Captures<'a>>,
    pub now: SystemTime,
}

impl Template {
    /// `regex` is that of the rule, whose groups may be named.
    pub(super) fn parse(text: &str, regex: Option<&Regex>) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let (inner, after) =
                after.split_once("}}").ok_or_else(|| "`{{` is never closed".to_owned())?;
            if !before.is_empty() {
                parts.push(Part::Text(before.to_owned()));
            }
            let (name, filter) = match inner.split_once('|') {
                Some((name, filter)) => (name.trim(), Filter::parse(filter.trim())?),
                None => (inner.trim(), Filter::AsIs),
            };
            parts.push(Part::Place { place: Place::parse(name, regex)?, filter });
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
            Part::Place { place, filter } => filter.apply(place.fill(source), source.now),
        });
        texts.collect()
    }

    /// The value that a string of JSON arguments stands for: with `{{… | json}}` alone, what the text says in
    /// JSON, if it does.
    fn value(&self, source: &Source<'_>) -> Value {
        let text = self.fill(source);
        match self.0.as_slice() {
            [Part::Place { filter: Filter::Json, .. }] => {
                serde_json::from_str(&text).unwrap_or(Value::String(text))
            }
            _ => Value::String(text),
        }
    }
}

impl Filter {
    fn parse(name: &str) -> Result<Self, String> {
        let found = FILTERS.iter().find(|(known, _)| *known == name);
        let names = || FILTERS.map(|(name, _)| format!("`{name}`")).join(", ");
        found
            .map(|(_, filter)| *filter)
            .ok_or_else(|| format!("`{name}` is no filter: there are {}", names()))
    }

    fn apply(self, text: String, now: SystemTime) -> String {
        match self {
            Self::AsIs | Self::Json => text,
            Self::Date => spoken::day(&text, now),
            Self::Time => spoken::time(&text),
            Self::HourLater => spoken::hour_later(&text),
            Self::Told => telling::told(&text),
            Self::Named => telling::named(&text),
        }
    }
}

/// Every template in a JSON value, its keys included, checked.
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

/// A JSON value with its templates filled; it was checked with the same expression.
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

impl Place {
    fn parse(name: &str, regex: Option<&Regex>) -> Result<Self, String> {
        let place = match name {
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
        Ok(place)
    }

    fn group(name: &str, regex: Option<&Regex>) -> Result<Self, String> {
        let Some(group) = name.strip_prefix("match.") else {
            return Err(format!(
                "`{{{{{name}}}}}` is unknown: there are text, system, match.N, match.NAME, \
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
