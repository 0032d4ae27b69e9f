//! What an interface for people asks for: whole stories, and what would be.

use super::Operation;
use crate::openapi::parts::{by_ref, json_body, page_of};
use serde_json::{Value, json};

pub(super) fn all() -> Vec<Operation> {
    vec![story(), replay(), agent(), try_event(), overview(), state(), artifacts(), search()]
}

fn story() -> Operation {
    Operation::get(
        "/v1/runs/{id}/story",
        "get_story",
        "runs",
        "Everything that is known of a run beside its results\nIts event, why its agent has it, the grant that was \
         frozen with it, calls of models, deliveries, approvals and replays; `truncated` says what was left out. \
         A sender does not see the agent's config.",
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
        "The event of a run once more\nA new event with `metadata.replay_of`, for the same agent or the one named; \
         nothing is delivered. 409 when the event is no longer kept.",
    )
    .takes(&["run_id_in_path", "workspace_id"])
    .answers("202", json_body("The new event is stored.", by_ref("schemas", "EventAnswer")))
    .refuses(&["404", "408", "409", "413", "415", "429"]);
    let agent =
        json!({"type": ["string", "null"], "description": "Default: the one that took it."});
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
        "One agent in full\nIts config without secrets, what the binding allows, what its runner says of itself, and \
         the grant that a run would get now.",
    )
    .takes(&["agent_in_path"])
    .answers("200", json_body("The agent.", by_ref("schemas", "AgentInFull")))
    .refuses(&["404"])
}

fn try_event() -> Operation {
    let mut tried = Operation::post(
        "/v1/bindings/try",
        "try_event",
        "host",
        "Which agent would take an event, and with which grant\nChanges nothing.",
    )
    .answers("200", json_body("What would be.", by_ref("schemas", "TriedEvent")))
    .refuses(&["408", "413", "415"]);
    tried.described["requestBody"] = body(true, by_ref("schemas", "NewEvent"));
    tried
}

fn overview() -> Operation {
    Operation::get(
        "/v1/overview",
        "overview",
        "host",
        "The host at a glance\nRuns by the time at which they ended, with what models took; durations are within ten \
         per cent. What is not known is null.",
    )
    .takes(&["workspace_id", "minutes"])
    .answers("200", json_body("The overview.", by_ref("schemas", "Overview")))
}

fn state() -> Operation {
    Operation::get(
        "/v1/state",
        "list_state",
        "conversations",
        "What runners keep as state\nValues over 64 KiB are shown by their beginning. A page may be short although \
         `has_more` is true where few keys fit.",
    )
    .takes(&["workspace_id", "agent", "scope", "conversation_id", "actor_id", "prefix", "cursor", "limit"])
    .answers("200", page_of("StateEntry"))
}

fn artifacts() -> Operation {
    Operation::get(
        "/v1/artifacts",
        "list_artifacts",
        "artifacts",
        "Artifacts, newest first\nA page may be short although `has_more` is true where few artifacts fit.",
    )
    .takes(&["workspace_id", "conversation_id", "run_id", "mime", "cursor", "limit"])
    .answers("200", page_of("ArtifactView"))
}

fn search() -> Operation {
    Operation::get(
        "/v1/search",
        "search",
        "conversations",
        "Items of all conversations that hold what is looked for, the best first",
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
