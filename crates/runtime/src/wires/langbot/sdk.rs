//! Finds the version of LangBot's SDK that an interpreter has.
//!
//! Invariant: no process is started for it.

use std::path::Path;

/// The version that `INTERPRETER -m langbot_plugin.cli` would run, from the folder name of its package.
pub(super) fn version(interpreter: &Path) -> Option<String> {
    let prefix = interpreter.parent()?.parent()?;
    let libraries = entries(&prefix.join("lib")).filter(|name| name.starts_with("python"));
    let mut packages = libraries
        .flat_map(|python| entries(&prefix.join("lib").join(python).join("site-packages")));
    packages.find_map(|name| {
        let version = name.strip_prefix("langbot_plugin-")?.strip_suffix(".dist-info")?;
        Some(version.to_owned())
    })
}

fn entries(folder: &Path) -> impl Iterator<Item = String> + use<> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_read_from_the_folder_of_the_package() {
        let venv = tempfile::tempdir().unwrap();
        let packages = venv.path().join("lib/python3.11/site-packages");
        std::fs::create_dir_all(packages.join("langbot_plugin-0.7.18.dist-info")).unwrap();
        assert_eq!(version(&venv.path().join("bin/python")).as_deref(), Some("0.7.18"));
        assert_eq!(version(Path::new("python3")), None);
    }
}
