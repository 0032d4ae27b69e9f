//! The form of the agent's config in English and Chinese.
//!
//! Invariant: an item for every key, with the config's default; the config accepts what the form writes.

use crate::config::keys::bounds;
use crate::config::{
    COMPACT_AT_PERCENT, CONTEXT_TOKENS, KNOWLEDGE_TOP_K, MODEL_TIMEOUT_S, PROMPT, TOOL_ROUNDS,
    TOOLS_IN_PROMPT,
};
use greenroom_sdk::protocol::I18nObject;
use greenroom_sdk::{ConfigItem, en_zh, json};

pub(super) fn items() -> Vec<ConfigItem> {
    [answering(), tools(), context(), limits()].into_iter().flatten().collect()
}

/// Label and description in both languages.
type Words = (I18nObject, I18nObject);

fn words(english: (&str, &str), chinese: (&str, &str)) -> Words {
    (en_zh(english.0, chinese.0), en_zh(english.1, chinese.1))
}

fn item(name: &str, kind: &str, (label, description): Words) -> ConfigItem {
    let item = ConfigItem::new(name, label, kind).description(description);
    let (min, max) = bounds(name);
    let item = min.into_iter().fold(item, ConfigItem::minimum);
    max.into_iter().fold(item, ConfigItem::maximum)
}

fn answering() -> Vec<ConfigItem> {
    vec![
        item(
            "prompt",
            "text",
            words(
                ("System prompt", "Instructions for the agent"),
                ("系统提示词", "给智能体的指令"),
            ),
        )
        .default(PROMPT),
        item(
            "model",
            "model-selector",
            words(
                ("Model", "Default: the first granted model; `/model` changes it per conversation"),
                ("模型", "留空则使用第一个已授权的模型；会话中可用 `/model` 切换"),
            ),
        )
        .default(""),
        item(
            "fallback_models",
            "array[string]",
            words(
                ("Fallback models", "Tried in this order if the model fails"),
                ("备用模型", "主模型失败时依次尝试"),
            ),
        )
        .default(json!([])),
        item(
            "temperature",
            "float",
            words(
                ("Temperature", "Default: the provider's"),
                ("温度", "留空则使用模型服务的默认值"),
            ),
        ),
        reasoning(),
        item(
            "options",
            "json",
            words(
                ("Model options", "Passed to the provider with every request"),
                ("模型选项", "随每次请求传给模型服务"),
            ),
        )
        .default(json!({})),
    ]
}

fn reasoning() -> ConfigItem {
    let effort =
        words(("Reasoning", "Reasoning effort of the model"), ("推理强度", "模型的推理强度"));
    item("reasoning", "select", effort)
        .option("default", en_zh("Provider default", "模型服务的默认值"))
        .option("none", en_zh("None", "不推理"))
        .option("low", en_zh("Low", "低"))
        .option("medium", en_zh("Medium", "中"))
        .option("high", en_zh("High", "高"))
        .default("default")
}

fn tools() -> Vec<ConfigItem> {
    let calling = words(
        (
            "Tool calling",
            "How tools are offered to the model; prompted is for models without native tool calls",
        ),
        ("工具调用方式", "向模型提供工具的方式；提示词方式用于不支持原生工具调用的模型"),
    );
    vec![
        item("tool_calling", "select", calling)
            .option("auto", en_zh("By model capability", "按模型能力"))
            .option("native", en_zh("Native", "原生"))
            .option("prompted", en_zh("Prompted", "提示词"))
            .default("auto"),
        item(
            "max_tool_rounds",
            "integer",
            words(
                ("Tool rounds", "Maximum rounds of tool calls per answer"),
                ("工具轮数", "每次回答的最大工具调用轮数"),
            ),
        )
        .default(TOOL_ROUNDS),
        item(
            "tools_in_prompt",
            "integer",
            words(
                (
                    "Tools per request",
                    "At least 1; with more tools, only relevant ones and a tool search are offered",
                ),
                ("每次请求的工具数", "至少 1；超出时只提供与输入相关的工具和工具搜索"),
            ),
        )
        .default(TOOLS_IN_PROMPT),
        item(
            "commands",
            "boolean",
            words(
                ("Slash commands", "Users may call tools and `/help` by name, bypassing the model"),
                ("斜杠命令", "用户可绕过模型，按名称调用工具和 `/help`"),
            ),
        )
        .default(true),
    ]
}

fn context() -> Vec<ConfigItem> {
    vec![
        item(
            "context_tokens",
            "integer",
            words(
                ("Context window", "In tokens, at least 1000, for models with an unknown window"),
                ("上下文窗口", "模型窗口未知时使用的 token 数，至少 1000"),
            ),
        )
        .default(CONTEXT_TOKENS),
        item(
            "compact_at_percent",
            "integer",
            words(
                (
                    "Compact at",
                    "Percent of the window, 10 to 95, at which older turns are summarized",
                ),
                ("压缩阈值", "达到窗口的百分之几（10 到 95）时总结较早的对话"),
            ),
        )
        .default(COMPACT_AT_PERCENT),
        item(
            "knowledge_top_k",
            "integer",
            words(
                ("Passages", "Passages of granted knowledge per answer; 0: none"),
                ("知识片段数", "每次回答使用的知识片段数；0 表示不使用"),
            ),
        )
        .default(KNOWLEDGE_TOP_K),
        item(
            "timezone",
            "string",
            words(
                ("Time zone", "Such as Asia/Shanghai; default: the host's"),
                ("时区", "如 Asia/Shanghai；留空则使用主机时区"),
            ),
        )
        .default(""),
        item(
            "sender_names",
            "boolean",
            words(
                ("Sender names", "Tell the model who wrote each message; for groups"),
                ("发送者姓名", "告诉模型每条消息是谁写的；用于群聊"),
            ),
        )
        .default(false),
    ]
}

fn limits() -> Vec<ConfigItem> {
    vec![
        item(
            "max_tokens_per_run",
            "integer",
            words(
                ("Tokens per answer", "The run ends beyond this; 0: no limit"),
                ("每次回答的 token 上限", "超出即结束；0 表示不限"),
            ),
        )
        .default(0),
        item(
            "max_cost_usd",
            "float",
            words(
                ("Cost per answer", "In USD; the run ends beyond this; 0: no limit"),
                ("每次回答的费用上限", "美元；超出即结束；0 表示不限"),
            ),
        )
        .default(0.0),
        item(
            "max_seconds",
            "integer",
            words(
                ("Seconds per answer", "The run ends beyond this; 0: the run's own deadline"),
                ("每次回答的秒数上限", "超出即结束；0 表示只受运行期限约束"),
            ),
        )
        .default(0),
        item(
            "model_timeout_s",
            "integer",
            words(
                ("Model timeout", "Seconds to wait while the model sends nothing, at least 1"),
                ("模型超时（秒）", "模型没有任何响应时最多等待的秒数，至少 1"),
            ),
        )
        .default(MODEL_TIMEOUT_S),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::texts::Texts;
    use greenroom_sdk::{Object, Value};

    fn accepts(key: &str, value: Value) -> bool {
        Config::parse(&Object::from_iter([(key.to_owned(), value)]), Texts::English).is_ok()
    }

    #[test]
    fn the_form_has_the_range_of_the_config() {
        let most = Some(4_294_967_295_u32);
        for (key, range) in [
            ("temperature", (None, None)),
            ("max_tool_rounds", (Some(0), most)),
            ("tools_in_prompt", (Some(1), None)),
            ("context_tokens", (Some(1000), None)),
            ("compact_at_percent", (Some(10), Some(95))),
            ("knowledge_top_k", (Some(0), most)),
            ("max_tokens_per_run", (Some(0), None)),
            ("max_cost_usd", (Some(0), None)),
            ("max_seconds", (Some(0), None)),
            ("model_timeout_s", (Some(1), None)),
        ] {
            assert_eq!(bounds(key), range, "{key}");
            let (least, most) = range;
            let (least, most) = (least.map(i64::from), most.map(i64::from));
            assert!(least.is_none_or(|least| accepts(key, least.into())), "{key}");
            assert!(least.is_none_or(|least| !accepts(key, (least - 1).into())), "{key}");
            assert!(most.is_none_or(|most| accepts(key, most.into())), "{key}");
            assert!(most.is_none_or(|most| !accepts(key, (most + 1).into())), "{key}");
            let form = format!("{:?}", items());
            let from = form.find(&format!("name: \"{key}\"")).expect("an item");
            let item = form[from..].split("ConfigItem(").next().expect("a part");
            assert_eq!(item.contains("\"minimum\""), least.is_some(), "{key}: {item}");
            assert_eq!(item.contains("\"maximum\""), most.is_some(), "{key}: {item}");
        }
    }

    #[test]
    fn the_form_states_the_minimum_of_numbers() {
        let form = format!("{:?}", items());
        for (key, refused, taken, said, said_in_chinese) in [
            ("tools_in_prompt", 0, 1, "At least 1;", "至少 1；"),
            ("context_tokens", 999, 1000, "In tokens, at least 1000,", "token 数，至少 1000"),
            ("compact_at_percent", 9, 10, "Percent of the window, 10 to 95,", "（10 到 95）"),
            ("compact_at_percent", 96, 95, "Percent of the window, 10 to 95,", "（10 到 95）"),
            ("model_timeout_s", 0, 1, "sends nothing, at least 1", "秒数，至少 1"),
            ("max_tokens_per_run", -1, 0, "0: no limit", "0 表示不限"),
            ("max_cost_usd", -1, 0, "0: no limit", "0 表示不限"),
            ("max_seconds", -1, 0, "0: the run's own deadline", "0 表示只受运行期限约束"),
            ("knowledge_top_k", -1, 0, "0: none", "0 表示不使用"),
        ] {
            assert!(!accepts(key, refused.into()) && accepts(key, taken.into()), "{key}");
            let from = form.find(&format!("name: \"{key}\"")).expect("an item");
            let item = form[from..].split("ConfigItem(").next().expect("a part");
            assert!(item.contains(said) && item.contains(said_in_chinese), "{key}: {item}");
        }
    }
}
