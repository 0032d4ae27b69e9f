//! The keys of the config, their types, and error messages.
//!
//! Invariant: every key is listed, and the config can read every value accepted here.

use crate::texts::Texts;
use crate::tools::name_distance;
use greenroom_sdk::{Object, Value};

/// Names that differ in at most half of their letter pairs are similar.
const SIMILAR: usize = 500;
/// Characters of an invalid value in a message.
const GIVEN_CHARS_MAX: usize = 40;

/// The type of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ValueType {
    Text,
    TimeZone,
    Boolean,
    Texts,
    Table,
    OneOf(&'static [&'static str]),
    Integer(Range),
    Number(Option<Range>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    min: u32,
    max: Option<u32>,
}

const fn from(min: u32) -> Range {
    Range { min, max: None }
}

const fn between(min: u32, max: u32) -> Range {
    Range { min, max: Some(max) }
}

const KEYS: [(&str, ValueType); 19] = [
    ("prompt", ValueType::Text),
    ("model", ValueType::Text),
    ("fallback_models", ValueType::Texts),
    ("temperature", ValueType::Number(None)),
    ("reasoning", ValueType::OneOf(&["default", "none", "low", "medium", "high"])),
    ("options", ValueType::Table),
    ("tool_calling", ValueType::OneOf(&["auto", "native", "prompted"])),
    ("max_tool_rounds", ValueType::Integer(between(0, u32::MAX))),
    ("tools_in_prompt", ValueType::Integer(from(1))),
    ("context_tokens", ValueType::Integer(from(1000))),
    ("compact_at_percent", ValueType::Integer(between(10, 95))),
    ("max_tokens_per_run", ValueType::Integer(from(0))),
    ("max_cost_usd", ValueType::Number(Some(from(0)))),
    ("max_seconds", ValueType::Integer(from(0))),
    ("model_timeout_s", ValueType::Integer(from(1))),
    ("knowledge_top_k", ValueType::Integer(between(0, u32::MAX))),
    ("timezone", ValueType::TimeZone),
    ("sender_names", ValueType::Boolean),
    ("commands", ValueType::Boolean),
];

/// Minimum and maximum of a key's number.
pub(crate) fn bounds(key: &str) -> (Option<u32>, Option<u32>) {
    match KEYS.into_iter().find(|(known, _)| *known == key) {
        Some((_, ValueType::Integer(range) | ValueType::Number(Some(range)))) => {
            (Some(range.min), range.max)
        }
        _ => (None, None),
    }
}

/// All errors in one sentence; `None` if the config is valid.
pub(super) fn error(config: &Object, texts: Texts) -> Option<String> {
    let problems: Vec<String> =
        config.iter().filter_map(problem).map(|problem| problem.describe(texts)).collect();
    (!problems.is_empty()).then(|| match texts {
        Texts::English => format!("invalid agent config: {}", problems.join("; ")),
        Texts::Chinese => format!("智能体配置有误：{}", problems.join("；")),
    })
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Problem {
    Unknown { key: String },
    Value { key: &'static str, expected: Expected, given: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Kind(ValueType),
    Within(Range),
}

fn problem((name, value): (&String, &Value)) -> Option<Problem> {
    let cut = |text: &str| text.chars().take(GIVEN_CHARS_MAX).collect();
    let Some((key, takes)) = KEYS.into_iter().find(|(key, _)| key == name) else {
        return Some(Problem::Unknown { key: cut(name) });
    };
    let expected = takes.mismatch(value)?;
    Some(Problem::Value { key, expected, given: cut(&value.to_string()) })
}

impl Problem {
    fn describe(&self, texts: Texts) -> String {
        match (self, texts) {
            (Self::Unknown { key }, _) => unknown(key, texts),
            (Self::Value { key, expected, given }, Texts::English) => {
                format!("`{key}`: expected {}, not `{given}`", expected.describe(texts))
            }
            (Self::Value { key, expected, given }, Texts::Chinese) => {
                format!("`{key}`：应为{}，而不是 `{given}`", expected.describe(texts))
            }
        }
    }
}

fn unknown(key: &str, texts: Texts) -> String {
    let ranked = KEYS.into_iter().map(|(known, _)| (name_distance(key, known), known));
    let similar =
        ranked.min().filter(|(name_distance, _)| *name_distance <= SIMILAR).map(|(_, known)| known);
    let all = listed(KEYS.map(|(known, _)| known), texts);
    match (similar, texts) {
        (Some(similar), Texts::English) => {
            format!("unknown field `{key}`: did you mean `{similar}`?")
        }
        (Some(similar), Texts::Chinese) => format!("未知字段 `{key}`，是不是 `{similar}`？"),
        (None, Texts::English) => {
            format!("unknown field `{key}`, expected one of {all}")
        }
        (None, Texts::Chinese) => {
            format!("未知字段 `{key}`，可用字段：{all}")
        }
    }
}

impl ValueType {
    /// The expected type or range, if the value does not match.
    fn mismatch(self, value: &Value) -> Option<Expected> {
        let is_zone = |name: &str| name.is_empty() || jiff::tz::TimeZone::get(name).is_ok();
        let is_kind = match self {
            Self::Text => value.is_string(),
            Self::TimeZone => value.as_str().is_some_and(is_zone),
            Self::Boolean => value.is_boolean(),
            Self::Texts => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
            Self::Table => value.is_object(),
            Self::OneOf(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Self::Integer(_) => value.is_u64() || value.is_i64(),
            Self::Number(_) => value.is_number(),
        };
        match self {
            _ if !is_kind => Some(Expected::Kind(self)),
            Self::Integer(range) | Self::Number(Some(range)) => {
                (!range.contains(value)).then_some(Expected::Within(range))
            }
            _ => None,
        }
    }
}

impl Expected {
    fn describe(self, texts: Texts) -> String {
        match self {
            Self::Kind(takes) => takes.describe(texts),
            Self::Within(range) => range.describe(texts),
        }
    }
}

impl ValueType {
    fn describe(self, texts: Texts) -> String {
        let zone = "`Asia/Shanghai`";
        match (self, texts) {
            (Self::Text, _) => texts.pick("a string", "字符串").to_owned(),
            (Self::TimeZone, Texts::English) => format!("the name of a time zone such as {zone}"),
            (Self::TimeZone, Texts::Chinese) => format!("时区名称（如 {zone}）"),
            (Self::Boolean, _) => texts.pick("true or false", " true 或 false").to_owned(),
            (Self::Texts, _) => texts.pick("a list of strings", "字符串列表").to_owned(),
            (Self::Table, _) => texts.pick("a table", "表").to_owned(),
            (Self::OneOf(words), _) => {
                let words = listed(words.iter().copied(), texts);
                format!("{}{words}", texts.pick("one of ", "以下之一："))
            }
            (Self::Integer(_), _) => texts.pick("an integer", "整数").to_owned(),
            (Self::Number(_), _) => texts.pick("a number", "数字").to_owned(),
        }
    }
}

impl Range {
    fn contains(self, value: &Value) -> bool {
        let max = self.max.map_or(f64::INFINITY, f64::from);
        value.as_f64().is_some_and(|number| (f64::from(self.min)..=max).contains(&number))
    }

    fn describe(self, texts: Texts) -> String {
        match (self, texts) {
            (Self { min, max: Some(max) }, Texts::English) => format!("{min} to {max}"),
            (Self { min, max: Some(max) }, Texts::Chinese) => format!(" {min} 到 {max}"),
            (Self { min: 0, max: None }, _) => texts.pick("0 or more", " 0 或更大").to_owned(),
            (Self { min, max: None }, Texts::English) => format!("at least {min}"),
            (Self { min, max: None }, Texts::Chinese) => format!("至少 {min}"),
        }
    }
}

fn listed<'n>(names: impl IntoIterator<Item = &'n str>, texts: Texts) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    quoted.join(texts.pick(", ", "、"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use greenroom_sdk::json;

    fn describe(config: Value, texts: Texts) -> String {
        error(config.as_object().expect("an object"), texts).expect("a problem")
    }

    #[test]
    fn every_key_of_the_config_is_listed() {
        let error = serde_json::from_value::<Config>(json!({"-": 1})).unwrap_err().to_string();
        let keys = listed(KEYS.map(|(key, _)| key), Texts::English);
        assert_eq!(error, format!("unknown field `-`, expected one of {keys}"));
    }

    #[test]
    fn errors_are_described() {
        for (config, english, chinese) in [
            (
                json!({"max_tool_rounds": "8"}),
                "`max_tool_rounds`: expected an integer, not `\"8\"`",
                "`max_tool_rounds`：应为整数，而不是 `\"8\"`",
            ),
            (
                json!({"max_tool_rounds": 5_000_000_000_u64}),
                "`max_tool_rounds`: expected 0 to 4294967295, not `5000000000`",
                "`max_tool_rounds`：应为 0 到 4294967295，而不是 `5000000000`",
            ),
            (
                json!({"context_tokens": 2000.5}),
                "`context_tokens`: expected an integer, not `2000.5`",
                "`context_tokens`：应为整数，而不是 `2000.5`",
            ),
            (
                json!({"context_tokens": 10}),
                "`context_tokens`: expected at least 1000, not `10`",
                "`context_tokens`：应为至少 1000，而不是 `10`",
            ),
            (
                json!({"max_seconds": -1}),
                "`max_seconds`: expected 0 or more, not `-1`",
                "`max_seconds`：应为 0 或更大，而不是 `-1`",
            ),
            (
                json!({"temperature": "warm"}),
                "`temperature`: expected a number, not `\"warm\"`",
                "`temperature`：应为数字，而不是 `\"warm\"`",
            ),
            (
                json!({"fallback_models": "spare"}),
                "`fallback_models`: expected a list of strings, not `\"spare\"`",
                "`fallback_models`：应为字符串列表，而不是 `\"spare\"`",
            ),
            (
                json!({"options": [1]}),
                "`options`: expected a table, not `[1]`",
                "`options`：应为表，而不是 `[1]`",
            ),
            (
                json!({"commands": "yes"}),
                "`commands`: expected true or false, not `\"yes\"`",
                "`commands`：应为 true 或 false，而不是 `\"yes\"`",
            ),
            (
                json!({"tool_calling": "wild"}),
                "`tool_calling`: expected one of `auto`, `native`, `prompted`, not `\"wild\"`",
                "`tool_calling`：应为以下之一：`auto`、`native`、`prompted`，而不是 `\"wild\"`",
            ),
            (
                json!({"promt": "p"}),
                "unknown field `promt`: did you mean `prompt`?",
                "未知字段 `promt`，是不是 `prompt`？",
            ),
        ] {
            assert_eq!(
                describe(config.clone(), Texts::English),
                format!("invalid agent config: {english}")
            );
            assert_eq!(describe(config, Texts::Chinese), format!("智能体配置有误：{chinese}"));
        }
    }

    #[test]
    fn all_errors_are_reported_together() {
        let message = describe(json!({"compact_at_percent": 100, "model": 7}), Texts::English);
        let expected = "invalid agent config: `compact_at_percent`: expected 10 to 95, not `100`; \
                        `model`: expected a string, not `7`";
        assert_eq!(message, expected);
    }

    #[test]
    fn an_unknown_key_without_a_similar_one_lists_all_keys() {
        let message = describe(json!({"colour": "red"}), Texts::English);
        let expected =
            "unknown field `colour`, expected one of `prompt`, `model`, `fallback_models`";
        assert!(message.contains(expected), "{message}");
    }
}
