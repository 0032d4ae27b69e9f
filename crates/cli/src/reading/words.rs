//! Messages around an answer, in English and Chinese.
//!
//! Invariant: the same facts in every language.

use crate::calls;
use crate::client::Wait;
use crate::output::plain;
use crate::{cut, times};
use greenroom_config::env;
use greenroom_tools::ui::Language;

/// The language of a text; English text gets the language of the terminal.
pub fn language_of(text: &str) -> Language {
    let is_chinese = |c: char| matches!(c, '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}');
    if text.chars().any(is_chinese) {
        return Language::Chinese;
    }
    let tag = env::LOCALE.iter().filter_map(|name| env::get(name)).find(|tag| !tag.is_empty());
    Language::from_tag(&tag.unwrap_or_default())
}

/// A call that succeeded.
pub(super) fn done(language: Language, name: &str, took: &str) -> String {
    match language {
        Language::English => format!("✓ {name} ok, {took}"),
        Language::Chinese => format!("✓ {name} 完成\u{ff0c}{took}"),
    }
}

/// A call that failed, and why.
pub(super) fn failed(language: Language, name: &str, took: &str, why: &str) -> String {
    match language {
        Language::English => format!("✗ {name} failed, {took}: {why}"),
        Language::Chinese => format!("✗ {name} 失败\u{ff0c}{took}\u{ff1a}{why}"),
    }
}

/// An incomplete answer.
pub(super) fn cut(language: Language, reason: &str) -> String {
    match language {
        Language::English => format!("warning: the answer was {}", cut::describe(reason)),
        Language::Chinese => format!("警告\u{ff1a}回答不完整\u{ff08}`{reason}`\u{ff09}"),
    }
}

/// A run that completed without output.
pub(super) fn silent(language: Language, run_id: &str) -> String {
    let run_id = plain(run_id);
    match language {
        Language::English => format!(
            "hint: the run completed without an answer; `greenroom runs show {run_id}` shows the details"
        ),
        Language::Chinese => format!(
            "提示\u{ff1a}运行已完成\u{ff0c}但没有输出回答\u{ff1b}运行 `greenroom runs show {run_id}` 查看详情"
        ),
    }
}

/// How to answer the question of a run.
pub(super) fn answer(language: Language, run_id: &str) -> String {
    let run_id = plain(run_id);
    match language {
        Language::English => {
            format!("hint: `greenroom runs answer {run_id} --action …` answers it")
        }
        Language::Chinese => {
            format!("提示\u{ff1a}用 `greenroom runs answer {run_id} --action …` 回答")
        }
    }
}

/// A field that must have a value.
pub(super) fn required(language: Language) -> &'static str {
    match language {
        Language::English => " (required)",
        Language::Chinese => "\u{ff08}必填\u{ff09}",
    }
}

/// What a run waits for, and the commands that help.
pub(super) fn waits(language: Language, wait: &Wait, option: &str) -> String {
    match (wait, language) {
        (Wait::Lane(run), language) => {
            let cancel = run.as_ref().map(|run| {
                let cancel = format!("`greenroom runs cancel {}{option}`", plain(run));
                match language {
                    Language::English => format!("\n  cancel it: {cancel}"),
                    Language::Chinese => format!("\n  取消该运行\u{ff1a}{cancel}"),
                }
            });
            let waits = match language {
                Language::English => "… waits for an earlier run of this conversation",
                Language::Chinese => "… 正在等待本会话中之前的运行结束",
            };
            format!("{waits}{}", cancel.unwrap_or_default())
        }
        (Wait::Server(name), Language::English) => {
            format!("… waits for the tool server `{}` to start", plain(name))
        }
        (Wait::Server(name), Language::Chinese) => {
            format!("… 正在等待工具服务器 `{}` 启动", plain(name))
        }
        (Wait::Remote(name), Language::English) => {
            format!("… waits for the runner `{}` to connect", plain(name))
        }
        (Wait::Remote(name), Language::Chinese) => {
            format!("… 正在等待运行器 `{}` 连接", plain(name))
        }
        (Wait::Runner { name, error: None }, Language::English) => {
            format!("… waits for the runner `{}` to start", plain(name))
        }
        (Wait::Runner { name, error: None }, Language::Chinese) => {
            format!("… 正在等待运行器 `{}` 启动", plain(name))
        }
        (Wait::Runner { error: Some(error), .. }, Language::English) => {
            format!("… waits for its runner to restart: {}", plain(error))
        }
        (Wait::Runner { error: Some(error), .. }, Language::Chinese) => {
            format!("… 正在等待运行器重启\u{ff1a}{}", plain(error))
        }
        (Wait::Approval(approval), language) => {
            let (what, with) = calls::request(approval, language);
            let what = format!("{what} {with}");
            let what = what.trim_end();
            let risk = calls::risk(approval);
            let until = times::short(&approval.expires_at);
            let answers = calls::answers(approval, language, option);
            match language {
                Language::English => {
                    let risk = risk.map(|risk| format!("{risk}, ")).unwrap_or_default();
                    format!("? waits for approval: {what} ({risk}until {until} UTC)\n{answers}")
                }
                Language::Chinese => {
                    let risk = risk.map(|risk| format!("{risk}\u{ff0c}")).unwrap_or_default();
                    format!(
                        "? 等待审批\u{ff1a}{what}\u{ff08}{risk}截止 {until} UTC\u{ff09}\n{answers}"
                    )
                }
            }
        }
    }
}
