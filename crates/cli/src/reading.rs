//! A run's answer for a person who watches it come, or its results for a program.
//!
//! Invariant: text that was shown as deltas is not shown again when its message is complete.

use crate::failure::{Exit, Failure, Outcome};
use crate::output::{self, plain};
use greenroom_protocol::result::kind;
use greenroom_protocol::{AgentRunResult, MessageContent, Payload, RunStatus, RunView};

#[derive(Debug)]
pub struct Reading {
    json: bool,
    shown: Shown,
}

impl Reading {
    pub fn new(json: bool) -> Self {
        Self { json, shown: Shown::default() }
    }

    pub fn take(&mut self, result: &AgentRunResult) -> Result<(), Failure> {
        if self.json {
            return Ok(output::print_json(result)?);
        }
        if result.kind == kind::RUN_RESTARTED {
            output::print(&self.shown.break_off())?;
            output::note("warning: the run was interrupted and starts again");
            return Ok(());
        }
        let data = serde_json::to_string(&result.data).unwrap_or_default();
        let Ok(payload) = Payload::parse(&result.kind, Some(&data)) else { return Ok(()) };
        output::print(&self.shown.next(&payload))?;
        for id in artifacts_of(&payload) {
            output::note(&format!(
                "hint: it comes with `{0}`: `greenroom artifacts get {0}`",
                plain(&id)
            ));
        }
        Ok(())
    }

    /// Closes the output; a run that did not complete is a failure of the command.
    pub fn end(mut self, run: &RunView) -> Outcome {
        if !self.json {
            output::print(&self.shown.break_off())?;
        }
        if run.status == RunStatus::Completed {
            return Ok(Exit::Ok);
        }
        let why = match &run.error {
            Some(error) => format!(": {} ({})", plain(&error.message), plain(&error.code)),
            None => String::new(),
        };
        let message = format!("the run ended as `{}`{why}", run.status.as_str());
        Err(Failure::new(message)
            .exit(Exit::RunFailed)
            .hint(format!("`greenroom runs show {}` tells its story", run.run_id)))
    }
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
    text: String,
    /// The last message that was shown whole.
    complete: Option<String>,
}

impl Shown {
    /// What to print for a result.
    fn next(&mut self, payload: &Payload) -> String {
        match payload {
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
            _ => String::new(),
        }
    }

    fn complete(&mut self, content: &MessageContent) -> String {
        let whole = plain(&content.text());
        let shown = std::mem::take(&mut self.text);
        let text = match whole.strip_prefix(&shown) {
            Some(rest) => format!("{rest}\n"),
            None => format!("\n{whole}\n"),
        };
        self.complete = Some(whole);
        text
    }

    /// Ends an unfinished line.
    fn break_off(&mut self) -> String {
        match std::mem::take(&mut self.text).is_empty() {
            true => String::new(),
            false => "\n".to_owned(),
        }
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
}
