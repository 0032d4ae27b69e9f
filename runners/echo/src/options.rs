//! Options of a run: the agent's config, and the first words of the text if allowed.
//!
//! Invariant: the text chooses a mode only when the config says `modes = true`.

use greenroom_sdk::{Object, RunCtx, RunFailure, StateScope};
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    Echo,
    Stream,
    Count,
    Slow,
    State,
    Huge,
    Calls,
    Fail,
    Stubborn,
    Crash,
    Panic,
    Hang,
    NoTerminal,
    Unknown,
    Sequence,
    WrongRun,
    AfterTerminal,
    Garbage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Style {
    Plain,
    Assistant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CrashAt {
    Before,
    Middle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HugeForm {
    Completed,
    Deltas,
}

#[derive(Debug, Deserialize)]
#[serde(default)]
pub(crate) struct Options {
    pub(crate) style: Style,
    pub(crate) modes: bool,
    pub(crate) mode: Mode,
    pub(crate) n: u64,
    pub(crate) at_once: u64,
    pub(crate) delay_ms: u64,
    pub(crate) code: String,
    pub(crate) message: String,
    pub(crate) retryable: bool,
    pub(crate) at: CrashAt,
    pub(crate) megabytes: usize,
    pub(crate) form: HugeForm,
    pub(crate) scope: StateScope,
    pub(crate) key: String,
    pub(crate) block: bool,
    pub(crate) run_id: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            style: Style::Plain,
            modes: false,
            mode: Mode::Echo,
            n: 10,
            at_once: 32,
            delay_ms: 0,
            code: "echo.failed".to_owned(),
            message: "failed as requested".to_owned(),
            retryable: false,
            at: CrashAt::Middle,
            megabytes: 1,
            form: HugeForm::Completed,
            scope: StateScope::Conversation,
            key: "echo.last".to_owned(),
            block: false,
            run_id: "another-run".to_owned(),
        }
    }
}

impl Options {
    pub(crate) fn failure(&self) -> RunFailure {
        let failure = RunFailure::new(&self.code, &self.message);
        if self.retryable { failure.retryable() } else { failure }
    }
}

/// The mode, its options, and the text that is left to echo.
pub(crate) struct Request {
    pub(crate) mode: Mode,
    pub(crate) options: Options,
    pub(crate) text: String,
}

impl Request {
    pub(crate) fn of(ctx: &RunCtx) -> Result<Self, RunFailure> {
        let options = read(ctx.config.clone())?;
        match ctx.text().strip_prefix('/') {
            Some(command) if options.modes => Self::from_command(ctx.config.clone(), command),
            _ => Ok(Self { mode: options.mode, options, text: ctx.text().to_owned() }),
        }
    }

    /// `/MODE key=value … text`: the words before the first without `=` are options.
    fn from_command(mut config: Object, command: &str) -> Result<Self, RunFailure> {
        let (mode, mut rest) = command.split_once(' ').unwrap_or((command, ""));
        config.insert("mode".to_owned(), mode.into());
        while let Some((word, after)) = rest.split_once(' ').or(Some((rest, "")))
            && let Some((key, value)) = word.split_once('=')
        {
            let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
            config.insert(key.to_owned(), value);
            rest = after;
        }
        let options = read(config)?;
        Ok(Self { mode: options.mode, options, text: rest.to_owned() })
    }
}

fn read(config: Object) -> Result<Options, RunFailure> {
    serde_json::from_value(Value::Object(config)).map_err(|error| {
        RunFailure::new("echo.invalid_config", format!("invalid config of echo: {error}"))
    })
}
