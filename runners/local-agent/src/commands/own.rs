//! The agent's own commands: `/help`, `/tools`, `/model`, `/reset`, `/cancel`, each also by a Chinese name.
//!
//! Invariant: they change only state of this conversation.

use super::catalogue::{Catalogue, Lookup};
use super::line::{Line, SLASHES};
use super::{Reply, help, readable};
use crate::compaction;
use crate::config::Config;
use crate::model::{CHOSEN_MODEL, Models, is_chat_model};
use crate::texts::Texts;
use greenroom_sdk::{AgentAPIError, RunCtx, RunFailure, StateScope};

pub(super) struct OwnCall<'t> {
    pub(super) line: Line<'t>,
    pub(super) catalogue: Catalogue,
    pub(super) texts: Texts,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Own {
    Help,
    Tools,
    Model,
    Reset,
    Cancel,
}

impl Own {
    pub(super) fn named(name: &str) -> Option<Self> {
        let all = [Own::Help, Own::Tools, Own::Model, Own::Reset, Own::Cancel];
        all.into_iter()
            .find(|own| own.name().eq_ignore_ascii_case(name) || own.chinese_name() == name)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Own::Help => "help",
            Own::Tools => "tools",
            Own::Model => "model",
            Own::Reset => "reset",
            Own::Cancel => "cancel",
        }
    }

    fn chinese_name(self) -> &'static str {
        match self {
            Own::Help => "帮助",
            Own::Tools => "工具",
            Own::Model => "模型",
            Own::Reset => "重置",
            Own::Cancel => "取消",
        }
    }

    pub(super) async fn execute(
        self,
        ctx: &RunCtx,
        config: &Config,
        call: OwnCall<'_>,
    ) -> Result<Reply, RunFailure> {
        let OwnCall { line, catalogue, texts } = call;
        Ok(match self {
            Own::Help => help(&catalogue.with_contracts(ctx).await, line.rest, texts),
            Own::Tools => {
                let catalogue = catalogue.with_contracts(ctx).await;
                let lines = help::tools(&catalogue, line.rest, texts);
                Reply::done(readable::cut(lines.join("\n"), texts))
            }
            Own::Model if line.rest.is_empty() => show_model(ctx, config, texts),
            Own::Model => reply_or_error(choose_model(ctx, line.rest, texts).await, texts),
            Own::Reset => reply_or_error(reset(ctx, texts).await, texts),
            // With steering, a running run would have received the message.
            Own::Cancel if ctx.context.available_apis.steering_pull => {
                Reply::done(texts.pick("Nothing is running.", "没有正在进行的回答。"))
            }
            Own::Cancel => Reply::done(texts.pick(
                "Nothing is running: this agent handles messages one at a time. \
                 With `queue = \"steer\"` in the agent's settings, `/cancel` cancels the current answer; \
                 otherwise cancel it in the web interface or with `greenroom runs cancel RUN`.",
                "没有正在进行的回答：这里的消息是逐条处理的。\
                 为智能体设置 `queue = \"steer\"` 后，可用 `/cancel` 停止正在进行的回答；\
                 否则请在网页界面中停止，或使用 `greenroom runs cancel RUN`。",
            )),
        })
    }
}

/// An error of the host is also a reply.
fn reply_or_error(done: Result<Reply, AgentAPIError>, texts: Texts) -> Reply {
    done.unwrap_or_else(|error| {
        let text = texts.pick("Failed: ", "执行失败：");
        Reply::failed(format!("{text}{} ({})", error.message, error.code.as_str()))
    })
}

fn help(catalogue: &Catalogue, about: &str, texts: Texts) -> Reply {
    let name = about.trim_start_matches(SLASHES);
    if name.is_empty() || Own::named(name).is_some() {
        return Reply::done(readable::cut(help::all(catalogue, texts), texts));
    }
    match catalogue.find(name) {
        Lookup::One(callable) => Reply::done(help::one(callable, texts)),
        Lookup::Several(several) => Reply::done(help::ambiguous(name, &several, texts)),
        Lookup::Nothing => {
            let none = texts.pick("Unknown tool: ", "没有这个工具：");
            Reply::failed(format!("{none}`{name}`\n\n{}", help::all(catalogue, texts)))
        }
    }
}

fn show_model(ctx: &RunCtx, config: &Config, texts: Texts) -> Reply {
    let models = match Models::choose(ctx, config) {
        Ok(models) => models,
        Err(failure) => return Reply::failed(failure.message),
    };
    let current = models.current().model_id.as_str();
    let mut lines =
        vec![texts.pick("Models of this conversation:", "本会话可用的模型：").to_owned()];
    lines.extend(ctx.resources.models.iter().filter(is_chat_model).map(|model| {
        let mark = match model.model_id == current {
            true => texts.pick(" (in use)", "（使用中）"),
            false => "",
        };
        format!("- {}{mark}", model.model_id)
    }));
    lines.push(texts.pick("`/model NAME` changes it.", "使用 `/model NAME` 切换。").to_owned());
    Reply::done(lines.join("\n"))
}

/// `default` restores the configured model.
async fn choose_model(ctx: &RunCtx, name: &str, texts: Texts) -> Result<Reply, AgentAPIError> {
    let mut granted = ctx.resources.models.iter().filter(is_chat_model);
    if let Some(model) = granted.find(|model| model.model_id.eq_ignore_ascii_case(name)) {
        let model = model.model_id.as_str();
        ctx.state().set(StateScope::Conversation, CHOSEN_MODEL, model).await?;
        let now = texts.pick("This conversation now uses ", "本会话已切换为 ");
        return Ok(Reply::done(format!("{now}`{model}`")));
    }
    if name == "default" {
        ctx.state().delete(StateScope::Conversation, CHOSEN_MODEL).await?;
        let back =
            texts.pick("This conversation uses the default model again.", "本会话恢复默认模型。");
        return Ok(Reply::done(back));
    }
    let names: Vec<&str> = ctx
        .resources
        .models
        .iter()
        .filter(is_chat_model)
        .map(|model| model.model_id.as_str())
        .collect();
    let none = texts.pick("Unknown model. Available models: ", "没有这个模型。可用模型：");
    Ok(Reply::failed(format!("{none}{}", names.join(texts.pick(", ", "、")))))
}

async fn reset(ctx: &RunCtx, texts: Texts) -> Result<Reply, AgentAPIError> {
    compaction::reset(ctx).await?;
    let text = texts.pick(
        "The conversation starts over: earlier messages are no longer used.",
        "会话已重新开始：之前的内容不再作为上下文。",
    );
    Ok(Reply::done(text))
}
