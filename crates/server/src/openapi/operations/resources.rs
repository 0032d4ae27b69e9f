//! Models, tools and their servers.

use super::super::parts::{json_body, page_of};
use super::Operation;
use serde_json::{Value, json};

pub(super) fn all() -> Vec<Operation> {
    vec![
        Operation::get("/v1/models", "list_models", "host", "Models that agents can be granted")
            .answers("200", page_of("Model")),
        Operation::get("/v1/tools", "list_tools", "host", "Tools that agents can be granted")
            .answers("200", page_of("Tool")),
        Operation::get(
            "/v1/tool-servers",
            "list_tool_servers",
            "host",
            "MCP servers and modules, and their status",
        )
        .answers("200", page_of("ToolServer")),
        Operation::get(
            "/v1/checks",
            "list_checks",
            "host",
            "Check the database, the models and the surfaces now\nFor admins. No model is called and nothing is sent.",
        )
        .answers("200", page_of("Check")),
    ]
    .into_iter()
    .chain(sign_in())
    .collect()
}

const SIGN_IN: &str = "/v1/tool-servers/{id}/sign-in";

fn sign_in() -> Vec<Operation> {
    let text = || json!({"type": "string"});
    let mut begin = Operation::post(
        SIGN_IN,
        "begin_tool_server_sign_in",
        "host",
        "Begin a sign-in at an MCP server\nFor admins. `redirect_uri` is `http://127.0.0.1:PORT/callback` of a \
         program on the user's machine, or `/oauth/callback` of this host. Open `url` in a browser.",
    )
    .takes(&["tool_server_in_path"])
    .answers("200", answer(json!({"url": text(), "state": text(), "expires_in_s": {"type": "integer"}})))
    .refuses(&["404", "408", "413", "415", "502"]);
    let redirect = json!({"type": "string",
        "pattern": r"^(http://127\.0\.0\.1:[0-9]{1,5}/callback|https?://[^/]+(/.*)?/oauth/callback)$"});
    begin.described["requestBody"] = body(json!({"redirect_uri": redirect}), &["redirect_uri"]);
    let mut finish = Operation::post(
        "/v1/tool-servers/{id}/sign-in/finish",
        "finish_tool_server_sign_in",
        "host",
        "Complete a sign-in with the parameters of the redirect\nFor admins.",
    )
    .takes(&["tool_server_in_path"])
    .answers("200", state())
    .refuses(&["404", "408", "413", "415", "502"]);
    let parameters = json!({"state": text(), "code": text(), "iss": text(), "error": text(),
        "error_description": text()});
    finish.described["requestBody"] = body(parameters, &["state"]);
    let about = "Forget the sign-in at an MCP server\nFor admins.";
    let out = Operation::new("delete", SIGN_IN, "sign_out_of_tool_server", "host", about)
        .takes(&["tool_server_in_path"])
        .answers("200", state())
        .refuses(&["404"]);
    let callback = Operation::get(
        "/oauth/callback",
        "tool_server_sign_in_callback",
        "host",
        "The redirect of a browser that ends a sign-in at an MCP server\nThe state is the only credential.",
    )
    .open()
    .answers("200", page("Signed in."))
    .answers("400", page("The redirect is not valid."))
    .answers("404", page("There is no such sign-in."))
    .answers("502", page("The authorization server refused."));
    vec![begin, finish, out, callback]
}

fn answer(properties: Value) -> Value {
    json_body("The sign-in.", json!({"type": "object", "properties": properties}))
}

fn state() -> Value {
    answer(json!({"name": {"type": "string"}, "sign_in": {"enum": ["required", "done"]}}))
}

fn page(about: &str) -> Value {
    json!({"description": about, "content": {"text/html": {"schema": {"type": "string"}}}})
}

fn body(properties: Value, required: &[&str]) -> Value {
    json!({"required": true, "content": {"application/json": {"schema":
        {"type": "object", "properties": properties, "required": required}}}})
}
