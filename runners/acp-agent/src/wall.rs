//! The wall around each session: of the runner's domain it has its own workspace and home, and its own way out.
//!
//! Invariant: a session is started by the host's program, which gives up the rest before the harness runs. This process
//! only says what a session keeps; what it says of a path is resolved, and no part of it can be replaced by a session.

use crate::git;
use crate::settings::Wall;
use crate::workspace::{Place, WORKSPACES, create};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long it may take until the harness is executed.
const START_MAX: Duration = Duration::from_secs(60);
const LISTENERS_MAX: usize = 64;
/// The folder of a conversation for temporary files.
const TEMPORARY: &str = "tmp";

/// A listener in the network of a session, and where its connections lead.
pub(crate) type WayOut = (SocketAddr, TcpListener);

/// What the host's program is told, in its words.
#[derive(Debug, Serialize)]
pub(crate) struct Enclosure {
    command: Vec<String>,
    dir: PathBuf,
    env: BTreeMap<String, String>,
    own: PathBuf,
    covered: Vec<PathBuf>,
    write: Vec<PathBuf>,
    read: Vec<PathBuf>,
    temporary: PathBuf,
    isolated: bool,
    listen: Vec<SocketAddr>,
}

/// What the program answers until it has become the harness.
#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Ways(Vec<Way>),
    Refused { error: String },
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Way {
    Forward(SocketAddr),
}

impl Wall {
    /// The session of this place, with this environment besides that of the runner; `gateway` leads to the host.
    pub(crate) fn enclose(
        &self,
        place: &Place,
        command: &[String],
        env: &BTreeMap<String, String>,
        gateway: Option<SocketAddr>,
    ) -> Result<Enclosure, String> {
        let own = place.root.ancestors().find(|folder| folder.ends_with(WORKSPACES));
        let own =
            own.and_then(Path::parent).ok_or("the workspace is not in the runner's folder")?;
        let temporary = place.root.join(TEMPORARY);
        create(&temporary).map_err(|error| format!("cannot create a folder: {error}"))?;
        let resolve = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let work = resolve(&place.work);
        let mut covered = vec![own.join(WORKSPACES), git::repositories(own)];
        // The runner's own temporary files and home.
        covered
            .extend(std::env::temp_dir().parent().filter(|at| at.parent().is_some()).map(resolve));
        let given = self.given.iter().map(|path| resolve(path));
        covered.extend(given.filter(|path| !work.starts_with(path)));
        covered.retain(|path| path.is_dir());
        let mut read = self.read.clone();
        // The repository of the workspace borrows its objects.
        read.extend(place.record.repository.as_deref().map(|source| git::copy_of(own, source)));
        let mut env: BTreeMap<String, String> = environment()
            .chain(env.iter().map(|(name, value)| (name.clone(), value.clone())))
            .collect();
        env.insert("TMPDIR".to_owned(), temporary.to_string_lossy().into_owned());
        let paths = self.paths.iter().map(|path| resolve(path));
        Ok(Enclosure {
            command: command.to_vec(),
            dir: work.clone(),
            env,
            own: own.to_owned(),
            covered,
            write: paths.chain([place.home.clone(), work]).collect(),
            read,
            temporary,
            isolated: self.isolated,
            listen: gateway.into_iter().chain(self.listen.iter().copied()).chain(proxy()).collect(),
        })
    }
}

impl Enclosure {
    /// Describes the session over this socket, and waits until the harness is executed.
    pub(crate) fn hand_over(&self, socket: &UnixStream) -> Result<Vec<WayOut>, String> {
        let failed = |error: io::Error| format!("the session does not start: {error}");
        socket.set_read_timeout(Some(START_MAX)).map_err(failed)?;
        let text = serde_json::to_vec(self).map_err(|error| error.to_string())?;
        let mut writer: &UnixStream = socket;
        writer
            .write_all(&text)
            .and_then(|()| socket.shutdown(std::net::Shutdown::Write))
            .map_err(failed)?;
        let (mut said, mut listeners) = (Vec::new(), Vec::new());
        while receive(socket, &mut said, &mut listeners).map_err(failed)? {}
        let mut addresses = Vec::new();
        for answer in serde_json::Deserializer::from_slice(&said).into_iter::<Answer>() {
            match answer.map_err(|error| error.to_string())? {
                Answer::Refused { error } => return Err(error),
                Answer::Ways(ways) => {
                    addresses.extend(ways.into_iter().map(|Way::Forward(address)| address));
                }
            }
        }
        Ok(addresses.into_iter().zip(listeners.into_iter().map(TcpListener::from)).collect())
    }
}

/// Takes what has arrived; `false` at the end.
fn receive(
    socket: &UnixStream,
    said: &mut Vec<u8>,
    listeners: &mut Vec<OwnedFd>,
) -> io::Result<bool> {
    let mut text = [0; 4096];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(LISTENERS_MAX))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut buffers = [IoSliceMut::new(&mut text)];
    let received = recvmsg(socket, &mut buffers, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            listeners.extend(rights);
        }
    }
    said.extend_from_slice(&text[..received.bytes]);
    Ok(received.bytes > 0)
}

/// The harness has the environment of its runner.
fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// The proxy to the servers that `network` names.
#[expect(
    clippy::disallowed_methods,
    reason = "the sandbox of the runner says it in its environment"
)]
fn proxy() -> Option<SocketAddr> {
    let proxy = std::env::var("HTTPS_PROXY").ok()?;
    proxy.rsplit(['/', '@']).next()?.parse().ok()
}
