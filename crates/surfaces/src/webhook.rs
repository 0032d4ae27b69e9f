//! Signed webhooks, by the Standard Webhooks conventions: `webhook-id`, `webhook-timestamp`,
//! `webhook-signature: v1,BASE64(HMAC-SHA256(id.timestamp.body))`.
//!
//! Invariant: the body is the stored message, byte for byte, on every attempt. A server error other than 503
//! and a lost connection leave the outcome unknown.

use crate::{Capabilities, Clients, Delivery, SendOutcome, TextMax};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use greenroom_outgoing::{Outgoing, Unreachable, cause};
use hmac::{Hmac, Mac};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use sha2::Sha256;
use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

#[derive(Clone)]
pub struct Webhook {
    pub url: String,
    /// Signs every request; without it requests are unsigned.
    pub secret: Option<Vec<u8>>,
    /// Whether the address may be private, e.g. in the host's own network.
    pub allow_private: bool,
    pub idempotent: bool,
    pub timeout: Duration,
    pub text_max: Option<TextMax>,
    pub actions: BTreeSet<String>,
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Webhook").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Webhook {
    pub(crate) fn capabilities(&self) -> Capabilities {
        let (text_max, actions) = (self.text_max, self.actions.clone());
        Capabilities { streaming: false, text_max, files: true, actions }
    }

    /// Posts the message as it is stored.
    pub(crate) async fn send(&self, clients: &Clients, delivery: Delivery<'_>) -> SendOutcome {
        let outgoing = self.outgoing();
        let url = match outgoing.check(&self.url) {
            Ok(url) => url,
            Err(error) => {
                return SendOutcome::Rejected(format!("the surface cannot be called: {error}"));
            }
        };
        let client = match clients.client(outgoing) {
            Ok(client) => client,
            Err(error) => {
                return SendOutcome::NotDelivered { error: cause(&error), retry_after: None };
            }
        };
        let now = SystemTime::now();
        let timestamp = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut request = client
            .post(url)
            .header("content-type", "application/json")
            .header("webhook-id", delivery.id)
            .header("webhook-timestamp", timestamp);
        if let Some(secret) = &self.secret {
            let signature = sign(secret, delivery.id, timestamp, delivery.message);
            request = request.header("webhook-signature", signature);
        }
        outcome(request.body(delivery.message.to_owned()).send().await)
    }

    pub(crate) async fn check(&self, name: &str, timeout: Duration) -> Result<String, String> {
        let outgoing = Outgoing {
            allow_private: self.allow_private,
            connect_timeout: Some(timeout),
            ..Outgoing::default()
        };
        let origin = origin(&self.url);
        match outgoing.connect(&self.url).await {
            Ok(address) => Ok(format!("{origin} can be connected to ({address})")),
            Err(error @ Unreachable::Private) => Err(format!(
                "{origin}: {error}; add `allow_private = true` to `[surfaces.{name}]` if it is meant"
            )),
            Err(error) => Err(format!("{origin}: {error}")),
        }
    }

    fn outgoing(&self) -> Outgoing {
        Outgoing {
            allow_private: self.allow_private,
            timeout: Some(self.timeout),
            // Shorter than the whole, so that a receiver that was never reached is known as such.
            connect_timeout: Some(self.timeout.mul_f32(0.8)),
            proxy: None,
            // The receiver may close an idle connection just as a request goes out, which would make the
            // outcome unknown.
            keep_idle: 0,
        }
    }
}

/// Scheme, host and port: a path may hold a secret.
fn origin(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |at| start + at);
    &url[..end]
}

fn outcome(response: Result<reqwest::Response, reqwest::Error>) -> SendOutcome {
    match response {
        Ok(response) => match response.status() {
            status if status.is_success() => SendOutcome::Delivered,
            status @ (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) => {
                let retry_after = retry_after(response.headers(), SystemTime::now());
                SendOutcome::NotDelivered {
                    error: format!("the surface answered {status}"),
                    retry_after,
                }
            }
            status if status.is_server_error() => {
                SendOutcome::Unknown(format!("the surface answered {status}"))
            }
            status => SendOutcome::Rejected(format!("the surface answered {status}")),
        },
        Err(error) if error.is_connect() => {
            SendOutcome::NotDelivered { error: cause(&error), retry_after: None }
        }
        Err(error) => SendOutcome::Unknown(cause(&error)),
    }
}

/// `Retry-After`: seconds, or a date.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(text).ok()?;
    Some(at.duration_since(now).unwrap_or_default())
}

#[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
fn sign(secret: &[u8], id: &str, timestamp: u64, body: &str) -> String {
    let key = secret
        .strip_prefix(b"whsec_")
        .and_then(|encoded| STANDARD.decode(encoded).ok())
        .unwrap_or_else(|| secret.to_vec());
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key of any length");
    mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_the_published_example() {
        // From the Standard Webhooks specification's reference test.
        let secret = b"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let signature =
            sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, "{\"test\": 2432232314}");
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn retry_after_is_read_as_seconds_or_as_a_date() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let read = |value: &'static str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]);
            retry_after(&headers, now).map(|pause| pause.as_secs())
        };
        assert_eq!(read("120"), Some(120));
        assert_eq!(read("Sun, 06 Nov 1994 08:50:37 GMT"), Some(60));
        assert_eq!(read("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0), "it has passed");
        assert_eq!((read("soon"), read("-5"), read("")), (None, None, None));
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
