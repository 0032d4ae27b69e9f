//! `/v1/session`: sign in from a browser with a code or a token, show the session, sign out.
//!
//! Invariant: only the host's own page can open or end a session. Credentials are never repeated in a response
//! or in the log.

mod attempts;
mod codes;
pub(crate) mod cookie;
mod open;
mod store;

pub(crate) use store::Sessions;

use crate::access::{Caller, hash_token};
use crate::events::{check_type, read_body_within};
use crate::origin;
use crate::query::Params;
use crate::request_policy::ClientView;
use crate::response::{ApiResult, Problem, ok};
use crate::router::App;
use attempts::ATTEMPT_REFILL_S;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use cookie::Cookie;
use serde::Deserialize;
use serde_json::json;
use store::{Credential, SignInError};

const BODY_BYTES_MAX: usize = 8 * 1024;

pub(crate) async fn sign_in(State(app): State<App>, params: Params, request: Request) -> ApiResult {
    params.only(&[])?;
    let (parts, body) = request.into_parts();
    origin::check_own_page(&parts)?;
    check_type(&parts.headers)?;
    let credential = credential(&read_body_within(&app, body, BODY_BYTES_MAX).await?)?;
    let access = app.access.load();
    let client: &ClientView = parts.extensions.get().ok_or_else(Problem::internal)?;
    let token = app
        .sessions
        .authenticate(client.client, &credential, |token| access.caller(token).is_some());
    let token = token.map_err(|error| sign_in_problem(&credential, &error))?;
    let caller = access.caller(&token).ok_or_else(Problem::unauthenticated)?;
    // The browser loses the cookie of its earlier session, so that session ends.
    for old in cookie::values(&parts.headers, &app.options.cookie) {
        app.sessions.end(&hash_token(old));
    }
    let secret = app.sessions.open(token).map_err(|_| Problem::internal())?;
    let cookie = session_cookie(&app, client).set(&secret, app.sessions.limits().session);
    with_cookie(Json(caller.view()).into_response(), cookie)
}

/// With `optional=true` a caller without token and session gets 204, which browsers do not log as an error.
pub(crate) async fn show(
    caller: Result<Caller, Problem>,
    params: Params,
    headers: HeaderMap,
) -> ApiResult {
    let params = params.only(&["optional"])?;
    let is_optional = match params.text("optional") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(Problem::invalid("`optional` is `true` or `false`")),
    };
    match caller {
        Ok(caller) => ok(caller.view()),
        Err(problem)
            if is_optional && problem.is_unauthorized() && !headers.contains_key(AUTHORIZATION) =>
        {
            Ok(StatusCode::NO_CONTENT.into_response())
        }
        Err(problem) => Err(problem),
    }
}

fn session_cookie<'a>(app: &'a App, client: &ClientView) -> Cookie<'a> {
    Cookie {
        name: &app.options.cookie,
        path: app.options.base_path.as_str(),
        scheme: client.scheme,
    }
}

pub(crate) async fn sign_out(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Extension(client): Extension<ClientView>,
) -> ApiResult {
    params.only(&[])?;
    if let Some(session) = caller.session() {
        app.sessions.end(session);
    }
    let cookie = session_cookie(&app, &client).clear();
    with_cookie(StatusCode::NO_CONTENT.into_response(), cookie)
}

/// A code that opens one session for the token that requests it.
pub(crate) async fn new_code(State(app): State<App>, caller: Caller, params: Params) -> ApiResult {
    params.only(&[])?;
    caller.require_admin()?;
    if caller.session().is_some() {
        let message = "a session cannot create sign-in codes: use the token itself";
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

fn credential(body: &[u8]) -> Result<Credential, Problem> {
    // No details: they could contain the secret.
    let wrong = || Problem::invalid("the body must be `{\"code\": \"…\"}` or `{\"token\": \"…\"}`");
    let body: SignIn = serde_json::from_slice(body).map_err(|_| wrong())?;
    match (body.code, body.token) {
        (Some(code), None) => Ok(Credential::Code(code)),
        (None, Some(token)) => Ok(Credential::Token(token.trim().to_owned())),
        _ => Err(wrong()),
    }
}

fn sign_in_problem(credential: &Credential, error: &SignInError) -> Problem {
    match (error, credential) {
        (SignInError::TooManyAttempts, _) => {
            let message = "too many failed sign-in attempts; try again in a few seconds";
            Problem::rate_limited(message, ATTEMPT_REFILL_S)
        }
        (SignInError::WrongCredential, Credential::Code(_)) => Problem::unauthorized(
            "this code is wrong, used or expired: `greenroom open` prints a new one",
        ),
        (SignInError::WrongCredential, Credential::Token(_)) => {
            Problem::unauthorized("unknown token")
        }
    }
}

fn with_cookie(mut response: Response, cookie: Option<HeaderValue>) -> ApiResult {
    let headers = response.headers_mut();
    headers.insert(SET_COOKIE, cookie.ok_or_else(Problem::internal)?);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
