//! Where objects are stored: `file:PATH` or `s3://BUCKET/PREFIX`.

use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    Folder(PathBuf),
    Bucket(BucketSettings),
}

/// A bucket and how to connect to it. `Debug` does not show the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct BucketSettings {
    pub bucket: String,
    /// Without leading and trailing slashes; may be empty.
    pub prefix: String,
    /// Absent for Amazon S3.
    pub endpoint: Option<String>,
    pub region: String,
    pub access_key_id: String,
    pub secret_access_key: String,
    /// Whether an endpoint without TLS may be used.
    pub allow_http: bool,
    /// The folder for incoming bytes: their id is known only when they are complete.
    pub spool: PathBuf,
}

impl fmt::Debug for BucketSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketSettings")
            .field("bucket", &self.bucket)
            .field("prefix", &self.prefix)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Backend::Folder(path) => write!(f, "file:{}", path.display()),
            Backend::Bucket(backend) if backend.prefix.is_empty() => {
                write!(f, "s3://{}", backend.bucket)
            }
            Backend::Bucket(backend) => write!(f, "s3://{}/{}", backend.bucket, backend.prefix),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidUrl {
    #[error("must begin with `file:` or `s3://`")]
    Scheme,
    #[error("it names no folder")]
    NoFolder,
    #[error("`{0}` is not the name of a bucket")]
    Bucket(String),
    #[error("a prefix has segments of letters, digits, `.`, `-` and `_`, none of them `.` or `..`")]
    Prefix,
}

/// A parsed url; the other settings of the bucket come from the rest of the configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackendUrl {
    Folder(PathBuf),
    Bucket { bucket: String, prefix: String },
}

impl BackendUrl {
    /// Parses a url; a relative folder is joined to `base`.
    pub fn parse(url: &str, base: &Path) -> Result<Self, InvalidUrl> {
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

    #[test]
    fn a_place_does_not_show_its_secret() {
        let backend = Backend::Bucket(BucketSettings {
            bucket: "bytes".to_owned(),
            prefix: "a".to_owned(),
            endpoint: None,
            region: "us-east-1".to_owned(),
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: "very-secret".to_owned(),
            allow_http: false,
            spool: PathBuf::from("/tmp"),
        });
        assert_eq!(backend.to_string(), "s3://bytes/a");
        assert!(!format!("{backend:?}").contains("very-secret"));
    }
}
