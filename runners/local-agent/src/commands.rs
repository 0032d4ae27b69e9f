//! Slash commands and buttons of cards: tools that a user calls, bypassing the model (seed 002 §1).
//!
//! Invariant: a command is answered without the model, also when it fails. A tool that it calls passes the same checks
//! and leaves the same records as a call of the model, with the authority `user`. Text that starts with `/` and names
//! nothing is ordinary text.

mod arguments;
mod catalogue;
mod help;
mod line;
mod own;
mod readable;
mod schema;
mod sentence;

use crate::config::Config;
use crate::texts::Texts;
use catalogue::{Callable, Catalogue, Lookup};
use greenroom_sdk::{
    ErrorCode, HistoryPageParams, Message, Object, RunCtx, RunFailure, RunResult, ToolAuthority,
    ToolCallParams, ToolCallResult, TranscriptItem, TranscriptRole, Value, json,
};
use line::{Line, SLASHES};
use own::OwnCall;

/// The event of a pressed button.
const CARD_ACTION: &str = "card.action";
/// The kind of the agent's own commands.
const OWN: &str = "own";
/// Items of the conversation that are read to detect its language.
const ITEMS_FOR_LANGUAGE: u32 = 20;

/// Number of words after a command that identify a language rather than a name.
const LANGUAGE_WORDS_MIN: usize = 2;

struct Reply {
    text: String,
    is_failure: bool,
}

/// Who executes a command: the agent itself, or a tool.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Own,
    Tool,
}

impl Reply {
    fn done(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_failure: false }
    }

    fn failed(text: impl Into<String>) -> Self {
        Self { text: text.into(), is_failure: true }
    }
}

/// Executes the command in the run's event, or the action of a pressed button. False if it is neither.
pub(crate) async fn run(ctx: &RunCtx, config: &Config) -> Result<bool, RunFailure> {
    if ctx.event.event_type == CARD_ACTION {
        return press(ctx).await;
    }
    let is_message = ctx.event.event_type == "message.received" && config.commands;
    let Some(line) = Line::parse(ctx.text()).filter(|_| is_message) else { return Ok(false) };
    let texts = language(ctx).await;
    let catalogue = Catalogue::new(&ctx.resources.tools);
    let (kind, name, reply) = match own::Own::named(line.name) {
        Some(own) => {
            let reply = own.execute(ctx, config, OwnCall { line, catalogue, texts }).await?;
            (Kind::Own, own.name().to_owned(), reply)
        }
        None => match catalogue.find(line.name) {
            Lookup::Nothing => return Ok(false),
            Lookup::Several(several) => {
                let text = help::ambiguous(line.name, &several, texts);
                (Kind::Own, line.name.to_owned(), Reply::failed(text))
            }
            Lookup::One(one) => {
                let name = one.name.clone();
                let catalogue = catalogue.with_contracts(ctx).await;
                let Lookup::One(callable) = catalogue.find(&name) else { return Ok(false) };
                (Kind::Tool, name, call_line(ctx, callable, line.rest, texts).await?)
            }
        },
    };
    ctx.emit(RunResult::message_of(message(kind, &name, reply))).await?;
    Ok(true)
}

/// Whether a message during a run requests its cancellation.
pub(crate) fn is_cancel(text: &str, config: &Config) -> bool {
    let line = Line::parse(text).filter(|_| config.commands);
    line.is_some_and(|line| own::Own::named(line.name) == Some(own::Own::Cancel))
}

/// Whether an item answers one of the agent's own commands, which the model does not see.
pub(crate) fn is_aside(item: &TranscriptItem) -> bool {
    let command = item.metadata.get("command").filter(|_| item.role == TranscriptRole::Assistant);
    command.is_some_and(|command| command["kind"] == OWN)
}

/// A text for the model: `//` is an escaped `/`.
pub(crate) fn unescaped<'t>(text: &'t str, config: &Config) -> &'t str {
    let escaped = text.strip_prefix(SLASHES).filter(|rest| rest.starts_with(SLASHES));
    escaped.filter(|_| config.commands).unwrap_or(text)
}

/// The language of the text; if undetermined the host's, else that of the conversation.
async fn language(ctx: &RunCtx) -> Texts {
    match (detect_language(ctx.text()), ctx.runtime.locale.as_deref()) {
        (Some(typed), _) => typed,
        (None, Some(locale)) if locale.starts_with("zh") => Texts::Chinese,
        (None, Some(_)) => Texts::English,
        (None, None) => language_of_history(ctx).await.unwrap_or(Texts::English),
    }
}

/// The language of a text; `None` for numbers and images. Names of commands, tools and arguments are the same in all
/// languages, so after a command only Chinese, or several words, identify a language.
fn detect_language(text: &str) -> Option<Texts> {
    let is_letter = |c: char| c.is_alphabetic();
    if Texts::for_text(text) == Texts::Chinese {
        return Some(Texts::Chinese);
    }
    let Some(line) = Line::parse(text) else {
        return text.contains(is_letter).then_some(Texts::English);
    };
    let is_word = |word: &&str| {
        word.trim_end_matches(['.', ',', '?', '!']).chars().all(|c| is_letter(c) || c == '\'')
    };
    let words = line.rest.split_whitespace().filter(is_word).count();
    (words >= LANGUAGE_WORDS_MIN).then_some(Texts::English)
}

/// The language of the last user message that identifies one.
async fn language_of_history(ctx: &RunCtx) -> Option<Texts> {
    if !ctx.context.has_history_before || !ctx.context.available_apis.history_page {
        return None;
    }
    let params = HistoryPageParams { limit: ITEMS_FOR_LANGUAGE, ..HistoryPageParams::default() };
    let page = ctx.history().page(params).await.ok()?;
    let messages = page.items.into_iter().rev().filter(|item| item.role == TranscriptRole::User);
    messages.filter_map(|item| item.text).find_map(|text| detect_language(&text))
}

/// The message metadata contains the command's name and status.
fn message(kind: Kind, name: &str, reply: Reply) -> Message {
    let status = if reply.is_failure { "failure" } else { "success" };
    let kind = match kind {
        Kind::Own => OWN,
        Kind::Tool => "tool",
    };
    let command = json!({"kind": kind, "name": name, "status": status});
    Message {
        metadata: Some(Object::from_iter([("command".to_owned(), command)])),
        ..Message::assistant(reply.text)
    }
}

/// Calls the tool or method that a pressed button names, with its context as arguments. The model gets a button that
/// names no tool of this run.
async fn press(ctx: &RunCtx) -> Result<bool, RunFailure> {
    let data = &ctx.event.data;
    let name = data.get("action").and_then(Value::as_str).unwrap_or_default();
    let catalogue = Catalogue::new(&ctx.resources.tools).with_contracts(ctx).await;
    let Some(callable) = catalogue.exact(name) else { return Ok(false) };
    let arguments = data.get("context").and_then(Value::as_object).cloned().unwrap_or_default();
    let texts = language(ctx).await;
    let reply = call(ctx, callable, arguments, texts).await?;
    ctx.emit(RunResult::message_of(message(Kind::Tool, name, reply))).await?;
    Ok(true)
}

async fn call_line(
    ctx: &RunCtx,
    callable: &Callable,
    line: &str,
    texts: Texts,
) -> Result<Reply, RunFailure> {
    match arguments::read(line, &callable.schema) {
        Ok(arguments) => call(ctx, callable, arguments, texts).await,
        Err(problem) => {
            let why = help::problem(&problem, texts);
            Ok(Reply::failed(help::failed(callable, &why, texts)))
        }
    }
}

async fn call(
    ctx: &RunCtx,
    callable: &Callable,
    arguments: Object,
    texts: Texts,
) -> Result<Reply, RunFailure> {
    let missing = callable.schema.missing(&arguments);
    let (tool, parameters) = callable.call(arguments);
    // One command per run; a retried run repeats the same call id and does not act twice.
    let id = format!("cmd_{}", ctx.run_id.rsplit('_').next().unwrap_or(&ctx.run_id));
    ctx.emit(RunResult::tool_started(&id, tool, parameters.clone())).await?;
    let params = ToolCallParams {
        tool_call_id: Some(id.clone()),
        authority: ToolAuthority::User,
        ..ToolCallParams::new(tool, parameters)
    };
    let outcome = ctx.tools().call_with(params).await;
    // A cancelled run sends nothing.
    if ctx.is_cancelled() {
        return Err(RunFailure::cancelled());
    }
    let (is_rejected, error) = match outcome {
        Ok(ToolCallResult { result, error: None, .. }) => {
            let text = sentence::from_result(&result, texts);
            let text = text.unwrap_or_else(|| readable::result(&result, texts));
            let text = readable::cut(text, texts);
            ctx.emit(RunResult::tool_completed(&id, tool, result)).await?;
            return Ok(Reply::done(text));
        }
        Ok(ToolCallResult { error: Some(error), .. }) => (false, error),
        Err(error) => {
            let error_value = json!({"code": error.code, "message": error.message});
            (error.code != ErrorCode::InvalidArgument, error_value)
        }
    };
    let why = reason(&error);
    ctx.emit(RunResult::tool_failed(&id, tool, error)).await?;
    Ok(Reply::failed(match is_rejected {
        true => help::rejected(callable, &why, texts),
        false => help::failed(callable, &help::with_missing(why, &missing, texts), texts),
    }))
}

/// `message (CODE)`.
fn reason(error: &Value) -> String {
    let word = |key: &str| error.get(key).and_then(Value::as_str);
    match (word("message"), word("code")) {
        (Some(message), Some(code)) => format!("{message} ({code})"),
        (Some(text), None) | (None, Some(text)) => text.to_owned(),
        (None, None) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_escaped_slash_is_unescaped_if_commands_are_on() {
        let on = Config::default();
        let off = Config { commands: false, ..Config::default() };
        for (text, with, without) in [
            ("//help me", "/help me", "//help me"),
            ("///x", "//x", "///x"),
            ("／／帮助", "／帮助", "／／帮助"),
            ("/help", "/help", "/help"),
            ("a // b", "a // b", "a // b"),
        ] {
            assert_eq!((unescaped(text, &on), unescaped(text, &off)), (with, without));
        }
    }

    #[test]
    fn words_after_a_command_identify_the_language_and_names_do_not() {
        for (text, language) in [
            ("/tools remove an event", Some(Texts::English)),
            ("/note what's new?", Some(Texts::English)),
            ("/tools 日历", Some(Texts::Chinese)),
            ("／note 提醒 me", Some(Texts::Chinese)),
            ("/日历 today", Some(Texts::Chinese)),
            ("//help me", Some(Texts::English)),
            ("你好", Some(Texts::Chinese)),
            ("hello", Some(Texts::English)),
            ("/model", None),
            ("/model nosuch", None),
            ("/help calendar.delete", None),
            ("/calendar.delete event_id=rec_1 if_version=2", None),
            ("/roll 6", None),
            ("👍 42", None),
        ] {
            assert_eq!(detect_language(text), language, "{text}");
        }
    }

    #[test]
    fn only_the_command_cancels_a_run() {
        let on = Config::default();
        let off = Config { commands: false, ..Config::default() };
        for text in [" /cancel ", "/Cancel please", "／cancel", "/取消", "／取消 吧"] {
            assert!(is_cancel(text, &on) && !is_cancel(text, &off), "{text}");
        }
        for text in ["cancel", "//cancel", "please /cancel", "取消", "/取消吧", "/帮助"] {
            assert!(!is_cancel(text, &on), "{text}");
        }
    }
}
