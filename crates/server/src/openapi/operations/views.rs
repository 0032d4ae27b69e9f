//! Operations for the web interface: stories, replays, agents in detail, the overview.

use super::Operation;
use crate::openapi::parts::{by_ref, json_body, page_of};
use crate::openapi::schemas::rules;
use serde_json::{Value, json};

pub(super) fn all() -> Vec<Operation> {
    vec![story(), replay(), agent(), try_event(), overview(), state(), artifacts(), search()]
}

fn story() -> Operation {
    Operation::get(
        "/v1/runs/{id}/story",
        "get_story",
        "runs",
        "Everything known about a run except its results\nIts event, why its agent was chosen, its frozen grant, \
         model calls, deliveries, approvals and replays; `truncated` says which lists were cut. A sender does not \
         see the agent's config.",
    )
    .takes(&["run_id_in_path", "workspace_id"])
    .answers("200", json_body("The story.", by_ref("schemas", "Story")))
    .refuses(&["404"])
}

fn replay() -> Operation {
    let mut replay = Operation::post(
        "/v1/runs/{id}/replay",
        "replay_run",
        "runs",
        "Replay the event of a run\nA new event with `metadata.replay_of`, for the same agent or the one named; \
         nothing is delivered. 409 when the event is no longer stored.",
    )
    .takes(&["run_id_in_path", "workspace_id"])
    .answers("202", json_body("The new event is stored.", by_ref("schemas", "EventAnswer")))
    .refuses(&["404", "408", "409", "413", "415", "429"]);
    let mut agent = rules::name();
    agent["type"] = json!(["string", "null"]);
    agent["description"] = "Default: the agent of the run.".into();
    replay.described["requestBody"] = body(
        false,
        json!({"type": "object", "additionalProperties": false, "properties": {"agent": agent}}),
    );
    replay
}

fn agent() -> Operation {
    Operation::get(
        "/v1/agents/{id}",
        "get_agent",
        "host",
        "One agent in detail\nIts config without secrets, its grant policy, its runner's manifest, and the grant that \
         a run would get now.",
    )
    .takes(&["agent_in_path"])
    .answers("200", json_body("The agent.", by_ref("schemas", "AgentDetail")))
    .refuses(&["404"])
}

fn try_event() -> Operation {
    let mut trial = Operation::post(
        "/v1/bindings/try",
        "try_event",
        "host",
        "Which agent an event would be bound to, and with which grant\nStores nothing.",
    )
    .answers("200", json_body("The outcome.", by_ref("schemas", "BindingTrial")))
    .refuses(&["408", "413", "415"]);
    trial.described["requestBody"] = body(true, by_ref("schemas", "NewEvent"));
    trial
}

fn overview() -> Operation {
    Operation::get(
        "/v1/overview",
        "overview",
        "host",
        "The host at a glance\nRuns by the time they ended, with model usage; durations are accurate to ten per cent. \
         Unknown values are null.",
    )
    .takes(&["workspace_id", "minutes"])
    .answers("200", json_body("The overview.", by_ref("schemas", "Overview")))
}

fn state() -> Operation {
    Operation::get(
        "/v1/state",
        "list_state",
        "conversations",
        "State of runners\nOf values over 64 KiB only a preview is shown. A page may be short although `has_more` is \
         true when few keys match.",
    )
    .takes(&["workspace_id", "agent", "scope", "conversation_id", "actor_id", "prefix", "cursor", "limit"])
    .answers("200", page_of("StateItem"))
}

fn artifacts() -> Operation {
    Operation::get(
        "/v1/artifacts",
        "list_artifacts",
        "artifacts",
        "Artifacts, newest first\nA page may be short although `has_more` is true when few artifacts match.",
    )
    .takes(&["workspace_id", "conversation_id", "run_id", "mime", "cursor", "limit"])
    .answers("200", page_of("ArtifactView"))
}

fn search() -> Operation {
    Operation::get(
        "/v1/search",
        "search",
        "conversations",
        "Search all conversations, best match first",
    )
    .takes(&[
        "workspace_id",
        "q",
        "conversation_id",
        "role",
        "event_type",
        "actor_id",
        "since",
        "until",
        "limit",
    ])
    .answers("200", page_of("SearchHit"))
}

fn body(required: bool, schema: Value) -> Value {
    json!({"required": required, "content": {"application/json": {"schema": schema}}})
}
