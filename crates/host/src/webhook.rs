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
use sha2::Sha256;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What is known after a try.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    Taken,
    /// The receiver said no, and will say no again.
    Refused(String),
    /// Certainly not taken; worth another try.
    NotTaken(String),
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
            Err(error) => return Sent::NotTaken(cause(&error)),
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
                Sent::NotTaken(format!("the surface answered {status}"))
            }
            status if status.is_server_error() => {
                Sent::Unknown(format!("the surface answered {status}"))
            }
            status => Sent::Refused(format!("the surface answered {status}")),
        },
        Err(error) if error.is_connect() => Sent::NotTaken(cause(&error)),
        Err(error) => Sent::Unknown(cause(&error)),
    }
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
}
