//! Messages about failures of a server: what an operator can do, and what a caller needs to know.
//!
//! Invariant: messages for operators are clauses about the server; messages for callers name it and do not quote
//! its log.

use super::http::HttpError;
use crate::ToolFailure;
use rmcp::ServiceError;
use rmcp::model::{ErrorCode, ErrorData};
use rmcp::service::ClientInitializeError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

const TEXT_CHARS_MAX: usize = 300;
const LAST_WORDS_CHARS_MAX: usize = 800;

/// The last failure over HTTP; the library reports less.
#[derive(Debug, Clone, Default)]
pub(super) struct Note(Arc<Mutex<Option<Failure>>>);

/// How a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) reason: String,
    /// Whether the server answered, with something else than what it was asked for.
    pub(super) answered: bool,
}

impl Note {
    pub(super) fn write(&self, error: &StreamableHttpError<HttpError>, server: &str) {
        let answered = match error {
            StreamableHttpError::Client(HttpError::Request(_) | HttpError::SignIn(_)) => false,
            StreamableHttpError::HttpStatus(failed) => !matches!(failed.status, 401 | 403 | 429),
            _ => true,
        };
        let failure = Failure { reason: over_http(error, server), answered };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
    }

    pub(super) fn take(&self) -> Option<Failure> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Why there is no connection.
pub(super) fn at_handshake(error: &ClientInitializeError, server: &str) -> String {
    match error {
        // Both handshakes failed, and every server knows the older one.
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => {
            at_handshake(fallback, server)
        }
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_)
        | ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            "answers the handshake with something else; is it an MCP server?".to_owned()
        }
        ClientInitializeError::ConnectionClosed(_) => {
            "ended the connection before it answered the handshake".to_owned()
        }
        ClientInitializeError::TransportError { error, .. } => in_transit(error, server),
        ClientInitializeError::JsonRpcError(ErrorData { message, .. }) => {
            format!("refuses the handshake: {}", short(message))
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<String> = server_supported.iter().map(ToString::to_string).collect();
            let versions = short(&versions.join(", "));
            format!(
                "speaks versions of MCP that are not spoken here: {versions}; use another release of it"
            )
        }
        error => short(&error.to_string()),
    }
}

/// Why its tools cannot be listed.
pub(super) fn at_listing(error: &ServiceError, server: &str) -> String {
    match error {
        ServiceError::McpError(ErrorData { message, .. }) => {
            format!("refuses to list its tools: {}", short(message))
        }
        ServiceError::TransportSend(error) => in_transit(error, server),
        ServiceError::TransportClosed => {
            "ended the connection before it listed its tools".to_owned()
        }
        ServiceError::UnexpectedResponse => "answers with something else than its tools".to_owned(),
        error => short(&error.to_string()),
    }
}

fn in_transit(error: &(dyn Error + 'static), server: &str) -> String {
    match http_error(error) {
        Some(error) => over_http(error, server),
        None => "does not accept what it is sent".to_owned(),
    }
}

fn http_error<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e StreamableHttpError<HttpError>> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref() {
            return Some(error);
        }
        next = error.source();
    }
    None
}

/// Why a user has to sign in first.
fn sign_in_reason<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e str> {
    match http_error(error)? {
        StreamableHttpError::Client(HttpError::SignIn(why)) => Some(why),
        _ => None,
    }
}

pub(super) fn sign_in_required(server: &str, why: &str) -> ToolFailure {
    let message = format!(
        "the MCP server `{server}` {why}; an operator signs in with `greenroom sign-in {server}`"
    );
    ToolFailure::new("SIGN_IN_REQUIRED", message)
}

/// How an HTTP server failed to answer.
pub(super) fn over_http(error: &StreamableHttpError<HttpError>, server: &str) -> String {
    let url = format!("check `tools.{server}.url`");
    match error {
        StreamableHttpError::Client(HttpError::Request(cause)) => {
            let hint = match cause.contains("public address") {
                true => format!(
                    "`allow_private = true` in `tools.{server}` lets it be in your own network"
                ),
                false => format!("{url}, and that it runs"),
            };
            format!("cannot be reached: {}; {hint}", short(cause))
        }
        StreamableHttpError::Client(error @ HttpError::TooLarge { .. }) => error.to_string(),
        StreamableHttpError::Client(HttpError::SignIn(why)) => {
            format!("{why}; sign in with `greenroom sign-in {server}`")
        }
        StreamableHttpError::HttpStatus(failed) => match failed.status {
            status @ (401 | 403) => {
                format!("does not let us in (HTTP {status}); check `tools.{server}.headers`")
            }
            status @ 300..=399 => {
                format!("leads elsewhere (HTTP {status}), and redirects are not followed; {url}")
            }
            status @ (429 | 500..=599) => {
                format!("answers with HTTP {status}; it is retried")
            }
            status => format!("answers with HTTP {status}; {url}"),
        },
        StreamableHttpError::UnexpectedContentType(kind) => {
            let kind = kind
                .as_deref()
                .map_or("nothing that has a type".to_owned(), |kind| format!("`{}`", short(kind)));
            format!("answers with {kind} instead of MCP; {url}")
        }
        StreamableHttpError::Deserialize(_) | StreamableHttpError::UnexpectedServerResponse(_) => {
            format!("answers with what is not MCP; {url}")
        }
        StreamableHttpError::SessionExpired => "has ended the session".to_owned(),
        error => short(&error.to_string()),
    }
}

/// Why a call has no result.
pub(super) fn in_call(error: &ServiceError, server: &str) -> ToolFailure {
    match error {
        ServiceError::McpError(ErrorData { code, message, .. }) => {
            let code = match *code {
                ErrorCode::INVALID_PARAMS => "INVALID_ARGUMENT",
                _ => "TOOL_ERROR",
            };
            let message = format!("the MCP server `{server}` refused the call: {message}");
            ToolFailure::new(code, message)
        }
        ServiceError::TransportClosed => unavailable(
            server,
            "ended the connection during the call: whether it took effect is not known",
        ),
        ServiceError::TransportSend(error) => match sign_in_reason(error) {
            Some(why) => sign_in_required(server, why),
            None => unavailable(server, "could not be reached; try again later"),
        },
        ServiceError::UnexpectedResponse => {
            let message =
                format!("the MCP server `{server}` answered with something else than a result");
            ToolFailure::new("PROTOCOL_ERROR", message)
        }
        error => {
            let message = format!(
                "the MCP server `{server}` does not keep to the protocol: {}",
                short(&error.to_string())
            );
            ToolFailure::new("PROTOCOL_ERROR", message)
        }
    }
}

pub(super) fn unavailable(server: &str, what: &str) -> ToolFailure {
    ToolFailure::new("UNAVAILABLE", format!("the MCP server `{server}` {what}"))
}

/// One line of limited length.
pub(super) fn short(text: &str) -> String {
    line(text, TEXT_CHARS_MAX)
}

/// The stderr of a process: one line, longer because it is the only explanation.
pub(super) fn last_words(text: &str) -> String {
    line(text, LAST_WORDS_CHARS_MAX)
}

fn line(text: &str, chars_max: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(chars_max).collect()
}
