//! Slash commands: what a user calls by name, past the model (seed 002 §1).
//!
//! Invariant: a command is answered without the model, also when it fails, and a tool that it calls passes the
//! same checks and leaves the same records as one that the model calls, with the authority `user`. Text that
//! begins with `/` and names nothing is a text like any other.

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
use catalogue::{Callable, Catalogue, Found};
use greenroom_sdk::{
    ErrorCode, HistoryPageParams, Message, Object, RunCtx, RunFailure, RunResult, ToolAuthority,
    ToolCallParams, ToolCallResult, TranscriptItem, TranscriptRole, Value, json,
};
use line::{Line, SLASHES};
use own::Asked;

/// The kind of a command that the agent itself carries out.
const OWN: &str = "own";
/// Items of the conversation that are looked at to learn its language.
const ITEMS_FOR_LANGUAGE: u32 = 20;

/// Words behind a command from which on they are somebody's language, and not a name.
const WORDS_THAT_TELL: usize = 2;

/// What a command is answered with.
struct Reply {
    text: String,
    is_failure: bool,
}

/// Who carries a command out: the agent itself, or a tool.
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

/// Carries out the command that the run's event is. False: it is none, and the model is to answer.
pub(crate) async fn run(ctx: &RunCtx, config: &Config) -> Result<bool, RunFailure> {
    let is_said = ctx.event.event_type == "message.received";
    let Some(line) = Line::of(ctx.text()).filter(|_| is_said) else { return Ok(false) };
    let texts = language(ctx).await;
    let catalogue = Catalogue::of(&ctx.resources.tools);
    let (kind, name, reply) = match own::Own::named(line.name) {
        Some(own) => {
            let reply = own.carry_out(ctx, config, Asked { line, catalogue, texts }).await?;
            (Kind::Own, own.name().to_owned(), reply)
        }
        None => match catalogue.find(line.name) {
            Found::Nothing => return Ok(false),
            Found::Several(several) => {
                let text = help::which(line.name, &several, texts);
                (Kind::Own, line.name.to_owned(), Reply::failed(text))
            }
            Found::One(one) => {
                let name = one.name.clone();
                let catalogue = catalogue.with_contracts(ctx).await;
                let Found::One(callable) = catalogue.find(&name) else { return Ok(false) };
                (Kind::Tool, name, call(ctx, callable, line.rest, texts).await?)
            }
        },
    };
    ctx.emit(RunResult::message_of(message(kind, &name, reply))).await?;
    Ok(true)
}

/// Whether a message that arrives during a run asks for its end.
pub(crate) fn is_cancel(text: &str, config: &Config) -> bool {
    let line = Line::of(text).filter(|_| config.commands);
    line.is_some_and(|line| own::Own::named(line.name) == Some(own::Own::Cancel))
}

/// Whether an item is an answer to a command of the agent's own: between it and the user, not the model's matter.
pub(crate) fn is_aside(item: &TranscriptItem) -> bool {
    let command = item.metadata.get("command").filter(|_| item.role == TranscriptRole::Assistant);
    command.is_some_and(|command| command["kind"] == OWN)
}

/// A text as the model reads it: `//` stands for a `/` that begins no command.
pub(crate) fn unescaped<'t>(text: &'t str, config: &Config) -> &'t str {
    let escaped = text.strip_prefix(SLASHES).filter(|rest| rest.starts_with(SLASHES));
    escaped.filter(|_| config.commands).unwrap_or(text)
}

/// The language of what was typed; where that tells nothing, the host's, else that of the conversation.
async fn language(ctx: &RunCtx) -> Texts {
    match (tells(ctx.text()), ctx.runtime.locale.as_deref()) {
        (Some(typed), _) => typed,
        (None, Some(locale)) if locale.starts_with("zh") => Texts::Chinese,
        (None, Some(_)) => Texts::English,
        (None, None) => said_before(ctx).await.unwrap_or(Texts::English),
    }
}

/// The language of a text; numbers and pictures tell nothing. The names of commands, tools and arguments are the
/// same for everybody, so behind a command it takes Chinese, or several words, to tell.
fn tells(text: &str) -> Option<Texts> {
    let is_letter = |c: char| c.is_alphabetic();
    if Texts::for_text(text) == Texts::Chinese {
        return Some(Texts::Chinese);
    }
    let Some(line) = Line::of(text) else {
        return text.contains(is_letter).then_some(Texts::English);
    };
    let is_word = |word: &&str| {
        word.trim_end_matches(['.', ',', '?', '!']).chars().all(|c| is_letter(c) || c == '\'')
    };
    let words = line.rest.split_whitespace().filter(is_word).count();
    (words >= WORDS_THAT_TELL).then_some(Texts::English)
}

/// The language of what the user said last that tells one.
async fn said_before(ctx: &RunCtx) -> Option<Texts> {
    if !ctx.context.has_history_before || !ctx.context.available_apis.history_page {
        return None;
    }
    let asked = HistoryPageParams { limit: ITEMS_FOR_LANGUAGE, ..HistoryPageParams::default() };
    let page = ctx.history().page(asked).await.ok()?;
    let said = page.items.into_iter().rev().filter(|item| item.role == TranscriptRole::User);
    said.filter_map(|item| item.text).find_map(|text| tells(&text))
}

/// The command's name and outcome stand beside the answer, for whoever reads the transcript.
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

async fn call(
    ctx: &RunCtx,
    callable: &Callable,
    line: &str,
    texts: Texts,
) -> Result<Reply, RunFailure> {
    let arguments = match arguments::read(line, &callable.schema) {
        Ok(arguments) => arguments,
        Err(problem) => {
            let why = help::problem(&problem, texts);
            return Ok(Reply::failed(help::failed(callable, &why, texts)));
        }
    };
    let missing = callable.schema.missing(&arguments);
    let (tool, parameters) = callable.call(arguments);
    // One command per run; a second attempt of the run makes the same call and does not act twice.
    let id = format!("cmd_{}", ctx.run_id.rsplit('_').next().unwrap_or(&ctx.run_id));
    ctx.emit(RunResult::tool_started(&id, tool, parameters.clone())).await?;
    let params = ToolCallParams {
        tool_call_id: Some(id.clone()),
        authority: ToolAuthority::User,
        ..ToolCallParams::new(tool, parameters)
    };
    let answered = ctx.tools().call_with(params).await;
    // A run that is over has nobody to tell.
    if ctx.is_cancelled() {
        return Err(RunFailure::cancelled());
    }
    let (is_refused, error) = match answered {
        Ok(ToolCallResult { result, error: None, .. }) => {
            let text = sentence::of(&result, texts);
            let text = text.unwrap_or_else(|| readable::result(&result, texts));
            let text = readable::cut(text, texts);
            ctx.emit(RunResult::tool_completed(&id, tool, result)).await?;
            return Ok(Reply::done(text));
        }
        Ok(ToolCallResult { error: Some(error), .. }) => (false, error),
        Err(error) => {
            let told = json!({"code": error.code, "message": error.message});
            (error.code != ErrorCode::InvalidArgument, told)
        }
    };
    let why = reason(&error);
    ctx.emit(RunResult::tool_failed(&id, tool, error)).await?;
    Ok(Reply::failed(match is_refused {
        true => help::refused(callable, &why, texts),
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
    fn two_slashes_are_one_for_the_model_where_commands_are_on() {
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
    fn the_words_behind_a_command_tell_the_language_and_names_do_not() {
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
            assert_eq!(tells(text), language, "{text}");
        }
    }

    #[test]
    fn a_run_is_called_off_by_the_command_alone() {
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
