//! Finds what a command needs to run: its program, its interpreter and their folders.
//!
//! Invariant: what the operator wrote opens the program and what belongs to it. What the process could have written
//! itself, such as a link, a first line or `pyvenv.cfg` in its own folder, opens only an installation of an
//! interpreter that contains nothing protected.

use super::claim::{self, Resolved, Writable};
use super::installation;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Scripts and symbolic links to follow at most between a command and its interpreter.
const STEPS_MAX: usize = 16;
/// The first line of a script, and the file of a virtual environment.
const HEAD_BYTES: u64 = 512;
const VENV_BYTES_MAX: u64 = 64 * 1024;

pub(super) struct Program {
    /// Before symbolic links are resolved: this path identifies a virtual environment.
    pub(super) program: PathBuf,
    /// Folders that programs were found in, for the runner's own `PATH`.
    pub(super) search: BTreeSet<PathBuf>,
    /// What the runner must be able to read and execute: resolved, and outside the folders that it can write.
    pub(super) read: BTreeSet<PathBuf>,
    /// The paths as they are written that lead there.
    pub(super) named: BTreeSet<PathBuf>,
    /// What it names and does not get.
    pub(super) warnings: Vec<String>,
}

/// Where a command is looked up, and what is kept from it.
pub(super) struct Place<'a> {
    pub(super) dir: &'a Path,
    pub(super) path: &'a str,
    pub(super) writable: &'a Writable,
    pub(super) hidden: &'a [PathBuf],
}

/// A file on the way from a command to its interpreter.
struct Step {
    file: PathBuf,
    /// Whether the process chose it.
    is_claim: bool,
}

/// Looks `command` up in the folder (when it has a slash) or along the path.
pub(super) fn find(command: &str, place: &Place<'_>) -> Result<Program, String> {
    let program = locate(command, place)
        .ok_or_else(|| format!("`{command}` was not found: check `command`"))?;
    let mut found = Program {
        program: program.clone(),
        search: BTreeSet::new(),
        read: BTreeSet::new(),
        named: BTreeSet::new(),
        warnings: Vec::new(),
    };
    let mut next = Some(Step { file: program, is_claim: false });
    // Links on the way to an installation, which the process needs to get there.
    let mut claimed = Vec::new();
    for _ in 0..STEPS_MAX {
        let Some(step) = next.take() else { break };
        next = found.follow(&step, place, &mut claimed);
    }
    Ok(found)
}

impl Program {
    /// Opens what one file needs; returns where it leads.
    fn follow(
        &mut self,
        step: &Step,
        place: &Place<'_>,
        claimed: &mut Vec<PathBuf>,
    ) -> Option<Step> {
        let (folder, name) = (step.file.parent()?, step.file.file_name()?);
        let parent = claim::resolve(&claim::absolute(folder)).ok()?;
        let file = parent.path.join(name);
        let is_own = place.writable.contains(&file);
        let is_claim = step.is_claim || is_own || place.writable.claims(&parent);
        if is_own {
            self.search.insert(folder.to_owned());
            self.open_base(&parent.path, place, true);
        } else if is_claim {
            claimed.push(step.file.clone());
            if self.open_claimed(installation::root_of(&parent.path), place) {
                self.search.insert(folder.to_owned());
                self.named.extend(claimed.drain(..));
            }
        } else if is_executable(&step.file) {
            self.search.insert(folder.to_owned());
            self.named.insert(step.file.clone());
            self.read.extend(installation::parts_of(&file));
            self.open_base(&parent.path, place, false);
        }
        if let Ok(target) = std::fs::read_link(&file) {
            return Some(Step { file: parent.path.join(target), is_claim });
        }
        if !is_claim && is_executable(&file) {
            self.read.insert(file.clone());
        }
        let is_visible = is_own || self.read.iter().any(|open| file.starts_with(open));
        if is_claim && !is_visible && !super::system::contains(&file) {
            self.warnings.push(format!(
                "`{}` is named in the process's own folder and is no installation of an interpreter: it stays closed",
                file.display()
            ));
            return None;
        }
        let file = locate(&shebang(&file)?, place)?;
        Some(Step { file, is_claim })
    }

    /// A virtual environment names the installation it was made from.
    fn open_base(&mut self, folder: &Path, place: &Place<'_>, is_claim: bool) -> Option<()> {
        let venv = folder.parent()?;
        // Of a folder that is its own alone the process says what it likes; others it cannot have written.
        if is_claim != place.writable.contains(venv) {
            return None;
        }
        let config = greenroom_config::read_plain(&venv.join("pyvenv.cfg"), VENV_BYTES_MAX).ok()?;
        let home = String::from_utf8_lossy(&config).lines().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == "home").then(|| PathBuf::from(value.trim()))
        });
        let home = home.filter(|home| home.is_absolute())?;
        let Resolved { path: found, .. } = claim::resolve(&home).ok()?;
        let root = installation::root_of(&found)?;
        let is_open = match is_claim {
            true => self.open_claimed(Some(root), place),
            false => installation::is_one(root) && self.read.insert(root.to_owned()),
        };
        is_open.then(|| self.named.insert(home)).map(|_| ())
    }

    /// Opens an installation that the process chose, unless it is none or concerns something else.
    fn open_claimed(&mut self, root: Option<&Path>, place: &Place<'_>) -> bool {
        let Some(root) = root else { return false };
        let is_protected = |path: &PathBuf| path.starts_with(root) || root.starts_with(path);
        let is_open = !place.writable.contains(root)
            && !place.writable.is_within(root)
            && !place.hidden.iter().any(is_protected)
            && installation::is_one(root);
        if is_open {
            self.read.insert(root.to_owned());
        }
        is_open
    }
}

fn locate(command: &str, place: &Place<'_>) -> Option<PathBuf> {
    if command.contains('/') {
        return Some(place.dir.join(command)).filter(|file| file.is_file());
    }
    std::env::split_paths(place.path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(command))
        .find(|file| is_executable(file))
}

pub(super) fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// The interpreter in the first line of a script: `#!/path/to/program`, `#!/usr/bin/env NAME` or
/// `#!/usr/bin/env -S NAME`. Other options of `env` name nothing.
fn shebang(file: &Path) -> Option<String> {
    let head = greenroom_config::read_head(file, HEAD_BYTES).ok()?;
    named_in(&head)
}

fn named_in(head: &[u8]) -> Option<String> {
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_whitespace();
    let interpreter = words.next()?;
    if Path::new(interpreter).file_name()? != "env" {
        return interpreter.starts_with('/').then(|| interpreter.to_owned());
    }
    let name =
        words.next().and_then(|word| if word == "-S" { words.next() } else { Some(word) })?;
    (!name.starts_with('-') && !name.contains('=')).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::named_in;

    #[test]
    fn a_first_line_names_one_interpreter() {
        for (line, named) in [
            ("#!/usr/bin/python3 -u\n", Some("/usr/bin/python3")),
            ("#! /usr/bin/env python3\n", Some("python3")),
            ("#!/usr/bin/env -S python3 -u\n", Some("python3")),
            ("#!/usr/bin/env -S --unset /etc/shadow python3\n", None),
            ("#!/usr/bin/env -u /etc/shadow python3\n", None),
            ("#!/usr/bin/env -S A=/etc/shadow python3\n", None),
            ("#!relative/python\n", None),
            ("#!/usr/bin/env\n", None),
            ("print()\n", None),
        ] {
            assert_eq!(named_in(line.as_bytes()).as_deref(), named, "{line}");
        }
    }
}
