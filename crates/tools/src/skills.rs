//! Skills: folders with a `SKILL.md` that explains a task to a model.
//!
//! Invariant: cards are always loaded, bodies are read on demand; nothing outside a skill's folder is read. A
//! skill grants nothing.

use crate::{Risk, Source, Tool, ToolFailure, ToolOutput};
use greenroom_protocol::Object;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// The tool that reads bodies.
pub const TOOL_NAME: &str = "skill.read";
const FILE: &str = "SKILL.md";
/// Largest file of a skill.
const FILE_BYTES_MAX: u64 = 256 * 1024;
/// Longest description on a card.
const DESCRIPTION_CHARS_MAX: usize = 1024;
/// Files listed per skill.
const FILES_MAX: usize = 200;
/// Depth of folders below a skill.
const DEPTH_MAX: usize = 4;

/// The front matter of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Card {
    pub name: String,
    pub description: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Skill {
    card: Card,
    dir: PathBuf,
}

/// All skills.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Skills {
    by_name: BTreeMap<String, Skill>,
}

/// Why the skills cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum SkillError {
    #[error("cannot read `{}`", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("`{}`: {reason}", path.display())]
    Invalid { path: PathBuf, reason: &'static str },
    #[error("there are two skills `{name}`: in `{}` and in `{}`", first.display(), second.display())]
    Clash { name: String, first: PathBuf, second: PathBuf },
}

impl Skills {
    /// Reads the cards of all skills in these folders.
    pub fn load(dirs: &[PathBuf]) -> Result<Self, SkillError> {
        let mut skills = Self::default();
        for dir in dirs {
            let unreadable = |source| SkillError::Unreadable { path: dir.clone(), source };
            let entries = fs::read_dir(dir).map_err(unreadable)?;
            for entry in entries.flatten().filter(|entry| entry.path().join(FILE).is_file()) {
                skills.add(&entry.path())?;
            }
        }
        Ok(skills)
    }

    fn add(&mut self, dir: &Path) -> Result<(), SkillError> {
        let path = dir.join(FILE);
        let text = read_limited(&path)
            .map_err(|source| SkillError::Unreadable { path: path.clone(), source })?;
        let card = card(&text).map_err(|reason| SkillError::Invalid { path, reason })?;
        let dir = fs::canonicalize(dir)
            .map_err(|source| SkillError::Unreadable { path: dir.to_owned(), source })?;
        let name = card.name.clone();
        let second = dir.clone();
        match self.by_name.insert(name.clone(), Skill { card, dir }) {
            Some(first) => Err(SkillError::Clash { name, first: first.dir, second }),
            None => Ok(()),
        }
    }

    pub fn names(&self) -> Vec<String> {
        self.by_name.keys().cloned().collect()
    }

    /// The cards of these skills.
    pub fn cards(&self, names: &BTreeSet<String>) -> Vec<Card> {
        names.iter().filter_map(|name| Some(self.by_name.get(name)?.card.clone())).collect()
    }

    /// Carries out `skill.read` for a run that was granted these skills.
    pub fn read(&self, args: &Object, granted: &BTreeSet<String>) -> ToolOutput {
        match self.try_read(args, granted) {
            Ok(result) => ToolOutput::success(result),
            Err(failure) => ToolOutput::failure(failure),
        }
    }

    fn try_read(&self, args: &Object, granted: &BTreeSet<String>) -> Result<Value, ToolFailure> {
        let request: ReadArgs = serde_json::from_value(Value::Object(args.clone()))
            .map_err(|error| ToolFailure::new("INVALID_ARGUMENT", error.to_string()))?;
        let skill = self.by_name.get(&request.skill).filter(|_| granted.contains(&request.skill));
        let Some(skill) = skill else {
            let failure =
                ToolFailure::new("NOT_FOUND", format!("there is no skill `{}`", request.skill));
            return Err(failure.detail("skills", granted.iter().cloned().collect::<Vec<_>>()));
        };
        let path = request.path.unwrap_or_else(|| FILE.to_owned());
        let no_file = || {
            let message = format!("skill `{}` has no file `{path}`", request.skill);
            ToolFailure::new("NOT_FOUND", message).detail("files", skill.files())
        };
        let file = skill.file(&path).ok_or_else(no_file)?;
        let content = read_limited(&file).map_err(|error| {
            ToolFailure::new("NOT_READABLE", format!("`{path}` cannot be read: {error}"))
        })?;
        Ok(
            json!({"skill": request.skill, "path": path, "content": content, "files": skill.files()}),
        )
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArgs {
    skill: String,
    #[serde(default)]
    path: Option<String>,
}

impl Skill {
    /// A file within the skill's folder, links resolved.
    fn file(&self, path: &str) -> Option<PathBuf> {
        let plain = Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        let file = fs::canonicalize(self.dir.join(path)).ok().filter(|_| plain)?;
        (file.starts_with(&self.dir) && file.is_file()).then_some(file)
    }

    /// All files that can be read, sorted.
    fn files(&self) -> Vec<String> {
        let mut files = Vec::new();
        collect(&self.dir, &self.dir, DEPTH_MAX, &mut files);
        files.sort();
        files
    }
}

fn collect(root: &Path, dir: &Path, depth: usize, files: &mut Vec<String>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if files.len() >= FILES_MAX {
            return;
        }
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth > 1 {
            collect(root, &entry.path(), depth - 1, files);
        } else if kind.is_file()
            && let Ok(path) = entry.path().strip_prefix(root)
        {
            files.push(path.to_string_lossy().into_owned());
        }
    }
}

/// The tool for models.
pub fn tool() -> Tool {
    Tool {
        name: TOOL_NAME.to_owned(),
        description:
            "Read a skill: how something is done here. Read a skill before you use it; `path` \
                      names another file of the skill."
                .to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": {
                "skill": {"type": "string", "description": "Name of the skill"},
                "path": {"type": "string", "description": "A file of the skill, default SKILL.md"},
            },
            "required": ["skill"],
            "additionalProperties": false,
        }),
        output_schema: None,
        source: Source::Skills,
        risk: Risk::Read,
        timeout: Duration::from_secs(10),
    }
}

fn read_limited(path: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    fs::File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_string(&mut text)?;
    match text.len() as u64 <= FILE_BYTES_MAX {
        true => Ok(text),
        false => Err(std::io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes"))),
    }
}

/// `name` and `description` from the front matter between two lines of `---`.
fn card(text: &str) -> Result<Card, &'static str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines();
    if lines.next().map(str::trim_end) != Some("---") {
        return Err("a skill begins with `---`, `name:` and `description:`");
    }
    let mut fields: BTreeMap<&str, String> = BTreeMap::new();
    let mut open: Option<&str> = None;
    for line in lines {
        if line.trim_end() == "---" {
            return finish(&fields);
        }
        match line.split_once(':') {
            Some((key, value)) if !line.starts_with([' ', '\t', '#', '-']) => {
                let value = value.trim();
                let is_block = matches!(value, "|" | ">" | "|-" | ">-" | "");
                open = Some(key);
                let text = if is_block { String::new() } else { unquoted(value).to_owned() };
                fields.insert(key, text);
            }
            // A longer value continues on indented lines.
            _ => {
                if let Some(value) = open.and_then(|key| fields.get_mut(key)) {
                    if !value.is_empty() {
                        value.push(' ');
                    }
                    value.push_str(line.trim());
                }
            }
        }
    }
    Err("the front matter has no end: a line of `---`")
}

fn finish(fields: &BTreeMap<&str, String>) -> Result<Card, &'static str> {
    let name = fields.get("name").map(String::as_str).unwrap_or_default();
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 64 || !name.chars().all(is_name) {
        return Err("`name` has 1 to 64 of the characters A-Z a-z 0-9 . _ -");
    }
    let description = fields.get("description").map(|text| text.trim()).unwrap_or_default();
    if description.is_empty() {
        return Err("`description` is missing: it says when the skill is for");
    }
    let description = description.chars().take(DESCRIPTION_CHARS_MAX).collect();
    Ok(Card { name: name.to_owned(), description })
}

fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(inner) = value.strip_prefix(quote).and_then(|v| v.strip_suffix(quote)) {
            return inner;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn skills() -> (tempfile::TempDir, Skills) {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("skills/booking");
        fs::create_dir_all(dir.join("more")).unwrap();
        let text = "---\nname: booking\ndescription: >\n  Book a room,\n  or free one.\nlicense: MIT\n---\n# Booking\nUse calendar.create.\n";
        fs::write(dir.join("SKILL.md"), text).unwrap();
        fs::write(dir.join("more/rooms.md"), "Room 1").unwrap();
        fs::write(root.path().join("secret"), "secret").unwrap();
        symlink(root.path().join("secret"), dir.join("link.md")).unwrap();
        let skills = Skills::load(&[root.path().join("skills")]).unwrap();
        (root, skills)
    }

    fn args(value: Value) -> Object {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_card_describes_a_skill_and_its_body_is_read_on_demand() {
        let (_root, skills) = skills();
        let granted = BTreeSet::from(["booking".to_owned()]);
        let cards = skills.cards(&granted);
        let description = "Book a room, or free one.".to_owned();
        assert_eq!(cards, [Card { name: "booking".to_owned(), description }]);
        let read = skills.read(&args(json!({"skill": "booking"})), &granted);
        assert!(read.result["content"].as_str().unwrap().ends_with("Use calendar.create.\n"));
        assert_eq!(read.result["files"], json!(["SKILL.md", "more/rooms.md"]));
        let more =
            skills.read(&args(json!({"skill": "booking", "path": "more/rooms.md"})), &granted);
        assert_eq!(more.result["content"], "Room 1");
    }

    #[test]
    fn nothing_outside_a_skill_is_read() {
        let (_root, skills) = skills();
        let granted = BTreeSet::from(["booking".to_owned()]);
        for path in ["../../secret", "link.md", "/etc/passwd", "more/../../../secret", "."] {
            let read = skills.read(&args(json!({"skill": "booking", "path": path})), &granted);
            assert_eq!(read.error.unwrap().code, "NOT_FOUND", "{path}");
        }
        let read = skills.read(&args(json!({"skill": "booking"})), &BTreeSet::new());
        assert_eq!(read.error.unwrap().code, "NOT_FOUND");
    }

    #[test]
    fn a_skill_without_a_valid_card_is_refused() {
        for (text, reason) in [
            ("# no front matter", "begins with"),
            ("---\nname: x\n---\n", "description"),
            ("---\nname: a b\ndescription: d\n---\n", "name"),
            ("---\nname: x\ndescription: d\n", "no end"),
        ] {
            assert!(card(text).unwrap_err().contains(reason), "{text}");
        }
    }
}
