//! Opens an archive.
//!
//! Invariant: an open archive has exactly the members of its manifest with their sizes; none is a link or has a path
//! outside its folder. `verify` checks the bytes.

use super::{ArchiveError, MANIFEST, MANIFEST_SUM, hex, is_within};
use crate::backup::manifest::{FORMAT, Manifest};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tar::EntryType;

/// Largest manifest; it has a line for every artifact.
const MANIFEST_BYTES_MAX: u64 = 1 << 30;
const PIECE_BYTES: usize = 256 * 1024;

pub(crate) struct Archive {
    path: PathBuf,
    file: File,
    pub(crate) bytes: u64,
    pub(crate) manifest: Manifest,
    places: HashMap<String, Place>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    at: u64,
    size: u64,
    mode: u32,
}

/// The bytes of one member.
pub(crate) struct Section<'a> {
    file: &'a File,
    at: u64,
    left: u64,
}

impl Archive {
    /// Lists the members and reads the manifest only.
    pub(crate) fn open(path: &Path) -> Result<Archive, ArchiveError> {
        let failed = |source| ArchiveError::Io { path: path.to_owned(), source };
        let damaged = |what: String| ArchiveError::Damaged { path: path.to_owned(), what };
        let file = File::open(path).map_err(failed)?;
        let about = file.metadata().map_err(failed)?;
        if !about.is_file() {
            return Err(ArchiveError::NotABackup(path.to_owned()));
        }
        let bytes = about.len();
        let mut places = find_members(path, &file, bytes)?;
        let (text, sum) = (places.remove(MANIFEST), places.remove(MANIFEST_SUM));
        let (Some(text), Some(sum)) = (text, sum) else {
            let is_ours = places.keys().any(|name| name.starts_with("database/"));
            return Err(match is_ours {
                true => ArchiveError::Incomplete(path.to_owned()),
                false => ArchiveError::NotABackup(path.to_owned()),
            });
        };
        let read = |place: Place| -> Result<Vec<u8>, ArchiveError> {
            if place.size > MANIFEST_BYTES_MAX {
                return Err(damaged("its manifest is too large".to_owned()));
            }
            let mut text = Vec::new();
            section(&file, place).read_to_end(&mut text).map_err(failed)?;
            Ok(text)
        };
        let (text, sum) = (read(text)?, read(sum)?);
        if sum.get(..64) != Some(hex(Sha256::new_with_prefix(&text)).as_bytes()) {
            return Err(damaged("its manifest does not match its checksum".to_owned()));
        }
        let manifest = parse(path, &text)?;
        let mut is_same = manifest.members.len() == places.len();
        for member in &manifest.members {
            is_same &= places.get(&member.name).is_some_and(|place| place.size == member.size);
        }
        if !is_same {
            return Err(damaged("its members do not match its manifest".to_owned()));
        }
        Ok(Archive { path: path.to_owned(), file, bytes, manifest, places })
    }

    /// Reads everything and compares it with the manifest.
    pub(crate) fn verify(&self, progress: &mut dyn FnMut(u64)) -> Result<(), ArchiveError> {
        let mut piece = vec![0; PIECE_BYTES];
        let mut read = 0;
        for member in &self.manifest.members {
            let mut section = self.section(&member.name)?;
            let mut hash = Sha256::new();
            loop {
                let length = section.read(&mut piece).map_err(|source| self.failed(source))?;
                if length == 0 {
                    break;
                }
                hash.update(&piece[..length]);
                read += length as u64;
                progress(read);
            }
            if hex(hash) != member.sha256 {
                return Err(self.damaged(format!("`{}` does not match its checksum", member.name)));
            }
        }
        Ok(())
    }

    pub(crate) fn section(&self, name: &str) -> Result<Section<'_>, ArchiveError> {
        match self.places.get(name) {
            Some(place) => Ok(section(&self.file, *place)),
            None => Err(self.damaged(format!("it has no `{name}`"))),
        }
    }

    /// The members below a folder with their relative names and modes.
    pub(crate) fn below(&self, folder: &str) -> Vec<(&str, &str, u32)> {
        let names = self.manifest.members.iter().map(|member| member.name.as_str());
        let found = names.filter_map(|name| {
            let rest = name.strip_prefix(folder)?;
            Some((name, rest, self.places.get(name)?.mode))
        });
        found.collect()
    }

    pub(crate) fn damaged(&self, what: String) -> ArchiveError {
        ArchiveError::Damaged { path: self.path.clone(), what }
    }

    fn failed(&self, source: io::Error) -> ArchiveError {
        ArchiveError::Io { path: self.path.clone(), source }
    }
}

fn find_members(
    path: &Path,
    file: &File,
    bytes: u64,
) -> Result<HashMap<String, Place>, ArchiveError> {
    let damaged = |what: String| ArchiveError::Damaged { path: path.to_owned(), what };
    let mut places = HashMap::new();
    let mut archive = tar::Archive::new(file);
    let not_ours = |_| ArchiveError::NotABackup(path.to_owned());
    for entry in archive.entries_with_seek().map_err(not_ours)? {
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) if places.is_empty() => return Err(not_ours(error)),
            Err(error) => return Err(damaged(error.to_string())),
        };
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        if entry.header().entry_type() != EntryType::Regular || !is_within(&name) {
            return Err(damaged(format!("`{}` is not a member of a backup", name.escape_debug())));
        }
        let mode = entry.header().mode().unwrap_or(0o600);
        let place = Place { at: entry.raw_file_position(), size: entry.size(), mode };
        if place.at.checked_add(place.size).is_none_or(|end| end > bytes) {
            return Err(ArchiveError::Incomplete(path.to_owned()));
        }
        if places.insert(name.clone(), place).is_some() {
            return Err(damaged(format!("it has `{name}` twice")));
        }
    }
    Ok(places)
}

fn parse(path: &Path, text: &[u8]) -> Result<Manifest, ArchiveError> {
    let unreadable = |_| ArchiveError::Damaged {
        path: path.to_owned(),
        what: "its manifest cannot be parsed".to_owned(),
    };
    let value: Value = serde_json::from_slice(text).map_err(unreadable)?;
    let found = value["format"].as_u64().and_then(|format| u32::try_from(format).ok());
    match found {
        Some(found) if found > FORMAT => {
            Err(ArchiveError::NewerFormat { path: path.to_owned(), found })
        }
        _ => serde_json::from_value(value).map_err(unreadable),
    }
}

fn section(file: &File, place: Place) -> Section<'_> {
    Section { file, at: place.at, left: place.size }
}

impl Read for Section<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let wanted = out.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let length = self.file.read_at(&mut out[..wanted], self.at)?;
        if length == 0 && wanted > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += length as u64;
        self.left -= length as u64;
        Ok(length)
    }
}
