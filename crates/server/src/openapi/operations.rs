//! Every operation with its parameters and responses.
//!
//! Invariant: an operation lists every status that its handler, the guard and the store can answer with.

mod agui;
mod artifacts;
mod deliveries;
mod gateways;
mod resources;
mod session;
mod views;

use super::parts::{by_ref, event_stream, json_body, page_of, parameter};
use crate::runs::FILTERS;
use serde_json::{Value, json};

pub(super) use gateways::responses as gateway_responses;

pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) described: Value,
}

/// Error statuses of every operation that needs a token.
const GUARDED: [&str; 5] = ["400", "401", "403", "500", "503"];

impl Operation {
    fn get(path: &'static str, id: &str, tag: &str, about: &str) -> Self {
        Self::new("get", path, id, tag, about)
    }

    fn post(path: &'static str, id: &str, tag: &str, about: &str) -> Self {
        Self::new("post", path, id, tag, about)
    }

    fn new(method: &'static str, path: &'static str, id: &str, tag: &str, about: &str) -> Self {
        let (summary, rest) = about.split_once('\n').unwrap_or((about, ""));
        let mut described = json!({"operationId": id, "tags": [tag], "summary": summary,
            "parameters": [], "responses": {}});
        if !rest.is_empty() {
            described["description"] = rest.trim().into();
        }
        Self { method, path, described }.refuses(&GUARDED)
    }

    fn takes(mut self, parameters: &[&str]) -> Self {
        let parameters = parameters.iter().map(|name| parameter(name));
        self.described["parameters"] = parameters.collect();
        self
    }

    fn answers(mut self, status: &str, response: Value) -> Self {
        self.described["responses"][status] = response;
        self
    }

    fn refuses(mut self, statuses: &[&str]) -> Self {
        for status in statuses {
            self.described["responses"][*status] =
                by_ref("responses", &format!("problem_{status}"));
        }
        self
    }

    /// Needs no token.
    fn open(mut self) -> Self {
        self.described["security"] = json!([]);
        if let Some(responses) = self.described["responses"].as_object_mut() {
            responses.remove("401");
        }
        self
    }
}

pub(super) fn all() -> Vec<Operation> {
    let facts =
        [events(), runs(), interactions(), conversations(), artifacts::all(), approvals(), audit()];
    let rest = [
        deliveries::all(),
        agui::all(),
        gateways::all(),
        records(),
        host(),
        resources::all(),
        session::all(),
        views::all(),
    ];
    facts.into_iter().chain(rest).flatten().collect()
}

fn events() -> Vec<Operation> {
    let answer = "The event is stored; `run_id` is null when no agent matches it.";
    let mut accept = Operation::post(
        "/v1/events",
        "accept_event",
        "events",
        "Send one event\nThe response comes once the event is stored. The same `event_id` with the same \
         body gets the first response again; without an `event_id` one is generated.",
    )
    .answers("202", accepted(answer))
    .answers("200", accepted_or_followed())
    .refuses(&["404", "408", "409", "413", "415", "429"]);
    accept.described["requestBody"] = json!({"required": true,
        "content": {"application/json": {"schema": by_ref("schemas", "NewEvent")}}});
    vec![
        accept,
        Operation::get("/v1/events", "list_events", "events", "The event log, newest first")
            .takes(&["workspace_id", "conversation_id", "cursor", "limit"])
            .answers("200", page_of("Event")),
        Operation::get(
            "/v1/events/{id}",
            "get_event",
            "events",
            "One event\n`source` or `sent_by` is required when several senders used the same id.",
        )
        .takes(&["event_id_in_path", "workspace_id", "source", "sent_by"])
        .answers("200", json_body("The event.", by_ref("schemas", "Event")))
        .refuses(&["404", "409"]),
    ]
}

/// The response to an event.
fn accepted(about: &str) -> Value {
    let mut response = json_body(about, by_ref("schemas", "EventAnswer"));
    let link = |operation: &str, id: &str| json!({"operationId": operation, "parameters": {"id": format!("$response.body#/{id}")}});
    response["links"] = json!({"event": link("get_event", "event_id"),
        "run": link("get_run", "run_id"), "results": link("list_results", "run_id"),
        "story": link("get_story", "run_id"), "replay": link("replay_run", "run_id"),
        "cancel": link("cancel_run", "run_id")});
    response
}

/// The response to a duplicate, and to every event of a sender that follows its run.
fn accepted_or_followed() -> Value {
    let mut response = accepted("The same event was sent before, or the results follow.");
    response["content"]["text/event-stream"] = event_stream(
        "With `Accept: text/event-stream`: first `event: accepted` with the same object, then the results of \
         the run until it ends.",
    );
    response
}

fn runs() -> Vec<Operation> {
    let run = || json_body("The run.", by_ref("schemas", "RunView"));
    let mut page = page_of("AgentRunResult");
    page["content"]["text/event-stream"] = event_stream(
        "With `Accept: text/event-stream`: every result with its type as `event:`, its number as `id:` \
         and the result as `data:`; live until the terminal result, resumed by `Last-Event-ID`.",
    );
    page["content"]["application/json"]["schema"]["properties"]["next_cursor"] = json!({
        "type": ["integer", "null"], "minimum": 0,
        "description": "The value of `after` for the next page."});
    vec![
        Operation::get(
            "/v1/runs",
            "list_runs",
            "runs",
            "Runs, newest first\nA page may be short although `has_more` is true when few runs match.",
        )
            .takes(&[&["workspace_id"][..], &FILTERS, &["cursor", "limit"]].concat())
            .answers("200", page_of("RunView")),
        Operation::get(
            "/v1/runs/{id}",
            "get_run",
            "runs",
            "One run\nWith `deliveries`, `diagnostics` and the totals of its `model_calls`; while it is running, `with_runner` \
             says whether a runner has received it.",
        )
        .takes(&["run_id_in_path", "workspace_id"])
        .answers("200", run())
        .refuses(&["404"]),
        Operation::post(
            "/v1/runs/{id}/cancel",
            "cancel_run",
            "runs",
            "Cancel a run\nA run that has ended stays as it is.",
        )
        .takes(&["run_id_in_path", "workspace_id"])
        .answers("200", run())
        .refuses(&["404"]),
        Operation::get("/v1/runs/{id}/results", "list_results", "runs", "The results of a run")
            .takes(&["run_id_in_path", "workspace_id", "after", "limit", "last_event_id"])
            .answers("200", page)
            .refuses(&["404"]),
    ]
}

fn interactions() -> Vec<Operation> {
    let mut answer = Operation::post(
        "/v1/runs/{id}/interactions",
        "answer_interaction",
        "runs",
        "Answer a question of a run that has fields or buttons\nThe answer is an event of the same conversation and \
         gets a run of its own. The same answer again gets the same response. 409: another answer was given, or the \
         question has expired.",
    )
    .takes(&["run_id_in_path", "workspace_id"])
    .answers("202", json_body("The event of the answer.", by_ref("schemas", "EventAnswer")))
    .refuses(&["404", "408", "409", "413", "415", "429"]);
    answer.described["requestBody"] = json!({"required": true, "content": {"application/json": {
        "schema": by_ref("schemas", "InteractionSubmission")}}});
    let list = Operation::get(
        "/v1/runs/{id}/interactions",
        "list_interactions",
        "runs",
        "Questions of a run that have fields or buttons",
    )
    .takes(&["run_id_in_path", "workspace_id"])
    .answers("200", page_of("Interaction"))
    .refuses(&["404"]);
    vec![list, answer]
}

fn conversations() -> Vec<Operation> {
    vec![
        Operation::get(
            "/v1/conversations",
            "list_conversations",
            "conversations",
            "Conversations, most recently used first",
        )
        .takes(&["workspace_id", "cursor", "limit"])
        .answers("200", page_of("Conversation")),
        Operation::get(
            "/v1/conversations/{id}/history",
            "get_history",
            "conversations",
            "The transcript of a conversation\nItems of a page are in ascending order; without a cursor it is the \
             newest page, or with `direction=forward` the oldest. Cards are in English or Chinese, by \
             `Accept-Language`.",
        )
        .takes(&["conversation_id_in_path", "workspace_id", "cursor", "limit", "direction"])
        .answers("200", page_of("TranscriptItem"))
        .refuses(&["404"]),
        Operation::get(
            "/v1/conversations/{id}/search",
            "search_history",
            "conversations",
            "Search a conversation, best match first\nWords in any language; Chinese, Japanese and Korean also \
             match within words. Each item has `score`, `snippet` and `highlights`.",
        )
        .takes(&["conversation_id_in_path", "workspace_id", "q", "limit"])
        .answers("200", page_of("SearchHit"))
        .refuses(&["404"]),
    ]
}

fn approvals() -> Vec<Operation> {
    let approval = |about: &str| json_body(about, by_ref("schemas", "ApprovalView"));
    let mut answer = Operation::post(
        "/v1/approvals/{id}",
        "answer_approval",
        "approvals",
        "Allow or deny an action\nThe response comes once the decision is stored; an allowed action is then \
         carried out once. The same decision again gets the same response. 409: another decision was made, the \
         nonce is wrong, or the approval expired or was cancelled. A call that was allowed with other arguments has \
         them as `payload`, and those that it asked for as `target.asked_payload`.",
    )
    .takes(&["approval_id_in_path", "workspace_id"])
    .answers("200", approval("The approval as it is now."))
    .refuses(&["404", "408", "409", "413", "415"]);
    answer.described["requestBody"] = json!({"required": true, "content": {"application/json": {
        "schema": by_ref("schemas", "ApprovalDecision")}}});
    vec![
        Operation::get("/v1/approvals", "list_approvals", "approvals", "Approvals, newest first")
            .takes(&["workspace_id", "approval_status", "run_id", "cursor", "limit"])
            .answers("200", page_of("ApprovalView")),
        Operation::get("/v1/approvals/{id}", "get_approval", "approvals", "One approval")
            .takes(&["approval_id_in_path", "workspace_id"])
            .answers("200", approval("The approval."))
            .refuses(&["404"]),
        answer,
    ]
}

fn records() -> Vec<Operation> {
    let mut records = Operation::post(
        "/v1/tool-runtime/records",
        "records",
        "tools",
        "One operation on the records of a project module\nFor tool processes, with the credential of their \
         call. An admin names the `actor` that owns the records.",
    )
    .takes(&["workspace_id", "actor", "actor_source", "actor_token"])
    .answers("200", json_body("The result.", json!({"type": "object"})))
    .refuses(&["404", "408", "409", "413", "415"]);
    records.described["requestBody"] = json!({"required": true,
        "content": {"application/json": {"schema": by_ref("schemas", "RecordOp")}}});
    vec![records]
}

fn audit() -> Vec<Operation> {
    let list = Operation::get(
        "/v1/audit",
        "list_audit",
        "audit",
        "Calls of runners, newest first\nOne record per call: caller, method and outcome, without parameters and \
         results. A page may be short although `has_more` is true when few records match.",
    );
    let filters = ["run_id", "method", "code", "denied"];
    vec![
        list.takes(&[&["workspace_id"][..], &filters, &["cursor", "limit"]].concat())
            .answers("200", page_of("AuditView")),
    ]
}

fn host() -> Vec<Operation> {
    let status = |word: &str| {
        let schema = json!({"type": "object", "required": ["status"],
            "properties": {"status": {"const": word}}});
        json_body("Yes.", schema)
    };
    let metrics = json!({"description": "Counters and gauges.",
        "headers": {"X-Request-Id": by_ref("headers", "X-Request-Id")},
        "content": {"text/plain": {"schema": {"type": "string"}}}});
    let mut connect = Operation::get(
        "/v1/runners/connect",
        "connect_runner",
        "host",
        "WebSocket for runners on other machines\nThe native wire, one message per frame.",
    )
    .answers("101", json!({"description": "The runner is connected."}))
    .refuses(&["426"]);
    connect.described["security"] = json!([{"runner_token": []}]);
    vec![
        Operation::get("/healthz", "healthz", "host", "Whether the process responds")
            .open()
            .answers("200", status("ok")),
        Operation::get("/readyz", "readyz", "host", "Whether the host accepts events")
            .open()
            .answers("200", status("ready")),
        Operation::get("/metrics", "metrics", "host", "Metrics in the text format of Prometheus")
            .answers("200", metrics),
        Operation::get("/openapi.json", "openapi", "host", "This document")
            .open()
            .answers("200", json_body("OpenAPI 3.1.", json!({"type": "object"}))),
        Operation::get("/v1/runners", "list_runners", "host", "Runner processes and their runners")
            .answers("200", page_of("Runner")),
        connect,
        Operation::get(
            "/v1/agents",
            "list_agents",
            "host",
            "Agents: bindings of events to runners",
        )
        .answers("200", page_of("Agent")),
    ]
}
