//! Authorization of the gateways: the token of a run, from the header that the client's wire has for keys.
//!
//! Invariant: a token is accepted for the run in the path only, and only while that run is active; a wrong token,
//! another run's and one of an ended run are the same refusal. A token in the address is never accepted: addresses
//! are logged.

use crate::access::bearer_of;
use crate::router::App;
use axum::http::request::Parts;
use greenroom_host::RunProgram;

/// Headers for keys: of Anthropic's clients and of Google's.
const KEY_HEADERS: [&str; 2] = ["x-api-key", "x-goog-api-key"];
/// Parameters in which clients put keys.
const KEY_PARAMETERS: [&str; 4] = ["key", "api_key", "token", "access_token"];

/// Why a program is not let in, for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Denied(pub(crate) &'static str);

pub(crate) fn program(app: &App, parts: &Parts, run_id: &str) -> Result<RunProgram, Denied> {
    if parts.uri.query().is_some_and(has_key) {
        return Err(Denied("a run token belongs in a header, never in the address"));
    }
    let keys = KEY_HEADERS.iter().filter_map(|name| parts.headers.get(*name)?.to_str().ok());
    let tokens = bearer_of(&parts.headers).into_iter().chain(keys.map(str::trim));
    tokens
        .take(3)
        .find_map(|token| app.host.run_program(run_id, token))
        .ok_or(Denied("the run token is missing or not valid: it is valid while its run is active"))
}

fn has_key(query: &str) -> bool {
    query.split('&').any(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        KEY_PARAMETERS.iter().any(|key| name.eq_ignore_ascii_case(key))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_in_the_address_is_found_under_every_name_that_clients_use() {
        for query in ["key=x", "alt=sse&key=x", "api_key=x", "a=b&Token=x", "access_token="] {
            assert!(has_key(query), "{query}");
        }
        for query in ["", "alt=sse", "beta=true", "keys=1", "monkey=1", "client_version=0.1"] {
            assert!(!has_key(query), "{query}");
        }
    }
}
