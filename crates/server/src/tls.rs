//! TLS: a certificate and its key from files, replaceable while connections are open.
//!
//! Invariant: the loaded certificate and key are readable and match; files that do not are rejected, and the
//! loaded ones stay.

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

const FILE_BYTES_MAX: u64 = 1 << 20;

/// The loaded certificate; clones share it.
#[derive(Clone)]
pub struct Certificate {
    loaded: Arc<ArcSwap<Loaded>>,
}

struct Loaded {
    config: Arc<ServerConfig>,
    sha256: String,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read `{}`", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("`{}` contains no PEM certificate", .0.display())]
    NoCertificate(PathBuf),
    #[error("`{}` contains no PEM private key", .0.display())]
    NoKey(PathBuf),
    #[error("the certificate does not match the key")]
    Unusable(#[source] rustls::Error),
}

impl Certificate {
    /// Reads a chain, the host's own certificate first, and its key.
    pub fn load(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let loaded = Arc::new(ArcSwap::from_pointee(load(cert, key)?));
        Ok(Self { loaded })
    }

    /// Reads the files again, or other ones, for new connections.
    pub fn replace(&self, cert: &Path, key: &Path) -> Result<(), TlsError> {
        self.loaded.store(Arc::new(load(cert, key)?));
        Ok(())
    }

    /// SHA-256 of the host's own certificate, in hexadecimal.
    pub fn sha256(&self) -> String {
        self.loaded.load().sha256.clone()
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.loaded.load().config))
    }
}

fn load(cert: &Path, key: &Path) -> Result<Loaded, TlsError> {
    let no_certificate = || TlsError::NoCertificate(cert.to_owned());
    let chain = read(cert)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&chain).collect();
    let chain = chain.map_err(|_| no_certificate())?;
    let own = chain.first().ok_or_else(no_certificate)?;
    let sha256 = Sha256::digest(own).iter().map(|byte| format!("{byte:02x}")).collect();
    let key =
        PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|_| TlsError::NoKey(key.to_owned()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(TlsError::Unusable)?.with_no_client_auth();
    let mut config = builder.with_single_cert(chain, key).map_err(TlsError::Unusable)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Loaded { config: Arc::new(config), sha256 })
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |source| TlsError::Unreadable { path: path.to_owned(), source };
    let file = std::fs::metadata(path).map_err(unreadable)?;
    if !file.is_file() || file.len() > FILE_BYTES_MAX {
        return Err(unreadable(std::io::Error::other("it is not a certificate or key file")));
    }
    std::fs::read(path).map_err(unreadable)
}
