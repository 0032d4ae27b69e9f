//! The document that describes all this, as it is served. `tests/outside` holds the host to it.

use crate::stage::Stage;
use greenroom_testkit::http::Request;
use serde_json::json;

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
