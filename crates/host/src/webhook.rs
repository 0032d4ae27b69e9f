//! Signed webhooks, by the Standard Webhooks conventions: `webhook-id`, `webhook-timestamp`,
//! `webhook-signature: v1,BASE64(HMAC-SHA256(id.timestamp.body))`.
//!
//! Invariant: addresses are resolved and checked here; private ones are refused unless the surface allows
//! them, and redirects are not followed.

use crate::ids::now_ms;
use crate::settings::Webhook;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use greenroom_store::types::DeliveryRow;
use hmac::{Hmac, Mac};
use reqwest::StatusCode;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use sha2::Sha256;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
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

impl WebhookClient {
    fn client(&self, surface: &Webhook) -> Result<reqwest::Client, reqwest::Error> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let kind = (surface.allow_private, surface.timeout);
        if let Some(client) = clients.get(&kind) {
            return Ok(client.clone());
        }
        let builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .user_agent(concat!("greenroom/", env!("CARGO_PKG_VERSION")))
            .timeout(surface.timeout)
            // Shorter than the whole, so that a receiver that was never reached is known as such.
            .connect_timeout(surface.timeout.mul_f32(0.8))
            // A kept connection may be closed by the receiver just as a request goes out: its outcome would
            // then be unknown without need.
            .pool_max_idle_per_host(0);
        let builder = match surface.allow_private {
            true => builder,
            false => builder.dns_resolver(Arc::new(PublicOnly)),
        };
        let client = builder.build()?;
        clients.insert(kind, client.clone());
        Ok(client)
    }

    pub(crate) async fn send(&self, surface: &Webhook, delivery: &DeliveryRow) -> Sent {
        let url = match reqwest::Url::parse(&surface.url) {
            Ok(url) => url,
            Err(error) => {
                return Sent::Refused(format!("the surface's address is not valid: {error}"));
            }
        };
        let literal = url.host_str().and_then(|host| host.trim_matches(['[', ']']).parse().ok());
        if !surface.allow_private && literal.is_some_and(is_private) {
            return Sent::Refused("the surface's address is private".to_owned());
        }
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

/// The innermost cause, without the address that reqwest puts in front.
fn cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
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

/// Resolves names to public addresses only.
struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|at| !is_private(at.ip())).collect();
            if public.is_empty() {
                return Err("the surface's name has no public address".into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// Everything but global unicast: no webhook should go there.
fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [first, second, third, _] = v4.octets();
            v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_documentation()
                || first == 0
                || (first == 100 && (64..128).contains(&second))
                || (first == 192 && second == 0 && third == 0)
                || (first == 198 && (18..20).contains(&second))
                || first >= 224
        }
        IpAddr::V6(v6) => {
            let [first, second, ..] = v6.segments();
            // 2000::/3 without documentation, 6to4 (which holds an IPv4 address) and 2001::/23.
            (first & 0xe000) != 0x2000
                || first == 0x2002
                || (first == 0x2001 && (second == 0xdb8 || second < 0x200))
        }
    }
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
    fn private_addresses_are_known() {
        for text in [
            "127.0.0.1",
            "10.1.2.3",
            "169.254.1.1",
            "100.64.0.1",
            "::1",
            "fd00::1",
            "::ffff:10.0.0.1",
            "::10.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::",
            "fe80::1",
            "2001:db8::1",
            "0.0.0.0",
            "192.0.0.8",
            "224.0.0.1",
            "255.255.255.255",
        ] {
            assert!(is_private(text.parse().unwrap()), "{text}");
        }
        for text in
            ["1.1.1.1", "192.0.1.1", "223.255.255.1", "2606:4700::1111", "2001:4860:4860::8888"]
        {
            assert!(!is_private(text.parse().unwrap()), "{text}");
        }
    }
}
