//! Signing in from a browser, and out.

use super::Operation;
use crate::openapi::parts::{by_ref, json_body};
use serde_json::{Value, json};

pub(super) fn all() -> Vec<Operation> {
    vec![sign_in(), show(), sign_out(), new_code()]
}

fn view(about: &str) -> Value {
    json_body(about, by_ref("schemas", "Session"))
}

/// By a token, or by the session itself.
fn by_either(mut operation: Operation) -> Operation {
    operation.described["security"] = json!([{"token": []}, {"session": []}]);
    operation
}

fn sign_in() -> Operation {
    let cookie = json!({"required": true, "schema": {"type": "string"},
        "description": "The session: `HttpOnly`, `SameSite=Strict`."});
    let mut answer = view("Who is signed in.");
    answer["headers"]["Set-Cookie"] = cookie;
    let mut sign_in = Operation::post(
        "/v1/session",
        "sign_in",
        "session",
        "Sign in from a page of the host's own\nWith the code that `serve` and `greenroom open` print, which is \
         good once, or with a token. The session may what the token may, and ends with it.",
    )
    .open()
    .takes(&["own_page"])
    .answers("200", answer)
    .refuses(&["401", "408", "413", "415", "429"]);
    sign_in.described["requestBody"] = json!({"required": true,
        "content": {"application/json": {"schema": by_ref("schemas", "SignIn")}}});
    sign_in
}

fn show() -> Operation {
    let headers = json!({"X-Request-Id": by_ref("headers", "X-Request-Id")});
    let nobody =
        json!({"description": "With `optional=true`: nobody is signed in.", "headers": headers});
    by_either(
        Operation::get("/v1/session", "get_session", "session", "Who is asking")
            .takes(&["optional"])
            .answers("200", view("Whoever the token or the session stands for."))
            .answers("204", nobody),
    )
}

fn sign_out() -> Operation {
    let headers = json!({"X-Request-Id": by_ref("headers", "X-Request-Id")});
    by_either(
        Operation::new("delete", "/v1/session", "sign_out", "session", "Sign out")
            .takes(&["own_page"])
            .answers("204", json!({"description": "The session is over.", "headers": headers})),
    )
}

fn new_code() -> Operation {
    let code =
        json_body("The code, for the address `/#code=CODE`.", by_ref("schemas", "SignInCode"));
    Operation::post(
        "/v1/session/code",
        "new_sign_in_code",
        "session",
        "A code that signs in once\nFor the token of an admin; a session makes none.",
    )
    .answers("200", code)
}
