//! Streamable HTTP to a server on the network, over the one outgoing client.
//!
//! Invariant: the outgoing client refuses private addresses and redirects; no body or event above the limit is
//! buffered.

mod authorized;
mod size;

use super::oauth::Authorization;
use super::pace::Pace;
use super::settings::McpLimits;
use super::trouble::Note;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use greenroom_outgoing::{Outgoing, cause};
use http::{HeaderName, HeaderValue, StatusCode, header};
use reqwest::{Client, RequestBuilder, Response};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcMessage, ServerJsonRpcMessage,
};
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use size::EventSize;
use sse_stream::{Sse, SseStream};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest part of an error's body that is read.
const ERROR_BYTES_MAX: usize = 64 * 1024;

pub(super) type Headers = HashMap<HeaderName, HeaderValue>;
type Events = BoxStream<'static, Result<Sse, SseError>>;
type Failed = StreamableHttpError<HttpError>;

#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error("{0}")]
    Request(String),
    #[error("the answer is larger than {bytes_max} bytes")]
    TooLarge { bytes_max: usize },
    /// A user has to sign in first.
    #[error("{0}")]
    SignIn(String),
}

#[derive(Clone)]
pub(super) struct HttpClient {
    /// The name in the configuration.
    name: Arc<str>,
    client: Client,
    limits: McpLimits,
    note: Note,
    authorization: Option<Arc<Authorization>>,
}

/// Checks a url and its headers before anything is called.
pub(super) fn check(
    url: &str,
    headers: &BTreeMap<String, String>,
    allow_private: bool,
) -> Result<Headers, String> {
    outgoing(allow_private).check(url).map_err(|error| error.to_string())?;
    let parse = |(name, value): (&String, &String)| {
        let value = HeaderValue::from_str(value);
        let header = HeaderName::from_bytes(name.as_bytes()).ok().zip(value.ok());
        header.ok_or_else(|| format!("the header `{name}` is not valid"))
    };
    headers.iter().map(parse).collect()
}

fn outgoing(allow_private: bool) -> Outgoing {
    Outgoing {
        allow_private,
        connect_timeout: Some(CONNECT_TIMEOUT),
        keep_idle: 4,
        ..Outgoing::default()
    }
}

impl HttpClient {
    pub(super) fn new(
        name: &str,
        allow_private: bool,
        limits: McpLimits,
        note: &Note,
        authorization: Option<Arc<Authorization>>,
    ) -> Result<Self, String> {
        let client = outgoing(allow_private).build().map_err(|error| cause(&error))?;
        Ok(Self { name: name.into(), client, limits, note: note.clone(), authorization })
    }

    /// Records the failure, to explain why there is no connection.
    fn record_failure<T>(&self, done: Result<T, Failed>) -> Result<T, Failed> {
        done.inspect_err(|error| self.note.write(error, &self.name))
    }

    async fn post(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let has_session = session_id.is_some();
        let request =
            self.client.post(uri.as_ref()).header(header::ACCEPT, accepted()).json(&message);
        let response = self.send(request, session_id, auth_header, custom_headers).await?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return refused(&message, has_session, response).await;
        }
        let session = text_header(&response, HEADER_SESSION_ID);
        let kind = text_header(&response, header::CONTENT_TYPE.as_str());
        match kind.as_deref() {
            Some(kind) if kind.starts_with(EVENT_STREAM_MIME_TYPE) => {
                let events = self.events(response, max_sse_event_size);
                Ok(StreamableHttpPostResponse::Sse(events, session))
            }
            _ if !matches!(message, JsonRpcMessage::Request(_)) => {
                // A notification has no answer, whatever the body is.
                Ok(StreamableHttpPostResponse::Accepted)
            }
            Some(kind) if kind.starts_with(JSON_MIME_TYPE) => {
                let body = body(response, self.limits.message_bytes_max).await?;
                let parsed = serde_json::from_slice(&body)?;
                Ok(StreamableHttpPostResponse::Json(parsed, session))
            }
            _ => Err(StreamableHttpError::UnexpectedContentType(kind)),
        }
    }

    async fn send(
        &self,
        request: RequestBuilder,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<Response, Failed> {
        let mut request = request.headers(headers.into_iter().collect());
        if let Some(session) = session {
            request = request.header(HEADER_SESSION_ID, session.as_ref());
        }
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        match &self.authorization {
            Some(authorization) => authorized::send(authorization, request).await,
            None => authorized::sent(request).await,
        }
    }

    /// The events, with limits for size and rate.
    fn events(&self, response: Response, event_bytes_max: usize) -> Events {
        let mut size = EventSize::new(event_bytes_max.min(self.limits.message_bytes_max));
        let bytes = response.bytes_stream().map(move |chunk| match chunk {
            Ok(chunk) => size.observe(&chunk).map(|()| chunk),
            Err(error) => Err(HttpError::Request(cause(&error))),
        });
        let pace = Pace::new(self.limits.notices_per_s, self.limits.notices_burst);
        let events = SseStream::from_bytes_stream(bytes.boxed());
        futures_util::stream::unfold((events, pace), |(mut events, mut pace)| async move {
            pace.ready().await;
            let event = events.next().await?;
            pace.spend();
            Some((event, (events, pace)))
        })
        .boxed()
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let max = self.limits.message_bytes_max;
        self.post_message_with_max_sse_event_size(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            max,
        )
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let posted =
            self.post(uri, message, session_id, auth_header, custom_headers, max_sse_event_size);
        self.record_failure(posted.await)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), Failed> {
        let request = self.client.delete(uri.as_ref());
        // A server without sessions, or that has dropped this one, is fine.
        self.send(request, Some(session_id), auth_header, custom_headers).await.map(|_| ())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<Events, Failed> {
        let max = self.limits.message_bytes_max;
        self.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            max,
        )
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
        max_sse_event_size: usize,
    ) -> Result<Events, Failed> {
        let mut request = self.client.get(uri.as_ref()).header(header::ACCEPT, accepted());
        if let Some(last) = last_event_id {
            request = request.header(HEADER_LAST_EVENT_ID, last);
        }
        let response = self.send(request, session_id, auth_header, custom_headers).await?;
        if response.status() == StatusCode::METHOD_NOT_ALLOWED {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if !response.status().is_success() {
            return Err(HttpStatusError::new(response.status().as_u16(), None).into());
        }
        let kind = text_header(&response, header::CONTENT_TYPE.as_str());
        match kind.as_deref() {
            Some(kind) if kind.starts_with(EVENT_STREAM_MIME_TYPE) => {
                Ok(self.events(response, max_sse_event_size))
            }
            _ => Err(StreamableHttpError::UnexpectedContentType(kind)),
        }
    }
}

/// A refusal may contain an answer of the protocol. A refused `server/discover` means an earlier version of the
/// protocol, unless the refusal is about authentication.
async fn refused(
    message: &ClientJsonRpcMessage,
    has_session: bool,
    response: Response,
) -> Result<StreamableHttpPostResponse, Failed> {
    let status = response.status();
    let about_us = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let failed =
        HttpStatusError::new(status.as_u16(), text_header(&response, header::RETRY_AFTER.as_str()));
    if about_us || !(status.is_client_error() || status.is_server_error()) {
        return Err(failed.into());
    }
    let body = body(response, ERROR_BYTES_MAX).await.unwrap_or_default();
    let answer = match serde_json::from_slice(&body) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
        _ => None,
    };
    let JsonRpcMessage::Request(request) = message else { return Err(failed.into()) };
    // Servers of the reference SDK answer so to an unknown session, where the protocol requires 404.
    let unread = answer.as_ref().is_some_and(|answer| answer.id.is_none());
    if has_session && status == StatusCode::BAD_REQUEST && unread {
        return Err(StreamableHttpError::SessionExpired);
    }
    let is_discovery = matches!(request.request, ClientRequest::DiscoverRequest(_));
    let error = match answer {
        Some(answer) => answer.error,
        None if is_discovery && !has_session && status.is_client_error() => {
            ErrorData::invalid_request(format!("HTTP {status}"), None)
        }
        None => return Err(failed.into()),
    };
    // An answer without an id belongs to this request.
    let message = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
    Ok(StreamableHttpPostResponse::Json(message, None))
}

fn accepted() -> String {
    format!("{EVENT_STREAM_MIME_TYPE}, {JSON_MIME_TYPE}")
}

fn text_header(response: &Response, name: &str) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

async fn body(mut response: Response, bytes_max: usize) -> Result<Vec<u8>, Failed> {
    let mut body = Vec::new();
    loop {
        let chunk = response.chunk().await;
        let chunk: Option<Bytes> = chunk
            .map_err(|error| StreamableHttpError::Client(HttpError::Request(cause(&error))))?;
        let Some(chunk) = chunk else { return Ok(body) };
        if body.len() + chunk.len() > bytes_max {
            return Err(StreamableHttpError::Client(HttpError::TooLarge { bytes_max }));
        }
        body.extend_from_slice(&chunk);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_addresses_and_broken_headers_are_refused_before_anything_is_called() {
        let none = BTreeMap::new();
        assert_eq!(
            check("http://127.0.0.1/mcp", &none, false),
            Err("the address is private".into())
        );
        assert!(check("http://127.0.0.1/mcp", &none, true).is_ok());
        let broken = BTreeMap::from([("x y".to_owned(), "1".to_owned())]);
        assert!(check("https://example.org/mcp", &broken, false).is_err());
    }
}
