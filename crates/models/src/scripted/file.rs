//! The TOML format of scripts; see `docs/guides/scripted-models.md`.
//!
//! Invariant: everything that cannot be played is rejected here with its line; unknown keys are rejected.

mod step;

use super::facts::Lang;
use super::rule::{Pace, Rule, Step, When};
use greenroom_protocol::Role;
use regex_lite::Regex;
use serde::Deserialize;
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor, value::SeqAccessDeserializer};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::time::Duration;
use step::StepFile;
use toml::Spanned;

const SCRIPT_BYTES_MAX: u64 = 4 << 20;
/// Limit for quoted parser messages.
const REASON_CHARS_MAX: usize = 200;

#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("cannot read the script `{}`", .path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("the script is larger than {SCRIPT_BYTES_MAX} bytes")]
    TooLarge,
    #[error("{}line {line}: {message}", file(.path))]
    Invalid { path: Option<PathBuf>, line: usize, message: String },
}

fn file(path: &Option<PathBuf>) -> String {
    path.as_ref().map(|path| format!("`{}`, ", path.display())).unwrap_or_default()
}

pub(super) fn load(path: &Path) -> Result<Vec<Rule>, ScriptError> {
    let read_error = |source| ScriptError::Read { path: path.to_owned(), source };
    let file = std::fs::metadata(path).map_err(read_error)?;
    if !file.is_file() {
        return Err(read_error(std::io::Error::other("it is not a file")));
    }
    if file.len() > SCRIPT_BYTES_MAX {
        return Err(ScriptError::TooLarge);
    }
    let text = std::fs::read_to_string(path).map_err(read_error)?;
    parse(&text).map_err(|error| match error {
        ScriptError::Invalid { line, message, .. } => {
            ScriptError::Invalid { path: Some(path.to_owned()), line, message }
        }
        other => other,
    })
}

pub(super) fn parse(text: &str) -> Result<Vec<Rule>, ScriptError> {
    let invalid = |at: usize, message: String| ScriptError::Invalid {
        path: None,
        line: text.get(..at).unwrap_or(text).matches('\n').count() + 1,
        message,
    };
    let file: ScriptFile = toml::from_str(text).map_err(|error| {
        // The parser may quote values of any length.
        let message = error.message().chars().take(REASON_CHARS_MAX).collect();
        invalid(error.span().map_or(0, |span| span.start), message)
    })?;
    let pace = Pace { piece: file.piece, wait: Duration::from_millis(file.pace_ms.unwrap_or(0)) };
    let mut rules = Vec::new();
    for rule in file.rule {
        let at = rule.span().start;
        rules
            .push(rule.into_inner().build(at, pace).map_err(|(at, message)| invalid(at, message))?);
    }
    Ok(rules)
}

/// Byte offset in the file, and message.
type Problem = (usize, String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFile {
    /// Default delay between two pieces of text.
    pace_ms: Option<u64>,
    /// Characters per piece.
    piece: Option<usize>,
    #[serde(default)]
    rule: Vec<Spanned<RuleFile>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    /// A comment for readers.
    #[serde(rename = "name")]
    _name: Option<String>,
    #[serde(default)]
    when: WhenFile,
    times: Option<u32>,
    answer: Spanned<Answer>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct WhenFile {
    #[serde(default)]
    text: Strings,
    regex: Option<Spanned<String>>,
    lang: Option<Lang>,
    turn: Option<u32>,
    round: Option<u32>,
    role: Option<Role>,
    #[serde(default)]
    system: Strings,
    #[serde(default)]
    context: Strings,
    #[serde(default)]
    offers: Strings,
    tool_result: Option<bool>,
    #[serde(default)]
    result_of: Strings,
    #[serde(default)]
    result_text: Strings,
    wants_json: Option<bool>,
}

impl RuleFile {
    fn build(self, at: usize, pace: Pace) -> Result<Rule, Problem> {
        let when = self.when.build()?;
        let answer_at = self.answer.span().start;
        let mut steps: Vec<Step> = Vec::new();
        for step in self.answer.into_inner().0 {
            let at = if step.span().start == 0 { answer_at } else { step.span().start };
            if let Some(Step::Error { .. } | Step::Cut | Step::Silence | Step::Garbage(_)) =
                steps.last()
            {
                return Err((
                    at,
                    "nothing can follow `error`, `cut`, `silence` or `garbage`".to_owned(),
                ));
            }
            steps.push(
                step.into_inner()
                    .build(when.regex.as_ref(), pace)
                    .map_err(|message| (at, message))?,
            );
        }
        if self.times == Some(0) {
            return Err((at, "`times = 0` would never match".to_owned()));
        }
        Ok(Rule { when, steps, remaining: self.times.map(AtomicU32::new) })
    }
}

impl WhenFile {
    fn build(self) -> Result<When, Problem> {
        let regex = match self.regex {
            Some(regex) => {
                let at = regex.span().start;
                Some(
                    Regex::new(regex.get_ref())
                        .map_err(|error| (at, format!("`regex`: {error}")))?,
                )
            }
            None => None,
        };
        Ok(When {
            text: self.text.0,
            regex,
            lang: self.lang,
            turn: self.turn,
            round: self.round,
            role: self.role,
            system: self.system.0,
            context: self.context.0,
            offers: self.offers.0,
            tool_result: self.tool_result,
            result_of: self.result_of.0,
            result_text: self.result_text.0,
            wants_json: self.wants_json,
        })
    }
}

/// One string or several.
#[derive(Default)]
struct Strings(Vec<String>);

impl<'de> Deserialize<'de> for Strings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOrMany;
        impl<'de> Visitor<'de> for OneOrMany {
            type Value = Strings;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of strings")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Strings, E> {
                Ok(Strings(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Strings, A::Error> {
                let words = Vec::<String>::deserialize(SeqAccessDeserializer::new(items))?;
                match words.is_empty() {
                    true => Err(A::Error::custom("the list is empty")),
                    false => Ok(Strings(words)),
                }
            }
        }
        deserializer.deserialize_any(OneOrMany)
    }
}

/// A string or steps.
struct Answer(Vec<Spanned<StepFile>>);

impl<'de> Deserialize<'de> for Answer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextOrSteps;
        impl<'de> Visitor<'de> for TextOrSteps {
            type Value = Answer;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a list of steps")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Answer, E> {
                Ok(Answer(vec![Spanned::new(0..0, StepFile::text(text))]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, steps: A) -> Result<Answer, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(steps)).map(Answer)
            }
        }
        deserializer.deserialize_any(TextOrSteps)
    }
}
