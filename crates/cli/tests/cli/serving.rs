//! A host of this program's own, and what other commands say about it.

use crate::{greenroom, told};
use greenroom_testkit::http::{self, Request};
use greenroom_testkit::wait::wait_for;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A running host; ends with the test.
pub(crate) struct Serving(pub(crate) Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) async fn serve(dir: &Path) -> Serving {
    let mut command = greenroom(dir, &["serve", "--listen", "127.0.0.1:0"]);
    let log = File::create(dir.join("log")).unwrap();
    let child = Serving(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    let file = dir.join("greenroom-data/host.json");
    wait_for("the host", PATIENCE, async || file.exists().then_some(())).await;
    child
}

pub(crate) async fn until_told(dir: &Path, args: &[&str], text: &str) {
    wait_for(text, PATIENCE, async || told(dir, args).contains(text).then_some(())).await;
}

pub(crate) async fn until_logged(dir: &Path, text: &str) {
    let log = || std::fs::read_to_string(dir.join("log")).unwrap();
    wait_for(text, PATIENCE, async || log().contains(text).then_some(())).await;
}

#[tokio::test]
async fn a_configuration_that_appears_later_is_used_and_doctor_knows() {
    let dir = tempfile::tempdir().unwrap();
    let _host = serve(dir.path()).await;
    until_told(dir.path(), &["doctor"], "the running host has none either").await;
    until_told(dir.path(), &["doctor"], "SQLite database `").await;
    let agent = "[agents.mine]\nrunner = \"plugin:greenroom/echo/default\"\nevents = []\n";
    std::fs::write(dir.path().join("greenroom.toml"), agent).unwrap();
    until_told(dir.path(), &["doctor"], "the running host uses it").await;
    until_told(dir.path(), &["send", "hello", "--agent", "mine"], "exit 0").await;
    until_logged(dir.path(), "found `greenroom.toml`").await;
    until_told(dir.path(), &["doctor", "--json"], "\"what\":\"runner greenroom-echo\"").await;
    let moved = format!("{agent}[server]\nlisten = \"127.0.0.1:9\"\n");
    std::fs::write(dir.path().join("greenroom.toml"), moved).unwrap();
    until_logged(dir.path(), "`server.listen` changed; it takes effect at the next start").await;
}

#[tokio::test]
async fn an_event_for_an_agent_that_does_not_list_its_type_is_taken_with_a_warning_and_shown_with_its_files()
 {
    let dir = tempfile::tempdir().unwrap();
    let agent =
        "[agents.triage]\nrunner = \"plugin:greenroom/echo/default\"\nevents = [\"ticket.*\"]\n";
    std::fs::write(dir.path().join("greenroom.toml"), agent).unwrap();
    std::fs::write(dir.path().join("log.txt"), "disk full\n").unwrap();
    let _host = serve(dir.path()).await;
    let warning = "agent `triage` does not list the event type `issue.opened` in `events`";
    let issue = ["--type", "issue.opened", "--data", r#"{"severity":"high"}"#];
    let to = ["--agent", "triage", "--conversation", "c1", "--attach", "log.txt", "--follow"];
    let sent = told(dir.path(), &[&["send", "it broke"][..], &issue, &to].concat());
    assert_told(&sent, &["exit 0", &format!("warning: {warning}")]);
    let sent = told(dir.path(), &[&["send", "--json"][..], &issue, &to].concat());
    assert_told(&sent, &[r#""warnings":["agent `triage` does not list"#]);
    // An agent for named events only, and a type that is listed, are no reason for a warning.
    let silent = [
        ["--agent", "echo", "--type", "issue.opened"],
        ["--agent", "triage", "--type", "ticket.new"],
    ];
    for args in silent {
        let sent = told(dir.path(), &[&["send", "x", "--conversation", "c2"][..], &args].concat());
        assert!(sent.starts_with("exit 0") && !sent.contains("warning"), "{sent}");
    }
    let history = told(dir.path(), &["history", "c1"]);
    assert_told(
        &history,
        &["event      [issue.opened]", "it broke", "+ log.txt, text/plain, 10 B: art_"],
    );
    let json = told(dir.path(), &["history", "c1", "--json"]);
    assert_told(
        &json,
        &[r#""event_type":"issue.opened""#, r#""name":"log.txt""#, r#""size_bytes":10"#],
    );
    let runs = told(dir.path(), &["runs", "list", "--json"]);
    let runs: serde_json::Value = serde_json::from_str(runs.lines().nth(2).unwrap()).unwrap();
    let run =
        runs["items"].as_array().unwrap().last().unwrap()["run_id"].as_str().unwrap().to_owned();
    assert_told(&told(dir.path(), &["runs", "show", &run]), &["warning", warning]);
}

#[tokio::test]
async fn a_second_host_on_the_same_folder_is_told_where_the_first_one_is() {
    let dir = tempfile::tempdir().unwrap();
    let host = serve(dir.path()).await;
    let told = told(dir.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert!(told.contains("error: another host uses the data folder"), "{told}");
    assert!(told.contains("hint: it listens on http://127.0.0.1:"), "{told}");
    assert!(told.contains(&format!("(pid {})", host.0.id())), "{told}");
}

/// Signs in with an address that the program printed.
async fn sign_in(address: &str) -> u16 {
    let (host, code) = address.split_once("/#code=").unwrap();
    assert!(code.len() == 32 && code.chars().all(|c| c.is_ascii_hexdigit()), "{address}");
    let request = Request::post("/v1/session", format!("{{\"code\":\"{code}\"}}"))
        .header("origin", host)
        .header("x-greenroom", "1");
    let place = host.strip_prefix("http://").unwrap().parse().unwrap();
    http::send(place, &request).await.unwrap().status
}

#[tokio::test]
async fn the_printed_addresses_sign_in_once_each() {
    let dir = tempfile::tempdir().unwrap();
    let nobody = told(dir.path(), &["open"]);
    assert!(nobody.starts_with("exit 3") && nobody.contains("no host is running"), "{nobody}");
    let _host = serve(dir.path()).await;
    until_logged(dir.path(), "greenroom is ready: ").await;
    let log = std::fs::read_to_string(dir.path().join("log")).unwrap();
    let line = log.lines().find(|line| line.starts_with("greenroom is ready: ")).unwrap();
    let first = line.split(' ').nth(3).unwrap();
    let opened = told(dir.path(), &["open"]);
    let second = opened.lines().find(|line| line.starts_with("http://127.0.0.1:")).unwrap();
    assert_eq!(opened, format!("exit 0\n--- stdout\n{second}\n--- stderr\n"));
    let as_json = told(dir.path(), &["open", "--json"]);
    assert!(as_json.contains("\"expires_in_s\":600"), "{as_json}");
    let third = as_json.split('"').find(|text| text.starts_with("http://")).unwrap();
    for address in [first, second, third] {
        assert_eq!(sign_in(address).await, 200, "{address}");
        assert_eq!(sign_in(address).await, 401, "{address}");
    }
}

/// Sends a text in a conversation of its own and gives everything that is told until it is answered.
fn followed(dir: &Path, text: &str) -> String {
    told(dir, &["send", text, "--follow", "--conversation", text])
}

#[track_caller]
fn assert_told(told: &str, parts: &[&str]) {
    assert!(told.starts_with("exit 0"), "{told}");
    for part in parts {
        assert!(told.contains(part), "no `{part}` in: {told}");
    }
}

#[tokio::test]
async fn the_calendar_and_the_memory_are_used_in_english_and_chinese_from_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let _host = serve(dir.path()).await;
    let told = followed(dir.path(), "schedule lunch tomorrow at 12:00");
    let card = ["→ calendar.create {", "✓ calendar.create ok, ", "  │ Event created\n  │ lunch\n"];
    assert_told(&told, &card);
    assert_told(&told, &["--- stdout\nDone:\n- lunch ("]);
    let told = followed(dir.path(), "帮我建一个明天下午三点的会议");
    assert_told(&told, &["✓ calendar.create 完成", "  │ 日程已创建\n  │ 会议\n", "15:00 – 16:00"]);
    let told = followed(dir.path(), "明天有什么安排");
    assert_told(&told, &["  │ 日程\n", "  │ • lunch\n", "  │ • 会议\n", "查到了"]);
    let told = followed(dir.path(), "what is on my calendar tomorrow?");
    assert_told(&told, &["  │ Events\n", "  │ • lunch\n", "This is what I found:\n- lunch"]);
    assert_told(&followed(dir.path(), "记住我喜欢喝茶"), &["✓ memory.update 完成", "  │ 已记住\n"]);
    assert_told(&followed(dir.path(), "我喜欢什么"), &["→ memory.read", "- 喜欢: 喝茶"]);
}

#[tokio::test]
async fn a_call_that_is_asked_about_is_answered_with_the_command_that_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let _host = serve(dir.path()).await;
    let made = followed(dir.path(), "schedule lunch tomorrow at 12:00");
    let id = made.split_once(" [").and_then(|(_, rest)| rest.split(']').next()).unwrap();
    let mut command = greenroom(dir.path(), &["send", &format!("delete {id}"), "--follow"]);
    let mut waiting = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(waiting.stderr.take().unwrap()).lines().map_while(Result::ok);
    let asked = lines.find(|line| line.starts_with("? waits for approval")).unwrap();
    assert!(asked.starts_with("? waits for approval: calendar.delete “lunch”, "), "{asked}");
    assert!(asked.contains(" 12:00–13:00 (UTC) (destructive, until "), "{asked}");
    assert_eq!(lines.next().unwrap(), "  This cannot be undone.");
    let shown = lines.next().unwrap();
    let mut command = greenroom(dir.path(), &["send", "are you there?", "--follow"]);
    let mut behind = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(behind.stderr.take().unwrap()).lines().map_while(Result::ok);
    said.find(|line| line == "… waits for an earlier run of this conversation").unwrap();
    let end = said.next().unwrap();
    assert!(end.starts_with("  cancel it: `greenroom runs cancel run_"), "{end}");
    assert_eq!(said.next().unwrap(), asked);
    let answer = shown.split('`').nth(1).and_then(|line| line.strip_prefix("greenroom ")).unwrap();
    let listed = told(dir.path(), &["approvals"]);
    assert!(listed.contains("calendar.delete") && listed.contains("user cli"), "{listed}");
    let allowed = told(dir.path(), &answer.split(' ').collect::<Vec<_>>());
    assert!(allowed.starts_with("exit 0") && allowed.contains("allowed"), "{allowed}");
    let rest: Vec<String> = lines.collect();
    assert!(rest.iter().any(|line| line.starts_with("✓ calendar.delete ok")), "{rest:?}");
    let said = std::io::read_to_string(waiting.stdout.take().unwrap()).unwrap();
    assert!(
        said.starts_with("Deleted “lunch” (") && said.ends_with(" 12:00 – 13:00).\n"),
        "{said}"
    );
    assert!(waiting.wait().unwrap().success());
    assert!(behind.wait().unwrap().success());
    let runs = told(dir.path(), &["runs", "list", "--limit", "2", "--json"]);
    let run_id =
        runs.split("\"run_id\":\"").nth(2).and_then(|rest| rest.split('"').next()).unwrap();
    let story = told(dir.path(), &["runs", "show", run_id]);
    assert!(story.contains("calendar.delete allowed by admin"), "{story}");
    assert!(story.contains("tool answered  calendar.delete"), "{story}");
}

#[tokio::test]
async fn an_address_that_other_machines_reach_unencrypted_is_warned_of() {
    let dir = tempfile::tempdir().unwrap();
    let public = "other machines can reach `0.0.0.0:8700` without TLS";
    std::fs::write(dir.path().join("greenroom.toml"), "[server]\nlisten = \"0.0.0.0:8700\"\n")
        .unwrap();
    let checked = told(dir.path(), &["check"]);
    assert!(checked.starts_with("exit 0") && checked.contains(public), "{checked}");
    assert!(checked.contains("greenroom.toml:2"), "{checked}");
    let looked = told(dir.path(), &["doctor"]);
    assert!(looked.contains("problem") && looked.contains(public), "{looked}");
    let proxied = "[server]\nlisten = \"0.0.0.0:8700\"\ntrusted_proxies = [\"10.0.0.0/8\"]\n";
    std::fs::write(dir.path().join("greenroom.toml"), proxied).unwrap();
    assert!(!told(dir.path(), &["check"]).contains("without TLS"));
    // The command line counts as well.
    std::fs::remove_file(dir.path().join("greenroom.toml")).unwrap();
    let mut command = greenroom(dir.path(), &["serve", "--listen", "0.0.0.0:0"]);
    let log = File::create(dir.path().join("log")).unwrap();
    let _host = Serving(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    until_logged(dir.path(), "warning: other machines can reach `0.0.0.0:").await;
    until_told(dir.path(), &["doctor"], "other machines can reach `0.0.0.0:").await;
}

#[tokio::test]
async fn commands_reach_a_host_under_a_path() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("greenroom.toml"), "[server]\nbase_path = \"/a/b\"\n").unwrap();
    let _host = serve(dir.path()).await;
    until_told(dir.path(), &["send", "hello", "--agent", "echo", "--follow"], "exit 0").await;
    let file = std::fs::read_to_string(dir.path().join("greenroom-data/host.json")).unwrap();
    let file: serde_json::Value = serde_json::from_str(&file).unwrap();
    let url = file["url"].as_str().unwrap();
    assert!(url.ends_with("/a/b"), "{url}");
    let token = std::fs::read_to_string(dir.path().join("greenroom-data/admin-token")).unwrap();
    for url in [url.to_owned(), format!("{url}/")] {
        let mut command = greenroom(Path::new("/"), &["open"]);
        command.env("GREENROOM_URL", &url).env("GREENROOM_TOKEN", token.trim());
        let link = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert!(link.starts_with(&format!("{}/#code=", url.trim_end_matches('/'))), "{link}");
    }
}
