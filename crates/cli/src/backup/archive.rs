//! The archive file.

mod reader;
mod writer;

pub(crate) use reader::{Archive, Section};
pub(crate) use writer::{ArchiveWriter, part_of};

use sha2::Sha256;
use std::io;
use std::path::PathBuf;

const MANIFEST: &str = "manifest.json";
const MANIFEST_SUM: &str = "manifest.sha256";

#[derive(Debug, thiserror::Error)]
pub(crate) enum ArchiveError {
    #[error("`{}` is not a backup", .0.display())]
    NotABackup(PathBuf),
    #[error("`{}` is incomplete: its end is missing", .0.display())]
    Incomplete(PathBuf),
    #[error("`{}` is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error("`{}` has format {found}, this version reads up to {}", path.display(), super::manifest::FORMAT)]
    NewerFormat { path: PathBuf, found: u32 },
    #[error("cannot read `{}`", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Whether a name stays within the folder that members are unpacked to.
fn is_within(name: &str) -> bool {
    let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    !name.contains('\0') && name.split('/').all(is_plain)
}

fn hex(hash: Sha256) -> String {
    use sha2::Digest;
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_leave_their_folder() {
        for good in ["manifest.json", "data/runners/echo/a b", "config/..hidden", "a/..."] {
            assert!(is_within(good), "{good}");
        }
        for bad in ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/.", "a\0b", "a/"] {
            assert!(!is_within(bad), "{bad}");
        }
    }
}
