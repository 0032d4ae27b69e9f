//! Where bytes are kept: `file:PATH` or `s3://BUCKET/PREFIX`.

use std::fmt;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    Folder(PathBuf),
    Bucket(BucketPlace),
}

/// A bucket and how to reach it. `Debug` keeps the secret to itself.
#[derive(Clone, PartialEq, Eq)]
pub struct BucketPlace {
    pub bucket: String,
    /// Without slashes at its ends; may be empty.
    pub prefix: String,
    /// Absent for Amazon itself.
    pub endpoint: Option<String>,
    pub region: String,
    pub access_key_id: String,
    pub secret_access_key: String,
    /// Whether an endpoint without TLS may be used.
    pub allow_http: bool,
    /// Where bytes wait while they come in: their name is known only when they are complete.
    pub spool: PathBuf,
}

impl fmt::Debug for BucketPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketPlace")
            .field("bucket", &self.bucket)
            .field("prefix", &self.prefix)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Folder(path) => write!(f, "file:{}", path.display()),
            Place::Bucket(place) if place.prefix.is_empty() => write!(f, "s3://{}", place.bucket),
            Place::Bucket(place) => write!(f, "s3://{}/{}", place.bucket, place.prefix),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceError {
    #[error("it begins with neither `file:` nor `s3://`")]
    Scheme,
    #[error("it names no folder")]
    NoFolder,
    #[error("`{0}` is not the name of a bucket")]
    Bucket(String),
    #[error("a prefix has segments of letters, digits, `.`, `-` and `_`, none of them `.` or `..`")]
    Prefix,
}

/// A url taken apart; the bucket is completed by what the rest of the configuration says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceUrl {
    Folder(PathBuf),
    Bucket { bucket: String, prefix: String },
}

impl PlaceUrl {
    /// Reads a url; a relative folder is taken from `base`.
    pub fn parse(url: &str, base: &Path) -> Result<Self, PlaceError> {
        if let Some(path) = url.strip_prefix("file:") {
            let path = path.strip_prefix("//").filter(|rest| rest.starts_with('/')).unwrap_or(path);
            if path.is_empty() {
                return Err(PlaceError::NoFolder);
            }
            return Ok(PlaceUrl::Folder(base.join(path)));
        }
        let rest = url.strip_prefix("s3://").ok_or(PlaceError::Scheme)?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        if !is_bucket(bucket) {
            return Err(PlaceError::Bucket(bucket.to_owned()));
        }
        let prefix = prefix.trim_end_matches('/');
        if !prefix.is_empty() && !prefix.split('/').all(is_segment) {
            return Err(PlaceError::Prefix);
        }
        Ok(PlaceUrl::Bucket { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
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
        let parse = |url| PlaceUrl::parse(url, Path::new("/etc/greenroom"));
        let folder = |path: &str| Ok(PlaceUrl::Folder(PathBuf::from(path)));
        assert_eq!(parse("file:/srv/bytes"), folder("/srv/bytes"));
        assert_eq!(parse("file:///srv/bytes"), folder("/srv/bytes"));
        assert_eq!(parse("file:bytes"), folder("/etc/greenroom/bytes"));
        let bucket = |bucket: &str, prefix: &str| {
            Ok(PlaceUrl::Bucket { bucket: bucket.to_owned(), prefix: prefix.to_owned() })
        };
        assert_eq!(parse("s3://my-bucket"), bucket("my-bucket", ""));
        assert_eq!(parse("s3://my-bucket/a/b/"), bucket("my-bucket", "a/b"));
        assert_eq!(parse("gs://x"), Err(PlaceError::Scheme));
        assert_eq!(parse("file:"), Err(PlaceError::NoFolder));
        assert_eq!(parse("s3://My_Bucket!"), Err(PlaceError::Bucket("My_Bucket!".to_owned())));
        for url in ["s3://bucket/a//b", "s3://bucket/../b", "s3://bucket/a b", "s3://bucket/./b"] {
            assert_eq!(parse(url), Err(PlaceError::Prefix), "{url}");
        }
    }

    #[test]
    fn a_place_does_not_show_its_secret() {
        let place = Place::Bucket(BucketPlace {
            bucket: "bytes".to_owned(),
            prefix: "a".to_owned(),
            endpoint: None,
            region: "us-east-1".to_owned(),
            access_key_id: "AKIDEXAMPLE".to_owned(),
            secret_access_key: "very-secret".to_owned(),
            allow_http: false,
            spool: PathBuf::from("/tmp"),
        });
        assert_eq!(place.to_string(), "s3://bytes/a");
        assert!(!format!("{place:?}").contains("very-secret"));
    }
}
