//! The wall around each session: of the runner's domain it has its own workspace and home, and its own way out.
//!
//! Invariant: a session is started by the host's program, which gives up the rest before the harness runs. Files of a
//! workspace are touched with the rights of its session only, so that a link made by the harness leads nowhere else.

use crate::settings::Wall;
use crate::workspace::{Place, WORKSPACES, create};
use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, path_beneath_rules,
};
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
        let repositories = crate::git::repositories(own);
        let mut covered = vec![own.join(WORKSPACES), repositories.clone()];
        // The runner's own temporary files and home.
        covered
            .extend(std::env::temp_dir().parent().filter(|at| at.parent().is_some()).map(resolve));
        let given = self.given.iter().map(|path| resolve(path));
        covered.extend(given.filter(|path| !work.starts_with(path)));
        covered.retain(|path| path.is_dir());
        let mut read = self.read.clone();
        if place.record.kind == "git" {
            read.push(repositories);
        }
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

impl Place {
    /// Does something with the files of the harness. Nothing else exists meanwhile, wherever a link in them leads.
    pub(crate) fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<T> {
        if !self.is_apart {
            return Ok(work());
        }
        std::thread::scope(|scope| {
            // Of this thread only.
            let inside = scope.spawn(|| enter([&self.home, &self.work]).map(|()| work()));
            let ended = inside.join();
            ended.unwrap_or_else(|_| Err(io::Error::other("the work on the workspace failed")))
        })
    }
}

fn enter(folders: [&PathBuf; 2]) -> io::Result<()> {
    let all = AccessFs::from_all(ABI::V3);
    let entered = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .and_then(|ruleset| ruleset.create())
        .and_then(|ruleset| ruleset.add_rules(path_beneath_rules(folders, all)))
        .and_then(|ruleset| ruleset.restrict_self())
        .map_err(io::Error::other)?;
    match entered.ruleset {
        RulesetStatus::NotEnforced => {
            Err(io::Error::other("without Landlock, files of a workspace cannot be told apart"))
        }
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
    }
}

#[expect(clippy::disallowed_methods, reason = "the harness has the environment of its runner")]
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::workspace::Owner;

    #[tokio::test]
    async fn a_link_in_a_workspace_leads_nowhere() {
        let own = tempfile::tempdir().unwrap();
        let owner = |conversation: &str| Owner {
            agent: "a".to_owned(),
            workspace_id: None,
            conversation_id: conversation.to_owned(),
            bot_id: None,
            thread_id: None,
        };
        let mut place = Place::prepare(own.path(), &owner("c"), &Config::default()).await.unwrap();
        let other = Place::prepare(own.path(), &owner("d"), &Config::default()).await.unwrap();
        std::os::unix::fs::symlink(&other.work, place.work.join("link")).unwrap();
        std::fs::write(other.work.join("secret"), "s").unwrap();
        let linked = place.work.join("link");
        let write = || std::fs::write(linked.join("new"), "x").is_ok();
        let read = || std::fs::read(linked.join("secret")).is_ok();
        assert!(write() && read(), "without the wall both work");
        std::fs::remove_file(other.work.join("new")).unwrap();
        place.is_apart = true;
        assert_eq!(place.within(|| (write(), read())).unwrap(), (false, false));
        let own_file = place.work.join("file");
        place.within(|| std::fs::write(&own_file, "x")).unwrap().unwrap();
        assert!(!other.work.join("new").exists() && own_file.exists());
    }
}
