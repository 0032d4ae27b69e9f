//! A browser, as far as the host can tell: a page of the host's own, and the cookies it keeps.

use crate::stage::{Reply, Stage};
use greenroom_testkit::http::Request;
use serde_json::{Value, json};

/// The code that the host printed at its last start.
pub(crate) fn printed_code(stage: &Stage) -> String {
    let log = stage.host.log();
    let (_, rest) = log.rsplit_once("/#code=").unwrap_or_else(|| panic!("no code in {log}"));
    rest.chars().take_while(char::is_ascii_hexdigit).collect()
}

/// What a page of the host's own sends with a write.
pub(crate) fn from_page(stage: &Stage, request: Request) -> Request {
    let origin = format!("http://{}", stage.address);
    request.header("origin", origin).header("x-greenroom", "1")
}

pub(crate) async fn sign_in(stage: &Stage, proof: Value) -> Reply {
    let request = Request::post("/v1/session", proof.to_string());
    stage.ask_as(None, from_page(stage, request)).await
}

/// Name and value of the cookie that an answer sets, and its attributes.
pub(crate) fn cookie(reply: &Reply) -> (String, Vec<String>) {
    let set = reply.header("set-cookie").unwrap_or_else(|| panic!("no cookie: {reply:?}"));
    let mut parts = set.split("; ").map(str::to_owned);
    (parts.next().unwrap(), parts.collect())
}

/// Signs in with a token and gives the cookie.
pub(crate) async fn signed_in(stage: &Stage, token: &str) -> String {
    let reply = sign_in(stage, json!({"token": token})).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    cookie(&reply).0
}

/// A read with a cookie, without anything else.
pub(crate) fn read(target: &str, cookie: &str) -> Request {
    Request::get(target).header("cookie", cookie)
}

/// A write with a cookie, without anything else.
pub(crate) fn write(method: &'static str, target: &str, body: String, cookie: &str) -> Request {
    Request { method, ..Request::post(target, body) }.header("cookie", cookie)
}
