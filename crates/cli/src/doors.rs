//! The listeners of the host: addresses, TLS certificate and the URL that others use.
//!
//! Invariant: a listener keeps its settings except the certificate; an unusable certificate changes nothing.

use crate::failure::{Exit, Failure};
use crate::{output, sign_in};
use greenroom_config::{self as config, BasePath, Tls};
use greenroom_server::{Certificate, ListenerKind, Server, TlsError, serve};
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

pub(crate) struct Doors {
    listener: Option<TcpListener>,
    address: SocketAddr,
    base_path: BasePath,
    certificate: Option<Certificate>,
    /// Without TLS, on loopback only: for child processes, which have no certificate to verify.
    children: Option<TcpListener>,
    /// The address for child processes of the host.
    for_children: SocketAddr,
}

impl Doors {
    pub(crate) fn open(
        server: &config::Server,
        listen: Option<SocketAddr>,
    ) -> Result<Self, Failure> {
        let certificate = server.tls.as_ref().map(load).transpose()?;
        let listener = bind(listen.unwrap_or(server.listen))?;
        let address = listener.local_addr()?;
        let (children, for_children) = match &certificate {
            Some(_) => {
                let own = bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
                let at = own.local_addr()?;
                (Some(own), at)
            }
            None => (None, address),
        };
        if let Some(warning) = listen.and_then(|_| server.exposed(address)) {
            output::note(&format!("warning: {warning}"));
        }
        let (listener, base_path) = (Some(listener), server.base_path.clone());
        Ok(Self { listener, address, base_path, certificate, children, for_children })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn for_children(&self) -> SocketAddr {
        self.for_children
    }

    /// The URL for a browser on this machine.
    pub(crate) fn url(&self) -> String {
        self.url_at(sign_in::reachable(self.address))
    }

    /// The address it listens on.
    pub(crate) fn listening(&self) -> String {
        self.url_at(self.address)
    }

    fn url_at(&self, address: SocketAddr) -> String {
        let scheme = if self.certificate.is_some() { "https" } else { "http" };
        format!("{scheme}://{address}{}", self.base_path.as_str())
    }

    /// The fingerprint of the certificate in use.
    pub(crate) fn certificate_sha256(&self) -> Option<String> {
        self.certificate.as_ref().map(Certificate::sha256)
    }

    /// Serves until the server stops; returns when the public listener ends.
    pub(crate) fn serve(&mut self, server: &Server) -> Option<JoinHandle<()>> {
        let tasks = TaskTracker::new();
        if let Some(listener) = self.children.take() {
            tasks.spawn(serve(listener, server.clone(), ListenerKind::ChildProcesses));
        }
        let kind = self.certificate.clone().map_or(ListenerKind::Http, ListenerKind::Tls);
        self.listener.take().map(|listener| tasks.spawn(serve(listener, server.clone(), kind)))
    }

    /// Reloads the certificate.
    pub(crate) fn reload(&self, server: &config::Server) {
        let (Some(certificate), Some(tls)) = (&self.certificate, &server.tls) else { return };
        if let Err(error) = certificate.replace(&tls.cert, &tls.key) {
            let failure = unusable(error);
            output::note(&format!("{failure}\nnote: the certificate in use is unchanged"));
        }
    }
}

fn load(tls: &Tls) -> Result<Certificate, Failure> {
    Certificate::load(&tls.cert, &tls.key).map_err(unusable)
}

fn unusable(error: TlsError) -> Failure {
    Failure::from(anyhow::Error::new(error).context("cannot use the certificate of `server.tls`"))
        .exit(Exit::Usage)
        .hint("`cert` is a PEM file with the host's certificate first, `key` one with its private key")
}

fn bind(address: SocketAddr) -> Result<TcpListener, Failure> {
    greenroom_server::bind(address).map_err(|error| {
        Failure::from(anyhow::Error::new(error).context(format!("cannot listen on `{address}`")))
            .hint("another host may run already; `--listen 127.0.0.1:0` picks a free port")
    })
}
