//! Which file a path names, and which start of the machine this is.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// A file, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Identity {
    pub(super) device: u64,
    pub(super) inode: u64,
    /// When it was created, in nanoseconds; 0 if the file system does not say.
    pub(super) created_ns: u64,
}

impl Identity {
    pub(super) fn of(path: &Path) -> std::io::Result<Self> {
        Ok(Self::from(&std::fs::metadata(path)?))
    }

    /// Whether both are one file. Numbers of devices may change when the machine starts.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let created = self.created_ns != 0 && self.created_ns == other.created_ns;
        self.inode == other.inode && (self.device == other.device || created)
    }
}

impl From<&Metadata> for Identity {
    fn from(file: &Metadata) -> Self {
        let created = file.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let created_ns = created.and_then(|since| u64::try_from(since.as_nanos()).ok());
        Self { device: file.dev(), inode: file.ino(), created_ns: created_ns.unwrap_or_default() }
    }
}

/// Identifies this start of the machine; None where the system does not say.
pub(super) fn boot() -> Option<[u8; 16]> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
    Some(u128::from_str_radix(&digits, 16).ok()?.to_be_bytes())
}
