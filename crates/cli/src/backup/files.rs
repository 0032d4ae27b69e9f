//! Files of a host besides its store: the admin token, the folders of runners, the configuration.
//!
//! Invariant: only regular files are copied; links are not followed, sockets and locks are skipped, and a restore
//! overwrites nothing.

use super::archive::{Archive, ArchiveWriter};
use super::manifest;
use super::places::Setup;
use super::progress::{Progress, count};
use crate::failure::Failure;
use crate::watch;
use anyhow::{Context, anyhow};
use greenroom_config::Config;
use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

pub(crate) const DATA: &str = "data/";
pub(crate) const CONFIG: &str = "config/";
pub(crate) const OUTSIDE: &str = "config-outside/";

const DEPTH_MAX: usize = 64;

/// Adds the admin token and the folders of runners. Returns what was skipped.
pub(crate) fn add_data(
    data: &Path,
    archive: &mut ArchiveWriter,
    progress: &mut Progress,
) -> anyhow::Result<Vec<String>> {
    let mut files = vec![data.join("admin-token")];
    let mut left_out = Vec::new();
    find(&data.join("runners"), DEPTH_MAX, &mut files, &mut left_out)?;
    let mut added = 0;
    for file in files {
        let inside = file.strip_prefix(data).unwrap_or(&file);
        let Some(name) = member_name(inside) else {
            left_out.push(format!("{} (its name is not UTF-8)", file.display()));
            continue;
        };
        added += u64::from(add_file(archive, &format!("{DATA}{name}"), &file)?);
        progress.update(|| count(added, "file"));
    }
    progress.done(&format!("data folder: {}", count(added, "file")));
    Ok(left_out)
}

/// Adds the configuration and the files it refers to.
pub(crate) fn add_config(
    setup: &Setup,
    archive: &mut ArchiveWriter,
) -> anyhow::Result<Option<manifest::Config>> {
    let Some(path) = &setup.file else { return Ok(None) };
    let path = std::path::absolute(path)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read `{}`", path.display()))?;
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("greenroom.toml");
    let member = format!("{CONFIG}{name}");
    archive.add_bytes(&member, text.as_bytes())?;
    for file in named_files(&setup.config) {
        let file = std::path::absolute(&file)?;
        let name = match file.strip_prefix(folder).ok().and_then(member_name) {
            Some(name) => format!("{CONFIG}{name}"),
            None => format!("{OUTSIDE}{}", member_name(&file).unwrap_or_default()),
        };
        if name != member {
            add_file(archive, &name, &file)?;
        }
    }
    Ok(Some(manifest::Config {
        member,
        path: path.display().to_string(),
        environment: setup.environment(),
        names_store: setup.config.store.url.is_some(),
        names_artifacts: setup.config.artifacts != greenroom_config::Artifacts::InData,
    }))
}

/// Secrets, the certificate, scripts of models, manifests of modules and skills.
fn named_files(config: &Config) -> BTreeSet<PathBuf> {
    let secrets = config.secrets.iter().filter_map(|secret| secret.file().map(Path::to_owned));
    let tls = config.server.tls.iter().flat_map(|tls| [tls.cert.clone(), tls.key.clone()]);
    let files = secrets.chain(tls).chain(watch::named_files(config));
    files.filter(|file| file.is_file()).collect()
}

/// The regular files below a folder.
fn find(
    folder: &Path,
    depth_left: usize,
    files: &mut Vec<PathBuf>,
    left_out: &mut Vec<String>,
) -> io::Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        // Runners change their files meanwhile.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let (entry, path) = entry.map(|entry| (entry.file_type(), entry.path()))?;
        match entry {
            Ok(kind) if kind.is_dir() && depth_left > 0 => {
                find(&path, depth_left - 1, files, left_out)?;
            }
            Ok(kind) if kind.is_file() => files.push(path),
            Ok(kind) if kind.is_symlink() => left_out.push(format!("{} (a link)", path.display())),
            _ => {}
        }
    }
    Ok(())
}

/// A path below a folder, or an absolute one without its beginning.
fn member_name(path: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::RootDir => {}
            Component::CurDir | Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    (!parts.is_empty()).then(|| parts.join("/"))
}

/// Adds a file if it still exists.
fn add_file(archive: &mut ArchiveWriter, name: &str, path: &Path) -> anyhow::Result<bool> {
    let mut options = OpenOptions::new();
    // Opening a pipe in place of the file must not block the backup.
    let nonblocking = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
    let mut file = match options.read(true).custom_flags(nonblocking).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read `{}`", path.display()));
        }
    };
    let about = file.metadata()?;
    if !about.is_file() {
        return Ok(false);
    }
    let mode = 0o600 | (about.permissions().mode() & 0o100);
    archive
        .add(name, mode, |out| io::copy(&mut file, out).map(drop))
        .with_context(|| format!("cannot copy `{}`", path.display()))?;
    Ok(true)
}

/// Writes the members below `prefix` into a folder and returns their paths.
pub(crate) fn restore(
    archive: &Archive,
    prefix: &str,
    folder: &Path,
) -> Result<Vec<PathBuf>, Failure> {
    let mut written = Vec::new();
    for (name, inside, mode) in archive.below(prefix) {
        let path = folder.join(inside);
        let mut section = archive.section(name).map_err(anyhow::Error::new)?;
        write_new(&path, &mut section, mode).map_err(|error| {
            anyhow!(error).context(format!("cannot write `{}`", path.display()))
        })?;
        written.push(path);
    }
    Ok(written)
}

/// Refuses files that `add_data` never writes, such as a log of the database.
pub(crate) fn refuse_foreign(archive: &Archive) -> Result<(), Failure> {
    let is_ours = |inside: &str| inside == "admin-token" || inside.starts_with("runners/");
    let foreign = archive.below(DATA).into_iter().find(|(_, inside, _)| !is_ours(inside));
    foreign.map_or(Ok(()), |(name, ..)| {
        Err(Failure::new(format!("the archive has `{name}`, which is not part of a backup")))
    })
}

fn write_new(path: &Path, from: &mut impl io::Read, mode: u32) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut options = OpenOptions::new();
    let mut file = options.create_new(true).write(true).mode(mode & 0o700 | 0o600).open(path)?;
    io::copy(from, &mut file)?;
    file.sync_all()?;
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_is_named_after_its_path_and_never_leaves_its_folder() {
        let name = |path: &str| member_name(Path::new(path));
        assert_eq!(name("runners/echo/a b").as_deref(), Some("runners/echo/a b"));
        assert_eq!(name("/etc/keys/token").as_deref(), Some("etc/keys/token"));
        assert_eq!(name("../token"), None);
        assert_eq!(name(""), None);
    }
}
