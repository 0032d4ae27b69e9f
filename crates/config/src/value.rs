//! Values with their own rules: secrets, headers, JSON, amounts.
//!
//! Invariant: a secret is read from the environment or a file, never from the configuration itself.

use super::reader::Value;
use super::{SECRET_BYTES_MAX, Secret};
use greenroom_protocol::Object;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::Path;
use toml::de::DeValue;

/// Headers that the HTTP client sets.
const CLIENT_HEADERS: [&str; 4] = ["host", "content-length", "transfer-encoding", "connection"];
const SECRET_HINT: &str = "write `{ env = \"NAME\" }` or `{ file = \"PATH\" }`";

impl<'a> Value<'a> {
    /// `{ env = "NAME" }` or `{ file = "PATH" }`, resolved.
    pub(super) fn secret(&self) -> Option<Secret> {
        if !self.is_table() {
            self.cx.hide(self.span.clone());
            let message = format!("`{}` is a secret and cannot be written in the file", self.path);
            return self.fail(message, SECRET_HINT);
        }
        let mut reader = self.table()?;
        let (env, file) = (reader.get("env"), reader.get("file"));
        reader.finish();
        let path = file.as_ref().and_then(Value::path);
        let text = match (env, file) {
            (Some(env), None) => env.secret_from_env(),
            (None, Some(file)) => file.secret_from_file(path.as_deref()?),
            _ => self.fail(format!("`{}` needs either `env` or `file`", self.path), SECRET_HINT),
        }?;
        match Secret::new(text.trim_end_matches(['\r', '\n'])) {
            Some(secret) => {
                let secret = match path {
                    Some(path) => secret.read_from(path),
                    None => secret,
                };
                self.cx.secrets.borrow_mut().push(secret.clone());
                Some(secret)
            }
            None => self.fail(
                format!("the secret `{}` is empty", self.path),
                "an empty secret protects nothing",
            ),
        }
    }

    /// Headers of a request: credentials must be secrets, others may be plain text.
    pub(super) fn headers(&self) -> Option<BTreeMap<String, Secret>> {
        let mut headers = BTreeMap::new();
        for (name, _, value) in self.table()?.entries() {
            if CLIENT_HEADERS.iter().any(|own| name.eq_ignore_ascii_case(own)) {
                let message = format!("`{}` cannot be set", value.path);
                let _: Option<()> = value.fail(message, "the host writes this header itself");
                continue;
            }
            let plain = (!value.is_table()).then(|| value.filled_text());
            let text = match plain {
                Some(Some(text)) if is_credential(name, text) => value.secret(),
                Some(text) => text.and_then(Secret::new),
                None => value.secret(),
            };
            headers.extend(text.map(|text| (name.to_owned(), text)));
        }
        Some(headers)
    }

    fn secret_from_env(&self) -> Option<String> {
        let name = self.filled_text()?;
        match (self.cx.surroundings.env)(name) {
            Some(text) => Some(text),
            None => self.fail(
                format!("the environment variable `{}` is not set", super::reader::clean(name)),
                format!("set it before the host starts, or change `{}`", self.path),
            ),
        }
    }

    fn secret_from_file(&self, path: &Path) -> Option<String> {
        match (self.cx.surroundings.read)(path) {
            Ok(text) if text.len() <= SECRET_BYTES_MAX => Some(text),
            Ok(_) => self.fail(
                format!("`{}` has more than {SECRET_BYTES_MAX} bytes", path.display()),
                "the file must contain the secret only",
            ),
            Err(error) => self.fail(
                format!("cannot read `{}`: {error}", path.display()),
                "a relative path starts at the folder of the configuration",
            ),
        }
    }

    /// Any value as JSON; dates become text.
    pub(super) fn json(&self) -> Option<Json> {
        match self.value {
            DeValue::String(text) => Some(Json::from(text.as_ref())),
            DeValue::Boolean(value) => Some(Json::from(*value)),
            DeValue::Datetime(date) => Some(Json::from(date.to_string())),
            DeValue::Integer(number) => {
                match i64::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) => Some(Json::from(number)),
                    Err(_) => self
                        .fail(format!("`{}` is out of range", self.path), "write it as a string"),
                }
            }
            DeValue::Float(number) => {
                let number = number.as_str().parse().ok().and_then(serde_json::Number::from_f64);
                match number {
                    Some(number) => Some(Json::Number(number)),
                    None => self.fail(
                        format!("`{}` is not a number in JSON", self.path),
                        "write it as a string",
                    ),
                }
            }
            DeValue::Array(_) => self.list(Value::json).map(Json::Array),
            DeValue::Table(_) => self.object().map(Json::Object),
        }
    }

    /// An amount of money, as a number of dollars.
    pub(super) fn amount(&self) -> Option<f64> {
        let number = match self.value {
            DeValue::Integer(number) => number.as_str().parse::<f64>().ok(),
            DeValue::Float(number) => number.as_str().parse::<f64>().ok(),
            _ => None,
        };
        match number.filter(|number| (0.0..=1_000_000_000.0).contains(number)) {
            Some(number) => Some(number),
            None => self.fail(
                format!("`{}` must be an amount in dollars", self.path),
                "write a number such as `2.5`",
            ),
        }
    }

    pub(super) fn object(&self) -> Option<Object> {
        let entries = self.table()?.entries();
        let pair = |(key, _, value): (&str, _, Value<'_>)| Some((key.to_owned(), value.json()?));
        entries.into_iter().map(pair).collect()
    }
}

/// Whether a header carries a credential, by its name or the scheme of its value.
fn is_credential(name: &str, value: &str) -> bool {
    const PARTS: [&str; 8] =
        ["auth", "cookie", "credential", "key", "passw", "secret", "session", "token"];
    let (name, value) = (name.to_ascii_lowercase(), value.to_ascii_lowercase());
    let name = name.replace("author-", "").replace("x-author", "");
    let schemes = ["bearer ", "basic "];
    PARTS.iter().any(|part| name.contains(part))
        || schemes.iter().any(|scheme| value.starts_with(scheme))
}
