//! Programs on this machine: where they are, and what belongs to them.
//!
//! Invariant: nothing is started; a package of Node is found by its folder `node_modules`.

use greenroom_config::env;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const SEARCH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Bytes of a script that are read for its interpreter.
const HEAD_BYTES: u64 = 256;

/// A program and what it needs to run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Without any link.
    pub(crate) path: PathBuf,
    /// What it must be able to read.
    pub(crate) read: Vec<PathBuf>,
    /// Where it looks for programs.
    pub(crate) search: Vec<String>,
    pub(crate) changed_at: Option<SystemTime>,
}

/// A program by its path, or by its name in the search path.
pub(crate) fn find(program: &str, search: Option<&str>) -> Option<Found> {
    let inherited = env::get("PATH").unwrap_or_else(|| SEARCH.to_owned());
    let search = search.unwrap_or(&inherited);
    let path = locate(program, search)?;
    let mut found = Found {
        read: vec![package_of(&path)],
        search: folders([path.parent()]),
        changed_at: changed_at(&path),
        path,
    };
    if let Some(interpreter) = interpreter(&found.path) {
        // Node in a package beside it is newer than that of the system.
        let beside = outermost_modules(&found.path).map(|modules| modules.join("node/bin"));
        let first = beside.map(|folder| folder.to_string_lossy().into_owned()).unwrap_or_default();
        let interpreter = locate(&interpreter, &format!("{first}:{search}"))?;
        found.search.splice(0..0, folders([interpreter.parent()]));
        let belongs = interpreter.starts_with("/usr") || interpreter.starts_with(&found.read[0]);
        if !belongs {
            found.read.push(installation(&interpreter));
        }
    }
    found.read.extend(pyenv(&found.path));
    found.search.extend(SEARCH.split(':').map(str::to_owned));
    Some(found)
}

pub(crate) fn changed_at(file: &Path) -> Option<SystemTime> {
    std::fs::metadata(file).and_then(|file| file.modified()).ok()
}

fn folders<'p>(paths: impl IntoIterator<Item = Option<&'p Path>>) -> Vec<String> {
    paths.into_iter().flatten().map(|path| path.to_string_lossy().into_owned()).collect()
}

fn locate(program: &str, search: &str) -> Option<PathBuf> {
    let candidates: Vec<PathBuf> = match program.contains('/') {
        true => vec![PathBuf::from(program)],
        false => {
            let folders = search.split(':').filter(|folder| !folder.is_empty());
            folders.map(|folder| Path::new(folder).join(program)).collect()
        }
    };
    let found = candidates.into_iter().find(|path| path.is_file())?;
    std::fs::canonicalize(found).ok()
}

/// The package that a program belongs to: all packages beside it, or the program alone.
pub(crate) fn package_of(program: &Path) -> PathBuf {
    outermost_modules(program).unwrap_or_else(|| program.to_owned())
}

fn outermost_modules(program: &Path) -> Option<PathBuf> {
    let mut folders: Vec<&Path> = program.ancestors().collect();
    folders.reverse();
    folders.into_iter().find(|folder| folder.ends_with("node_modules")).map(Path::to_owned)
}

/// The installation behind a shim of pyenv.
fn pyenv(program: &Path) -> Option<PathBuf> {
    let root = program.parent().filter(|folder| folder.ends_with("shims"))?.parent()?;
    root.join("libexec/pyenv").is_file().then(|| root.to_owned())
}

/// The folder around `bin`, as of a Node that was unpacked somewhere.
fn installation(interpreter: &Path) -> PathBuf {
    let bin = interpreter.parent().filter(|folder| folder.ends_with("bin"));
    let root = bin.and_then(Path::parent).filter(|root| root.join("lib/node_modules").is_dir());
    root.unwrap_or(interpreter).to_owned()
}

/// The name in the first line of a script.
fn interpreter(program: &Path) -> Option<String> {
    use std::io::Read;
    let mut head = Vec::new();
    std::fs::File::open(program).ok()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    let head = String::from_utf8_lossy(&head);
    let mut words = head.strip_prefix("#!")?.lines().next()?.split_whitespace();
    let first = words.next()?;
    let is_env = first.ends_with("/env");
    let mut rest = words.filter(|word| !word.starts_with('-'));
    Some(if is_env { rest.next()?.to_owned() } else { first.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_program_of_a_package_brings_the_packages_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let script = root.join("node_modules/@a/b/dist/index.js");
        for (file, text) in [
            (&script, "#!/usr/bin/env -S node --x\n"),
            (&root.join("node_modules/node/bin/node"), ""),
            (&root.join("alone"), "\u{7f}ELF"),
        ] {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        std::fs::create_dir_all(root.join("node_modules/.bin")).unwrap();
        symlink(&script, root.join("node_modules/.bin/b")).unwrap();
        let search = root.join("node_modules/.bin").to_string_lossy().into_owned();
        let found = find("b", Some(&search)).unwrap();
        assert_eq!((&found.path, &found.read), (&script, &vec![root.join("node_modules")]));
        assert_eq!(found.search[0], root.join("node_modules/node/bin").to_string_lossy());
        let alone = find(&root.join("alone").to_string_lossy(), None).unwrap();
        assert_eq!(alone.read, [root.join("alone")]);
        assert_eq!(find("no-such-program", Some(&search)), None);
    }
}
