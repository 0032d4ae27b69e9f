//! `[artifacts]`: where the bytes of artifacts are kept.
//!
//! Invariant: a bucket comes with its keys, and those only as secrets; what only a bucket has is refused for a
//! folder.

use super::Secret;
use super::reader::{Reader, Value, clean};
use greenroom_objects::BackendUrl;
use std::path::PathBuf;

/// The region of those that have none.
const REGION: &str = "us-east-1";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Artifacts {
    /// A folder of its own in the data folder.
    #[default]
    InData,
    Folder(PathBuf),
    Bucket(Box<Bucket>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    pub bucket: String,
    pub prefix: String,
    /// `None`: Amazon itself.
    pub endpoint: Option<String>,
    pub region: String,
    pub access_key_id: Secret,
    pub secret_access_key: Secret,
    pub allow_http: bool,
}

impl Artifacts {
    pub(super) fn read(mut reader: Reader<'_>) -> Self {
        let url = reader.get("url").and_then(|value| backend(&value));
        let artifacts = match url {
            Some(BackendUrl::Bucket { bucket, prefix }) => read_bucket(&mut reader, bucket, prefix),
            Some(BackendUrl::Folder(path)) => Some(Artifacts::Folder(path)),
            None => None,
        };
        if !matches!(artifacts, Some(Artifacts::Bucket(_))) {
            refuse_bucket_keys(&mut reader);
        }
        reader.finish();
        artifacts.unwrap_or_default()
    }
}

fn read_bucket(reader: &mut Reader<'_>, bucket: String, prefix: String) -> Option<Artifacts> {
    let endpoint = reader.get("endpoint").map(|value| endpoint(&value));
    let region = reader.get("region").and_then(|v| v.filled_text().map(str::to_owned));
    let allow_http = reader.get("allow_http").and_then(|v| v.boolean()).unwrap_or(false);
    let access_key_id = reader.require("access_key_id").and_then(|value| value.secret());
    let secret_access_key = reader.require("secret_access_key").and_then(|value| value.secret());
    Some(Artifacts::Bucket(Box::new(Bucket {
        bucket,
        prefix,
        endpoint: endpoint.flatten(),
        region: region.unwrap_or_else(|| REGION.to_owned()),
        access_key_id: access_key_id?,
        secret_access_key: secret_access_key?,
        allow_http,
    })))
}

/// Told only where no other mistake explains them.
fn refuse_bucket_keys(reader: &mut Reader<'_>) {
    for key in ["endpoint", "region", "access_key_id", "secret_access_key", "allow_http"] {
        if let Some(value) = reader.get(key) {
            value.fail::<()>(
                format!("`{}` is for a bucket", value.path),
                "write `url = \"s3://BUCKET/PREFIX\"`, or remove the key",
            );
        }
    }
}

fn backend(value: &Value<'_>) -> Option<BackendUrl> {
    let text = value.filled_text()?;
    match BackendUrl::parse(text, value.cx.dir) {
        Ok(url) => Some(url),
        Err(error) => value.fail(
            format!("`{}` is not a place for artifacts: {error}", clean(text)),
            "write `file:PATH` or `s3://BUCKET/PREFIX`",
        ),
    }
}

fn endpoint(value: &Value<'_>) -> Option<String> {
    let text = value.filled_text()?;
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match rest {
        Some(rest) if !rest.is_empty() && !rest.contains(['@', '?', '#', ' ']) => {
            Some(text.trim_end_matches('/').to_owned())
        }
        _ => value.fail(
            format!("`{}` is not the address of an object store", clean(text)),
            "write e.g. `https://s3.example.com`",
        ),
    }
}
