//! The timeline of a run as text, with the time since the event was accepted.
//!
//! Invariant: shows recorded facts only; a step without a recorded time has none.

use super::Beside;
use crate::commands::deliveries_list::is_unsuccessful;
use crate::output::{plain, table};
use crate::{calls, cut, times};
use greenroom_protocol::api::audit::AuditView;
use greenroom_protocol::api::platform::ApprovalView;
use greenroom_protocol::result::kind;
use greenroom_protocol::{AgentRunResult, ModelCalls, Object, RunView};
use greenroom_tools::ui::Language;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) fn tell(
    run: &RunView,
    event: &Object,
    results: &[AgentRunResult],
    beside: &Beside,
) -> String {
    let took = run.finished_at.as_deref().and_then(|end| times::between(&run.created_at, end));
    let took = took.map(|ms| format!(" after {}", times::duration(ms))).unwrap_or_default();
    let mut text = format!("run {} {}{took}\n\n", run.run_id, run.status.as_str());
    text.push_str(&table(&facts(run, beside)));
    text.push('\n');
    text.push_str(&table(&steps(run, event, results, &beside.approvals)));
    text
}

fn facts(run: &RunView, beside: &Beside) -> Vec<Vec<String>> {
    let mut facts = vec![("agent", format!("{} ({})", run.agent, run.runner_id))];
    facts.extend(run.conversation_id.clone().map(|id| ("conversation", id)));
    if run.attempt > 1 {
        facts.push(("attempt", run.attempt.to_string()));
    }
    facts.extend(run.isolation.clone().map(|isolation| ("isolation", isolation)));
    facts.extend(run.usage.as_ref().map(|usage| ("usage", Value::from(usage.clone()).to_string())));
    let calls = run.model_calls.as_ref().filter(|calls| calls.calls > 0);
    facts.extend(answered(&beside.model_calls).map(|model| ("model", model)));
    facts.extend(calls.map(|calls| ("models", models(calls))));
    facts.into_iter().map(|(name, value)| vec![format!("  {name}"), value]).collect()
}

/// The model that answered last, and the models it replaced.
fn answered(newest_first: &[AuditView]) -> Option<String> {
    let model = |call: &AuditView| call.resource.as_deref().map(plain);
    let by = newest_first.iter().find(|call| call.code == "ok").and_then(model);
    let failed = newest_first.iter().rev().filter(|call| call.code != "ok").filter_map(model);
    let mut silent: Vec<String> = failed.filter(|name| Some(name) != by.as_ref()).collect();
    silent.dedup();
    match (by, silent.join(", ")) {
        (Some(by), silent) if silent.is_empty() => Some(by),
        (Some(by), silent) => Some(format!("{by}, as a fallback for {silent}")),
        (None, silent) if silent.is_empty() => None,
        (None, silent) => Some(format!("none: no answer from {silent}")),
    }
}

/// Calls, tokens and cost, as far as known.
fn models(calls: &ModelCalls) -> String {
    let plural = if calls.calls == 1 { "" } else { "s" };
    let mut text = format!("{} call{plural}", calls.calls);
    text += &calls.tokens.map(|tokens| format!(", {tokens} tokens")).unwrap_or_default();
    text += &match calls.cost_usd {
        Some(cost) => format!(", ${cost}"),
        None => ", cost unknown".to_owned(),
    };
    if calls.unpriced > 0 && calls.cost_usd.is_some() {
        text += &format!(" without {} of unknown cost", calls.unpriced);
    }
    text
}

fn steps(
    run: &RunView,
    event: &Object,
    results: &[AgentRunResult],
    approvals: &[ApprovalView],
) -> Vec<Vec<String>> {
    let since = |at: &str| times::between(&run.created_at, at).map(times::duration);
    let step = |at: Option<&str>, what: &str, detail: String| {
        let time = at.and_then(since).unwrap_or_default();
        vec![format!("  {time:>9}"), what.to_owned(), detail]
    };
    let accepted = format!(
        "{} from {} at {}",
        word(event, "event_type"),
        word(event, "source"),
        run.created_at
    );
    let mut steps = vec![step(Some(&run.created_at), "accepted", accepted)];
    let warnings = event.get("warnings").and_then(Value::as_array).into_iter().flatten();
    for warning in warnings.filter_map(Value::as_str) {
        steps.push(step(None, "warning", plain(warning)));
    }
    if let Some(at) = &run.started_at {
        steps.push(step(Some(at), "started", String::new()));
    }
    for (what, detail, result) in moments(results) {
        steps.push(step(result.created_at.as_deref(), what, detail));
    }
    if let Some(at) = &run.finished_at {
        let error =
            run.error.as_ref().map(|e| format!("{}: {}", plain(&e.code), plain(&e.message)));
        let cut = || Some(format!("the answer was {}", cut::describe(&cut_short(results)?)));
        steps.push(step(Some(at), run.status.as_str(), error.or_else(cut).unwrap_or_default()));
    }
    for note in list(run, "diagnostics") {
        let detail = format!("{}: {}", word(note, "kind"), word(note, "message"));
        steps.push(step(note.get("created_at").and_then(Value::as_str), "diagnostic", detail));
    }
    for approval in list(run, "approvals") {
        let by = approval.get("answered_by").and_then(Value::as_str);
        let by = by.map(|by| format!(" by {}", plain(by))).unwrap_or_default();
        let id = approval.get("approval_id").and_then(Value::as_str);
        let asked = approvals.iter().find(|known| Some(known.approval_id.as_str()) == id);
        let asked = asked.map_or_else(
            || word(approval, "action"),
            |approval| calls::request(approval, Language::English).0,
        );
        let detail = format!("{asked} {}{by}", word(approval, "status"));
        let at = approval.get("answered_at").and_then(Value::as_str);
        let at = at.or_else(|| approval.get("created_at").and_then(Value::as_str));
        steps.push(step(at, "approval", detail));
    }
    for delivery in list(run, "deliveries") {
        let error = delivery.get("error").and_then(Value::as_str);
        let error = error.map(|error| format!(": {}", plain(error))).unwrap_or_default();
        let status = word(delivery, "status");
        let id = match is_unsuccessful(&status) {
            true => format!(" ({})", word(delivery, "delivery_id")),
            false => String::new(),
        };
        let detail = format!("{} {status}{id}{error}", word(delivery, "surface"));
        steps.push(step(delivery.get("updated_at").and_then(Value::as_str), "delivery", detail));
    }
    steps
}

/// Why the last answer is incomplete, if it is.
fn cut_short(results: &[AgentRunResult]) -> Option<String> {
    let is_end = |result: &&AgentRunResult| {
        matches!(result.kind.as_str(), kind::MESSAGE_COMPLETED | kind::RUN_COMPLETED)
    };
    let from = results.iter().rposition(|result| result.kind == kind::MESSAGE_COMPLETED);
    results[from.unwrap_or(0)..].iter().filter(is_end).find_map(cut::reason)
}

/// The results that get a line: all but deltas after the first.
fn moments(results: &[AgentRunResult]) -> Vec<(&'static str, String, &AgentRunResult)> {
    let mut moments = Vec::new();
    let deltas = results.iter().filter(|result| result.kind == kind::MESSAGE_DELTA).count();
    let (mut has_delta, mut has_message, mut names) = (false, false, BTreeMap::new());
    for result in results {
        let data = &result.data;
        let (what, detail) = match result.kind.as_str() {
            kind::MESSAGE_DELTA if std::mem::replace(&mut has_delta, true) => continue,
            kind::MESSAGE_DELTA => ("first delta", format!("of {deltas}")),
            kind::MESSAGE_COMPLETED => ("message", message(data)),
            kind::TOOL_CALL_STARTED => {
                let (tool, parameters) = (word(data, "tool_name"), parameters(data));
                let name = calls::name(&tool, parameters);
                names.insert(word(data, "tool_call_id"), name.clone());
                let with = calls::arguments(&tool, parameters);
                ("tool called", format!("{name} {with}").trim_end().to_owned())
            }
            kind::TOOL_CALL_COMPLETED
                if data.get("error").is_some_and(|error| !error.is_null()) =>
            {
                ("tool failed", named(&names, data))
            }
            kind::TOOL_CALL_COMPLETED => ("tool answered", named(&names, data)),
            kind::ARTIFACT_CREATED => ("artifact", word(data, "name")),
            kind::STATE_UPDATED => {
                ("state", format!("{}.{}", word(data, "scope"), word(data, "key")))
            }
            kind::ACTION_REQUESTED => ("action", word(data, "action")),
            kind::RUN_RESTARTED => {
                has_delta = false;
                ("restarted", String::new())
            }
            // Some runners send their answer with the terminal result.
            kind::RUN_COMPLETED if !has_message && data.contains_key("message") => {
                ("message", message(data))
            }
            kind::RUN_COMPLETED | kind::RUN_FAILED => continue,
            kind::PROCESSOR_LOG => ("log", one_line(&word(data, "text"))),
            other => ("result", plain(other)),
        };
        has_message |= what == "message";
        moments.push((what, detail, result));
    }
    moments
}

fn parameters(data: &Object) -> &Value {
    data.get("parameters").unwrap_or(&Value::Null)
}

/// The name of the call when it started.
fn named(names: &BTreeMap<String, String>, data: &Object) -> String {
    let begun = names.get(&word(data, "tool_call_id"));
    begun.cloned().unwrap_or_else(|| word(data, "tool_name"))
}

fn message(data: &Object) -> String {
    let content = data.get("message").and_then(|message| message.get("content"));
    let text = match content {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    one_line(&text)
}

fn one_line(text: &str) -> String {
    let line = plain(text).replace('\n', " ");
    match line.chars().count() {
        0..=60 => line,
        _ => line.chars().take(59).chain(['…']).collect(),
    }
}

/// The command that retries undelivered deliveries.
pub(super) fn retry_hint(run: &RunView, option: &str) -> Option<String> {
    let is_meant = |delivery: &&Object| is_unsuccessful(&word(delivery, "status"));
    let ids = list(run, "deliveries").filter(is_meant).map(|found| word(found, "delivery_id"));
    let ids: Vec<String> = ids.collect();
    let them = if ids.len() == 1 { "it" } else { "them" };
    let command = format!("greenroom deliveries retry {}{option}", ids.join(" "));
    (!ids.is_empty()).then(|| format!("hint: `{command}` sends {them} again"))
}

fn list<'r>(run: &'r RunView, key: &str) -> impl Iterator<Item = &'r Object> {
    let items = run.extra.get(key).and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_object)
}

fn word(object: &Object, key: &str) -> String {
    plain(object.get(key).and_then(Value::as_str).unwrap_or("?"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    fn run(more: Value) -> RunView {
        let mut run = json!({
            "run_id": "r1", "event_id": "e1", "agent": "triage", "runner_id": "plugin:acme/triage/default",
            "conversation_id": "c1", "workspace_id": "default", "status": "completed", "attempt": 1,
            "created_at": "2026-01-02T03:04:05.000Z", "started_at": "2026-01-02T03:04:05.002Z",
            "finished_at": "2026-01-02T03:04:06.250Z", "error": null, "usage": null, "last_sequence": 9,
        });
        run.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        from_value(run).unwrap()
    }

    fn shown(run: &RunView, results: Value) -> String {
        let event = json!({ "event_type": "message.received", "source": "api" });
        let approval = json!({ "approval_id": "apr_2", "nonce": "n", "status": "denied", "action": "tool.call",
            "target": { "tool_name": "project_cli" }, "payload": { "module": "calendar", "method": "delete" },
            "agent": "triage", "runner_id": "plugin:acme/triage/default", "run_id": "r1",
            "created_at": "2026-01-02T03:04:05.950Z", "expires_at": "2026-01-02T03:34:05.950Z" });
        let results = from_value::<Vec<AgentRunResult>>(results).unwrap();
        let approvals = vec![from_value(approval).unwrap()];
        tell(run, event.as_object().unwrap(), &results, &Beside { approvals, ..Beside::default() })
    }

    #[test]
    fn a_completed_run_is_shown_with_its_times_and_delivery() {
        let run = run(json!({ "isolation": "landlock:7", "approvals": [
            { "action": "message.send", "status": "allowed", "answered_by": "admin",
              "created_at": "2026-01-02T03:04:05.900Z", "answered_at": "2026-01-02T03:04:06.300Z" },
            { "approval_id": "apr_2", "action": "tool.call", "status": "denied",
              "created_at": "2026-01-02T03:04:05.950Z" } ],
            "deliveries": [
            { "surface": "helpdesk", "status": "done", "updated_at": "2026-01-02T03:04:06.400Z" } ] }));
        let results = json!([
            { "run_id": "r1", "type": "message.delta", "sequence": 1, "created_at": "2026-01-02T03:04:05.012Z" },
            { "run_id": "r1", "type": "message.delta", "sequence": 2 },
            { "run_id": "r1", "type": "tool.call.started", "sequence": 3, "data": { "tool_name": "search" } },
            { "run_id": "r1", "type": "tool.call.started", "sequence": 3, "data": { "tool_name": "project_cli",
              "tool_call_id": "t1", "parameters": { "module": "calendar", "method": "delete", "input": { "event_id": "e1" } } } },
            { "run_id": "r1", "type": "tool.call.completed", "sequence": 3, "data": { "tool_name": "project_cli",
              "tool_call_id": "t1", "error": { "code": "unauthorized" } } },
            { "run_id": "r1", "type": "message.completed", "sequence": 4,
              "data": { "message": { "role": "assistant", "content": "All is\nwell" } } },
            { "run_id": "r1", "type": "run.completed", "sequence": 5 },
        ]);
        insta::assert_snapshot!(shown(&run, results), @r#"
        run r1 completed after 1.2 s

          agent         triage (plugin:acme/triage/default)
          conversation  c1
          isolation     landlock:7

               0 ms  accepted     message.received from api at 2026-01-02T03:04:05.000Z
               2 ms  started
              12 ms  first delta  of 2
                     tool called  search
                     tool called  calendar.delete {"event_id":"e1"}
                     tool failed  calendar.delete
                     message      All is well
              1.2 s  completed
              1.3 s  approval     message.send allowed by admin
             950 ms  approval     calendar.delete denied
              1.4 s  delivery     helpdesk done
        "#);
    }

    #[test]
    fn an_undelivered_delivery_is_shown_with_its_id_and_command() {
        let run = run(json!({ "deliveries": [
            { "delivery_id": "dlv_1", "surface": "helpdesk", "status": "done" },
            { "delivery_id": "dlv_2", "surface": "helpdesk", "status": "failed", "error": "the surface answered 404" },
            { "delivery_id": "dlv_3", "surface": "helpdesk", "status": "unknown" } ] }));
        let text = shown(&run, json!([]));
        let line = "delivery   helpdesk failed (dlv_2): the surface answered 404";
        assert!(text.contains(line), "{text}");
        assert!(text.contains("helpdesk unknown (dlv_3)"), "{text}");
        let hint = "hint: `greenroom deliveries retry dlv_2 dlv_3 --data d` sends them again";
        assert_eq!(retry_hint(&run, " --data d").as_deref(), Some(hint));
    }

    #[test]
    fn an_answer_in_the_terminal_result_and_a_log_are_shown() {
        let results = json!([
            { "run_id": "r1", "type": "processor.log", "sequence": 1, "data": { "text": "looked\nit up", "level": "info" } },
            { "run_id": "r1", "type": "run.completed", "sequence": 2,
              "data": { "message": { "role": "assistant", "content": "Here it is" } } },
        ]);
        let text = shown(&run(json!({})), results);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        assert!(lines.contains(&"log        looked it up"), "{text}");
        assert!(lines.contains(&"message    Here it is"), "{text}");
    }

    #[test]
    fn a_failed_run_says_why() {
        let run = run(json!({ "status": "failed", "attempt": 2, "conversation_id": null,
            "model_calls": { "calls": 3, "unpriced": 1, "tokens": 120, "cost_usd": 0.0012 },
            "diagnostics": [{ "kind": "result.invalid", "message": "`key` is empty", "created_at": "2026-01-02T03:04:06.000Z" }], "error": {
            "code": "runner.crashed", "message": "the process ended with status 3", "retryable": true } }));
        let results = json!([{ "run_id": "r1", "type": "run.restarted", "sequence": 4, "data": { "attempt": 2 } }]);
        insta::assert_snapshot!(shown(&run, results), @r#"
        run r1 failed after 1.2 s

          agent    triage (plugin:acme/triage/default)
          attempt  2
          models   3 calls, 120 tokens, $0.0012 without 1 of unknown cost

               0 ms  accepted    message.received from api at 2026-01-02T03:04:05.000Z
               2 ms  started
                     restarted
              1.2 s  failed      runner.crashed: the process ended with status 3
              1.0 s  diagnostic  result.invalid: `key` is empty
        "#);
    }
}
