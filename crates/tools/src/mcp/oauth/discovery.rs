//! From an MCP server to its authorization server: RFC 9728, RFC 8414 and OpenID Connect discovery.
//!
//! Invariant: metadata is used only if it names the server, and the issuer, that it was asked for.

use super::OAuthError;
use super::challenge::Challenge;
use super::fetch::{Fetch, place};
use crate::mcp::trouble::short;
use http::StatusCode;
use reqwest::Url;
use serde_json::Value;

/// What is known of an authorization server.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Metadata {
    /// Missing for servers without any metadata.
    pub(super) issuer: Option<String>,
    pub(super) authorization_endpoint: Option<Url>,
    pub(super) token_endpoint: Url,
    pub(super) registration_endpoint: Option<Url>,
    pub(super) scopes: Vec<String>,
    /// How clients prove who they are to the token endpoint; `None`: not said.
    pub(super) auth_methods: Option<Vec<String>>,
    /// Whether its redirects name the issuer.
    pub(super) names_issuer: bool,
    /// Whether the address of a document can be the client's id.
    pub(super) reads_client_documents: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Discovered {
    pub(super) metadata: Metadata,
    /// The `resource` of all requests for tokens.
    pub(super) resource: String,
    /// The scopes that the resource asks for.
    pub(super) scopes: Vec<String>,
}

pub(super) async fn discover(
    fetch: &Fetch,
    server: &Url,
    challenge: &Challenge,
) -> Result<Discovered, OAuthError> {
    let named = resource_metadata(fetch, server, challenge).await?;
    let own = canonical(server);
    let Some(document) = named else {
        // Servers of 2025-03-26 are their own authorization servers, with fixed addresses if they say nothing.
        let origin = server.origin().ascii_serialization();
        let found = authorization_metadata(fetch, &origin).await?;
        let metadata = match found {
            Some(metadata) => metadata,
            None => without_metadata(fetch, &origin)?,
        };
        return Ok(Discovered { metadata, resource: own, scopes: challenge.scopes.clone() });
    };
    let resource = match document.get("resource").and_then(Value::as_str) {
        Some(resource) if covers(resource, server) => resource.to_owned(),
        Some(other) => {
            let message = format!("publishes metadata of another server: `{}`", short(other));
            return Err(OAuthError::failed(message));
        }
        None => own,
    };
    let servers = texts(&document, "authorization_servers").unwrap_or_default();
    let issuer = servers.first().cloned();
    let issuer = issuer.unwrap_or_else(|| server.origin().ascii_serialization());
    let metadata = authorization_metadata(fetch, &issuer).await?;
    let metadata = metadata.ok_or_else(|| {
        let message =
            format!("names the authorization server `{}`, which has no metadata", short(&issuer));
        OAuthError::failed(message)
    })?;
    let scopes = match challenge.scopes.is_empty() {
        true => texts(&document, "scopes_supported").unwrap_or_default(),
        false => challenge.scopes.clone(),
    };
    Ok(Discovered { metadata, resource, scopes })
}

/// The document that names the authorization server; none for servers of 2025-03-26.
async fn resource_metadata(
    fetch: &Fetch,
    server: &Url,
    challenge: &Challenge,
) -> Result<Option<Value>, OAuthError> {
    if let Some(named) = &challenge.resource_metadata {
        let url = fetch.check("the metadata", named)?;
        let answer = fetch.get(&url).await?;
        return match answer.json().filter(|_| answer.status.is_success()) {
            Some(document) => Ok(Some(document)),
            None => Err(no_metadata(&url, answer.status)),
        };
    }
    let origin = server.origin().ascii_serialization();
    let path = server.path().trim_end_matches('/');
    let mut places = vec![format!("{origin}/.well-known/oauth-protected-resource{path}")];
    places.push(format!("{origin}/.well-known/oauth-protected-resource"));
    places.dedup();
    first_of(fetch, &places).await.map(|found| found.map(|(_, document)| document))
}

/// The metadata of an issuer, from the first of the usual places that has it.
async fn authorization_metadata(
    fetch: &Fetch,
    issuer: &str,
) -> Result<Option<Metadata>, OAuthError> {
    let url = fetch.check("the authorization server", issuer)?;
    let origin = url.origin().ascii_serialization();
    let path = url.path().trim_end_matches('/');
    let places = match path.is_empty() {
        true => vec![
            format!("{origin}/.well-known/oauth-authorization-server"),
            format!("{origin}/.well-known/openid-configuration"),
        ],
        // Never without the path: that would be another tenant's.
        false => vec![
            format!("{origin}/.well-known/oauth-authorization-server{path}"),
            format!("{origin}/.well-known/openid-configuration{path}"),
            format!("{origin}{path}/.well-known/openid-configuration"),
        ],
    };
    match first_of(fetch, &places).await? {
        Some((_, document)) => read(fetch, &document, issuer).map(Some),
        None => Ok(None),
    }
}

/// The first document that exists.
async fn first_of(fetch: &Fetch, places: &[String]) -> Result<Option<(Url, Value)>, OAuthError> {
    for text in places {
        let url = fetch.check("the metadata", text)?;
        let answer = fetch.get(&url).await?;
        if answer.status.is_success() {
            let document = answer.json().ok_or_else(|| no_metadata(&url, answer.status))?;
            return Ok(Some((url, document)));
        }
        if answer.status.is_server_error() {
            return Err(no_metadata(&url, answer.status));
        }
    }
    Ok(None)
}

fn read(fetch: &Fetch, document: &Value, issuer: &str) -> Result<Metadata, OAuthError> {
    let text = |name: &str| document.get(name).and_then(Value::as_str);
    let own = text("issuer").ok_or_else(|| {
        OAuthError::failed("has an authorization server that names no `issuer`".to_owned())
    })?;
    if own.trim_end_matches('/') != issuer.trim_end_matches('/') {
        let message = format!(
            "names the authorization server `{}`, whose metadata says `{}`",
            short(issuer),
            short(own)
        );
        return Err(OAuthError::failed(message));
    }
    let endpoint = |name: &str| text(name).map(|url| fetch.check(name, url)).transpose();
    let token_endpoint = endpoint("token_endpoint")?.ok_or_else(|| {
        OAuthError::failed("has an authorization server without a `token_endpoint`".to_owned())
    })?;
    let challenges = texts(document, "code_challenge_methods_supported");
    if challenges.is_some_and(|methods| !methods.iter().any(|method| method == "S256")) {
        let message = "has an authorization server without PKCE (S256), which is needed";
        return Err(OAuthError::failed(message.to_owned()));
    }
    let is_true = |name: &str| document.get(name) == Some(&Value::Bool(true));
    Ok(Metadata {
        issuer: Some(own.to_owned()),
        authorization_endpoint: endpoint("authorization_endpoint")?,
        token_endpoint,
        registration_endpoint: endpoint("registration_endpoint")?,
        scopes: texts(document, "scopes_supported").unwrap_or_default(),
        auth_methods: texts(document, "token_endpoint_auth_methods_supported"),
        names_issuer: is_true("authorization_response_iss_parameter_supported"),
        reads_client_documents: is_true("client_id_metadata_document_supported"),
    })
}

/// The fixed addresses of 2025-03-26.
fn without_metadata(fetch: &Fetch, origin: &str) -> Result<Metadata, OAuthError> {
    let at = |path: &str| fetch.check("the authorization server", &format!("{origin}{path}"));
    Ok(Metadata {
        issuer: None,
        authorization_endpoint: Some(at("/authorize")?),
        token_endpoint: at("/token")?,
        registration_endpoint: Some(at("/register")?),
        scopes: Vec::new(),
        auth_methods: None,
        names_issuer: false,
        reads_client_documents: false,
    })
}

/// Whether metadata of this resource is about the server: the same origin, and its path or one above it.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    let own = resource.path().trim_end_matches('/');
    let rest = server.path().strip_prefix(own);
    resource.origin() == server.origin()
        && resource.fragment().is_none()
        && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The address of a server as its identifier.
fn canonical(server: &Url) -> String {
    let mut url = server.clone();
    url.set_fragment(None);
    let text = url.to_string();
    match url.path() {
        "/" if url.query().is_none() => text.trim_end_matches('/').to_owned(),
        _ => text,
    }
}

/// At most a hundred texts of a list.
fn texts(document: &Value, name: &str) -> Option<Vec<String>> {
    let list = document.get(name)?.as_array()?;
    Some(list.iter().filter_map(Value::as_str).take(100).map(str::to_owned).collect())
}

fn no_metadata(url: &Url, status: StatusCode) -> OAuthError {
    OAuthError::failed(format!("has no metadata at `{}` (HTTP {status})", place(url)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_covers_its_own_server_only() {
        let server = Url::parse("https://mcp.example.com/team/mcp").unwrap();
        for own in [
            "https://mcp.example.com/team/mcp",
            "https://mcp.example.com/team/mcp/",
            "https://mcp.example.com/team",
            "https://mcp.example.com",
        ] {
            assert!(covers(own, &server), "{own}");
        }
        for other in [
            "https://evil.example.com/team/mcp",
            "http://mcp.example.com/team/mcp",
            "https://mcp.example.com:444/team/mcp",
            "https://mcp.example.com/te",
            "https://mcp.example.com/team/mcp/x",
            "https://mcp.example.com/team/mcp#x",
            "mcp",
        ] {
            assert!(!covers(other, &server), "{other}");
        }
    }
}
