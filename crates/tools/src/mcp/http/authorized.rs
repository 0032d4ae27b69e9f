//! Requests with the token of a sign-in.
//!
//! Invariant: a request is sent at most twice: the second time with another token.

use super::{Failed, HttpError};
use crate::mcp::oauth::{AfterRefusal, Authorization};
use greenroom_outgoing::cause;
use http::{StatusCode, header};
use reqwest::{RequestBuilder, Response};
use rmcp::transport::streamable_http_client::StreamableHttpError;

/// Sends with the current token, and once more if a refusal led to another one.
pub(super) async fn send(
    authorization: &Authorization,
    request: RequestBuilder,
) -> Result<Response, Failed> {
    let again = request.try_clone();
    let token = authorization.token().await;
    let response = sent(with(request, token.as_deref())).await?;
    let Some(why) = refusal(authorization, &response, token.as_deref()).await? else {
        return Ok(response);
    };
    let (Retry, Some(request)) = (why, again) else { return Ok(response) };
    let token = authorization.token().await;
    let response = sent(with(request, token.as_deref())).await?;
    match refusal(authorization, &response, token.as_deref()).await? {
        Some(Retry) => Err(sign_in("does not accept the token that it was just granted")),
        None => Ok(response),
    }
}

/// There is another token to try.
struct Retry;

/// What a refusal means for the token; an error if a user has to sign in.
async fn refusal(
    authorization: &Authorization,
    response: &Response,
    used: Option<&str>,
) -> Result<Option<Retry>, Failed> {
    let status = response.status();
    if !matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        return Ok(None);
    }
    let headers = response.headers().get_all(header::WWW_AUTHENTICATE);
    let headers: Vec<&str> = headers.iter().filter_map(|header| header.to_str().ok()).collect();
    let header = (!headers.is_empty()).then(|| headers.join(", "));
    match authorization.refused(status.as_u16(), header.as_deref(), used).await {
        AfterRefusal::Retry => Ok(Some(Retry)),
        AfterRefusal::SignIn(why) => Err(sign_in(&why)),
        AfterRefusal::Nothing => Ok(None),
    }
}

fn sign_in(why: &str) -> Failed {
    StreamableHttpError::Client(HttpError::SignIn(why.to_owned()))
}

fn with(request: RequestBuilder, token: Option<&str>) -> RequestBuilder {
    match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    }
}

pub(super) async fn sent(request: RequestBuilder) -> Result<Response, Failed> {
    let sent = request.send().await;
    sent.map_err(|error| StreamableHttpError::Client(HttpError::Request(cause(&error))))
}
