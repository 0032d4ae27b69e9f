//! Shows a run as it proceeds: its answer for people, or its results as JSON.
//!
//! Invariant: the answer goes to standard output, everything else to standard error. Text that was shown as deltas
//! is not repeated when its message is complete.

mod card;
mod form;
mod harness;
mod words;

pub use form::form_lines;
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
    /// Active tool calls by id.
    calls: BTreeMap<String, ActiveCall>,
    /// Waits that were reported.
    waits: BTreeSet<String>,
    /// Whether an incomplete answer was reported.
    cut: bool,
    /// Whether the run was followed from its first result and has no answer so far.
    is_silent: bool,
}

/// An active tool call.
#[derive(Debug)]
struct ActiveCall {
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

    /// Whether to report what the run waits for.
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
            output::note("warning: the run was interrupted and restarts");
            return Ok(());
        }
        if result.kind == kind::PLAN_UPDATED {
            output::print(&self.shown.break_line())?;
            output::note(&harness::plan(&result.data, self.language));
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
        if let Some(request) = form::question_of(&payload) {
            output::print(&self.shown.break_line())?;
            let lines = form_lines(&request, &result.run_id, self.language);
            output::note(&lines.join("\n"));
        }
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
                "hint: it has the artifact `{0}`: `greenroom artifacts get {0}`",
                plain(&id)
            ));
        }
        Ok(())
    }

    /// Reports what the run waits for, once each; `option` selects the host in suggested commands.
    pub fn waits(&mut self, waits: &[Wait], option: &str) -> Result<(), Failure> {
        for wait in waits {
            let text = words::waits(self.language, wait, option);
            if self.waits.insert(text.clone()) {
                if std::io::stdout().is_terminal() {
                    output::print(&self.shown.break_line())?;
                }
                output::note(&text);
            }
        }
        Ok(())
    }

    fn begun(&mut self, call: &ToolCallStarted, at: Option<&str>) -> String {
        let name = calls::name(&call.tool_name, &call.parameters);
        let line = format!("→ {name} {}", calls::arguments(&call.tool_name, &call.parameters));
        let begun = ActiveCall { name, at: at.map(str::to_owned), since: Instant::now() };
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
        let card = harness::lines(&call.result)
            .unwrap_or_else(|| card::lines(&call.tool_name, &call.result, self.language));
        let card = card.iter().map(|line| format!("\n  │ {line}"));
        words::done(self.language, &name, &took) + &card.collect::<String>()
    }

    /// Ends the output; the command fails unless the run completed.
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
                "`greenroom runner list` shows its last error".to_owned()
            }
            Some(run_code::HOST_INTERRUPTED) => {
                format!("`greenroom runs replay {id}` runs the same event again")
            }
            _ => format!("`greenroom runs show {id}` shows the details"),
        };
        Err(Failure::new(message).exit(Exit::RunFailed).hint(hint))
    }
}

/// Why a call failed: message and code of its error, or all of it.
fn reason(error: &Value) -> String {
    let word = |key: &str| error.get(key).and_then(Value::as_str);
    let text = match (word("message"), word("code")) {
        (Some(message), Some(code)) => format!("{message} ({code})"),
        (Some(message), None) => message.to_owned(),
        _ => error.as_str().map_or_else(|| error.to_string(), str::to_owned),
    };
    calls::short(&text, 200)
}

/// The artifacts of a result: parts too large for a message, or files that the run created.
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

/// What the terminal shows of the current message.
#[derive(Debug, Default)]
struct Shown {
    /// Since the last tool call.
    text: String,
    /// Before that.
    before: String,
    /// The last complete message.
    complete: Option<String>,
    /// Whether the last line is unfinished.
    is_open: bool,
}

impl Shown {
    /// What to print for a result.
    fn next(&mut self, payload: &Payload) -> String {
        let text = match payload {
            Payload::MessageDelta(delta) => {
                let text = &delta.chunk.content;
                if delta.chunk.replace {
                    self.replace(text)
                } else {
                    self.text.push_str(text);
                    text.clone()
                }
            }
            Payload::MessageCompleted(completed) => self.complete(&completed.message.content),
            Payload::RunCompleted(completed) => match &completed.message {
                Some(message) if self.complete != Some(message.content.text()) => {
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
        plain(&text)
    }

    /// The rest of a message, which may or may not include the text before the last tool call.
    fn complete(&mut self, content: &MessageContent) -> String {
        let whole = content.text();
        let (before, text) = (std::mem::take(&mut self.before), std::mem::take(&mut self.text));
        let all = format!("{before}{text}");
        let rest_after = |shown: &str| match shown.trim() == whole.trim() {
            // Surrounding whitespace alone is no reason to repeat it.
            true => Some(""),
            false => whole.strip_prefix(shown),
        };
        // A crash of the host may lose deltas that were shown; the stored text is then shorter.
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

    /// A text in place of the one shown, which a terminal cannot take back: it is printed below.
    fn replace(&mut self, text: &str) -> String {
        let line = self.break_off();
        self.text = text.to_owned();
        format!("{line}{text}")
    }

    /// Ends an unfinished line within a message.
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
        assert_eq!(shown(&[HEL, LO, bell]), "hello<U+001B>[31m!\n");
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

    fn lines(language: Language, results: &[(&str, &str, &str)]) -> Vec<String> {
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
    fn a_call_is_shown_when_it_starts_and_when_it_ends() {
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
        assert_eq!(lines(Language::English, &results), english);
        let chinese = lines(Language::Chinese, &results);
        assert!(chinese[1].starts_with("✓ memory.read 完成\u{ff0c}31 ms"), "{chinese:?}");
        assert!(
            chinese[3].starts_with("✗ memory.read 失败\u{ff0c}31 ms\u{ff1a}too slow"),
            "{chinese:?}"
        );
    }
}
