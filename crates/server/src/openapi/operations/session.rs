//! Sign in from a browser, and sign out.

use super::Operation;
use crate::openapi::parts::{by_ref, json_body};
use serde_json::{Value, json};

pub(super) fn all() -> Vec<Operation> {
    vec![sign_in(), show(), sign_out(), new_code(), mint()]
}

fn view(about: &str) -> Value {
    json_body(about, by_ref("schemas", "Session"))
}

/// Accepts a token or a session.
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
        "Sign in from one of the host's own pages\nWith the code that `serve` and `greenroom open` print, which is \
         valid once, or with a token. The session has the rights of the token and ends with it.",
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
    let signed_out =
        json!({"description": "With `optional=true`: not signed in.", "headers": headers});
    by_either(
        Operation::get("/v1/session", "get_session", "session", "The signed-in caller")
            .takes(&["optional"])
            .answers("200", view("The caller."))
            .answers("204", signed_out),
    )
}

fn sign_out() -> Operation {
    let headers = json!({"X-Request-Id": by_ref("headers", "X-Request-Id")});
    by_either(
        Operation::new("delete", "/v1/session", "sign_out", "session", "Sign out")
            .takes(&["own_page"])
            .answers("204", json!({"description": "The session has ended.", "headers": headers})),
    )
}

fn new_code() -> Operation {
    let code = json_body("The code, for the URL `/#code=CODE`.", by_ref("schemas", "SignInCode"));
    Operation::post(
        "/v1/session/code",
        "new_sign_in_code",
        "session",
        "Create a code that signs in once\nFor an admin's token, not for a session.",
    )
    .answers("200", code)
}

fn mint() -> Operation {
    let minted = json_body("The token.", by_ref("schemas", "ActorToken"));
    let mut mint = Operation::post(
        "/v1/tokens/actor",
        "mint_actor_token",
        "session",
        "Mint a short-lived token for one actor\nFor the server of an application, which hands it to a front end: it \
         sends as that actor only and reads the conversations that the actor began. It is void once the token that \
         minted it is removed or changed.",
    )
    .answers("201", minted)
    .refuses(&["408", "413", "415"]);
    mint.described["requestBody"] = json!({"required": true,
        "content": {"application/json": {"schema": by_ref("schemas", "NewActorToken")}}});
    mint
}
