//! `[artifacts]`: where the bytes of artifacts are stored.
//!
//! Invariant: a bucket has access keys, as secrets; keys of a bucket are refused for a folder.

use super::Secret;
use super::reader::{Reader, Value, clean};
use std::path::{Path, PathBuf};

/// The region of object stores that have none.
const REGION: &str = "us-east-1";

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Artifacts {
    /// `artifacts` in the data folder.
    #[default]
    InData,
    Folder(PathBuf),
    Bucket(Box<Bucket>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bucket {
    pub bucket: String,
    pub prefix: String,
    /// `None`: Amazon S3.
    pub endpoint: Option<String>,
    pub region: String,
    pub access_key_id: Secret,
    pub secret_access_key: Secret,
    pub allow_http: bool,
}

impl Artifacts {
    pub(super) fn read(mut reader: Reader<'_>) -> Self {
        let url = reader.get("url").and_then(|value| backend_url(&value));
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

/// Reported only if no other mistake explains them.
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

fn backend_url(value: &Value<'_>) -> Option<BackendUrl> {
    let text = value.filled_text()?;
    match BackendUrl::parse(text, value.cx.dir) {
        Ok(url) => Some(url),
        Err(error) => value.fail(
            format!("`{}` is not a location for artifacts: {error}", clean(text)),
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

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum InvalidUrl {
    #[error("must begin with `file:` or `s3://`")]
    Scheme,
    #[error("it has no folder")]
    NoFolder,
    #[error("`{0}` is not the name of a bucket")]
    Bucket(String),
    #[error("a prefix has segments of letters, digits, `.`, `-` and `_`, none of them `.` or `..`")]
    Prefix,
}

/// A parsed `url`; other keys complete a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
enum BackendUrl {
    Folder(PathBuf),
    Bucket { bucket: String, prefix: String },
}

impl BackendUrl {
    /// A relative folder starts at `base`.
    fn parse(url: &str, base: &Path) -> Result<Self, InvalidUrl> {
        if let Some(path) = url.strip_prefix("file:") {
            let path = path.strip_prefix("//").filter(|rest| rest.starts_with('/')).unwrap_or(path);
            if path.is_empty() {
                return Err(InvalidUrl::NoFolder);
            }
            return Ok(BackendUrl::Folder(base.join(path)));
        }
        let rest = url.strip_prefix("s3://").ok_or(InvalidUrl::Scheme)?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if !is_bucket(bucket) {
            return Err(InvalidUrl::Bucket(bucket.to_owned()));
        }
        let prefix = prefix.trim_end_matches('/');
        if !prefix.is_empty() && !prefix.split('/').all(is_segment) {
            return Err(InvalidUrl::Prefix);
        }
        Ok(BackendUrl::Bucket { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

fn is_bucket(name: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte);
    (3..=63).contains(&name.len()) && name.bytes().all(plain) && !name.contains("..")
}

fn is_segment(segment: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
    !segment.is_empty() && segment != "." && segment != ".." && segment.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_folder_or_a_bucket() {
        let parse = |url| BackendUrl::parse(url, Path::new("/etc/greenroom"));
        let folder = |path: &str| Ok(BackendUrl::Folder(PathBuf::from(path)));
        assert_eq!(parse("file:/srv/bytes"), folder("/srv/bytes"));
        assert_eq!(parse("file:///srv/bytes"), folder("/srv/bytes"));
        assert_eq!(parse("file:bytes"), folder("/etc/greenroom/bytes"));
        let bucket = |bucket: &str, prefix: &str| {
            Ok(BackendUrl::Bucket { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
        };
        assert_eq!(parse("s3://my-bucket"), bucket("my-bucket", ""));
        assert_eq!(parse("s3://my-bucket/a/b/"), bucket("my-bucket", "a/b"));
        assert_eq!(parse("gs://x"), Err(InvalidUrl::Scheme));
        assert_eq!(parse("file:"), Err(InvalidUrl::NoFolder));
        assert_eq!(parse("s3://My_Bucket!"), Err(InvalidUrl::Bucket("My_Bucket!".to_owned())));
        for url in ["s3://bucket/a//b", "s3://bucket/../b", "s3://bucket/a b", "s3://bucket/./b"] {
            assert_eq!(parse(url), Err(InvalidUrl::Prefix), "{url}");
        }
    }
}
