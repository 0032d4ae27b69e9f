//! The files of a LangBot plugin, which is restarted when one of them changes.
//!
//! Invariant: only files that LangBot reads as a plugin count, not data that the plugin writes nor caches of Python.

use std::path::Path;
use std::time::SystemTime;

const DEPTH_MAX: usize = 8;
const ENTRIES_MAX: usize = 5_000;
/// Folders without code of the plugin, besides hidden ones.
const FOREIGN: [&str; 4] = ["__pycache__", "venv", "node_modules", "data"];

/// When the newest of its files changed: Python files, the manifest and the component descriptions.
pub(crate) fn changed_at(folder: &Path) -> Option<SystemTime> {
    let mut entries_left = ENTRIES_MAX;
    let manifest = std::fs::metadata(folder.join("manifest.yaml")).and_then(|file| file.modified());
    newest(folder, false, DEPTH_MAX, &mut entries_left).max(manifest.ok())
}

fn newest(
    folder: &Path,
    describes: bool,
    depth_left: usize,
    entries_left: &mut usize,
) -> Option<SystemTime> {
    let mut newest_at = None;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if *entries_left == 0 {
            break;
        }
        *entries_left -= 1;
        let (name, path) = (entry.file_name(), entry.path());
        let name = name.to_string_lossy();
        // Does not follow links, which may form cycles.
        let Ok(kind) = entry.file_type() else { continue };
        let at = if kind.is_dir() {
            let is_own = !name.starts_with('.') && !FOREIGN.contains(&name.as_ref());
            let describes = describes || name == "components";
            (is_own && depth_left > 0)
                .then(|| newest(&path, describes, depth_left - 1, entries_left))
                .flatten()
        } else {
            let counts = match path.extension().and_then(|extension| extension.to_str()) {
                Some("py") => true,
                Some("yaml" | "yml") => describes,
                _ => false,
            };
            counts.then(|| entry.metadata().and_then(|file| file.modified()).ok()).flatten()
        };
        newest_at = newest_at.max(at);
    }
    newest_at
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Writes a file with this modification time.
    fn save(folder: &Path, name: &str, second: u64) {
        let file = folder.join(name);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "").unwrap();
        let file = std::fs::File::options().write(true).open(&file).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(second)).unwrap();
    }

    fn seconds(folder: &Path) -> u64 {
        let at = changed_at(folder).unwrap();
        at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs()
    }

    #[test]
    fn code_and_descriptions_count_and_what_a_plugin_writes_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert_eq!(changed_at(folder), None);
        save(folder, "main.py", 10);
        assert_eq!(seconds(folder), 10);
        save(folder, "manifest.yaml", 20);
        assert_eq!(seconds(folder), 20);
        save(folder, "components/runner/default.yaml", 30);
        assert_eq!(seconds(folder), 30);
        save(folder, "helpers/deep/er.py", 40);
        assert_eq!(seconds(folder), 40);
        for written in [
            "settings.yaml",
            "log.txt",
            "data/made.py",
            ".venv/lib/site.py",
            "venv/lib/site.py",
            "components/__pycache__/default.py",
            "node_modules/a.py",
        ] {
            save(folder, written, 99);
            assert_eq!(seconds(folder), 40, "{written}");
        }
    }

    #[test]
    fn links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        save(folder, "main.py", 10);
        std::os::unix::fs::symlink(folder, folder.join("circle")).unwrap();
        assert_eq!(seconds(folder), 10);
    }
}
