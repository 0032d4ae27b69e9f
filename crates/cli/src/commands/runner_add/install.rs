//! The virtual environment of a plugin: created once, in its folder.
//!
//! Invariant: nothing is installed outside the folder of the plugin.

use super::dialect::{self, Sdk};
use crate::failure::Failure;
use crate::output;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Lines of stderr to show.
const COMPLAINT_CHARS: usize = 600;
const LINES_SHOWN: usize = 6;

/// The interpreter of the plugin, with its requirements installed.
pub(super) fn environment(folder: &Path, python: &str, sdk: &Sdk) -> Result<PathBuf, Failure> {
    let venv = folder.join(".venv");
    let interpreter = venv.join("bin/python");
    if !interpreter.is_file() {
        output::note(&format!("creating a virtual environment in `{}`", venv.display()));
        run(python, [OsStr::new("-m"), OsStr::new("venv"), venv.as_os_str()])?;
    }
    let program = interpreter.to_string_lossy().into_owned();
    if let Sdk::Given(sdk) = sdk {
        output::note(&format!("installing the LangBot SDK `{sdk}`"));
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", sdk];
        run(&program, pip.map(OsStr::new))?;
    }
    let requirements = folder.join("requirements.txt");
    if requirements.is_file() {
        output::note("installing its requirements");
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
        run(&program, pip.map(OsStr::new).into_iter().chain([requirements.as_os_str()]))?;
    }
    let has_sdk = run(&program, ["-c", "import langbot_plugin"].map(OsStr::new)).is_ok();
    if !has_sdk {
        output::note("installing the LangBot SDK");
        let pip =
            ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", dialect::PUBLISHED];
        run(&program, pip.map(OsStr::new))?;
    }
    Ok(interpreter)
}

/// Unpacks a package with Python, which keeps all files within the folder.
pub(super) fn unpack(package: &Path, folder: &Path, python: &str) -> Result<(), Failure> {
    let words = [OsStr::new("-m"), OsStr::new("zipfile"), OsStr::new("-e")];
    run(python, words.into_iter().chain([package.as_os_str(), folder.as_os_str()])).map(drop)
}

/// Runs a program; if it fails, the error has the end of its stderr.
pub(super) fn run<'a>(
    program: &str,
    args: impl IntoIterator<Item = &'a OsStr>,
) -> Result<Output, Failure> {
    #[expect(clippy::disallowed_methods, reason = "an operator's command, run for the operator")]
    let output = Command::new(program).args(args).output();
    let output = output.map_err(|error| {
        Failure::from(anyhow::Error::new(error).context(format!("cannot start `{program}`")))
            .hint("choose another Python with `--python`")
    })?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said: String = complaint(said.trim()).chars().take(COMPLAINT_CHARS).collect();
    Err(Failure::new(format!("`{program}` failed: {}", output::plain(&said))))
}

/// The end of stderr: the last line of a traceback, else the last few lines.
fn complaint(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    let is_of_traceback = |line: &&&str| line.starts_with(' ') || line.starts_with("Traceback (");
    let before = lines.len().saturating_sub(1);
    let ends_with_traceback = lines[..before].iter().rev().take_while(is_of_traceback).count() > 1;
    let count = if ends_with_traceback { 1 } else { LINES_SHOWN };
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::complaint;

    #[test]
    fn a_traceback_is_cut_to_its_last_line_and_other_output_to_the_last_lines() {
        let traceback =
            "Traceback (most recent call last):\n  File \"x\", line 1\n    y()\nBadZipFile: no";
        assert_eq!(complaint(traceback), "BadZipFile: no");
        let pip = format!("{traceback}\n[end of output]\nerror: setup.py failed\nhint: See above.");
        assert_eq!(
            complaint(&pip),
            "  File \"x\", line 1\n    y()\nBadZipFile: no\n[end of output]\nerror: setup.py failed\nhint: See above."
        );
        assert_eq!(complaint("ERROR: one"), "ERROR: one");
        assert_eq!(complaint(""), "");
    }
}
