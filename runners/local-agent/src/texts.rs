//! Sentences for the user, in the language of the user.
//!
//! Invariant: whoever writes Chinese is answered in Chinese, everybody else in English.

/// Picks one of two languages.
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

    /// One of the two.
    pub(crate) fn pick<'t>(self, english: &'t str, chinese: &'t str) -> &'t str {
        match self {
            Self::English => english,
            Self::Chinese => chinese,
        }
    }

    /// `wanted` is the model that the config names; empty when it names none.
    pub(crate) fn no_model(self, wanted: &str) -> String {
        match (self, wanted) {
            (Self::English, "") => {
                "this agent has no model: add `models = [\"NAME\"]` to its grant".to_owned()
            }
            (Self::Chinese, "") => {
                "这个助手没有模型：请在它的 grant 中加上 `models = [\"NAME\"]`".to_owned()
            }
            (Self::English, _) => format!(
                "the model `{wanted}` of this agent's config is not granted to it: \
                 add `models = [\"{wanted}\"]` to its grant"
            ),
            (Self::Chinese, _) => format!(
                "这个助手的配置使用模型 `{wanted}`，但没有授予它：\
                 请在它的 grant 中加上 `models = [\"{wanted}\"]`"
            ),
        }
    }

    pub(crate) fn time_is_up(self) -> String {
        self.pick(
            "The time for this answer is used up. Ask again, perhaps for less at once.",
            "这次回答的时间已用完。请重新提问，或一次少问一些。",
        )
        .to_owned()
    }

    pub(crate) fn tokens_used_up(self) -> String {
        self.pick(
            "This answer has used all the tokens it may use. Ask for less at once.",
            "这次回答已用完允许的 token。请一次少问一些。",
        )
        .to_owned()
    }

    pub(crate) fn cost_reached(self) -> String {
        self.pick(
            "This answer has cost as much as one answer may cost.",
            "这次回答的费用已达到单次上限。",
        )
        .to_owned()
    }

    pub(crate) fn repeated_failure(self, tool: &str) -> String {
        match self {
            Self::English => format!(
                "I stopped: the same call of `{tool}` failed again and again. \
                 Say it differently, or check the tool."
            ),
            Self::Chinese => {
                format!("我停下来了：对 `{tool}` 的同一调用反复失败。请换个说法，或检查该工具。")
            }
        }
    }

    pub(crate) fn error_cascade(self) -> String {
        self.pick(
            "I stopped: nearly every tool call failed. Check the tools, then ask again.",
            "我停下来了：几乎所有工具调用都失败了。请检查工具后再试。",
        )
        .to_owned()
    }

    pub(crate) fn model_is_silent(self, model: &str, seconds: u64) -> String {
        match self {
            Self::English => format!("The model `{model}` has said nothing for {seconds} s."),
            Self::Chinese => format!("模型 `{model}` 已 {seconds} 秒没有任何回应。"),
        }
    }

    pub(crate) fn empty_answer(self, model: &str) -> String {
        match self {
            Self::English => format!("The model `{model}` gave an empty answer, twice."),
            Self::Chinese => format!("模型 `{model}` 两次都给出了空的回答。"),
        }
    }

    pub(crate) fn refused(self, model: &str) -> String {
        match self {
            Self::English => format!(
                "The provider of the model `{model}` filtered the answer. Say it differently."
            ),
            Self::Chinese => format!("模型 `{model}` 的提供方过滤了这次回答。请换个说法。"),
        }
    }

    pub(crate) fn rounds_used_up(self) -> String {
        self.pick(
            "I used all rounds of tool calls that I have and found no answer.",
            "工具调用的轮数已用完，仍没有得到答案。",
        )
        .to_owned()
    }

    pub(crate) fn cancelled(self) -> String {
        self.pick("Cancelled, as you asked.", "已按你的要求取消。").to_owned()
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
