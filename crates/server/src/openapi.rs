//! The description of the HTTP interface, OpenAPI 3.1.
//!
//! Invariant: every route is described with every status it can answer with, and nothing else is; the tests
//! below compare the document with the table of routes, and `tests/outside` with a running host.

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
    // A host that nobody asks spares the time and the memory.
    let page_size = app.host.settings().limits.page_size;
    let (cookie, base_path) = (&app.options.cookie, app.options.base_path.as_str());
    let build = || Bytes::from(describe(page_size, cookie, base_path).to_string());
    let document = app.openapi.get_or_init(build).clone();
    ([(CONTENT_TYPE, "application/json")], document).into_response()
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
            {"name": "events", "description": "What happened: handed in, and looked up."},
            {"name": "runs", "description": "One execution of one runner for one event."},
            {"name": "conversations", "description": "Events and answers as one transcript."},
            {"name": "artifacts", "description": "Bytes, kept under an id."},
            {"name": "approvals", "description": "Actions that somebody has to allow first."},
            {"name": "deliveries", "description": "What is brought to surfaces, and what did not arrive."},
            {"name": "agui", "description": "AG-UI for front ends, and the routes of CopilotKit."},
            {"name": "audit", "description": "What runners asked the host for."},
            {"name": "session", "description": "Signing in from a browser, and out."},
            {"name": "host", "description": "The host about itself."},
        ],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer",
                    "description": "A token with a role: `admin` may everything, `sender` hands in \
                        events and follows their runs, `reader` reads everything."},
                "session": {"type": "apiKey", "in": "cookie", "name": cookie,
                    "description": "A session, which stands for a token wherever one is asked for; from the \
                        host's own pages only, writes with `X-Greenroom: 1`."},
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

    #[test]
    fn every_route_is_described_and_nothing_else() {
        let document = describe(200, "cookie", "");
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
    fn every_reference_leads_somewhere() {
        let document = describe(200, "cookie", "");
        let mut references = Vec::new();
        collect(&document, &mut references);
        assert!(!references.is_empty());
        for reference in references {
            let place = reference.strip_prefix('#').unwrap_or("nowhere");
            assert!(document.pointer(place).is_some(), "{reference}");
        }
    }

    #[test]
    fn parameters_of_addresses_are_described() {
        for operation in operations::all() {
            let names = operation.path.split('{').skip(1).count();
            let parameters = operation.described["parameters"].to_string();
            assert_eq!(parameters.matches("_in_path").count(), names, "{}", operation.path);
        }
    }

    #[test]
    fn operations_have_names_of_their_own() {
        let operations = operations::all();
        let names: BTreeSet<String> =
            operations.iter().map(|it| it.described["operationId"].to_string()).collect();
        assert_eq!(names.len(), operations.len());
    }

    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(reference)) = fields.get("$ref") {
                    found.push(reference.clone());
                }
                fields.values().for_each(|value| collect(value, found));
            }
            Value::Array(items) => items.iter().for_each(|value| collect(value, found)),
            _ => {}
        }
    }
}
