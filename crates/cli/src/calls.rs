//! Tool calls and approval requests as text for people.
//!
//! Invariant: one line each, of bounded width, without terminal control characters.

use crate::output::{columns_of, plain};
use crate::timezone;
use greenroom_protocol::Object;
use greenroom_protocol::api::platform::{ApprovalView, TOOL_CALL, TOOL_INPUT};
use greenroom_tools::project_cli::TOOL_NAME;
use greenroom_tools::ui::Language;
use greenroom_tools::{Risk, subject};
use jiff::tz::TimeZone;
use serde_json::Value;

/// Width of the arguments of a call.
const ARGUMENTS_COLUMNS: usize = 80;
/// Actions of external harnesses, by the kind of the tool.
const HARNESS: &str = "harness.";
/// Width of the subject of an approval.
const SUBJECT_COLUMNS: usize = 200;

/// The name of the tool; for the project CLI that of the method, such as `calendar.read`.
pub fn name(tool_name: &str, parameters: &Value) -> String {
    let part = |key| parameters.get(key).and_then(Value::as_str);
    match (tool_name, part("module"), part("method")) {
        (TOOL_NAME, Some(module), Some(method)) => short(&format!("{module}.{method}"), 80),
        _ => short(tool_name, 80),
    }
}

/// The arguments; empty if there are none.
pub fn arguments(tool_name: &str, parameters: &Value) -> String {
    let shown = match tool_name {
        TOOL_NAME => parameters.get("input").unwrap_or(&Value::Null),
        _ => parameters,
    };
    match shown {
        Value::Null => String::new(),
        Value::Object(none) if none.is_empty() => String::new(),
        // A call of an external harness says itself what it does.
        Value::Object(call) if call.contains_key("kind") && call.contains_key("title") => {
            short(call["title"].as_str().unwrap_or_default(), ARGUMENTS_COLUMNS)
        }
        shown => short(&shown.to_string(), ARGUMENTS_COLUMNS),
    }
}

/// The tool or action of an approval, and its subject or arguments.
pub fn request(approval: &ApprovalView, language: Language) -> (String, String) {
    let payload = Value::Object(approval.payload.clone());
    if approval.action == TOOL_INPUT {
        let part = |of: &Object, key| of.get(key).and_then(Value::as_str).map(str::to_owned);
        let server = part(&approval.target, "server").unwrap_or_default();
        let asked = [part(&approval.payload, "message"), part(&approval.payload, "url")];
        let asked: Vec<String> = asked.into_iter().flatten().collect();
        let who = match language {
            Language::English => format!("question of {server}"),
            Language::Chinese => format!("{server} 的提问"),
        };
        return (short(&who, 80), short(&asked.join(" "), SUBJECT_COLUMNS));
    }
    if approval.action.starts_with(HARNESS) {
        let title = approval.target.get("title").and_then(Value::as_str).unwrap_or_default();
        let shown = about(approval, language).filter(|about| !about.is_empty());
        return (
            short(&approval.action, 80),
            shown.unwrap_or_else(|| short(title, SUBJECT_COLUMNS)),
        );
    }
    match tool_of(&approval.action, &approval.target) {
        Some(tool) => {
            let about = about(approval, language);
            (name(tool, &payload), about.unwrap_or_else(|| arguments(tool, &payload)))
        }
        None => {
            let target = approval.target.values().filter_map(Value::as_str);
            let target = target.map(|target| format!("{target} ")).collect::<String>();
            let shown = format!("{target}{payload}");
            (short(&approval.action, 80), short(&shown, ARGUMENTS_COLUMNS))
        }
    }
}

/// What would change, as the host recorded it; times in the time zone of this machine.
pub fn about(approval: &ApprovalView, language: Language) -> Option<String> {
    let zone = timezone::of_machine().and_then(|name| TimeZone::get(&name).ok());
    let line = subject::line(approval.subject.as_ref()?, language, zone.as_ref());
    Some(short(&line, SUBJECT_COLUMNS))
}

/// A warning about the risk, and the commands that allow and deny.
pub fn answers(approval: &ApprovalView, language: Language, option: &str) -> String {
    let risk = approval.target.get("risk").and_then(Value::as_str).and_then(Risk::parse);
    let warning = match approval.action.starts_with(HARNESS) {
        // What it shows says what it does.
        true => String::new(),
        false => format!("  {}\n", subject::warning(risk.unwrap_or(Risk::External), language)),
    };
    let id = plain(&approval.approval_id);
    let [allow, deny] = ["allow", "deny"].map(|decision| {
        let values = match approval.payload.get("requested_schema") {
            Some(schema) if decision == "allow" => format!(" --values '{}'", fields(schema)),
            _ => String::new(),
        };
        format!("`greenroom approvals {decision} {id}{option}{values}`")
    });
    match language {
        Language::English => format!("{warning}  allow: {allow}\n  deny:  {deny}"),
        Language::Chinese => {
            format!("{warning}  允许\u{ff1a}{allow}\n  拒绝\u{ff1a}{deny}")
        }
    }
}

/// The actor of the run that requests an approval.
pub fn actor(approval: &ApprovalView) -> Option<String> {
    let actor = approval.actor.as_ref()?;
    let name = actor.actor_name.as_ref().or(actor.actor_id.as_ref());
    Some(short(&format!("{} {}", actor.actor_type, name.map_or("?", String::as_str)), 60))
}

/// The risk of a tool call.
pub fn risk(approval: &ApprovalView) -> Option<String> {
    approval.target.get("risk").and_then(Value::as_str).map(|risk| short(risk, 20))
}

/// The fields of a form, with what each of them takes.
fn fields(schema: &Value) -> String {
    let properties = schema.get("properties").and_then(Value::as_object);
    let fields = properties.into_iter().flatten().map(|(name, field)| {
        let kind = field.get("type").and_then(Value::as_str).unwrap_or("string");
        format!("{}: {kind}", Value::from(plain(name)))
    });
    let fields: Vec<String> = fields.collect();
    short(&format!("{{{}}}", fields.join(", ")), SUBJECT_COLUMNS)
}

fn tool_of<'a>(action: &str, target: &'a Object) -> Option<&'a str> {
    let tool = target.get("tool_name").and_then(Value::as_str);
    tool.filter(|_| action == TOOL_CALL)
}

/// One line of at most `columns_max` columns.
pub fn short(text: &str, columns_max: usize) -> String {
    let line: String = plain(text).replace(['\n', '\t'], " ");
    if columns_of(&line) <= columns_max {
        return line;
    }
    let mut cut = String::new();
    for c in line.chars() {
        if columns_of(&cut) + columns_of(c.encode_utf8(&mut [0; 4])) >= columns_max {
            break;
        }
        cut.push(c);
    }
    cut + "…"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    #[test]
    fn a_call_of_the_project_cli_is_named_after_its_method() {
        let call = json!({"module": "calendar", "method": "read", "input": {"mode": "day"}});
        assert_eq!(name("project_cli", &call), "calendar.read");
        assert_eq!(arguments("project_cli", &call), r#"{"mode":"day"}"#);
        assert_eq!(name("project_cli", &json!({"module": 1})), "project_cli");
        assert_eq!(name("files.read", &call), "files.read");
        assert_eq!(arguments("files.read", &json!({})), "");
        let long = arguments("files.read", &json!({"text": "日程".repeat(100)}));
        assert_eq!((columns_of(&long), long.ends_with('…')), (80, true));
        assert_eq!(short("a\u{1b}[2J\nb", 10), "a<U+001B>…");
    }

    #[test]
    fn an_approval_shows_request_actor_and_risk() {
        let approval = |more: Value| {
            let mut approval = json!({
                "approval_id": "apr_1", "nonce": "n", "status": "pending", "agent": "assistant",
                "runner_id": "plugin:greenroom/local-agent/default", "run_id": "r1",
                "created_at": "2026-01-02T03:04:05.000Z", "expires_at": "2026-01-02T03:34:05.000Z",
            });
            approval.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            from_value::<ApprovalView>(approval).unwrap()
        };
        let call = approval(json!({"action": "tool.call",
            "target": {"tool_name": "project_cli", "risk": "destructive"},
            "payload": {"module": "calendar", "method": "delete", "input": {"event_id": "e1"}},
            "actor": {"actor_type": "user", "actor_id": "ann"}}));
        let expected = ("calendar.delete".to_owned(), r#"{"event_id":"e1"}"#.to_owned());
        assert_eq!(request(&call, Language::English), expected);
        assert_eq!(actor(&call).as_deref(), Some("user ann"));
        assert_eq!(risk(&call).as_deref(), Some("destructive"));
        let send = approval(json!({"action": "message.send", "target": {"surface": "hook"},
            "payload": {"text": "hi"}}));
        let expected = ("message.send".to_owned(), r#"hook {"text":"hi"}"#.to_owned());
        assert_eq!(request(&send, Language::English), expected);
        assert_eq!((actor(&send), risk(&send)), (None, None));
    }
}
