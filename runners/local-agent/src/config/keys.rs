//! The keys of the config, what each takes, and what is told about one that cannot be used.
//!
//! Invariant: every key stands here, and what is taken here the config can read.

use crate::texts::Texts;
use crate::tools::unlikeness;
use greenroom_sdk::{Object, Value};

/// Names that share at least every second pair of neighbouring letters are near.
const NEAR: usize = 500;
/// Letters of what was given that are told.
const GIVEN_CHARS_MAX: usize = 40;

/// What a key takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Text,
    TimeZone,
    Switch,
    Texts,
    Table,
    OneOf(&'static [&'static str]),
    Whole(Range),
    Number(Option<Range>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    least: u32,
    most: Option<u32>,
}

const fn from(least: u32) -> Range {
    Range { least, most: None }
}

const fn between(least: u32, most: u32) -> Range {
    Range { least, most: Some(most) }
}

const KEYS: [(&str, Takes); 19] = [
    ("prompt", Takes::Text),
    ("model", Takes::Text),
    ("fallback_models", Takes::Texts),
    ("temperature", Takes::Number(None)),
    ("reasoning", Takes::OneOf(&["default", "none", "low", "medium", "high"])),
    ("options", Takes::Table),
    ("tool_calling", Takes::OneOf(&["auto", "native", "prompted"])),
    ("max_tool_rounds", Takes::Whole(between(0, u32::MAX))),
    ("tools_in_prompt", Takes::Whole(from(1))),
    ("context_tokens", Takes::Whole(from(1000))),
    ("compact_at_percent", Takes::Whole(between(10, 95))),
    ("max_tokens_per_run", Takes::Whole(from(0))),
    ("max_cost_usd", Takes::Number(Some(from(0)))),
    ("max_seconds", Takes::Whole(from(0))),
    ("model_timeout_s", Takes::Whole(from(1))),
    ("knowledge_top_k", Takes::Whole(between(0, u32::MAX))),
    ("timezone", Takes::TimeZone),
    ("sender_names", Takes::Switch),
    ("commands", Takes::Switch),
];

/// The least and the most that the number of a key may be.
pub(crate) fn bounds(key: &str) -> (Option<u32>, Option<u32>) {
    match KEYS.into_iter().find(|(known, _)| *known == key) {
        Some((_, Takes::Whole(range) | Takes::Number(Some(range)))) => {
            (Some(range.least), range.most)
        }
        _ => (None, None),
    }
}

/// One sentence about everything that is wrong; none when nothing is.
pub(super) fn wrong(config: &Object, texts: Texts) -> Option<String> {
    let told: Vec<String> =
        config.iter().filter_map(mistake).map(|mistake| mistake.told(texts)).collect();
    (!told.is_empty()).then(|| match texts {
        Texts::English => format!("the agent's config: {}", told.join("; ")),
        Texts::Chinese => format!("这个助手的配置：{}", told.join("；")),
    })
}

/// What is wrong with a key.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Mistake {
    Unknown { key: String },
    Value { key: &'static str, expected: Expected, given: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Kind(Takes),
    Within(Range),
}

fn mistake((name, value): (&String, &Value)) -> Option<Mistake> {
    let cut = |text: &str| text.chars().take(GIVEN_CHARS_MAX).collect();
    let Some((key, takes)) = KEYS.into_iter().find(|(key, _)| key == name) else {
        return Some(Mistake::Unknown { key: cut(name) });
    };
    let expected = takes.refuses(value)?;
    Some(Mistake::Value { key, expected, given: cut(&value.to_string()) })
}

impl Mistake {
    fn told(&self, texts: Texts) -> String {
        match (self, texts) {
            (Self::Unknown { key }, _) => unknown(key, texts),
            (Self::Value { key, expected, given }, Texts::English) => {
                format!("`{key}`: expected {}, not `{given}`", expected.told(texts))
            }
            (Self::Value { key, expected, given }, Texts::Chinese) => {
                format!("`{key}`：应为{}，而不是 `{given}`", expected.told(texts))
            }
        }
    }
}

fn unknown(key: &str, texts: Texts) -> String {
    let alike = KEYS.into_iter().map(|(known, _)| (unlikeness(key, known), known));
    let near = alike.min().filter(|(unlikeness, _)| *unlikeness <= NEAR).map(|(_, known)| known);
    let all = listed(KEYS.map(|(known, _)| known), texts);
    match (near, texts) {
        (Some(near), Texts::English) => {
            format!("unknown field `{key}`: did you mean `{near}`?")
        }
        (Some(near), Texts::Chinese) => format!("没有字段 `{key}`，是不是 `{near}`？"),
        (None, Texts::English) => {
            format!("unknown field `{key}`, expected one of {all}")
        }
        (None, Texts::Chinese) => {
            format!("没有字段 `{key}`，可用的有 {all}")
        }
    }
}

impl Takes {
    /// What was expected instead of a value, if it is not taken.
    fn refuses(self, value: &Value) -> Option<Expected> {
        let is_zone = |name: &str| name.is_empty() || jiff::tz::TimeZone::get(name).is_ok();
        let is_kind = match self {
            Self::Text => value.is_string(),
            Self::TimeZone => value.as_str().is_some_and(is_zone),
            Self::Switch => value.is_boolean(),
            Self::Texts => value.as_array().is_some_and(|list| list.iter().all(Value::is_string)),
            Self::Table => value.is_object(),
            Self::OneOf(words) => value.as_str().is_some_and(|word| words.contains(&word)),
            Self::Whole(_) => value.is_u64() || value.is_i64(),
            Self::Number(_) => value.is_number(),
        };
        match self {
            _ if !is_kind => Some(Expected::Kind(self)),
            Self::Whole(range) | Self::Number(Some(range)) => {
                (!range.holds(value)).then_some(Expected::Within(range))
            }
            _ => None,
        }
    }
}

impl Expected {
    fn told(self, texts: Texts) -> String {
        match self {
            Self::Kind(takes) => takes.told(texts),
            Self::Within(range) => range.told(texts),
        }
    }
}

impl Takes {
    fn told(self, texts: Texts) -> String {
        let zone = "`Asia/Shanghai`";
        match (self, texts) {
            (Self::Text, _) => texts.pick("a text", "文本").to_owned(),
            (Self::TimeZone, Texts::English) => format!("the name of a time zone such as {zone}"),
            (Self::TimeZone, Texts::Chinese) => format!("时区名称（如 {zone}）"),
            (Self::Switch, _) => texts.pick("true or false", " true 或 false").to_owned(),
            (Self::Texts, _) => texts.pick("a list of texts", "文本列表").to_owned(),
            (Self::Table, _) => texts.pick("a table", "表").to_owned(),
            (Self::OneOf(words), _) => {
                let words = listed(words.iter().copied(), texts);
                format!("{}{words}", texts.pick("one of ", "以下之一："))
            }
            (Self::Whole(_), _) => texts.pick("a whole number", "整数").to_owned(),
            (Self::Number(_), _) => texts.pick("a number", "数字").to_owned(),
        }
    }
}

impl Range {
    fn holds(self, value: &Value) -> bool {
        let most = self.most.map_or(f64::INFINITY, f64::from);
        value.as_f64().is_some_and(|number| (f64::from(self.least)..=most).contains(&number))
    }

    fn told(self, texts: Texts) -> String {
        match (self, texts) {
            (Self { least, most: Some(most) }, Texts::English) => format!("{least} to {most}"),
            (Self { least, most: Some(most) }, Texts::Chinese) => format!(" {least} 到 {most}"),
            (Self { least: 0, most: None }, _) => texts.pick("0 or more", " 0 或更大").to_owned(),
            (Self { least, most: None }, Texts::English) => format!("at least {least}"),
            (Self { least, most: None }, Texts::Chinese) => format!("至少 {least}"),
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

    fn told(config: Value, texts: Texts) -> String {
        wrong(config.as_object().expect("an object"), texts).expect("a mistake")
    }

    #[test]
    fn every_key_of_the_config_stands_here() {
        let error = serde_json::from_value::<Config>(json!({"-": 1})).unwrap_err().to_string();
        let keys = listed(KEYS.map(|(key, _)| key), Texts::English);
        assert_eq!(error, format!("unknown field `-`, expected one of {keys}"));
    }

    #[test]
    fn what_is_wrong_is_told_in_plain_words() {
        for (config, english, chinese) in [
            (
                json!({"max_tool_rounds": "8"}),
                "`max_tool_rounds`: expected a whole number, not `\"8\"`",
                "`max_tool_rounds`：应为整数，而不是 `\"8\"`",
            ),
            (
                json!({"max_tool_rounds": 5_000_000_000_u64}),
                "`max_tool_rounds`: expected 0 to 4294967295, not `5000000000`",
                "`max_tool_rounds`：应为 0 到 4294967295，而不是 `5000000000`",
            ),
            (
                json!({"context_tokens": 2000.5}),
                "`context_tokens`: expected a whole number, not `2000.5`",
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
                "`fallback_models`: expected a list of texts, not `\"spare\"`",
                "`fallback_models`：应为文本列表，而不是 `\"spare\"`",
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
                "没有字段 `promt`，是不是 `prompt`？",
            ),
        ] {
            assert_eq!(
                told(config.clone(), Texts::English),
                format!("the agent's config: {english}")
            );
            assert_eq!(told(config, Texts::Chinese), format!("这个助手的配置：{chinese}"));
        }
    }

    #[test]
    fn all_mistakes_are_told_at_once() {
        let message = told(json!({"compact_at_percent": 100, "model": 7}), Texts::English);
        let expected = "the agent's config: `compact_at_percent`: expected 10 to 95, not `100`; \
                        `model`: expected a text, not `7`";
        assert_eq!(message, expected);
    }

    #[test]
    fn a_key_that_is_near_none_is_told_with_those_that_exist() {
        let message = told(json!({"colour": "red"}), Texts::English);
        let expected =
            "unknown field `colour`, expected one of `prompt`, `model`, `fallback_models`";
        assert!(message.contains(expected), "{message}");
    }
}
