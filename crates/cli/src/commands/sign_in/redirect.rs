//! The redirect that ends a sign-in, and the port that it arrives at.
//!
//! Invariant: listens on loopback only; what is not the expected redirect is answered with 404 and changes nothing.

use crate::failure::Failure;
use reqwest::Url;
use serde::Serialize;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

const PATH: &str = greenroom_tools::LOOPBACK_PATH;
/// Longest head of a request that is read.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// How long one connection may take.
const REQUEST_MAX: Duration = Duration::from_secs(5);

/// The parameters of a redirect.
#[derive(Debug, Default, PartialEq, Serialize)]
pub(super) struct Redirect {
    state: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    iss: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_description: Option<String>,
}

impl Redirect {
    /// `None` without a state, or if a parameter is given twice.
    pub(super) fn parse(address: &str) -> Option<Self> {
        let url = Url::parse(address.trim()).ok()?;
        let (mut redirect, mut state) = (Self::default(), None);
        for (name, value) in url.query_pairs() {
            let field = match &*name {
                "state" => &mut state,
                "code" => &mut redirect.code,
                "iss" => &mut redirect.iss,
                "error" => &mut redirect.error,
                "error_description" => &mut redirect.error_description,
                _ => continue,
            };
            if field.replace(value.into_owned()).is_some() {
                return None;
            }
        }
        redirect.state = state.filter(|state| !state.is_empty())?;
        Some(redirect)
    }
}

pub(super) struct Listener {
    listener: TcpListener,
    port: u16,
}

impl Listener {
    pub(super) async fn open(port: u16) -> Result<Self, Failure> {
        let listener = TcpListener::bind(("127.0.0.1", port)).await;
        let listener = listener.map_err(|error| {
            Failure::new(format!("cannot listen on 127.0.0.1:{port}: {error}"))
                .hint("choose another `--port`")
        })?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// The redirect with this state.
    pub(super) async fn redirect(&self, state: &str) -> Result<Redirect, Failure> {
        loop {
            let (mut stream, _) = self.listener.accept().await?;
            let target = tokio::time::timeout(REQUEST_MAX, target(&mut stream)).await;
            let redirect = target.ok().flatten().and_then(|target| self.read(&target));
            let redirect = redirect.filter(|redirect| redirect.state == state);
            let said = match &redirect {
                Some(_) => {
                    answer("200 OK", "Done: go back to the terminal. You can close this page.")
                }
                None => answer("404 Not Found", "This is not the sign-in that was begun."),
            };
            let _ = tokio::time::timeout(REQUEST_MAX, stream.write_all(said.as_bytes())).await;
            if let Some(redirect) = redirect {
                let _ = stream.shutdown().await;
                return Ok(redirect);
            }
        }
    }

    fn read(&self, target: &str) -> Option<Redirect> {
        let query = target.strip_prefix(PATH)?.strip_prefix('?')?;
        Redirect::parse(&format!("{}?{query}", self.address()))
    }
}

/// The target of a `GET`.
async fn target(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > HEAD_BYTES_MAX || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8(head).ok()?;
    let mut words = head.lines().next()?.split(' ');
    (words.next() == Some("GET")).then(|| words.next().map(str::to_owned))?
}

fn answer(status: &str, text: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_has_one_state() {
        let at = "http://127.0.0.1:1/callback";
        let parsed = Redirect::parse(&format!("{at}?code=a%2Fb&state=s&iss=https%3A%2F%2Fi&x=1"));
        let parsed = parsed.unwrap();
        assert_eq!((parsed.state.as_str(), parsed.code.as_deref()), ("s", Some("a/b")));
        assert_eq!(parsed.iss.as_deref(), Some("https://i"));
        for bad in ["", "?code=a", "?state=", "?state=a&state=b", "?state=a&code=b&code=c"] {
            assert_eq!(Redirect::parse(&format!("{at}{bad}")), None, "{bad}");
        }
    }
}
