//! Hints compiled to A2UI v0.9: the components of a template, then its data.
//!
//! Invariant: the same hints give the same operations; user text is in the data model, never in the components,
//! and actions contain only our own ids.

use super::catalogue::validate;
use super::components::Components;
use super::words::{Language, Word};
use serde_json::{Value, json};

/// The basic catalogue, by the id of the specification.
pub const CATALOGUE_ID: &str = "https://a2ui.org/specification/v0_9/catalogs/basic/catalog.json";
/// The id by which renderers before version 0.11 know it, for example CopilotKit's.
pub const OLDER_CATALOGUE_ID: &str = "https://a2ui.org/specification/v0_9/basic_catalog.json";
pub const BASIC_CATALOGUES: [&str; 2] = [CATALOGUE_ID, OLDER_CATALOGUE_ID];
const VERSION: &str = "v0.9";

/// The options of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub language: Language,
    /// Clients know the basic catalogue by different ids.
    pub catalogue_id: String,
}

impl Default for Options {
    fn default() -> Self {
        Self { language: Language::default(), catalogue_id: CATALOGUE_ID.to_owned() }
    }
}

/// The `ui_schema` of a call; `None` for unknown hints.
pub fn compile(ui_hints: &Value, options: &Options) -> Option<Value> {
    if ui_hints.get("version").and_then(Value::as_u64) != Some(1) {
        return None;
    }
    let surface_id = ui_hints.get("surface_id")?.as_str()?;
    let mut data = ui_hints.get("data")?.clone();
    let mut card = Card { words: options.language, components: Components::default() };
    match ui_hints.get("template")?.as_str()? {
        "event_list" => card.event_list(&mut data),
        "event" => card.event(&mut data),
        "contact_list" => card.contact_list(&data),
        "contact" => card.contact(&data),
        "memory" => card.memory(&data),
        _ => return None,
    }
    let ui_schema = json!({
        "format": "a2ui",
        "version": VERSION,
        "operations": [
            {"version": VERSION, "createSurface": {"surfaceId": surface_id, "catalogId": options.catalogue_id}},
            {"version": VERSION, "updateComponents": {"surfaceId": surface_id, "components": card.components.into_value()}},
            {"version": VERSION, "updateDataModel": {"surfaceId": surface_id, "path": "/", "value": data}},
        ],
    });
    match validate(&ui_schema) {
        Ok(()) => Some(ui_schema),
        Err(error) => {
            tracing::error!(%error, "hints compiled to a user interface that the catalogue refuses");
            None
        }
    }
}

struct Card {
    words: Language,
    components: Components,
}

fn fact<'a>(data: &'a Value, key: &str) -> &'a str {
    data.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn has(data: &Value, key: &str) -> bool {
    match data.get(key) {
        Some(Value::String(text)) => !text.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Bool(yes)) => *yes,
        _ => false,
    }
}

impl Card {
    fn word(&self, word: Word) -> &'static str {
        self.words.word(word)
    }

    fn event_list(&mut self, data: &mut Value) {
        let heading = self.word(Word::Events);
        let mut rows = vec![self.components.words("heading", heading, "h4")];
        if has(data, "when") {
            rows.push(self.components.text("when", "/when", "caption"));
        }
        if has(data, "timezone") {
            rows.push(self.components.text("timezone", "/timezone", "caption"));
        }
        if has(data, "items") {
            let mut item = vec![
                self.components.text("item-title", "title", "h5"),
                self.components.text("item-when", "when", "caption"),
                self.components.text("item-location", "location", "caption"),
            ];
            let context = json!({"mode": "event", "event_id": {"path": "id"}});
            let label = self.word(Word::Details);
            item.push(self.components.button("item-details", label, "calendar.read", context));
            self.components.column("item", item);
            rows.push(self.components.list("items", "item", "/items"));
        } else {
            let none = self.word(Word::NoEvents);
            rows.push(self.components.words("none", none, "body"));
        }
        self.more(data, &mut rows);
        self.done(rows);
    }

    fn event(&mut self, data: &mut Value) {
        let mut rows = Vec::new();
        let outcome = Word::of(fact(data, "outcome"));
        let invitation = fact(data, "invitation").to_owned();
        let outcome_word = match invitation.as_str() {
            "pending" if outcome.is_none() => Some(Word::Invited),
            _ => outcome.or_else(|| Word::of(&invitation)),
        };
        if let Some(outcome_word) = outcome_word {
            let outcome_word = self.word(outcome_word);
            rows.push(self.components.words("outcome", outcome_word, "caption"));
        }
        let title = vec![
            self.components.icon("title-icon", "event"),
            self.components.text("title-text", "/title", "h4"),
        ];
        rows.push(self.components.row("title", title));
        for (key, icon) in [("when", "calendarToday"), ("location", "locationOn")] {
            if has(data, key) {
                let line = vec![
                    self.components.icon(&format!("{key}-icon"), icon),
                    self.components.text(&format!("{key}-text"), &format!("/{key}"), "body"),
                ];
                rows.push(self.components.row(key, line));
            }
        }
        if has(data, "notes") {
            rows.push(self.components.text("notes", "/notes", "body"));
        }
        if has(data, "attendees") {
            self.people(data, &mut rows);
        }
        let actions = self.event_actions(fact(data, "id"), outcome, &invitation);
        if !actions.is_empty() {
            rows.push(self.components.divider("divider"));
            rows.push(self.components.row("actions", actions));
        }
        self.done(rows);
    }

    fn people(&mut self, data: &mut Value, rows: &mut Vec<String>) {
        for person in data["attendees"].as_array_mut().into_iter().flatten() {
            if let Some(word) = Word::of(fact(person, "status")) {
                person["status"] = self.words.word(word).into();
            }
        }
        let heading = self.word(Word::People);
        rows.push(self.components.words("people-heading", heading, "h5"));
        let person = vec![
            self.components.icon("person-icon", "person"),
            self.components.text("person-name", "name", "body"),
            self.components.text("person-status", "status", "caption"),
        ];
        self.components.row("person", person);
        rows.push(self.components.list("people", "person", "/attendees"));
    }

    /// The next actions for an event: the invited may answer, its owner may delete it.
    fn event_actions(&mut self, id: &str, outcome: Option<Word>, invitation: &str) -> Vec<String> {
        let context = json!({"event_id": id});
        if outcome == Some(Word::Deleted) || id.is_empty() {
            return Vec::new();
        }
        let offered: &[(&str, Word, &str)] = match invitation {
            "pending" => &[
                ("accept", Word::Accept, "calendar.accept_invite"),
                ("decline", Word::Decline, "calendar.reject_invite"),
            ],
            "accepted" => &[("decline", Word::Decline, "calendar.reject_invite")],
            "rejected" => &[("accept", Word::Accept, "calendar.accept_invite")],
            _ => &[("delete", Word::Delete, "calendar.delete")],
        };
        let button = |(id, label, method): &(&str, Word, &str)| {
            let label = self.words.word(*label);
            self.components.button(id, label, method, context.clone())
        };
        offered.iter().map(button).collect()
    }

    fn contact_list(&mut self, data: &Value) {
        let heading = self.word(Word::Contacts);
        let mut rows = vec![self.components.words("heading", heading, "h4")];
        if has(data, "items") {
            let about = vec![
                self.components.text("item-name", "name", "body"),
                self.components.text("item-details", "details", "caption"),
            ];
            let about = self.components.column("item-about", about);
            let icon = self.components.icon("item-icon", "person");
            self.components.row("item", vec![icon, about]);
            rows.push(self.components.list("items", "item", "/items"));
        } else {
            let none = self.word(Word::NoContacts);
            rows.push(self.components.words("none", none, "body"));
        }
        self.more(data, &mut rows);
        self.done(rows);
    }

    fn contact(&mut self, data: &Value) {
        let name = vec![
            self.components.icon("name-icon", "person"),
            self.components.text("name-text", "/name", "h4"),
        ];
        let mut rows = vec![self.components.row("name", name)];
        for key in ["details", "notes"] {
            if has(data, key) {
                rows.push(self.components.text(key, &format!("/{key}"), "body"));
            }
        }
        self.done(rows);
    }

    fn memory(&mut self, data: &Value) {
        let mut rows = Vec::new();
        if fact(data, "outcome") == "partial" {
            let partly = self.word(Word::PartlyDone);
            rows.push(self.components.words("outcome", partly, "caption"));
        }
        if has(data, "set") {
            let heading = self.word(Word::Remembered);
            rows.push(self.components.words("set-heading", heading, "h5"));
            let fact = vec![
                self.components.text("fact-key", "key", "caption"),
                self.components.text("fact-value", "value", "body"),
            ];
            self.components.column("fact", fact);
            rows.push(self.components.list("set", "fact", "/set"));
        }
        if has(data, "deleted") {
            let heading = self.word(Word::Forgotten);
            rows.push(self.components.words("deleted-heading", heading, "h5"));
            self.components.text("forgotten", "key", "body");
            rows.push(self.components.list("deleted", "forgotten", "/deleted"));
        }
        if rows.is_empty() {
            let nothing = self.word(Word::NothingChanged);
            rows.push(self.components.words("nothing", nothing, "body"));
        }
        self.done(rows);
    }

    fn more(&mut self, data: &Value, rows: &mut Vec<String>) {
        if has(data, "has_more") {
            let more = self.word(Word::More);
            rows.push(self.components.words("more", more, "caption"));
        }
    }

    fn done(&mut self, rows: Vec<String>) {
        let body = self.components.column("body", rows);
        self.components.card(body);
    }
}
