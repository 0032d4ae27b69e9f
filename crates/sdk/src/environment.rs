//! The environment variables of a runner process.
//!
//! Invariant: the token is never printed.

use crate::{ServeError, Transport};

/// The host's URL for a remote runner, such as `wss://host.example`.
const URL: &str = "GREENROOM_URL";
const TOKEN: &str = "GREENROOM_RUNNER_TOKEN";

/// The host's address for HTTP, if this is a remote runner.
#[expect(
    clippy::disallowed_methods,
    reason = "a runner is a program of its own: it reads its environment in this file"
)]
pub(crate) fn host_url() -> Option<String> {
    let url = std::env::var(URL).ok().filter(|url| !url.is_empty())?;
    let http = [("wss://", "https://"), ("ws://", "http://")];
    let found = http.iter().find_map(|(ws, http)| Some(format!("{http}{}", url.strip_prefix(ws)?)));
    Some(found.unwrap_or(url))
}

/// WebSocket if both variables are set, stdio if neither is.
#[expect(
    clippy::disallowed_methods,
    reason = "a runner is a program of its own: it reads its environment in this file"
)]
pub(crate) fn transport() -> Result<Transport, ServeError> {
    let read = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    match (read(URL), read(TOKEN)) {
        (Some(url), Some(token)) => Ok(Transport::WebSocket { url, token }),
        (Some(_), None) => Err(ServeError::Half { set: URL, missing: TOKEN }),
        (None, Some(_)) => Err(ServeError::Half { set: TOKEN, missing: URL }),
        (None, None) => Ok(Transport::Stdio),
    }
}
