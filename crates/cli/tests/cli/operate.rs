//! The guide for operators and what is in `packaging`: commands that exist, keys that are accepted, metrics that are
//! served.

use crate::serving::{Serving, serve, until_logged};
use crate::{greenroom, told};
use greenroom_testkit::http::{self, Request};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;

fn file(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    std::fs::read_to_string(root.join(path)).unwrap()
}

fn guide() -> String {
    file("docs/guides/operate.md")
}

/// The fenced blocks of one language.
fn blocks<'a>(guide: &'a str, language: &str) -> Vec<&'a str> {
    let opening = format!("```{language}\n");
    let rest = guide.split(opening.as_str()).skip(1);
    rest.map(|block| block.split("```").next().unwrap()).collect()
}

/// What stands between single backticks.
fn spans(guide: &str) -> Vec<&str> {
    let lines = guide.lines().filter(|line| !line.starts_with("```"));
    lines.flat_map(|line| line.split('`').skip(1).step_by(2)).collect()
}

/// The arguments of this program in a line of a shell, if it is called there: by its name, by its path, or as `gr`.
fn arguments(line: &str) -> Option<Vec<String>> {
    let line = line.split(" # ").next().unwrap_or(line);
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_program = |(at, word): &(usize, &&str)| {
        let is_named = word.rsplit('/').next() == Some("greenroom") || **word == "gr";
        let is_command = |next: &&str| {
            next.chars().all(|c| c.is_ascii_lowercase() || c == '-')
                && next.starts_with(|c: char| c.is_ascii_lowercase())
        };
        let next = words.get(at + 1).filter(|next| is_command(next));
        is_named && next.is_some_and(|next| *next != "greenroom")
    };
    let (at, _) = words.iter().enumerate().find(is_program)?;
    let until = words[at..].iter().position(|word| ["&&", "||", ">", "|"].contains(word));
    let end = until.map_or(words.len(), |until| at + until);
    Some(words[at + 1..end].iter().map(|word| (*word).to_owned()).collect())
}

/// Every call of this program in the guide and in the units.
fn calls() -> Vec<Vec<String>> {
    let guide = guide();
    let mut lines: Vec<String> = Vec::new();
    for block in blocks(&guide, "sh") {
        lines.extend(block.replace("\\\n", " ").lines().map(str::to_owned));
    }
    lines.extend(spans(&guide).into_iter().map(str::to_owned));
    for unit in ["packaging/greenroom.service", "packaging/greenroom-backup.service"] {
        let unit = file(unit);
        let starts = unit.lines().filter_map(|line| line.strip_prefix("ExecStart="));
        lines.extend(starts.map(str::to_owned));
    }
    lines.iter().flat_map(|line| line.split(" && ").filter_map(arguments)).collect()
}

/// The lists of words in the `Dockerfile` that are commands of the program.
fn calls_of_the_image() -> Vec<Vec<String>> {
    let text = file("Dockerfile");
    let lists = text.lines().filter_map(|line| {
        let list: Value = serde_json::from_str(&line[line.find('[')?..]).ok()?;
        let words = list.as_array()?.iter().map(|word| word.as_str().unwrap().to_owned());
        Some(words.skip_while(|word| word == "greenroom").collect::<Vec<_>>())
    });
    lists.filter(|words| !words.is_empty()).collect()
}

/// What of these arguments the help of the program does not know.
fn unknown_in(arguments: &[String]) -> Vec<String> {
    let help_of = |words: &[&str]| {
        let all: Vec<&str> = words.iter().copied().chain(["--help"]).collect();
        greenroom(Path::new("."), &all).output().unwrap()
    };
    let text = |output: &std::process::Output| String::from_utf8(output.stdout.clone()).unwrap();
    let mut words = vec![arguments[0].as_str()];
    let mut help = help_of(&words);
    if text(&help).contains("\nCommands:\n")
        && let Some(second) = arguments.get(1).filter(|second| !second.starts_with('-'))
    {
        words.push(second);
        help = help_of(&words);
    }
    if !help.status.success() {
        return vec![words.join(" ")];
    }
    let help = text(&help);
    let options = arguments.iter().filter(|word| word.starts_with("--"));
    let options = options.map(|word| word.split('=').next().unwrap());
    let known: BTreeSet<&str> = help.split(|c: char| c.is_whitespace() || c == ',').collect();
    let unknown = options.filter(|option| !known.contains(option));
    unknown.map(|option| format!("{} {option}", words.join(" "))).collect()
}

#[test]
fn every_command_of_the_guide_the_units_and_the_image_exists() {
    let (calls, of_image) = (calls(), calls_of_the_image());
    assert!(calls.len() > 20 && of_image.len() == 2, "{calls:?} {of_image:?}");
    for expected in [["backup", "create"], ["deliveries", "list"], ["move", "--undo"]] {
        assert!(
            calls.iter().any(|call| call.starts_with(&expected.map(str::to_owned))),
            "{calls:?}"
        );
    }
    let unknown: BTreeSet<String> =
        calls.iter().chain(&of_image).flat_map(|call| unknown_in(call)).collect();
    assert_eq!(unknown, BTreeSet::new());
}

#[test]
fn a_command_or_an_option_that_does_not_exist_is_noticed() {
    let call = |line: &str| unknown_in(&arguments(line).unwrap());
    assert_eq!(call("gr doctor --json"), [""; 0]);
    assert_eq!(call("docker exec greenroom greenroom doctr"), ["doctr"]);
    assert_eq!(call("/usr/local/bin/greenroom backup creat --to x"), ["backup creat"]);
    assert_eq!(call("gr backup create --into x && true"), ["backup create --into"]);
    assert_eq!(arguments("systemctl restart greenroom"), None);
    assert_eq!(arguments("install -d -m 750 -g greenroom /etc/greenroom"), None);
}

/// A folder with the block as its configuration, the keys that it only mentions included, and the secrets it names.
fn folder_with(block: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let shown = |line: &str| match line.strip_prefix("# ") {
        Some(key) if key.contains(" = ") => format!("{key}\n"),
        _ => format!("{line}\n"),
    };
    let config = dir.path().join("greenroom.toml");
    std::fs::write(config, block.lines().map(shown).collect::<String>()).unwrap();
    for named in block.split("file = \"").skip(1) {
        let path = dir.path().join(named.split('"').next().unwrap());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let secret = match path.ends_with("database-url") {
            true => "postgres://greenroom@127.0.0.1:9/greenroom",
            false => "0123456789abcdef0123456789abcdef",
        };
        std::fs::write(path, secret).unwrap();
    }
    dir
}

#[test]
fn every_key_of_the_guide_is_accepted() {
    let guide = guide();
    let all = blocks(&guide, "toml");
    assert!(all.len() > 3, "{all:?}");
    for block in all {
        let dir = folder_with(block);
        let checked = told(dir.path(), &["check"]);
        assert!(checked.starts_with("exit 0"), "{block}\n{checked}");
    }
    let dir = folder_with("[server]\nbase_pth = \"/x\"\n");
    assert!(told(dir.path(), &["check"]).contains("base_pth"));
}

/// The names of metrics in a text, without their labels.
fn metrics_in(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let is_metric = |word: &&str| {
        let kinds = ["_total", "_open", "_seconds", "_info"];
        word.starts_with("greenroom_") && kinds.iter().any(|kind| word.ends_with(kind))
    };
    words.filter(is_metric).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_guide_names_every_metric_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let _host = serve(dir.path()).await;
    let data = dir.path().join("greenroom-data");
    let host: Value =
        serde_json::from_str(&std::fs::read_to_string(data.join("host.json")).unwrap()).unwrap();
    let token = std::fs::read_to_string(data.join("admin-token")).unwrap();
    let request =
        Request::get("/metrics").header("authorization", format!("Bearer {}", token.trim()));
    let answer = http::send(host["address"].as_str().unwrap().parse().unwrap(), &request).await;
    let served = String::from_utf8(answer.unwrap().body().await.unwrap()).unwrap();
    assert_eq!(metrics_in(&guide()), metrics_in(&served));
}

#[tokio::test]
async fn the_journal_gets_no_sign_in_code() {
    let dir = tempfile::tempdir().unwrap();
    let log = File::create(dir.path().join("log")).unwrap();
    let stream = log.metadata().unwrap();
    let mut command = greenroom(dir.path(), &["serve", "--listen", "127.0.0.1:0"]);
    command.env("JOURNAL_STREAM", format!("{}:{}", stream.dev(), stream.ino()));
    let _host = Serving(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    until_logged(dir.path(), "greenroom is ready: http://127.0.0.1:").await;
    let said = std::fs::read_to_string(dir.path().join("log")).unwrap();
    assert!(!said.contains("#code="), "{said}");
    assert!(told(dir.path(), &["open"]).contains("#code="));
    // A terminal of a desktop session has the variable too, and another stream.
    let other = tempfile::tempdir().unwrap();
    let log = File::create(other.path().join("log")).unwrap();
    let mut command = greenroom(other.path(), &["serve", "--listen", "127.0.0.1:0"]);
    command.env("JOURNAL_STREAM", "8:12345");
    let _other = Serving(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    until_logged(other.path(), "/#code=").await;
}
