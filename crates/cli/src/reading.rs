//! A run's answer for a person who watches it come, or its results for a program.
//!
//! Invariant: the answer alone goes to standard output, what happens beside it to standard error. Text that was
//! shown as deltas is not shown again when its message is complete.

mod card;
mod words;

pub use words::language_of;

use crate::client::{End, Wait};
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{self, plain};
use crate::times;
use crate::{calls, cut};
use greenroom_protocol::error::run_code;
use greenroom_protocol::payload::{ToolCallCompleted, ToolCallStarted};
use greenroom_protocol::result::kind;
use greenroom_protocol::{AgentRunResult, MessageContent, Payload, RunStatus};
use greenroom_tools::ui::Language;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::time::Instant;

#[derive(Debug)]
pub struct Reading {
    json: bool,
    language: Language,
    shown: Shown,
    /// Calls that have begun, by their ids.
    calls: BTreeMap<String, Begun>,
    /// What the run waits for and was told already.
    waits: BTreeSet<String>,
    /// Whether it was told that the answer is not whole.
    cut: bool,
    /// Whether the run was seen from its first result on, and nothing of an answer in it.
    is_silent: bool,
}

/// A call that has begun.
#[derive(Debug)]
struct Begun {
    name: String,
    at: Option<String>,
    since: Instant,
}

impl Reading {
    pub fn new(json: bool, language: Language) -> Self {
        Self {
            json,
            language,
            shown: Shown::default(),
            calls: BTreeMap::new(),
            waits: BTreeSet::new(),
            cut: false,
            is_silent: false,
        }
    }

    /// Whether what the run waits for is of interest.
    pub fn is_watched(&self) -> bool {
        !self.json
    }

    pub fn take(&mut self, result: &AgentRunResult) -> Result<(), Failure> {
        if self.json {
            return Ok(output::print_json(result)?);
        }
        if result.kind == kind::RUN_RESTARTED {
            output::print(&self.shown.break_off())?;
            self.calls.clear();
            output::note("warning: the run was interrupted and starts again");
            return Ok(());
        }
        let data = serde_json::to_string(&result.data).unwrap_or_default();
        let Ok(payload) = Payload::parse(&result.kind, Some(&data)) else { return Ok(()) };
        let text = self.shown.next(&payload);
        let artifacts = artifacts_of(&payload);
        self.is_silent |= result.sequence == Some(1);
        self.is_silent &= text.is_empty() && artifacts.is_empty();
        output::print(&text)?;
        let at = result.created_at.as_deref();
        match &payload {
            Payload::ToolCallStarted(call) => output::note(&self.begun(call, at)),
            Payload::ToolCallCompleted(call) => output::note(&self.ended(call, at)),
            _ => {}
        }
        let of_answer = matches!(payload, Payload::MessageCompleted(_) | Payload::RunCompleted(_));
        if let Some(reason) = cut::reason(result).filter(|_| of_answer && !self.cut) {
            self.cut = true;
            output::note(&words::cut(self.language, &reason));
        }
        for id in artifacts {
            output::note(&format!(
                "hint: it comes with `{0}`: `greenroom artifacts get {0}`",
                plain(&id)
            ));
        }
        Ok(())
    }

    /// Tells what the run waits for, once each; `option` is what commands need to find the same host.
    pub fn waits(&mut self, waits: &[Wait], option: &str) -> Result<(), Failure> {
        for wait in waits {
            let told = words::waits(self.language, wait, option);
            if self.waits.insert(told.clone()) {
                if std::io::stdout().is_terminal() {
                    output::print(&self.shown.break_line())?;
                }
                output::note(&told);
            }
        }
        Ok(())
    }

    fn begun(&mut self, call: &ToolCallStarted, at: Option<&str>) -> String {
        let name = calls::name(&call.tool_name, &call.parameters);
        let line = format!("→ {name} {}", calls::arguments(&call.tool_name, &call.parameters));
        let begun = Begun { name, at: at.map(str::to_owned), since: Instant::now() };
        self.calls.insert(call.tool_call_id.clone(), begun);
        line.trim_end().to_owned()
    }

    fn ended(&mut self, call: &ToolCallCompleted, at: Option<&str>) -> String {
        let begun = self.calls.remove(&call.tool_call_id);
        let name = match &begun {
            Some(begun) => begun.name.clone(),
            None => calls::name(&call.tool_name, &call.result),
        };
        let took = begun.map_or(0, |begun| {
            let by_host = begun.at.zip(at).and_then(|(from, to)| times::between(&from, to));
            by_host.unwrap_or_else(|| i64::try_from(begun.since.elapsed().as_millis()).unwrap_or(0))
        });
        let took = times::duration(took);
        if !call.error.is_null() {
            return words::failed(self.language, &name, &took, &reason(&call.error));
        }
        let card = card::lines(&call.tool_name, &call.result, self.language);
        let card = card.iter().map(|line| format!("\n  │ {line}"));
        words::done(self.language, &name, &took) + &card.collect::<String>()
    }

    /// Closes the output; a run that did not complete is a failure of the command.
    pub fn end(mut self, run: &End) -> Outcome {
        if !self.json {
            output::print(&self.shown.break_off())?;
        }
        if run.status == RunStatus::Completed {
            if self.is_silent {
                output::note(&words::silent(self.language, &run.run_id));
            }
            return Ok(Exit::Ok);
        }
        let why = match &run.error {
            Some(error) => format!(": {} ({})", plain(&error.message), plain(&error.code)),
            None => String::new(),
        };
        let message = format!("the run ended as `{}`{why}", run.status.as_str());
        let id = &run.run_id;
        let hint = match run.error.as_ref().map(|error| error.code.as_str()) {
            Some(run_code::UNAVAILABLE) => {
                "`greenroom runner list` shows the last output of its runner".to_owned()
            }
            Some(run_code::HOST_INTERRUPTED) => {
                format!("`greenroom runs replay {id}` runs the same event again")
            }
            _ => format!("`greenroom runs show {id}` shows what happened"),
        };
        Err(Failure::new(message).exit(Exit::RunFailed).hint(hint))
    }
}

/// Why a call failed: what its error says, or all of it.
fn reason(error: &Value) -> String {
    let word = |key: &str| error.get(key).and_then(Value::as_str);
    let text = match (word("message"), word("code")) {
        (Some(message), Some(code)) => format!("{message} ({code})"),
        (Some(message), None) => message.to_owned(),
        _ => error.as_str().map_or_else(|| error.to_string(), str::to_owned),
    };
    calls::short(&text, 200)
}

/// The bytes that a result refers to: what was too long for a message, or made beside it.
fn artifacts_of(payload: &Payload) -> Vec<String> {
    match payload {
        Payload::MessageCompleted(completed) => {
            let media = completed.message.media().filter_map(|part| part.media());
            media.filter_map(|media| media.artifact_id.clone()).collect()
        }
        Payload::ArtifactCreated(artifact) => artifact.artifact_id.iter().cloned().collect(),
        _ => Vec::new(),
    }
}

/// What stands on the screen of the message that is being written.
#[derive(Debug, Default)]
struct Shown {
    /// Since the last tool was called.
    text: String,
    /// Before that.
    before: String,
    /// The last message that was shown whole.
    complete: Option<String>,
    /// Whether the line on the screen goes on.
    is_open: bool,
}

impl Shown {
    /// What to print for a result.
    fn next(&mut self, payload: &Payload) -> String {
        let text = match payload {
            Payload::MessageDelta(delta) => {
                let text = plain(&delta.chunk.content);
                self.text.push_str(&text);
                text
            }
            Payload::MessageCompleted(completed) => self.complete(&completed.message.content),
            Payload::RunCompleted(completed) => match &completed.message {
                Some(message) if self.complete != Some(plain(&message.content.text())) => {
                    self.complete(&message.content)
                }
                _ => String::new(),
            },
            Payload::ToolCallStarted(_) => {
                self.before.push_str(&std::mem::take(&mut self.text));
                return self.break_line();
            }
            _ => String::new(),
        };
        if let Some(last) = text.chars().last() {
            self.is_open = last != '\n';
        }
        text
    }

    /// The rest of a message; what came before a tool was called may be a part of it or not.
    fn complete(&mut self, content: &MessageContent) -> String {
        let whole = plain(&content.text());
        let (before, text) = (std::mem::take(&mut self.before), std::mem::take(&mut self.text));
        let all = format!("{before}{text}");
        let rest_after = |shown: &str| match shown.trim() == whole.trim() {
            // Space around it is nothing to write it again for.
            true => Some(""),
            false => whole.strip_prefix(shown),
        };
        // Deltas that were shown and lost with the host are not part of the text that stands.
        let is_shown = all.starts_with(&whole) || text.starts_with(&whole);
        let rest = rest_after(&all).or_else(|| rest_after(&text));
        let rest = rest.or(is_shown.then_some(""));
        let shown = match rest {
            Some("") if !self.is_open => String::new(),
            Some(rest) => format!("{rest}\n"),
            None => format!("\n{whole}\n"),
        };
        self.complete = Some(whole);
        shown
    }

    /// Ends an unfinished line; what is written stays the beginning of its message.
    fn break_line(&mut self) -> String {
        match std::mem::take(&mut self.is_open) {
            true => "\n".to_owned(),
            false => String::new(),
        }
    }

    /// Ends an unfinished message.
    fn break_off(&mut self) -> String {
        self.text.clear();
        self.before.clear();
        self.break_line()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(results: &[(&str, &str)]) -> String {
        let mut shown = Shown::default();
        let next =
            |(kind, data): &(&str, &str)| shown.next(&Payload::parse(kind, Some(data)).unwrap());
        let text: String = results.iter().map(next).collect();
        text + &shown.break_off()
    }

    const HEL: (&str, &str) =
        ("message.delta", r#"{"chunk":{"role":"assistant","content":"hel"}}"#);
    const LO: (&str, &str) = ("message.delta", r#"{"chunk":{"role":"assistant","content":"lo"}}"#);

    #[test]
    fn a_completed_message_adds_only_what_was_not_shown() {
        let done = ("message.completed", r#"{"message":{"role":"assistant","content":"hello"}}"#);
        assert_eq!(shown(&[HEL, LO, done]), "hello\n");
        assert_eq!(shown(&[HEL, done]), "hello\n");
        assert_eq!(shown(&[done, done]), "hello\nhello\n");
    }

    #[test]
    fn text_that_a_restarted_host_kept_only_in_part_is_not_shown_again() {
        let kept = ("message.completed", r#"{"message":{"role":"assistant","content":"hel"}}"#);
        let none = ("message.completed", r#"{"message":{"role":"assistant","content":""}}"#);
        assert_eq!(shown(&[HEL, LO, kept]), "hello\n");
        assert_eq!(shown(&[HEL, LO, none]), "hello\n");
        assert_eq!(shown(&[HEL, CALL, LO, kept]), "hel\nlo\n");
    }

    #[test]
    fn space_around_a_message_is_no_reason_to_show_it_again() {
        let space = ("message.delta", r#"{"chunk":{"role":"assistant","content":" "}}"#);
        let done = ("message.completed", r#"{"message":{"role":"assistant","content":"hello"}}"#);
        assert_eq!(shown(&[HEL, LO, space, done]), "hello \n");
        assert_eq!(shown(&[space, HEL, LO, done]), " hello\n");
    }

    #[test]
    fn a_message_repeated_at_the_end_of_the_run_is_shown_once() {
        let done = ("message.completed", r#"{"message":{"role":"assistant","content":"hello"}}"#);
        let end = ("run.completed", r#"{"message":{"role":"assistant","content":"hello"}}"#);
        assert_eq!(shown(&[HEL, done, end]), "hello\n");
        assert_eq!(shown(&[HEL, end]), "hello\n");
    }

    #[test]
    fn a_message_that_differs_from_its_deltas_is_shown_whole() {
        let other =
            ("message.completed", r#"{"message":{"role":"assistant","content":"goodbye"}}"#);
        assert_eq!(shown(&[HEL, LO, other]), "hello\ngoodbye\n");
    }

    #[test]
    fn deltas_alone_end_with_a_line_break_and_cannot_steer_the_terminal() {
        let bell = ("message.delta", r#"{"chunk":{"role":"assistant","content":"\u001b[31m!"}}"#);
        assert_eq!(shown(&[HEL, LO, bell]), "hello[31m!\n");
    }

    const CALL: (&str, &str) = (
        "tool.call.started",
        r#"{"tool_call_id":"t1","tool_name":"project_cli","parameters":{"module":"memory","method":"read","input":{"query":"tea"}}}"#,
    );

    #[test]
    fn a_tool_ends_the_line_and_what_was_said_before_it_is_not_said_again() {
        let whole = ("message.completed", r#"{"message":{"role":"assistant","content":"hello"}}"#);
        let last = ("message.completed", r#"{"message":{"role":"assistant","content":"lo"}}"#);
        assert_eq!(shown(&[HEL, CALL, LO, whole]), "hel\nlo\n");
        assert_eq!(shown(&[HEL, CALL, LO, last]), "hel\nlo\n");
        assert_eq!(shown(&[HEL, CALL, last]), "hel\nlo\n");
        assert_eq!(shown(&[CALL, HEL, LO]), "hello\n");
    }

    fn told(language: Language, results: &[(&str, &str, &str)]) -> Vec<String> {
        let mut reading = Reading::new(false, language);
        let lines = results.iter().map(|(kind, data, at)| {
            match Payload::parse(kind, Some(data)).unwrap() {
                Payload::ToolCallStarted(call) => reading.begun(&call, Some(at)),
                Payload::ToolCallCompleted(call) => reading.ended(&call, Some(at)),
                _ => String::new(),
            }
        });
        lines.collect()
    }

    #[test]
    fn a_call_is_told_when_it_begins_and_when_it_ends() {
        let done = r#"{"tool_call_id":"t1","tool_name":"project_cli","result":{"module":"memory","method":"read","data":{"count":0}}}"#;
        let failed = r#"{"tool_call_id":"t1","tool_name":"project_cli","error":{"code":"TIMEOUT","message":"too slow"}}"#;
        let (from, to) = ("2026-01-02T03:04:05.000Z", "2026-01-02T03:04:05.031Z");
        let results = [
            (CALL.0, CALL.1, from),
            ("tool.call.completed", done, to),
            (CALL.0, CALL.1, from),
            ("tool.call.completed", failed, to),
        ];
        let english = [
            "→ memory.read {\"query\":\"tea\"}",
            "✓ memory.read ok, 31 ms\n  │ {\"count\":0}",
            "→ memory.read {\"query\":\"tea\"}",
            "✗ memory.read failed, 31 ms: too slow (TIMEOUT)",
        ];
        assert_eq!(told(Language::English, &results), english);
        let chinese = told(Language::Chinese, &results);
        assert!(chinese[1].starts_with("✓ memory.read 完成\u{ff0c}31 ms"), "{chinese:?}");
        assert!(
            chinese[3].starts_with("✗ memory.read 失败\u{ff0c}31 ms\u{ff1a}too slow"),
            "{chinese:?}"
        );
    }
}
