//! `/v1/session`: signing in from a browser with a code or a token, looking who one is, signing out.
//!
//! Invariant: only a page of the host's own gets a session or ends one. Nothing that was shown to sign in is
//! repeated in an answer or in the log.

mod book;
mod codes;
pub(crate) mod cookie;
mod open;
mod tries;

pub(crate) use book::Sessions;

use crate::access::{Caller, hash_token};
use crate::answer::{Answer, Problem, ok};
use crate::events::{check_type, read_body_within};
use crate::front::Outside;
use crate::origin;
use crate::query::Params;
use crate::router::App;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use book::{Proof, Refused};
use cookie::Cookie;
use serde::Deserialize;
use serde_json::json;
use tries::TRY_BACK_S;

const BODY_BYTES_MAX: usize = 8 * 1024;

pub(crate) async fn sign_in(State(app): State<App>, params: Params, request: Request) -> Answer {
    params.only(&[])?;
    let (parts, body) = request.into_parts();
    origin::check_own_page(&parts)?;
    check_type(&parts.headers)?;
    let proof = proof(&read_body_within(&app, body, BODY_BYTES_MAX).await?)?;
    let access = app.access.load();
    let outside: &Outside = parts.extensions.get().ok_or_else(Problem::internal)?;
    let token = app.sessions.prove(outside.client, &proof, |token| access.caller(token).is_some());
    let token = token.map_err(|refused| told(&proof, &refused))?;
    let caller = access.caller(&token).ok_or_else(Problem::unauthenticated)?;
    // Whoever signs in anew leaves no session behind that nobody has a cookie of.
    for old in cookie::values(&parts.headers, &app.options.cookie) {
        app.sessions.end(&hash_token(old));
    }
    let secret = app.sessions.begin(token).map_err(|_| Problem::internal())?;
    let kept = place(&app, outside).kept(&secret, app.sessions.limits().session);
    with_cookie(Json(caller.view()).into_response(), kept)
}

/// With `optional=true` somebody who shows no token and has no session is told so with an empty answer, which is
/// no error to a browser.
pub(crate) async fn show(
    caller: Result<Caller, Problem>,
    params: Params,
    headers: HeaderMap,
) -> Answer {
    let params = params.only(&["optional"])?;
    let is_optional = match params.text("optional") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(Problem::invalid("`optional` is `true` or `false`")),
    };
    match caller {
        Ok(caller) => ok(caller.view()),
        Err(problem)
            if is_optional && problem.is_unproven() && !headers.contains_key(AUTHORIZATION) =>
        {
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        Err(problem) => Err(problem),
    }
}

fn place<'a>(app: &'a App, outside: &Outside) -> Cookie<'a> {
    Cookie {
        name: &app.options.cookie,
        path: app.options.base_path.as_str(),
        scheme: outside.scheme,
    }
}

pub(crate) async fn sign_out(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Extension(outside): Extension<Outside>,
) -> Answer {
    params.only(&[])?;
    if let Some(session) = caller.session() {
        app.sessions.end(session);
    }
    let forgotten = place(&app, &outside).forgotten();
    with_cookie(StatusCode::NO_CONTENT.into_response(), forgotten)
}

/// A code that opens one session of the token that asks for it.
pub(crate) async fn new_code(State(app): State<App>, caller: Caller, params: Params) -> Answer {
    params.only(&[])?;
    caller.admin()?;
    if caller.session().is_some() {
        let message = "a session opens no other sessions: this takes the token itself";
        return Err(Problem::forbidden(message));
    }
    let code = app.sessions.new_code(*caller.token()).map_err(|_| Problem::internal())?;
    let expires_in_s = app.sessions.limits().sign_in_code.as_secs();
    ok(json!({"code": code, "expires_in_s": expires_in_s}))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SignIn {
    code: Option<String>,
    token: Option<String>,
}

fn proof(body: &[u8]) -> Result<Proof, Problem> {
    // What is wrong with it is not told in detail: the detail may be the secret.
    let wrong = || Problem::invalid("the body is `{\"code\": \"…\"}` or `{\"token\": \"…\"}`");
    let body: SignIn = serde_json::from_slice(body).map_err(|_| wrong())?;
    match (body.code, body.token) {
        (Some(code), None) => Ok(Proof::Code(code)),
        (None, Some(token)) => Ok(Proof::Token(token.trim().to_owned())),
        _ => Err(wrong()),
    }
}

fn told(proof: &Proof, refused: &Refused) -> Problem {
    match (refused, proof) {
        (Refused::TooMany, _) => {
            let message = "too many tries to sign in were wrong; wait a little";
            Problem::rate_limited(message, TRY_BACK_S)
        }
        (Refused::Wrong, Proof::Code(_)) => Problem::not_proven(
            "this code is wrong, was used or has expired: `greenroom open` prints a new one",
        ),
        (Refused::Wrong, Proof::Token(_)) => Problem::not_proven("this token is not known"),
    }
}

fn with_cookie(mut response: Response, cookie: Option<HeaderValue>) -> Answer {
    let headers = response.headers_mut();
    headers.insert(SET_COOKIE, cookie.ok_or_else(Problem::internal)?);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
