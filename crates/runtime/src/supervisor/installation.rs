//! Recognises the installation of an interpreter: the folder that has `bin` and the standard library.
//!
//! Invariant: neither the root of the file system, nor a home, nor a folder that only has programs in it, such as
//! `~/.local`, is an installation.

use super::interpreter::is_executable;
use std::path::{Path, PathBuf};

/// Folders that contain much more than one program.
const BROAD: [&str; 11] =
    ["/", "/home", "/root", "/tmp", "/var", "/var/tmp", "/srv", "/opt", "/mnt", "/media", "/run"];
/// Users with a home of their own; those below belong to the system.
const FIRST_USER: u32 = 1000;

/// The folder around `bin`, or around the shims of pyenv.
pub(super) fn root_of(folder: &Path) -> Option<&Path> {
    let is_known = ["bin", "shims"].iter().any(|name| folder.file_name() == Some(name.as_ref()));
    folder.parent().filter(|_| is_known)
}

/// Whether a resolved folder is a real installation, and no more than that.
pub(super) fn is_one(root: &Path) -> bool {
    !is_broad(root) && (has_python(root) || has_node(root) || is_pyenv(root))
}

/// What belongs to a resolved program that the operator named.
pub(super) fn parts_of(program: &Path) -> Vec<PathBuf> {
    let mut parts: Vec<PathBuf> = package_of(program).into_iter().collect();
    let folder = program.parent().unwrap_or(Path::new("/"));
    let Some(root) = root_of(folder).filter(|root| !is_broad(root)) else { return parts };
    let is_environment = ["pyvenv.cfg", "conda-meta"].iter().any(|mark| root.join(mark).exists());
    if is_one(root) || is_environment || folder.ends_with("shims") {
        parts.push(root.to_owned());
    } else {
        parts.extend(libraries(root, &["python", "pypy"]));
        parts.extend(Some(root.join("lib/node_modules")).filter(|path| path.is_dir()));
    }
    parts
}

/// Whether a folder contains much more than a program: the home of a user, or what is around homes.
pub(super) fn is_broad(folder: &Path) -> bool {
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let own = rustix::process::getuid().as_raw();
    let homes = users.lines().filter_map(|line| {
        let mut fields = line.split(':').skip(2);
        let user: u32 = fields.next()?.parse().ok()?;
        let home = fields.nth(2)?;
        let is_person = user == own || user >= FIRST_USER;
        (is_person && home.len() > 1).then(|| PathBuf::from(home))
    });
    folder.parent() == Some(Path::new("/home"))
        || BROAD.iter().any(|broad| folder == Path::new(broad))
        || homes.into_iter().any(|home| home.starts_with(folder))
}

/// The folder of a package in `/opt`, whose parts find each other there.
fn package_of(program: &Path) -> Option<PathBuf> {
    let name = program.strip_prefix("/opt").ok()?.components().next()?;
    Some(Path::new("/opt").join(name)).filter(|package| package.is_dir())
}

fn libraries(root: &Path, names: &[&str]) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root.join("lib")).into_iter().flatten().flatten();
    let is_named = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        names.iter().any(|wanted| name.starts_with(wanted)) && path.is_dir()
    };
    entries.map(|entry| entry.path()).filter(is_named).collect()
}

/// `lib/python3.12/os.py` beside `bin/python3.12`.
fn has_python(root: &Path) -> bool {
    libraries(root, &["python", "pypy"]).iter().any(|library| {
        let name = library.file_name().unwrap_or_default();
        library.join("os.py").is_file() && is_executable(&root.join("bin").join(name))
    })
}

fn has_node(root: &Path) -> bool {
    let marks = ["include/node/node.h", "lib/node_modules/npm/package.json"];
    is_executable(&root.join("bin/node")) && marks.iter().any(|mark| root.join(mark).is_file())
}

fn is_pyenv(root: &Path) -> bool {
    root.join("libexec/pyenv").is_file()
        && ["shims", "versions"].iter().all(|name| root.join(name).is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_a_folder_with_an_interpreter_and_its_library_is_an_installation() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        };
        for file in [
            "python/bin/python3.12",
            "python/lib/python3.12/os.py",
            "node/bin/node",
            "node/include/node/node.h",
            "local/bin/tool",
            "local/lib/python3.12/site-packages/x.py",
            "local/lib/node_modules/x/x.js",
            "venv/bin/python3.12",
            "venv/pyvenv.cfg",
            "venv/lib/python3.12/site-packages/x.py",
            "other/bin/python3.11",
            "other/lib/python3.12/os.py",
        ] {
            make(file);
        }
        let found = |name: &str| is_one(&folder.path().join(name));
        assert!(found("python") && found("node"));
        assert!(!found("local") && !found("venv") && !found("other"));
        for broad in ["/", "/home", "/root", "/opt", "/home/ann"] {
            assert!(is_broad(Path::new(broad)), "{broad}");
        }
        // A program that the operator names brings its libraries, not what else is there.
        let parts = parts_of(&folder.path().join("local/bin/tool"));
        let expected = ["local/lib/python3.12", "local/lib/node_modules"];
        assert_eq!(parts, expected.map(|name| folder.path().join(name)));
    }
}
