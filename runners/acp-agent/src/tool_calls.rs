//! Tool calls of a harness, joined from its updates.
//!
//! Invariant: a call that was reported as started is reported as completed exactly once; texts are cut, so that one
//! result stays small.

use greenroom_sdk::{HarnessFileChange, HarnessToolKind, RunResult, Value, json};
use serde_json::Map;

/// Longest text of one part of a call.
const TEXT_BYTES_MAX: usize = 48 * 1024;
/// Most parts of one call.
const PARTS_MAX: usize = 50;

/// One call, as far as it is known.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    fields: Map<String, Value>,
    is_started: bool,
    is_completed: bool,
}

impl ToolCall {
    pub(crate) fn new(id: &str) -> Self {
        Self { id: id.to_owned(), ..Self::default() }
    }

    /// Fields that are absent or null in an update keep their value.
    pub(crate) fn update(&mut self, update: &Value) {
        let fields = update.as_object().into_iter().flatten();
        for (name, value) in fields.filter(|(_, value)| !value.is_null()) {
            let is_empty = value.as_object().is_some_and(Map::is_empty);
            if !is_empty || !self.fields.contains_key(name) {
                self.fields.insert(name.clone(), value.clone());
            }
        }
    }

    /// The results that follow from what is known now.
    pub(crate) fn results(&mut self) -> Vec<RunResult> {
        let status = self.text("status").unwrap_or("pending").to_owned();
        let is_over = matches!(status.as_str(), "completed" | "failed");
        let is_known = status != "pending" || self.has("rawInput") || self.has("content");
        let mut results = Vec::new();
        if !self.is_started && (is_known || is_over) {
            results.push(self.started());
        }
        if is_over && !self.is_completed {
            results.push(self.completed(&status));
        }
        results
    }

    /// The call was asked about: it is shown from now on.
    pub(crate) fn begin(&mut self) -> Option<RunResult> {
        (!self.is_started).then(|| self.started())
    }

    /// The turn is over.
    pub(crate) fn end(&mut self) -> Option<RunResult> {
        let is_open = self.is_started && !self.is_completed;
        is_open.then(|| {
            self.is_completed = true;
            let error = json!({"message": "the turn ended before this call did"});
            RunResult::tool_failed(&self.id, self.name(), error)
        })
    }

    pub(crate) fn kind(&self) -> HarnessToolKind {
        self.text("kind").and_then(HarnessToolKind::parse).unwrap_or_default()
    }

    pub(crate) fn title(&self) -> String {
        let title = self.text("title").map(str::trim).filter(|title| !title.is_empty());
        cut(title.unwrap_or(self.kind().as_str()), 1000)
    }

    pub(crate) fn input(&self) -> Option<&Map<String, Value>> {
        self.fields.get("rawInput")?.as_object()
    }

    /// The command line of an execution.
    pub(crate) fn command(&self) -> Option<String> {
        let command = self.input()?.get("command").or_else(|| self.input()?.get("cmd"))?;
        let line = match command {
            Value::String(line) => line.clone(),
            Value::Array(words) => {
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                shlex::try_join(words.iter().copied()).unwrap_or_else(|_| words.join(" "))
            }
            _ => return None,
        };
        Some(cut(&line, TEXT_BYTES_MAX))
    }

    /// What it says of itself.
    pub(crate) fn words(&self) -> String {
        cut(&self.texts().collect::<Vec<_>>().join("\n"), TEXT_BYTES_MAX)
    }

    /// The files that it touches.
    pub(crate) fn paths(&self) -> Vec<String> {
        let locations = self.fields.get("locations").and_then(Value::as_array);
        let paths =
            locations.into_iter().flatten().filter_map(|location| location["path"].as_str());
        let mut paths: Vec<String> = paths.map(|path| cut(path, 4000)).take(PARTS_MAX).collect();
        paths.dedup();
        paths
    }

    /// How files change.
    pub(crate) fn changes(&self) -> Vec<HarnessFileChange> {
        let text =
            |part: &Value, name: &str| part[name].as_str().map(|text| cut(text, TEXT_BYTES_MAX));
        let parts = self.content().filter(|part| part["type"] == "diff");
        let changes = parts.map(|part| HarnessFileChange {
            path: cut(part["path"].as_str().unwrap_or_default(), 4000),
            old_text: text(part, "oldText"),
            new_text: text(part, "newText").unwrap_or_default(),
        });
        changes.take(PARTS_MAX).collect()
    }

    fn started(&mut self) -> RunResult {
        self.is_started = true;
        let mut parameters = json!({"title": self.title(), "kind": self.kind()});
        if let Some(input) = self.fields.get("rawInput") {
            parameters["input"] = cut_value(input);
        }
        let paths = self.paths();
        if !paths.is_empty() {
            parameters["locations"] = json!(paths);
        }
        RunResult::tool_started(&self.id, self.name(), parameters)
    }

    fn completed(&mut self, status: &str) -> RunResult {
        self.is_completed = true;
        let texts: Vec<String> = self.texts().collect();
        let mut result = json!({"title": self.title(), "kind": self.kind(), "status": status});
        let parts = [
            ("locations", json!(self.paths())),
            ("changes", json!(self.changes())),
            ("text", json!(texts.join("\n"))),
            ("output", self.fields.get("rawOutput").map(cut_value).unwrap_or_default()),
        ];
        for (name, value) in parts {
            let is_empty = value.is_null()
                || value.as_str().is_some_and(str::is_empty)
                || value.as_array().is_some_and(Vec::is_empty);
            if !is_empty {
                result[name] = value;
            }
        }
        match status {
            "failed" => {
                let message =
                    texts.first().cloned().unwrap_or_else(|| "the call failed".to_owned());
                let error = json!({"message": message, "details": result});
                RunResult::tool_failed(&self.id, self.name(), error)
            }
            _ => RunResult::tool_completed(&self.id, self.name(), result),
        }
    }

    /// The harness's own name of the tool, else what it does.
    fn name(&self) -> String {
        let meta = self.fields.get("_meta");
        let own = meta.and_then(|meta| meta.pointer("/claudeCode/toolName")?.as_str());
        own.unwrap_or(self.kind().as_str()).chars().take(200).collect()
    }

    fn texts(&self) -> impl Iterator<Item = String> {
        let texts = self.content().filter_map(|part| part.pointer("/content/text")?.as_str());
        texts.map(|text| cut(text, TEXT_BYTES_MAX)).take(PARTS_MAX)
    }

    fn content(&self) -> impl Iterator<Item = &Value> {
        self.fields.get("content").and_then(Value::as_array).into_iter().flatten()
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name)?.as_str()
    }

    fn has(&self, name: &str) -> bool {
        self.fields.get(name).is_some_and(|value| match value {
            Value::Object(fields) => !fields.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => true,
        })
    }
}

/// A value with its texts cut; a large one becomes text.
fn cut_value(value: &Value) -> Value {
    let text = value.to_string();
    if text.len() <= TEXT_BYTES_MAX {
        return value.clone();
    }
    match value {
        Value::String(text) => cut(text, TEXT_BYTES_MAX).into(),
        _ => cut(&text, TEXT_BYTES_MAX).into(),
    }
}

/// The beginning of a long text, with a note on what is left out.
pub(crate) fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    format!("{}\n[… {} bytes more]", &text[..end], text.len() - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_starts_once_it_is_known_and_completes_once() {
        let mut call = ToolCall::new("c1");
        call.update(
            &json!({"title": "Bash", "kind": "execute", "status": "pending", "rawInput": {}}),
        );
        assert_eq!(call.results().len(), 0);
        call.update(
            &json!({"title": "ls", "rawInput": {"command": ["ls", "-l a b"]}, "kind": null}),
        );
        assert_eq!(call.results().len(), 1);
        assert_eq!(call.command().as_deref(), Some("ls '-l a b'"));
        assert_eq!((call.kind(), call.title()), (HarnessToolKind::Execute, "ls".to_owned()));
        let content = json!([{"type": "content", "content": {"type": "text", "text": "x"}},
            {"type": "diff", "path": "/a", "oldText": null, "newText": "n"}]);
        call.update(&json!({"status": "completed", "content": content}));
        assert_eq!(call.results().len(), 1);
        assert_eq!(call.results().len(), 0);
        assert!(call.end().is_none());
        let change =
            HarnessFileChange { path: "/a".to_owned(), old_text: None, new_text: "n".to_owned() };
        assert_eq!(call.changes(), [change]);
    }

    #[test]
    fn a_call_that_never_ends_ends_with_its_turn() {
        let mut call = ToolCall::new("c1");
        assert!(call.end().is_none());
        assert!(call.begin().is_some() && call.begin().is_none());
        assert!(call.end().is_some() && call.end().is_none());
    }
}
