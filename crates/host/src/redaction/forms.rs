//! The encoded forms in which a secret may occur.
//!
//! Invariant: every form depends on bytes of the secret alone, so it is found in any context.

use super::SECRET_BYTES_MIN;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use std::collections::BTreeMap;

/// Minimum length of a line of a multi-line secret that counts as a secret of its own: logs are line by line.
const LINE_BYTES_MIN: usize = 16;

/// Minimum length of a URL path that counts as a secret.
const ADDRESS_BYTES_MIN: usize = 16;

/// The length of a prefix of a secret that reveals nothing and is not held back, so that texts flow although many
/// words end like a secret begins: one character as it is, two bytes in an encoded form.
const PLAIN_SHOWN: u32 = 1;
const ENCODED_SHOWN: u32 = 3;

/// All forms of all secrets, each once, with the length of the prefix that may be shown.
pub(super) fn of_all(secrets: &[String]) -> BTreeMap<Vec<u8>, u32> {
    let mut forms = BTreeMap::new();
    for secret in secrets.iter().flat_map(|secret| parts(secret.trim())) {
        forms.extend(of(&secret));
        if secret.contains('\n') {
            let lines = secret.lines().map(str::trim).filter(|line| line.len() >= LINE_BYTES_MIN);
            forms.extend(lines.flat_map(of));
        }
    }
    forms
}

/// The secret parts: of a URL the password and what follows the host, else all of it.
fn parts(secret: &str) -> Vec<String> {
    let is_name = |scheme: &str| scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let rest = secret.split_once("://").filter(|(scheme, _)| is_name(scheme)).map(|(_, rest)| rest);
    let Some(rest) = rest else { return vec![secret.to_owned()] };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let user = authority.rsplit_once('@').map(|(user, _)| user);
    let password = user.and_then(|user| user.split_once(':')).map(|(_, password)| password);
    let mut parts: Vec<String> = password.into_iter().map(str::to_owned).collect();
    parts.extend(password.map(unescaped));
    if password.is_none() && path.len() > ADDRESS_BYTES_MIN {
        parts.push(path[1..].to_owned());
    }
    parts
}

fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let escaped = tail
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(escaped.unwrap_or(*first));
        rest = if escaped.is_some() { &tail[2..] } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn of(secret: &str) -> BTreeMap<Vec<u8>, u32> {
    if secret.len() < SECRET_BYTES_MIN {
        return BTreeMap::new();
    }
    let json = in_json(secret);
    let mut texts = vec![
        in_json(&json),
        in_json(&in_ascii_json(secret)),
        in_ascii_json(secret),
        json,
        format!("{secret:?}").trim_matches('"').to_owned(),
    ];
    for offset in 0..3 {
        texts.push(inner_base64(&STANDARD_NO_PAD, secret.as_bytes(), offset));
        texts.push(inner_base64(&URL_SAFE_NO_PAD, secret.as_bytes(), offset));
    }
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escaped = percent(secret, unreserved);
    texts.push(escaped.to_lowercase_hex());
    texts.push(escaped.0.replace("%20", "+"));
    texts.push(escaped.0);
    let all = percent(secret, |_| false);
    texts.push(all.to_lowercase_hex());
    texts.push(all.0);
    let plain = (secret.as_bytes().to_vec(), PLAIN_SHOWN);
    let encoded = texts.into_iter().map(|text| (text.into_bytes(), ENCODED_SHOWN));
    encoded.chain([plain]).collect()
}

fn in_json(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// JSON with all characters but ASCII escaped.
fn in_ascii_json(text: &str) -> String {
    let mut ascii = String::new();
    for c in in_json(text).chars() {
        if c.is_ascii() {
            ascii.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                ascii.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    ascii
}

/// The characters of the base64 text that depend on these bytes alone, if `offset` bytes precede them in their
/// group of three.
pub(super) fn inner_base64(engine: &impl Engine, bytes: &[u8], offset: usize) -> String {
    let padded: Vec<u8> = std::iter::repeat_n(0, offset).chain(bytes.iter().copied()).collect();
    let text = engine.encode(&padded);
    text[(offset * 8).div_ceil(6)..padded.len() * 8 / 6].to_owned()
}

struct Percent(String);

fn percent(text: &str, keep: impl Fn(u8) -> bool) -> Percent {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match keep(byte) {
            true => escaped.push(char::from(byte)),
            false => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    Percent(escaped)
}

impl Percent {
    fn to_lowercase_hex(&self) -> String {
        let mut parts = self.0.split('%');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (hex, rest) = part.split_at(2);
            text.push('%');
            text.push_str(&hex.to_lowercase());
            text.push_str(rest);
        }
        text
    }
}
