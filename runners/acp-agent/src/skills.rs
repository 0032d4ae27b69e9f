//! Granted skills in the home of the harness, where it looks for skills.
//!
//! Invariant: a folder has the mark of the host or is not touched; what is not granted any more is removed; a skill is
//! there as a whole or not at all.

use crate::beneath::{Folder, Kind};
use crate::sha256_hex;
use crate::workspace::Place;
use futures_util::{StreamExt, stream};
use greenroom_sdk::{Object, RunCtx, Value, json};
use std::collections::BTreeMap;
use std::io;

/// The tool that reads a skill.
const READ: &str = "skill.read";
const CARD: &str = "SKILL.md";
/// The mark of a folder that the host wrote; it also hides the folder from version control.
const MARK: &str = ".gitignore";
const MARK_TEXT: &str = "# Written by Greenroom, and replaced before each run: ";
const MARK_BYTES_MAX: u64 = 512;
/// Files that are read at the same time.
const READS: usize = 8;
/// Most files of one skill, and most skills.
const FILES_MAX: usize = 200;
const SKILLS_MAX: usize = 100;

/// A granted skill with its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skill {
    pub(crate) name: String,
    files: BTreeMap<String, String>,
}

impl Skill {
    /// Changes with its content.
    fn hash(&self) -> String {
        sha256_hex(json!([self.name, self.files]).to_string().as_bytes())
    }
}

/// The granted skills of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Skills(pub(crate) Vec<Skill>);

impl Skills {
    /// Reads them through the host, as the run may.
    pub(crate) async fn read(ctx: &RunCtx) -> Self {
        let cards = ctx.resources.extra.get("skills").and_then(Value::as_array);
        let names = cards.into_iter().flatten().filter_map(|card| card["name"].as_str());
        let mut skills = Vec::new();
        for name in names.filter(|name| is_folder_name(name)).take(SKILLS_MAX) {
            match read_skill(ctx, name).await {
                Ok(skill) => skills.push(skill),
                Err(why) => eprintln!("cannot read the skill `{name}`: {why}"),
            }
        }
        Self(skills)
    }

    /// Changes with any of them: a harness that is open has to read them again.
    pub(crate) fn hash(&self) -> String {
        self.0.iter().map(Skill::hash).collect::<Vec<_>>().join(" ")
    }

    /// Makes the folder of the harness hold these skills, and no others of the host.
    pub(crate) fn write(&self, place: &Place, folder: Option<&str>) -> io::Result<()> {
        let Some(path) = folder else { return Ok(()) };
        let home = place.home_folder()?;
        let folder = match (home.open(path), self.0.is_empty()) {
            (Ok(folder), _) => folder,
            (Err(_), true) => return Ok(()),
            (Err(_), false) => home.make(path)?,
        };
        for (name, kind) in folder.entries()? {
            let is_granted = self.0.iter().any(|skill| skill.name == name);
            if kind == Kind::Folder && !is_granted && mark_of(&folder, &name).is_some() {
                folder.remove(&name)?;
            }
        }
        for skill in &self.0 {
            let hash = skill.hash();
            let there = folder.open(&skill.name).is_ok();
            match mark_of(&folder, &skill.name) {
                Some(mark) if mark == hash => continue,
                None if there => {
                    eprintln!("`{path}/{}` is not of the host: the skill is left out", skill.name);
                    continue;
                }
                _ => write_skill(&folder, skill, &hash)?,
            }
        }
        Ok(())
    }
}

/// Removes what the host wrote.
pub(crate) fn remove(place: &Place, folder: Option<&str>) {
    if let Err(error) = Skills::default().write(place, folder) {
        eprintln!("cannot remove the skills of the session: {error}");
    }
}

fn write_skill(folder: &Folder, skill: &Skill, hash: &str) -> io::Result<()> {
    let part = format!(".{}.part", skill.name);
    folder.remove(&part)?;
    let new = folder.make(&part)?;
    new.write(MARK, format!("{MARK_TEXT}{hash}\n*\n").as_bytes())?;
    for (path, text) in &skill.files {
        new.write(path, text.as_bytes())?;
    }
    folder.replace(&part, &skill.name)
}

/// The hash in the mark of a folder of the host.
fn mark_of(folder: &Folder, name: &str) -> Option<String> {
    let text = folder.open(name).ok()?.read(MARK, MARK_BYTES_MAX).ok()?;
    let text = String::from_utf8(text).ok()?;
    text.lines().next()?.strip_prefix(MARK_TEXT).map(str::to_owned)
}

async fn read_skill(ctx: &RunCtx, name: &str) -> Result<Skill, String> {
    let (card, others) = read_file(ctx, name, None).await?;
    let others = others.into_iter().filter(|path| path != CARD && path != MARK).take(FILES_MAX);
    let read = stream::iter(others).map(async |path| {
        let read = read_file(ctx, name, Some(&path)).await;
        (path, read)
    });
    let mut files = BTreeMap::from([(CARD.to_owned(), card)]);
    let mut read = std::pin::pin!(read.buffered(READS));
    while let Some((path, read)) = read.next().await {
        match read {
            Ok((text, _)) => drop(files.insert(path, text)),
            Err(why) => eprintln!("the skill `{name}` is without `{path}`: {why}"),
        }
    }
    Ok(Skill { name: name.to_owned(), files })
}

/// A file of a skill, and the names of all.
async fn read_file(
    ctx: &RunCtx,
    skill: &str,
    path: Option<&str>,
) -> Result<(String, Vec<String>), String> {
    let mut args = Object::from_iter([("skill".to_owned(), skill.into())]);
    args.extend(path.map(|path| ("path".to_owned(), path.into())));
    let answer = ctx.tools().call(READ, args).await.map_err(|error| error.message)?;
    if let Some(error) = answer.error.filter(|error| !error.is_null()) {
        return Err(error["message"].as_str().unwrap_or("no reason given").to_owned());
    }
    let content = answer.result["content"].as_str().ok_or("it has no text")?.to_owned();
    let files = answer.result["files"].as_array().into_iter().flatten();
    Ok((content, files.filter_map(|file| file.as_str().map(str::to_owned)).collect()))
}

/// The name of a skill is the name of its folder.
fn is_folder_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::workspace::Owner;

    fn skill(name: &str, text: &str) -> Skill {
        let files = [(CARD, text), ("more/rooms.md", "rooms")];
        let files = files.map(|(path, text)| (path.to_owned(), text.to_owned()));
        Skill { name: name.to_owned(), files: BTreeMap::from(files) }
    }

    #[tokio::test]
    async fn skills_are_there_while_they_are_granted_and_those_of_others_stay() {
        let own = tempfile::tempdir().unwrap();
        let owner = Owner {
            agent: "a".to_owned(),
            workspace_id: None,
            conversation_id: "c".to_owned(),
            bot_id: None,
            thread_id: None,
        };
        let (place, _lease) = Place::prepare(own.path(), &owner, &Config::default()).await.unwrap();
        let folder = place.home.join(".claude/skills");
        let read = |path: &str| std::fs::read_to_string(folder.join(path)).unwrap_or_default();
        std::fs::create_dir_all(folder.join("mine")).unwrap();
        std::fs::write(folder.join("mine/SKILL.md"), "mine").unwrap();
        let write = |skills: &[Skill]| {
            Skills(skills.to_vec()).write(&place, Some(".claude/skills")).unwrap();
        };
        write(&[skill("booking", "one"), skill("mine", "not mine")]);
        assert_eq!(
            (read("booking/SKILL.md"), read("booking/more/rooms.md")),
            ("one".to_owned(), "rooms".to_owned())
        );
        assert_eq!(read("mine/SKILL.md"), "mine");
        assert!(read("booking/.gitignore").ends_with("\n*\n"));
        write(&[skill("booking", "two"), skill("weather", "sun")]);
        assert_eq!(
            (read("booking/SKILL.md"), read("weather/SKILL.md")),
            ("two".to_owned(), "sun".to_owned())
        );
        // A harness that puts a link where the skill is does not lead the host elsewhere.
        let target = own.path().join("target");
        std::fs::create_dir_all(&target).unwrap();
        std::fs::remove_dir_all(folder.join("weather")).unwrap();
        std::os::unix::fs::symlink(&target, folder.join("weather")).unwrap();
        write(&[skill("weather", "rain")]);
        assert!(!folder.join("booking").exists());
        assert!(std::fs::read_dir(&target).unwrap().next().is_none());
        write(&[]);
        let left = std::fs::read_dir(&folder).unwrap().map(|it| it.unwrap().file_name());
        assert_eq!(left.collect::<Vec<_>>(), ["mine"]);
    }

    #[test]
    fn names_that_lead_elsewhere_are_no_folders() {
        for name in ["", ".", "..", ".hidden", "a/b", "a b"] {
            assert!(!is_folder_name(name), "{name}");
        }
        assert!(is_folder_name("booking-2.0"));
    }
}
