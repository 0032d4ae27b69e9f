//! Where objects are stored: `file:PATH` or `s3://BUCKET/PREFIX`.

use std::fmt;
use std::path::PathBuf;

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

#[cfg(test)]
mod tests {
    use super::*;

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
