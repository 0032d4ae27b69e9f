//! The document that describes all this, as it is served. `tests/outside` holds the host to it.

use crate::stage::Stage;
use greenroom_testkit::http::Request;
use serde_json::{Value, json};

#[tokio::test]
async fn the_document_is_open_to_everyone_and_describes_this_version() {
    let stage = Stage::start().await;
    let reply = stage.ask_as(None, Request::get("/openapi.json")).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    assert_eq!(reply.body["openapi"], "3.1.0");
    assert_eq!(reply.body["info"]["version"], env!("CARGO_PKG_VERSION"));
    let accept = &reply.body["paths"]["/v1/events"]["post"];
    let mut statuses: Vec<&str> =
        accept["responses"].as_object().unwrap().keys().map(String::as_str).collect();
    statuses.sort_unstable();
    let expected =
        ["200", "202", "400", "401", "403", "404", "408", "409", "413", "415", "429", "500", "503"];
    assert_eq!(statuses, expected);
    let body = &accept["requestBody"]["content"]["application/json"]["schema"];
    assert_eq!(*body, json!({"$ref": "#/components/schemas/NewEvent"}));
}

/// A request that breaks one rule, and where the document states that rule.
struct Broken {
    request: Request,
    pointer: &'static str,
    rule: (&'static str, Value),
}

fn broken(request: Request, pointer: &'static str, rule: &'static str, value: Value) -> Broken {
    Broken { request, pointer, rule: (rule, value) }
}

fn event(field: &str, value: Value) -> Request {
    let mut event = json!({"event_type": "message.received", "input": {"text": "hi"}});
    event[field] = value;
    Request::post("/v1/events", event.to_string())
}

fn broken_names() -> Vec<Broken> {
    let long = "x".repeat(513);
    vec![
        broken(
            event("event_type", json!("")),
            "NewEvent/properties/event_type",
            "minLength",
            json!(1),
        ),
        broken(event("locale", json!(long)), "NewEvent/properties/locale", "maxLength", json!(512)),
        broken(
            event("source", json!("host")),
            "NewEvent/properties/source",
            "not",
            json!({"const": "host"}),
        ),
        broken(
            event("event_time", json!(253_402_300_800_i64)),
            "NewEvent/properties/event_time",
            "maximum",
            json!(253_402_300_799_i64),
        ),
        broken(
            event("actor", json!({"actor_type": ""})),
            "ActorContext/properties/actor_type",
            "minLength",
            json!(1),
        ),
        broken(
            event("subject", json!({"subject_type": long})),
            "SubjectContext/properties/subject_type",
            "maxLength",
            json!(512),
        ),
    ]
}

fn broken_events() -> Vec<Broken> {
    let media = json!([{"type": "image", "name": "a.png"}]);
    vec![
        broken(
            event("delivery", json!({"surface": ""})),
            "EventDelivery/properties/surface",
            "minLength",
            json!(1),
        ),
        broken(
            event("input", json!({"contents": [{"type": "image", "url": "file:///etc/passwd"}]})),
            "ContentElement/oneOf/1/properties/url",
            "pattern",
            json!("^([hH][tT][tT][pP][sS]?://|[dD][aA][tT][aA]:)"),
        ),
        broken(
            event("input", json!({"contents": media})),
            "ContentElement/oneOf/1",
            "not",
            json!({"properties": {"artifact_id": {"type": "null"}, "url": {"type": "null"}, "data_base64": {"type": "null"}}}),
        ),
    ]
}

fn broken_parameters() -> Vec<Broken> {
    vec![
        broken(Request::get("/v1/runs?cursor=short"), "cursor/schema", "minLength", json!(22)),
        broken(
            Request::get(
                "/v1/runs?cursor=%2B%2B%2B%2B%2B%2B%2B%2B%2B%2B%2B%2B%2B%2B%2B%2B%2B%2B%2B%2B%2B%2B%2B%2B",
            ),
            "cursor/schema",
            "pattern",
            json!("^[A-Za-z0-9_-]*$"),
        ),
        broken(Request::get("/v1/runs?limit=201"), "limit/schema", "maximum", json!(200)),
        broken(
            Request::post("/v1/artifacts?name=..", "x"),
            "name/schema",
            "not",
            json!({"enum": [".", ".."]}),
        ),
        broken(
            Request::post("/v1/artifacts?expires_in_s=0", "x"),
            "expires_in_s/schema",
            "minimum",
            json!(1),
        ),
        broken(
            Request::post("/v1/artifacts?conversation_id=", "x"),
            "for_conversation/schema",
            "minLength",
            json!(1),
        ),
    ]
}

#[tokio::test]
async fn what_the_host_refuses_stands_in_the_document() {
    let stage = Stage::start().await;
    let document = stage.ask_as(None, Request::get("/openapi.json")).await.body;
    let (schemas, parameters) = ("/components/schemas", "/components/parameters");
    let all = broken_names().into_iter().chain(broken_events()).chain(broken_parameters());
    for Broken { request, pointer, rule: (rule, value) } in all {
        let place = match pointer.ends_with("/schema") {
            true => format!("{parameters}/{pointer}/{rule}"),
            false => format!("{schemas}/{pointer}/{rule}"),
        };
        assert_eq!(document.pointer(&place), Some(&value), "{place}");
        let what = format!("{} {}", request.target, place);
        let reply = stage.ask(request).await;
        assert_eq!(
            (reply.status, &reply.body["error"]["code"]),
            (400, &json!("invalid_argument")),
            "{what}"
        );
    }
}
