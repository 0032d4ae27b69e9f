//! Requests to the proxy: `CONNECT host:port`, and requests with a whole URL.
//!
//! Invariant: a connection carries one request, so what was checked is what is sent. No text of a client is
//! passed on unless it was read completely.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Longest head of a request.
pub(super) const HEAD_BYTES_MAX: usize = 16 * 1024;

/// The head of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// A name or an address.
    pub(super) host: String,
    pub(super) port: u16,
    /// What to send to the server; nothing for `CONNECT`.
    pub(super) forwarded: Option<Vec<u8>>,
    /// Bytes of the head.
    pub(super) length: usize,
    authorization: Option<String>,
}

/// Why the proxy does not connect.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Malformed,
    TooLarge,
    Unauthorized,
    NotListed { target: String, name: String },
    Private { target: String },
    Unreachable { target: String, reason: String },
}

impl Head {
    /// The head, if it has the password of the proxy.
    pub(super) fn authorized(self, password: Option<&str>) -> Result<Self, Refusal> {
        let Some(password) = password else { return Ok(self) };
        let expected = format!("Basic {}", STANDARD.encode(format!("greenroom:{password}")));
        match self.authorization.as_deref() == Some(expected.as_str()) {
            true => Ok(self),
            false => Err(Refusal::Unauthorized),
        }
    }
}

impl Refusal {
    pub(super) fn response(&self) -> Vec<u8> {
        let (status, body) = match self {
            Self::Malformed => ("400 Bad Request", "the request cannot be read".to_owned()),
            Self::TooLarge => (
                "431 Request Header Fields Too Large",
                format!("the head of the request has more than {HEAD_BYTES_MAX} bytes"),
            ),
            Self::Unauthorized => (
                "407 Proxy Authentication Required",
                "this proxy belongs to another process".to_owned(),
            ),
            Self::NotListed { target, name } => (
                "403 Forbidden",
                format!(
                    "`{target}` is not in the network of `{name}`\nhint: add \"{target}\" to its \
                     `network` in the configuration of the host"
                ),
            ),
            Self::Private { target } => (
                "403 Forbidden",
                format!(
                    "`{target}` has a private address\nhint: name the address itself in `network`, \
                     if this is intended"
                ),
            ),
            Self::Unreachable { target, reason } => {
                ("502 Bad Gateway", format!("no connection to `{target}`: {reason}"))
            }
        };
        let body = format!("{body}\n");
        let close = "connection: close\r\ncontent-type: text/plain; charset=utf-8\r\n";
        let authenticate = match self {
            Self::Unauthorized => "proxy-authenticate: Basic realm=\"greenroom\"\r\n",
            _ => "",
        };
        let length = body.len();
        format!("HTTP/1.1 {status}\r\n{authenticate}{close}content-length: {length}\r\n\r\n{body}")
            .into_bytes()
    }
}

/// Parses the head of a request once it is complete.
pub(super) fn parse(read: &[u8]) -> Option<Result<Head, Refusal>> {
    let end = read.windows(4).take(HEAD_BYTES_MAX).position(|end| end == b"\r\n\r\n");
    match end {
        Some(end) => {
            let head = std::str::from_utf8(&read[..end]).ok();
            Some(head.and_then(|head| parse_head(head, end + 4)).ok_or(Refusal::Malformed))
        }
        None if read.len() > HEAD_BYTES_MAX => Some(Err(Refusal::TooLarge)),
        None => None,
    }
}

fn parse_head(head: &str, length: usize) -> Option<Head> {
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let is_http = matches!(version, "HTTP/1.1" | "HTTP/1.0") && words.next().is_none();
    let is_method = !method.is_empty() && method.bytes().all(|byte| byte.is_ascii_alphabetic());
    if !is_http || !is_method {
        return None;
    }
    let headers: Vec<(&str, &str)> = lines.map(header).collect::<Option<_>>()?;
    let find = |name: &str| headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name));
    let authorization = find("proxy-authorization").map(|(_, value)| (*value).to_owned());
    if method == "CONNECT" {
        let (host, port) = host_and_port(target, None)?;
        return Some(Head { host, port, forwarded: None, length, authorization });
    }
    let rest = target.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"));
    let rest = rest.and_then(|scheme| target.get(scheme.len()..))?;
    let (authority, path) = match rest.find(['/', '?']) {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    let (host, port) = host_and_port(authority, Some(80))?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut forwarded = format!("{method} {slash}{path} {version}\r\nHost: {authority}\r\n");
    let own = ["host", "connection", "keep-alive", "upgrade"];
    for (name, value) in &headers {
        let lower = name.to_ascii_lowercase();
        if !own.contains(&lower.as_str()) && !lower.starts_with("proxy-") {
            forwarded.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    forwarded.push_str("Connection: close\r\n\r\n");
    Some(Head { host, port, forwarded: Some(forwarded.into_bytes()), length, authorization })
}

fn header(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(':')?;
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let fits = !name.is_empty()
        && name.bytes().all(is_token)
        && !value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0));
    fits.then(|| (name, value.trim()))
}

/// `host:port`, or only `host` if there is a default.
fn host_and_port(authority: &str, default: Option<u16>) -> Option<(String, u16)> {
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (authority, default?),
    };
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte);
    let fits = !host.is_empty() && port != 0 && host.bytes().all(is_host);
    fits.then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Option<Result<Head, Refusal>> {
        parse(text.as_bytes())
    }

    #[test]
    fn a_tunnel_names_its_target_and_nothing_is_passed_on() {
        let text = "CONNECT api.example.com:443 HTTP/1.1\r\nHost: other.example:1\r\n\r\nhello";
        let found = head(text).unwrap().unwrap();
        assert_eq!((found.host.as_str(), found.port), ("api.example.com", 443));
        assert_eq!((found.forwarded, &text[found.length..]), (None, "hello"));
        let found = head("CONNECT [::1]:80 HTTP/1.1\r\n\r\n").unwrap().unwrap();
        assert_eq!((found.host.as_str(), found.port), ("[::1]", 80));
    }

    #[test]
    fn a_request_with_a_url_is_sent_to_that_host_once() {
        let text = "POST http://Example.com:8080/a?b=c HTTP/1.1\r\nHost: evil.example\r\n\
                    Proxy-Authorization: Basic x\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nhi";
        let found = head(text).unwrap().unwrap();
        assert_eq!((found.host.as_str(), found.port), ("Example.com", 8080));
        let expected = "POST /a?b=c HTTP/1.1\r\nHost: Example.com:8080\r\nContent-Length: 2\r\n\
                        Connection: close\r\n\r\n";
        assert_eq!(String::from_utf8(found.forwarded.unwrap()).unwrap(), expected);
        let found = head("GET http://example.com?x HTTP/1.0\r\n\r\n").unwrap().unwrap();
        assert!(found.forwarded.unwrap().starts_with(b"GET /?x HTTP/1.0\r\n"));
        assert_eq!(found.port, 80);
    }

    #[test]
    fn what_is_not_such_a_request_is_refused() {
        for text in [
            "GET / HTTP/1.1\r\n\r\n",
            "GET https://example.com/ HTTP/1.1\r\n\r\n",
            "GET http://user@example.com/ HTTP/1.1\r\n\r\n",
            "GET http:///x HTTP/1.1\r\n\r\n",
            "GET http://a/ b HTTP/1.1\r\n\r\n",
            "CONNECT example.com HTTP/1.1\r\n\r\n",
            "CONNECT example.com:0 HTTP/1.1\r\n\r\n",
            "CONNECT example.com:443 HTTP/2\r\n\r\n",
            "CONNECT example.com:443 HTTP/1.1\r\nno colon\r\n\r\n",
            "CONNECT example.com:443 HTTP/1.1\r\nx: a\nb: c\r\n\r\n",
            "\r\n\r\n",
        ] {
            assert_eq!(head(text), Some(Err(Refusal::Malformed)), "{text}");
        }
        assert_eq!(head("GET http://a/ HTTP/1.1\r\nx: "), None);
        assert_eq!(head(&"x".repeat(HEAD_BYTES_MAX + 1)), Some(Err(Refusal::TooLarge)));
    }

    #[test]
    fn a_shared_proxy_needs_its_password() {
        let with = |line: &str| {
            let text = format!("CONNECT a:1 HTTP/1.1\r\n{line}\r\n\r\n");
            head(&text).unwrap().unwrap().authorized(Some("word")).map(|_| ())
        };
        // `greenroom:word` in base64.
        assert_eq!(with("Proxy-Authorization: Basic Z3JlZW5yb29tOndvcmQ="), Ok(()));
        assert_eq!(
            with("Proxy-Authorization: Basic Z3JlZW5yb29tOm90aGVy"),
            Err(Refusal::Unauthorized)
        );
        assert_eq!(with("x: y"), Err(Refusal::Unauthorized));
    }
}
