//! Messages for the user, in the user's language.
//!
//! Invariant: users who write Chinese get Chinese, all others English.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Texts {
    English,
    Chinese,
}

impl Texts {
    pub(crate) fn for_text(text: &str) -> Self {
        let is_han = |c: char| ('\u{3400}'..='\u{9fff}').contains(&c);
        match text.chars().any(is_han) {
            true => Self::Chinese,
            false => Self::English,
        }
    }

    pub(crate) fn pick<'t>(self, english: &'t str, chinese: &'t str) -> &'t str {
        match self {
            Self::English => english,
            Self::Chinese => chinese,
        }
    }

    /// `wanted` is the configured model; empty if there is none.
    pub(crate) fn no_model(self, wanted: &str) -> String {
        match (self, wanted) {
            (Self::English, "") => {
                "this agent has no model: add `models = [\"NAME\"]` to its grant".to_owned()
            }
            (Self::Chinese, "") => {
                "该智能体没有可用的模型：请在其 grant 中添加 `models = [\"NAME\"]`".to_owned()
            }
            (Self::English, _) => format!(
                "the configured model `{wanted}` is not granted to this agent: \
                 add `models = [\"{wanted}\"]` to its grant"
            ),
            (Self::Chinese, _) => format!(
                "该智能体配置的模型 `{wanted}` 未获授权：\
                 请在其 grant 中添加 `models = [\"{wanted}\"]`"
            ),
        }
    }

    pub(crate) fn time_limit_reached(self) -> String {
        self.pick(
            "The time limit for this answer was reached. Ask again, or ask for less at once.",
            "本次回答已超时。请重试，或缩小问题范围。",
        )
        .to_owned()
    }

    pub(crate) fn token_limit_reached(self) -> String {
        self.pick(
            "This answer reached its token limit. Ask for less at once.",
            "本次回答已达到 token 上限。请缩小问题范围。",
        )
        .to_owned()
    }

    pub(crate) fn cost_limit_reached(self) -> String {
        self.pick("This answer reached its cost limit.", "本次回答的费用已达到上限。").to_owned()
    }

    pub(crate) fn repeated_failure(self, tool: &str) -> String {
        match self {
            Self::English => format!(
                "Stopped: the same call of `{tool}` failed repeatedly. \
                 Rephrase your request, or check the tool."
            ),
            Self::Chinese => {
                format!("已停止：对 `{tool}` 的同一调用反复失败。请换个说法，或检查该工具。")
            }
        }
    }

    pub(crate) fn error_cascade(self) -> String {
        self.pick(
            "Stopped: nearly every tool call failed. Check the tools, then ask again.",
            "已停止：几乎所有工具调用都失败了。请检查工具后再试。",
        )
        .to_owned()
    }

    pub(crate) fn model_timeout(self, model: &str, seconds: u64) -> String {
        match self {
            Self::English => format!("The model `{model}` did not respond for {seconds} s."),
            Self::Chinese => format!("模型 `{model}` 已 {seconds} 秒没有响应。"),
        }
    }

    pub(crate) fn empty_answer(self, model: &str) -> String {
        match self {
            Self::English => format!("The model `{model}` returned an empty answer twice."),
            Self::Chinese => format!("模型 `{model}` 连续两次返回空内容。"),
        }
    }

    pub(crate) fn malformed_call(self, model: &str) -> String {
        match self {
            Self::English => format!("The model `{model}` repeatedly wrote malformed tool calls."),
            Self::Chinese => format!("模型 `{model}` 多次生成了格式错误的工具调用。"),
        }
    }

    pub(crate) fn answer_filtered(self, model: &str) -> String {
        match self {
            Self::English => format!(
                "The provider of the model `{model}` filtered the answer. Rephrase your request."
            ),
            Self::Chinese => format!("模型 `{model}` 的服务商过滤了本次回答。请换个说法。"),
        }
    }

    pub(crate) fn round_limit_reached(self) -> String {
        self.pick(
            "The limit of tool call rounds was reached without an answer.",
            "已达到工具调用轮数上限，仍未得到答案。",
        )
        .to_owned()
    }

    pub(crate) fn cancelled(self) -> String {
        self.pick("Cancelled.", "已取消。").to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_chinese_character_is_enough() {
        assert_eq!(Texts::for_text("check 日历"), Texts::Chinese);
        assert_eq!(Texts::for_text("check the calendar"), Texts::English);
        assert_eq!(Texts::for_text(""), Texts::English);
    }

    #[test]
    fn chinese_has_full_width_punctuation() {
        let is_han = |c: char| Texts::for_text(c.encode_utf8(&mut [0; 4])) == Texts::Chinese;
        let is_narrow = |c: char| matches!(c, ',' | ':' | ';' | '(' | ')');
        for source in [
            include_str!("texts.rs"),
            include_str!("config/keys.rs"),
            include_str!("manifest.rs"),
            include_str!("manifest/form.rs"),
            include_str!("commands/help.rs"),
            include_str!("commands/own.rs"),
            include_str!("commands/sentence.rs"),
        ] {
            // A list is typed with commas of either width.
            let letters: Vec<char> = source.replace("<项,项>", "").chars().collect();
            for pair in letters.windows(2) {
                let mixed =
                    is_han(pair[0]) && is_narrow(pair[1]) || is_narrow(pair[0]) && is_han(pair[1]);
                assert!(!mixed, "{}{}", pair[0], pair[1]);
            }
        }
    }
}
