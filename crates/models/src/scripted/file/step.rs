//! One step in the file: a table with one key that names its kind, and its options.
//!
//! Invariant: exactly one kind per step, and only options of that kind.

use super::super::rule::{Args, Pace, Step};
use super::super::template::{Template, check_value};
use greenroom_protocol::Object;
use regex_lite::Regex;
use serde::Deserialize;
use serde_json::Value;
use std::time::Duration;

const FINISH_REASONS: [&str; 5] = ["stop", "tool_calls", "length", "content_filter", "error"];
const USAGE_KEYS: [&str; 6] = [
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "reasoning_tokens",
];
const WAIT_MS_MAX: u64 = 24 * 3_600_000;

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct StepFile {
    // kinds
    text: Option<String>,
    reasoning: Option<String>,
    call: Option<String>,
    sample: Option<bool>,
    wait_ms: Option<u64>,
    media: Option<toml::Table>,
    usage: Option<toml::Value>,
    finish: Option<String>,
    error: Option<u16>,
    cut: Option<bool>,
    silence: Option<bool>,
    garbage: Option<String>,
    // options
    piece: Option<usize>,
    pace_ms: Option<u64>,
    signature: Option<String>,
    id: Option<String>,
    args: Option<toml::Value>,
    args_text: Option<String>,
    message: Option<String>,
    retry_after_s: Option<u64>,
}

impl StepFile {
    pub(super) fn text(text: &str) -> Self {
        Self { text: Some(text.to_owned()), ..Self::default() }
    }

    pub(super) fn build(mut self, regex: Option<&Regex>, pace: Pace) -> Result<Step, String> {
        let kind = self.kind()?;
        self.check_options(kind)?;
        let pace = Pace {
            piece: self.piece.or(pace.piece),
            wait: self.pace_ms.map_or(pace.wait, Duration::from_millis),
        };
        let template = |text: Option<String>| Template::parse(&text.unwrap_or_default(), regex);
        let step = match kind {
            "text" => Step::Text { text: template(self.text)?, pace },
            "reasoning" => {
                Step::Reasoning { text: template(self.reasoning)?, pace, signature: self.signature }
            }
            "call" => Step::Call {
                name: self.call.take().unwrap_or_default(),
                id: self.id.take(),
                args: self.args(regex)?,
                pace,
            },
            "sample" => Step::Sample,
            "wait_ms" => {
                Step::Wait(Duration::from_millis(self.wait_ms.unwrap_or(0).min(WAIT_MS_MAX)))
            }
            "media" => Step::Media(media(self.media.unwrap_or_default())?),
            "usage" => Step::Usage(usage(self.usage)?),
            "finish" => Step::Finish(finish(self.finish.unwrap_or_default())?),
            "error" => Step::Error {
                status: status(self.error.unwrap_or_default())?,
                message: template(self.message.or(Some("a scripted error".to_owned())))?,
                retry_after: self.retry_after_s.map(Duration::from_secs),
            },
            "cut" => Step::Cut,
            "silence" => Step::Silence,
            _ => Step::Garbage(self.garbage.unwrap_or_default()),
        };
        Ok(step)
    }

    /// The key that names the kind.
    fn kind(&self) -> Result<&'static str, String> {
        let given = [
            ("text", self.text.is_some()),
            ("reasoning", self.reasoning.is_some()),
            ("call", self.call.is_some()),
            ("sample", self.sample.is_some()),
            ("wait_ms", self.wait_ms.is_some()),
            ("media", self.media.is_some()),
            ("usage", self.usage.is_some()),
            ("finish", self.finish.is_some()),
            ("error", self.error.is_some()),
            ("cut", self.cut.is_some()),
            ("silence", self.silence.is_some()),
            ("garbage", self.garbage.is_some()),
        ];
        if [self.sample, self.cut, self.silence].contains(&Some(false)) {
            return Err("`sample`, `cut` and `silence` must be `true` or omitted".to_owned());
        }
        let kinds: Vec<&str> =
            given.iter().filter(|(_, given)| *given).map(|(name, _)| *name).collect();
        match kinds.as_slice() {
            [kind] => Ok(kind),
            [] => Err(format!(
                "the step is empty: expected one of {}",
                given.map(|(name, _)| name).join(", ")
            )),
            several => Err(format!("the step has several kinds: {}", several.join(", "))),
        }
    }

    fn check_options(&self, kind: &str) -> Result<(), String> {
        let streamed = ["text", "reasoning", "call"].as_slice();
        let options = [
            ("piece", self.piece.is_some(), streamed),
            ("pace_ms", self.pace_ms.is_some(), streamed),
            ("signature", self.signature.is_some(), &["reasoning"]),
            ("id", self.id.is_some(), &["call"]),
            ("args", self.args.is_some(), &["call"]),
            ("args_text", self.args_text.is_some(), &["call"]),
            ("message", self.message.is_some(), &["error"]),
            ("retry_after_s", self.retry_after_s.is_some(), &["error"]),
        ];
        let wrong = options.iter().find(|(_, given, of)| *given && !of.contains(&kind));
        wrong.map_or(Ok(()), |(name, ..)| Err(format!("`{name}` does not belong to `{kind}`")))
    }

    fn args(&mut self, regex: Option<&Regex>) -> Result<Args, String> {
        match (self.args.take(), self.args_text.take()) {
            (Some(_), Some(_)) => Err("`args` and `args_text` exclude each other".to_owned()),
            (None, Some(text)) => Template::parse(&text, regex).map(Args::Raw),
            (args, None) => {
                let args = args.map_or(Ok(Value::Object(Object::new())), json)?;
                check_value(&args, regex)?;
                Ok(Args::Json(args))
            }
        }
    }
}

fn json(value: toml::Value) -> Result<Value, String> {
    serde_json::to_value(dates_as_strings(value)).map_err(|error| error.to_string())
}

/// Dates as strings: TOML's serialized form of them is not plain JSON.
fn dates_as_strings(value: toml::Value) -> toml::Value {
    match value {
        toml::Value::Datetime(date) => toml::Value::String(date.to_string()),
        toml::Value::Array(items) => {
            toml::Value::Array(items.into_iter().map(dates_as_strings).collect())
        }
        toml::Value::Table(fields) => toml::Value::Table(
            fields.into_iter().map(|(name, field)| (name, dates_as_strings(field))).collect(),
        ),
        other => other,
    }
}

fn media(media: toml::Table) -> Result<Object, String> {
    let kind = media.get("type").and_then(toml::Value::as_str).unwrap_or_default();
    if !["image", "audio", "video"].contains(&kind) {
        return Err("`media.type` must be image, audio or video".to_owned());
    }
    if !media.contains_key("data") && !media.contains_key("artifact_id") {
        return Err("`media` needs `data` (base64) or `artifact_id`".to_owned());
    }
    match json(toml::Value::Table(media))? {
        Value::Object(media) => Ok(media),
        _ => Err("`media` must be a table".to_owned()),
    }
}

fn usage(usage: Option<toml::Value>) -> Result<Option<Object>, String> {
    let wrong = || "`usage` must be false or a table of token counts".to_owned();
    let table = match usage {
        Some(toml::Value::Boolean(false)) => return Ok(None),
        Some(toml::Value::Table(table)) => table,
        _ => return Err(wrong()),
    };
    let mut usage = Object::new();
    for (key, value) in table {
        if !USAGE_KEYS.contains(&key.as_str()) {
            return Err(format!(
                "unknown key `usage.{key}`, expected one of {}",
                USAGE_KEYS.join(", ")
            ));
        }
        let count =
            value.as_integer().and_then(|count| u64::try_from(count).ok()).ok_or_else(wrong)?;
        usage.insert(key, count.into());
    }
    Ok(Some(usage))
}

fn finish(reason: String) -> Result<String, String> {
    match FINISH_REASONS.contains(&reason.as_str()) {
        true => Ok(reason),
        false => Err(format!("`finish` must be one of {}", FINISH_REASONS.join(", "))),
    }
}

fn status(status: u16) -> Result<u16, String> {
    match (400..=599).contains(&status) {
        true => Ok(status),
        false => Err("`error` must be an HTTP status from 400 to 599".to_owned()),
    }
}
