//! The description of the HTTP interface, OpenAPI 3.1.
//!
//! Invariant: every route is described with every status it can answer with, and nothing else is; the tests
//! below compare the document with the table of routes and with `docs/openapi.json`, from which the types of the
//! web interface are generated; `tests/outside` compares it with a running host.

mod operations;
mod parts;
mod schemas;

use crate::router::App;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde_json::{Map, Value, json};

pub(crate) async fn document(State(app): State<App>) -> Response {
    // Built on the first request: most hosts never serve it.
    let page_size = app.host.settings().limits.page_size;
    let (cookie, base_path) = (&app.options.cookie, app.options.base_path.as_str());
    let build = || Bytes::from(describe(page_size, cookie, base_path).to_string());
    let document = app.openapi.get_or_init(build).clone();
    ([(CONTENT_TYPE, "application/json")], document).into_response()
}

/// The document as `docs/openapi.json` holds it: of a host with default settings.
pub fn openapi_document() -> Value {
    describe(200, "greenroom_session", "")
}

fn describe(page_size_max: usize, cookie: &str, base_path: &str) -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations::all() {
        let methods = paths.entry(operation.path).or_insert_with(|| json!({}));
        methods[operation.method] = operation.described;
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Greenroom",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "An agent host: events in, a runner's answer out, every fact kept.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": if base_path.is_empty() { "/" } else { base_path }}],
        "security": [{"token": []}],
        "tags": [
            {"name": "events", "description": "What happened: send events and read the event log."},
            {"name": "runs", "description": "One execution of one runner for one event."},
            {"name": "conversations", "description": "Transcripts, state and search."},
            {"name": "artifacts", "description": "Files, stored under an id."},
            {"name": "approvals", "description": "Actions that wait for a person's approval."},
            {"name": "deliveries", "description": "Output sent to surfaces, and its outcome."},
            {"name": "agui", "description": "AG-UI for front ends, and the routes of CopilotKit."},
            {"name": "gateways", "description": "Tools and models of a run, for programs that its runner starts."},
            {"name": "audit", "description": "Every call of a runner to the host."},
            {"name": "session", "description": "Sign in from a browser, and sign out."},
            {"name": "tools", "description": "Records of project modules, for tool processes."},
            {"name": "host", "description": "Health, metrics, agents, runners and resources."},
        ],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer",
                    "description": "A token with a role: `admin` may do everything, `sender` sends \
                        events and follows their runs, `reader` reads everything."},
                "session": {"type": "apiKey", "in": "cookie", "name": cookie,
                    "description": "A session, accepted wherever a token is; only from the host's own \
                        pages, writes with `X-Greenroom: 1`."},
                "run_token": {"type": "http", "scheme": "bearer",
                    "description": "The token of one run, from `ctx.runtime.metadata.run_token`; valid while \
                        that attempt runs. Also as `x-api-key` or `x-goog-api-key`."},
                "runner_token": {"type": "http", "scheme": "bearer",
                    "description": "The token of one runner, from `runners.NAME.token`."},
            },
            "parameters": parts::parameters(page_size_max),
            "headers": parts::headers(),
            "responses": parts::problems(),
            "schemas": schemas::all(),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::routes;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_route_is_described_and_nothing_else() {
        let document = openapi_document();
        let described: BTreeSet<(String, String)> = document["paths"]
            .as_object()
            .unwrap()
            .iter()
            .flat_map(|(path, methods)| {
                let methods = methods.as_object().unwrap().keys();
                methods.map(move |method| (path.clone(), method.clone()))
            })
            .collect();
        let served: BTreeSet<(String, String)> = routes()
            .into_iter()
            .map(|route| (route.path.to_owned(), route.method.to_owned()))
            .collect();
        assert_eq!(described, served);
    }

    #[test]
    fn every_reference_resolves() {
        let document = openapi_document();
        let mut references = Vec::new();
        collect(&document, &mut references);
        assert!(!references.is_empty());
        for reference in references {
            let pointer = reference.strip_prefix('#').unwrap_or("missing");
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }

    #[test]
    fn path_parameters_are_described() {
        for operation in operations::all() {
            let names = operation.path.split('{').skip(1).count();
            let parameters = operation.described["parameters"].to_string();
            assert_eq!(parameters.matches("_in_path").count(), names, "{}", operation.path);
        }
    }

    #[test]
    fn operation_ids_are_unique() {
        let operations = operations::all();
        let names: BTreeSet<String> =
            operations.iter().map(|it| it.described["operationId"].to_string()).collect();
        assert_eq!(names.len(), operations.len());
    }

    #[test]
    fn docs_openapi_has_not_drifted() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let stored: Value = serde_json::from_str(&text).unwrap_or_default();
        let hint = "docs/openapi.json has drifted: run `make schemas` and commit";
        assert!(stored == openapi_document(), "{hint}");
    }

    fn collect(value: &Value, references: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(reference)) = fields.get("$ref") {
                    references.push(reference.clone());
                }
                fields.values().for_each(|value| collect(value, references));
            }
            Value::Array(items) => items.iter().for_each(|value| collect(value, references)),
            _ => {}
        }
    }
}
