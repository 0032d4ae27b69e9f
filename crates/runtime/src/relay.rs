//! Serves the network of a process that has none of its own: leads connections to the host and to its list.
//!
//! Invariant: only what the process may reach is connected to, by an address that was checked after its name was
//! resolved. It costs nothing while it is unused, and ends with the process.

mod request;

use crate::supervisor::job::{Allowed, Way};
use crate::supervisor::netns::LISTENERS_MAX;
use greenroom_config::{Destination, DestinationHost, is_private};
use request::{Head, Refusal};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::collections::HashSet;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest, copy_bidirectional_with_sizes};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Connections of one process at the same time; others wait.
const CONNECTIONS_MAX: usize = 256;
const BUFFER_BYTES: usize = 16 * 1024;
/// For the head of a request to the proxy.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(10);
/// Refused destinations that are logged for each process.
const LOGGED_MAX: usize = 32;

/// What leads out of the namespace of one process.
pub(crate) struct Relay {
    /// The process, for the log and for refusals.
    name: String,
    allowed: Allowed,
    connections: Semaphore,
    logged: Mutex<HashSet<String>>,
}

impl Relay {
    pub(crate) fn new(name: String, allowed: Allowed) -> Arc<Self> {
        let connections = Semaphore::new(CONNECTIONS_MAX);
        Arc::new(Self { name, allowed, connections, logged: Mutex::default() })
    }

    /// Waits for the listeners of the process, then serves them. Never ends before its caller drops it, unless the
    /// process has none.
    pub(crate) async fn serve(self: Arc<Self>, handover: OwnedFd) {
        let listeners = match receive(handover).await {
            Ok(listeners) => listeners,
            Err(error) => {
                tracing::warn!(process = self.name, %error, "cannot serve the network of a process");
                return;
            }
        };
        let mut loops = JoinSet::new();
        for (way, listener) in listeners {
            loops.spawn(self.clone().accept(Arc::new(way), listener));
        }
        while loops.join_next().await.is_some() {}
    }

    async fn accept(self: Arc<Self>, way: Arc<Way>, listener: TcpListener) {
        let mut open = JoinSet::new();
        loop {
            while open.try_join_next().is_some() {}
            // The semaphore is never closed.
            let Ok(permit) = self.connections.acquire().await else { return };
            permit.forget();
            let Ok((stream, _)) = listener.accept().await else {
                self.connections.add_permits(1);
                // Out of descriptors, for example.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let (relay, way) = (self.clone(), way.clone());
            open.spawn(async move {
                let _released = Released(&relay.connections);
                // An error of a connection is its end: both sides see it closed.
                let _ = match &*way {
                    Way::Forward(to) => forward(stream, *to).await,
                    Way::Proxy { password } => relay.proxy(stream, password.as_deref()).await,
                };
            });
        }
    }

    async fn proxy(&self, mut client: TcpStream, password: Option<&str>) -> io::Result<()> {
        let mut read = Vec::new();
        let head = match timeout(HEAD_TIMEOUT, read_head(&mut client, &mut read)).await {
            Err(_) => return Ok(()),
            Ok(head) => head?,
        };
        let connected = match head.and_then(|head| head.authorized(password)) {
            Ok(head) => self.connect(&head).await.map(|server| (head, server)),
            Err(refusal) => Err(refusal),
        };
        match connected {
            Ok((head, mut server)) => {
                let _ = (client.set_nodelay(true), server.set_nodelay(true));
                match &head.forwarded {
                    Some(request) => server.write_all(request).await?,
                    None => {
                        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?
                    }
                }
                server.write_all(&read[head.length..]).await?;
                copy_bidirectional_with_sizes(&mut client, &mut server, BUFFER_BYTES, BUFFER_BYTES)
                    .await
                    .map(drop)
            }
            Err(refusal) => {
                client.write_all(&refusal.response()).await?;
                client.shutdown().await
            }
        }
    }

    async fn connect(&self, head: &Head) -> Result<TcpStream, Refusal> {
        let (host, port) = (head.host.as_str(), head.port);
        let target = format!("{host}:{port}");
        let Some(entry) = self.allowed.list.iter().find(|entry| entry.covers(host, port)) else {
            self.log_refused(&target);
            return Err(Refusal::NotListed { target, name: self.name.clone() });
        };
        let host = host.trim_matches(['[', ']']);
        let found = timeout(RESOLVE_TIMEOUT, tokio::net::lookup_host((host, port))).await;
        let found = found.map_err(|_| "no answer in time".to_owned());
        let found = found.and_then(|found| found.map_err(|error| error.to_string()));
        let found =
            found.map_err(|reason| Refusal::Unreachable { target: target.clone(), reason })?;
        let open: Vec<SocketAddr> = found.filter(|at| may_connect(entry, at.ip())).collect();
        if open.is_empty() {
            self.log_refused(&target);
            return Err(Refusal::Private { target });
        }
        let connected = timeout(CONNECT_TIMEOUT, TcpStream::connect(open.as_slice())).await;
        let connected = connected.map_err(|_| "no answer in time".to_owned());
        connected
            .and_then(|connected| connected.map_err(|error| error.to_string()))
            .map_err(|reason| Refusal::Unreachable { target, reason })
    }

    fn log_refused(&self, target: &str) {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.len() < LOGGED_MAX && logged.insert(target.to_owned()) {
            tracing::warn!(process = self.name, target, "refused a connection: not in `network`");
        }
    }
}

/// Whether an entry of the list stands for this address. A private one must be named as such.
fn may_connect(entry: &Destination, address: IpAddr) -> bool {
    match &entry.host {
        DestinationHost::Address(_) => true,
        DestinationHost::Name(name) if name == "localhost" => address.is_loopback(),
        DestinationHost::Name(_) | DestinationHost::Below(_) => !is_private(address),
    }
}

async fn forward(mut client: TcpStream, to: SocketAddr) -> io::Result<()> {
    let connected = timeout(CONNECT_TIMEOUT, TcpStream::connect(to)).await;
    let mut server = connected.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    copy_bidirectional_with_sizes(&mut client, &mut server, BUFFER_BYTES, BUFFER_BYTES).await?;
    Ok(())
}

/// Reads until the head of a request is complete; `read` may have more.
async fn read_head(
    client: &mut TcpStream,
    read: &mut Vec<u8>,
) -> io::Result<Result<Head, Refusal>> {
    loop {
        if let Some(head) = request::parse(read) {
            return Ok(head);
        }
        if client.read_buf(read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

struct Released<'a>(&'a Semaphore);

impl Drop for Released<'_> {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

/// The listeners come in one message; none at all if the process failed before.
async fn receive(handover: OwnedFd) -> io::Result<Vec<(Way, TcpListener)>> {
    let handover = StdUnixStream::from(handover);
    handover.set_nonblocking(true)?;
    let handover = UnixStream::from_std(handover)?;
    let mut text = vec![0; 64 * 1024];
    let mut descriptors = Vec::new();
    let length = loop {
        handover.readable().await?;
        let received = handover.try_io(Interest::READABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(LISTENERS_MAX))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let mut buffers = [IoSliceMut::new(&mut text)];
            let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
            let received = recvmsg(&handover, &mut buffers, &mut ancillary, flags)?;
            for message in ancillary.drain() {
                if let RecvAncillaryMessage::ScmRights(rights) = message {
                    descriptors.extend(rights);
                }
            }
            Ok(received.bytes)
        });
        match received {
            Ok(length) => break length,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    };
    if length == 0 {
        return Ok(Vec::new());
    }
    let ways: Vec<Way> = serde_json::from_slice(&text[..length])?;
    let listeners = ways.into_iter().zip(descriptors).map(|(way, descriptor)| {
        let listener = std::net::TcpListener::from(descriptor);
        listener.set_nonblocking(true)?;
        Ok((way, TcpListener::from_std(listener)?))
    });
    listeners.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_address_must_be_named_as_such() {
        let cases = [
            ("api.example.com:443", "93.184.216.34", true),
            ("api.example.com:443", "127.0.0.1", false),
            ("api.example.com:443", "169.254.169.254", false),
            ("*.example.com:443", "10.0.0.1", false),
            ("10.0.0.1:443", "10.0.0.1", true),
            ("localhost:443", "127.0.0.1", true),
            ("localhost:443", "::1", true),
            ("localhost:443", "10.0.0.1", false),
        ];
        for (entry, address, expected) in cases {
            let destination = entry.parse().unwrap();
            let address = address.parse().unwrap();
            assert_eq!(may_connect(&destination, address), expected, "{entry} {address}");
        }
    }
}
