//! Sign-ins at MCP servers: begun and ended by an administrator, completed by the redirect of the browser.
//!
//! Invariant: a redirect completes only the sign-in with its state, and only at the address that the sign-in was begun
//! for; the page that answers it shows nothing of the redirect.

use crate::access::Caller;
use crate::events::{check_type, read_body};
use crate::id::Id;
use crate::query::Params;
use crate::request_policy::ClientView;
use crate::response::{ApiResult, Problem, ok};
use crate::router::App;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Extension, Query, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use greenroom_protocol::ErrorCode;
use greenroom_tools::{McpServer, OAuthError, Redirected, SignInRequest, is_loopback};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// The path of redirects to the host.
pub(crate) const CALLBACK: &str = "/oauth/callback";
/// The page that ends a sign-in runs no script and loads nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'";

#[derive(Deserialize)]
struct BeginBody {
    redirect_uri: String,
}

/// `POST /v1/tool-servers/NAME/sign-in`.
pub(crate) async fn begin(
    State(app): State<App>,
    Extension(client): Extension<ClientView>,
    caller: Caller,
    params: Params,
    Id(name): Id,
    request: Request,
) -> ApiResult {
    caller.require_admin()?;
    params.only(&[])?;
    check_type(request.headers())?;
    let body = read_body(&app, request.into_body()).await?;
    let BeginBody { redirect_uri } = serde_json::from_slice(&body).map_err(|error| {
        Problem::invalid(format!("the body must be `{{\"redirect_uri\"}}`: {error}"))
    })?;
    if !is_loopback(&redirect_uri) && !is_callback(&app, &client, &redirect_uri) {
        let message = "`redirect_uri` must be `http://127.0.0.1:PORT/callback`, or `/oauth/callback` of this host";
        return Err(Problem::invalid(message));
    }
    let begun = server(&app, &name)?.begin_sign_in(&redirect_uri).await;
    let SignInRequest { url, state, expires } = begun.map_err(|error| problem(&name, &error))?;
    ok(json!({"url": url, "state": state, "expires_in_s": expires.as_secs()}))
}

/// The parameters of a redirect.
#[derive(Deserialize)]
pub(crate) struct FinishBody {
    state: String,
    code: Option<String>,
    iss: Option<String>,
    error: Option<String>,
    error_description: Option<String>,
}

impl From<FinishBody> for Redirected {
    fn from(body: FinishBody) -> Self {
        let FinishBody { state, code, iss, error, error_description } = body;
        Self { state, code, iss, error, error_description }
    }
}

/// `POST /v1/tool-servers/NAME/sign-in/finish`: the redirect arrived at a program on the user's machine.
pub(crate) async fn finish(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(name): Id,
    request: Request,
) -> ApiResult {
    caller.require_admin()?;
    params.only(&[])?;
    check_type(request.headers())?;
    let body = read_body(&app, request.into_body()).await?;
    let body: FinishBody = serde_json::from_slice(&body).map_err(|error| {
        let shape = "{\"state\", \"code\", \"iss\", \"error\", \"error_description\"}";
        Problem::invalid(format!("the body must be `{shape}`: {error}"))
    })?;
    let done = server(&app, &name)?.finish_sign_in(&body.into(), &is_loopback).await;
    done.map_err(|error| problem(&name, &error))?;
    ok(json!({"name": name, "sign_in": "done"}))
}

/// `DELETE /v1/tool-servers/NAME/sign-in`.
pub(crate) async fn sign_out(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(name): Id,
) -> ApiResult {
    caller.require_admin()?;
    params.only(&[])?;
    server(&app, &name)?.sign_out().await;
    ok(json!({"name": name, "sign_in": "required"}))
}

/// `GET /oauth/callback`: the redirect arrived here. The state is the only credential.
pub(crate) async fn callback(
    State(app): State<App>,
    Extension(client): Extension<ClientView>,
    // Codes may be longer than other parameters.
    query: Result<Query<FinishBody>, QueryRejection>,
) -> Response {
    let Ok(Query(redirected)) = query else {
        return page(StatusCode::BAD_REQUEST, "This is not the end of a sign-in.", "登录失败。");
    };
    let is_here = |redirect_uri: &str| is_callback(&app, &client, redirect_uri);
    let tools = Arc::clone(&app.host.resources().tools);
    match tools.finish_sign_in(&redirected.into(), &is_here).await {
        Ok(name) => {
            let said = format!("Greenroom is signed in at `{name}`. You can close this page.");
            page(StatusCode::OK, &said, "已登录，可以关闭本页面。")
        }
        Err(error) => {
            tracing::warn!(%error, "a sign-in at a tool server failed");
            let said = match &error {
                OAuthError::Failed(why) => format!("The sign-in failed: the server {why}."),
                error => format!("The sign-in failed: {error}."),
            };
            page(status(&error), &said, "登录失败。")
        }
    }
}

/// Whether an address is the one above, as this client reaches the host.
fn is_callback(app: &App, client: &ClientView, redirect_uri: &str) -> bool {
    let path = format!("{}{CALLBACK}", app.options.base_path.as_str());
    ["http", "https"]
        .iter()
        .any(|scheme| redirect_uri == format!("{scheme}://{}{path}", client.host))
}

fn server(app: &App, name: &str) -> Result<Arc<McpServer>, Problem> {
    let resources = app.host.resources();
    resources.tools.server(name).cloned().ok_or_else(|| Problem::not_found("MCP server"))
}

fn status(error: &OAuthError) -> StatusCode {
    match error {
        OAuthError::UnknownState => StatusCode::NOT_FOUND,
        OAuthError::Refused(_) => StatusCode::BAD_REQUEST,
        OAuthError::Failed(_) => StatusCode::BAD_GATEWAY,
    }
}

fn problem(name: &str, error: &OAuthError) -> Problem {
    let (code, message) = match error {
        OAuthError::UnknownState => (ErrorCode::NotFound, error.to_string()),
        OAuthError::Refused(_) => (ErrorCode::InvalidArgument, error.to_string()),
        OAuthError::Failed(why) => {
            (ErrorCode::RuntimeError, format!("the MCP server `{name}` {why}"))
        }
    };
    Problem::new(status(error), code, message)
}

fn page(status: StatusCode, english: &str, chinese: &str) -> Response {
    let escaped = english.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let body = format!(
        "<!doctype html><meta charset=\"utf-8\"><title>Greenroom</title>\
         <body style=\"font-family:sans-serif;margin:4rem\"><p>{escaped}</p><p lang=\"zh\">{chinese}</p>"
    );
    let mut response = (status, body).into_response();
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
