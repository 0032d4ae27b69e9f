//! Finds what a command needs to run: its program, its interpreter and their folders.
//!
//! Invariant: only folders that look like the installation of an interpreter are opened as a whole; otherwise
//! only the program itself.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Scripts and symbolic links to follow at most between a command and its interpreter.
const STEPS_MAX: usize = 16;

pub(super) struct Program {
    /// Before symbolic links are resolved: this path identifies a virtual environment.
    pub(super) program: PathBuf,
    /// Folders that programs were found in, for the runner's own `PATH`.
    pub(super) search: BTreeSet<PathBuf>,
    /// What the runner must be able to read and execute.
    pub(super) read: BTreeSet<PathBuf>,
}

/// Looks `command` up in `dir` (when it has a slash) or along `path`.
pub(super) fn find(command: &str, dir: &Path, path: &str) -> Result<Program, String> {
    let program = locate(command, dir, path)
        .ok_or_else(|| format!("`{command}` was not found: check `command`"))?;
    let mut found =
        Program { program: program.clone(), search: BTreeSet::new(), read: BTreeSet::new() };
    let mut next = Some(program);
    for _ in 0..STEPS_MAX {
        let Some(file) = next.take() else { break };
        found.search.extend(file.parent().map(Path::to_owned));
        found.add(&file);
        next = match std::fs::read_link(&file) {
            Ok(target) => file.parent().map(|parent| parent.join(target)),
            Err(_) => shebang(&file).and_then(|interpreter| locate(&interpreter, dir, path)),
        };
    }
    Ok(found)
}

impl Program {
    fn add(&mut self, file: &Path) {
        // A link or a first line in the process's own folder may name any file: only programs are opened.
        if !is_executable(file) {
            return;
        }
        self.read.insert(file.to_owned());
        let Some(parent) = file.parent() else { return };
        let Some(prefix) = parent.parent() else { return };
        let folder = parent.file_name().unwrap_or_default();
        if folder == "shims" || (folder == "bin" && is_installation(prefix)) {
            self.read.insert(prefix.to_owned());
        }
        // A virtual environment names the installation it was made from.
        let config = std::fs::read_to_string(prefix.join("pyvenv.cfg")).unwrap_or_default();
        let home = config.lines().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == "home").then(|| PathBuf::from(value.trim()))
        });
        if let Some(base) = home.as_deref().and_then(Path::parent)
            && is_installation(base)
        {
            self.read.insert(base.to_owned());
        }
    }
}

fn is_installation(prefix: &Path) -> bool {
    let has_python = || {
        let libraries = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
        libraries.into_iter().any(|entry| entry.file_name().to_string_lossy().starts_with("python"))
    };
    prefix.parent().is_some()
        && (["pyvenv.cfg", "lib/node_modules", "conda-meta"]
            .iter()
            .any(|mark| prefix.join(mark).exists())
            || has_python())
}

fn locate(command: &str, dir: &Path, path: &str) -> Option<PathBuf> {
    if command.contains('/') {
        return Some(dir.join(command)).filter(|file| file.is_file());
    }
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(command))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

/// The interpreter in the first line of a script, or the program behind `env`.
fn shebang(file: &Path) -> Option<String> {
    use std::io::Read;
    let mut head = Vec::new();
    std::fs::File::open(file).ok()?.take(512).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_whitespace();
    let interpreter = words.next()?;
    if Path::new(interpreter).file_name()? != "env" {
        return Some(interpreter.to_owned());
    }
    words.find(|word| !word.starts_with('-') && !word.contains('=')).map(str::to_owned)
}
