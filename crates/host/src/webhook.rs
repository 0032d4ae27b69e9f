//! Signed webhooks, by the Standard Webhooks conventions: `webhook-id`, `webhook-timestamp`,
//! `webhook-signature: v1,BASE64(HMAC-SHA256(id.timestamp.body))`.
//!
//! Invariant: a try that may have been taken is never called one that was not.

use crate::ids::now_ms;
use crate::settings::Webhook;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use greenroom_outgoing::{Outgoing, cause};
use greenroom_store::types::DeliveryRow;
use hmac::{Hmac, Mac};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use sha2::Sha256;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// What is known after a try.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Taken,
    /// The receiver said no, and will say no again.
    Refused(String),
    /// Certainly not taken; worth another try, after the pause that the receiver asks for.
    NotTaken {
        error: String,
        retry_after: Option<Duration>,
    },
    /// It may have been taken.
    Unknown(String),
}

/// One HTTP client per kind of surface: whether private addresses are allowed, and its time limit.
#[derive(Default)]
pub(crate) struct WebhookClient {
    clients: Mutex<HashMap<(bool, Duration), reqwest::Client>>,
}

/// A kept connection may be closed by the receiver just as a request goes out, and its outcome would then be
/// unknown without need: so none is kept.
fn reach(surface: &Webhook) -> Outgoing {
    Outgoing {
        allow_private: surface.allow_private,
        timeout: Some(surface.timeout),
        // Shorter than the whole, so that a receiver that was never reached is known as such.
        connect_timeout: Some(surface.timeout.mul_f32(0.8)),
        proxy: None,
        keep_idle: 0,
    }
}

impl WebhookClient {
    fn client(&self, surface: &Webhook) -> Result<reqwest::Client, reqwest::Error> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = (surface.allow_private, surface.timeout);
        if let Some(client) = clients.get(&kind) {
            return Ok(client.clone());
        }
        let client = reach(surface).build()?;
        clients.insert(kind, client.clone());
        Ok(client)
    }

    pub(crate) async fn send(&self, surface: &Webhook, delivery: &DeliveryRow) -> Sent {
        let url = match reach(surface).check(&surface.url) {
            Ok(url) => url,
            Err(error) => return Sent::Refused(format!("the surface cannot be called: {error}")),
        };
        let client = match self.client(surface) {
            Ok(client) => client,
            Err(error) => return Sent::NotTaken { error: cause(&error), retry_after: None },
        };
        let timestamp = now_ms().div_euclid(1000);
        let mut request = client
            .post(url)
            .header("content-type", "application/json")
            .header("webhook-id", &delivery.delivery_id)
            .header("webhook-timestamp", timestamp);
        if let Some(secret) = &surface.secret {
            let signature = sign(secret, &delivery.delivery_id, timestamp, &delivery.payload);
            request = request.header("webhook-signature", signature);
        }
        judge(request.body(delivery.payload.clone()).send().await)
    }
}

fn judge(response: Result<reqwest::Response, reqwest::Error>) -> Sent {
    match response {
        Ok(response) => match response.status() {
            status if status.is_success() => Sent::Taken,
            status @ (StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) => {
                let retry_after = retry_after(response.headers(), SystemTime::now());
                Sent::NotTaken { error: format!("the surface answered {status}"), retry_after }
            }
            status if status.is_server_error() => {
                Sent::Unknown(format!("the surface answered {status}"))
            }
            status => Sent::Refused(format!("the surface answered {status}")),
        },
        Err(error) if error.is_connect() => {
            Sent::NotTaken { error: cause(&error), retry_after: None }
        }
        Err(error) => Sent::Unknown(cause(&error)),
    }
}

/// `Retry-After`: seconds, or the date of the end.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(text).ok()?;
    Some(at.duration_since(now).unwrap_or_default())
}

#[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
fn sign(secret: &[u8], id: &str, timestamp: i64, body: &str) -> String {
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
    fn a_receiver_says_in_seconds_or_by_a_date_when_to_try_again() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let read = |value: &'static str| {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, value.parse().unwrap())]);
            retry_after(&headers, now).map(|pause| pause.as_secs())
        };
        assert_eq!(read("120"), Some(120));
        assert_eq!(read("Sun, 06 Nov 1994 08:50:37 GMT"), Some(60));
        assert_eq!(read("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0), "it is over");
        assert_eq!((read("soon"), read("-5"), read("")), (None, None, None));
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
