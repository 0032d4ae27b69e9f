//! Every operation: what it takes, what it answers.
//!
//! Invariant: the statuses of an operation are all that the handlers, the guard and the store can lead to.

mod agui;
mod artifacts;
mod deliveries;
mod resources;
mod session;
mod views;

use super::parts::{by_ref, event_stream, json_body, page_of, parameter};
use crate::runs::FILTERS;
use serde_json::{Value, json};

pub(super) struct Operation {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) described: Value,
}

/// Answers that every operation behind a token can give.
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

    /// Open to everyone.
    fn open(mut self) -> Self {
        self.described["security"] = json!([]);
        if let Some(responses) = self.described["responses"].as_object_mut() {
            responses.remove("401");
        }
        self
    }
}

pub(super) fn all() -> Vec<Operation> {
    let facts = [events(), runs(), conversations(), artifacts::all(), approvals(), audit()];
    let rest = [
        deliveries::all(),
        agui::all(),
        records(),
        host(),
        resources::all(),
        session::all(),
        views::all(),
    ];
    facts.into_iter().chain(rest).flatten().collect()
}

fn events() -> Vec<Operation> {
    let answer = "The event is stored; `run_id` is null when no agent takes it.";
    let mut accept = Operation::post(
        "/v1/events",
        "accept_event",
        "events",
        "Hand in one event\nThe answer comes once the event is stored. The same `event_id` with the same \
         body is answered like the first time; without an `event_id` one is made.",
    )
    .answers("202", accepted(answer))
    .answers("200", accepted("The same event was handed in before."))
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
            "One event\n`source` is needed where several sources used the same id.",
        )
        .takes(&["event_id_in_path", "workspace_id", "source"])
        .answers("200", json_body("The event.", by_ref("schemas", "Event")))
        .refuses(&["404", "409"]),
    ]
}

/// The answer to an event, as JSON or as the first frame of a stream.
fn accepted(about: &str) -> Value {
    let mut response = json_body(about, by_ref("schemas", "EventAnswer"));
    let link = |operation: &str, id: &str| json!({"operationId": operation, "parameters": {"id": format!("$response.body#/{id}")}});
    response["links"] = json!({"event": link("get_event", "event_id"),
        "run": link("get_run", "run_id"), "results": link("list_results", "run_id"),
        "story": link("get_story", "run_id"), "replay": link("replay_run", "run_id"),
        "cancel": link("cancel_run", "run_id")});
    response["content"]["text/event-stream"] = event_stream(
        "With `Accept: text/event-stream`, status 200: first `event: accepted` with the same object, then \
         the results of the run, to its end.",
    );
    response
}

fn runs() -> Vec<Operation> {
    let run = || json_body("The run.", by_ref("schemas", "RunView"));
    let mut page = page_of("AgentRunResult");
    page["content"]["text/event-stream"] = event_stream(
        "With `Accept: text/event-stream`: every result as `event:` its type, `id:` its number, `data:` \
         the result; live until the terminal one, resumed by `Last-Event-ID`.",
    );
    page["content"]["application/json"]["schema"]["properties"]["next_cursor"] = json!({
        "type": ["integer", "null"], "minimum": 0,
        "description": "The number to go on behind, as `after`."});
    vec![
        Operation::get(
            "/v1/runs",
            "list_runs",
            "runs",
            "Runs, newest first\nA page may be short although `has_more` is true where few runs fit.",
        )
            .takes(&[&["workspace_id"][..], &FILTERS, &["cursor", "limit"]].concat())
            .answers("200", page_of("RunView")),
        Operation::get(
            "/v1/runs/{id}",
            "get_run",
            "runs",
            "One run\nWith `deliveries`, `diagnostics` and what its `model_calls` took; while it is running, `with_runner` says whether a runner has it or it waits for one.",
        )
        .takes(&["run_id_in_path", "workspace_id"])
        .answers("200", run())
        .refuses(&["404"]),
        Operation::post(
            "/v1/runs/{id}/cancel",
            "cancel_run",
            "runs",
            "End a run\nA run that is over stays as it is.",
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

fn conversations() -> Vec<Operation> {
    vec![
        Operation::get(
            "/v1/conversations",
            "list_conversations",
            "conversations",
            "Conversations, the last used first",
        )
        .takes(&["workspace_id", "cursor", "limit"])
        .answers("200", page_of("Conversation")),
        Operation::get(
            "/v1/conversations/{id}/history",
            "get_history",
            "conversations",
            "The transcript of a conversation\nA page stands oldest item first; without a cursor it is the \
             newest page, or with `direction=forward` the oldest. Cards are worded in English or Chinese, as \
             `Accept-Language` says.",
        )
        .takes(&["conversation_id_in_path", "workspace_id", "cursor", "limit", "direction"])
        .answers("200", page_of("TranscriptItem"))
        .refuses(&["404"]),
        Operation::get(
            "/v1/conversations/{id}/search",
            "search_history",
            "conversations",
            "Items of a conversation that hold what is looked for, the best first\nWords in any language; \
             Chinese, Japanese and Korean also within words. Each item comes with `score`, `snippet` and \
             `highlights`.",
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
        "Allow or deny an action\nThe answer comes once the decision is stored; an action that is allowed is \
         carried out from then on, once. The same decision again is answered like the first time; another \
         one, one with another nonce, and one about what has expired or was cancelled get 409.",
    )
    .takes(&["approval_id_in_path", "workspace_id"])
    .answers("200", approval("The approval as it is now."))
    .refuses(&["404", "408", "409", "413", "415"]);
    answer.described["requestBody"] = json!({"required": true, "content": {"application/json": {
        "schema": by_ref("schemas", "ApprovalDecision")}}});
    vec![
        Operation::get(
            "/v1/approvals",
            "list_approvals",
            "approvals",
            "Actions that somebody has to allow first, newest first",
        )
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
        "One operation on the records of a project module\nFor the processes of tools, with the credential of \
         their call. An admin names the `actor` whose records are meant.",
    )
    .takes(&["workspace_id", "actor"])
    .answers("200", json_body("What came of it.", json!({"type": "object"})))
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
        "Calls of runners, newest first\nOne record per call: who, what, how it ended, never what was asked or \
         answered. A page may be short although `has_more` is true where few records fit.",
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
        json_body("It does.", schema)
    };
    let metrics = json!({"description": "Counters and gauges.",
        "headers": {"X-Request-Id": by_ref("headers", "X-Request-Id")},
        "content": {"text/plain": {"schema": {"type": "string"}}}});
    let mut connect = Operation::get(
        "/v1/runners/connect",
        "connect_runner",
        "host",
        "Runners on other machines connect here by WebSocket\nThe native wire, one message per frame.",
    )
    .answers("101", json!({"description": "The runner is connected."}))
    .refuses(&["426"]);
    connect.described["security"] = json!([{"runner_token": []}]);
    vec![
        Operation::get("/healthz", "healthz", "host", "Whether the process answers")
            .open()
            .answers("200", status("ok")),
        Operation::get("/readyz", "readyz", "host", "Whether the host takes events")
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
            "Agents, the bindings of events to runners",
        )
        .answers("200", page_of("Agent")),
    ]
}
