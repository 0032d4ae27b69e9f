//! What `check`, `doctor` and the log say about runners, models, surfaces, paths and secrets.

use crate::serving::{PATIENCE, serve, until_logged, until_told};
use crate::{greenroom, told};
use greenroom_testkit::wait::wait_for;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

fn configure(dir: &Path, text: &str) {
    std::fs::write(dir.join("greenroom.toml"), text).unwrap();
}

/// The line of a command's output that begins with a mark and names a thing.
fn line<'t>(told: &'t str, mark: &str, what: &str) -> &'t str {
    let is_it = |line: &&str| line.starts_with(mark) && line.contains(what);
    told.lines().find(is_it).unwrap_or_else(|| panic!("no `{mark}` `{what}` in: {told}"))
}

fn puppet(dir: &Path, keys: &str) -> String {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/host/runners/puppet.py");
    std::fs::create_dir_all(dir.join("puppet")).unwrap();
    format!(
        "[runners.puppet]\ncommand = [\"python3\", \"{}\"]\ndir = \"puppet\"\n{keys}\n",
        script.display()
    )
}

const TYPO: &str = "[agents.clerk]\nrunner = \"plugin:test/pupet/main\"\nevents = []\n";

#[tokio::test]
async fn a_runner_id_that_nothing_offers_is_named_by_check_doctor_and_the_log() {
    let dir = tempfile::tempdir().unwrap();
    configure(dir.path(), &format!("{}{TYPO}", puppet(dir.path(), "")));
    let checked = told(dir.path(), &["check"]);
    assert!(checked.starts_with("exit 0"), "{checked}");
    let note = "note: agent `clerk`: only a running host knows whether a runner offers \
                `plugin:test/pupet/main`; `greenroom doctor` checks it";
    assert!(checked.contains(note), "{checked}");
    let _host = serve(dir.path()).await;
    let missing = "agent `clerk`: no runner offers `plugin:test/pupet/main`; did you mean \
                   `plugin:test/puppet/main`? `greenroom runner list` shows the ids that exist";
    until_logged(dir.path(), missing).await;
    let doctor = told(dir.path(), &["doctor"]);
    assert!(doctor.starts_with("exit 1"), "{doctor}");
    assert!(line(&doctor, "problem", "agents").ends_with(missing), "{doctor}");
    // Once it is right, nobody speaks of it any more.
    let right = TYPO.replace("pupet", "puppet");
    configure(dir.path(), &format!("{}{right}", puppet(dir.path(), "")));
    wait_for("no complaint", PATIENCE, async || {
        (!told(dir.path(), &["doctor"]).contains("no runner offers")).then_some(())
    })
    .await;
}

#[test]
fn check_warns_of_a_runner_id_that_pins_and_built_in_runners_rule_out() {
    let dir = tempfile::tempdir().unwrap();
    let wrong = "[agents.other]\nrunner = \"plugin:greenroom/echo/defualt\"\nevents = []\n";
    let pinned = puppet(dir.path(), "plugin = \"test/puppet\"");
    configure(dir.path(), &format!("{pinned}{TYPO}{wrong}"));
    let checked = told(dir.path(), &["check"]);
    for warning in [
        "warning: agent `clerk`: no runner offers `plugin:test/pupet/main`; did you mean `plugin:test/puppet/main`?",
        "warning: agent `other`: no runner offers `plugin:greenroom/echo/defualt`; did you mean `plugin:greenroom/echo/default`?",
    ] {
        assert!(checked.contains(warning), "{checked}");
    }
}

/// Answers every request for the list of models; a wrong key is refused.
fn provider(listener: TcpListener) -> SocketAddr {
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).unwrap();
            assert!(head.starts_with("GET /v1/models "), "only the list is free: {head}");
            let (status, body) = match head.contains("Bearer the-right-key-of-the-test") {
                true => ("200 OK", r#"{"data":[{"id":"good-1"}]}"#),
                false => ("401 Unauthorized", r#"{"error":{"message":"Incorrect API key"}}"#),
            };
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            )
            .unwrap();
        }
    });
    address
}

fn model(name: &str, model: &str, address: SocketAddr, key: &str) -> String {
    format!(
        "[models.{name}]\nprovider = \"openai-compatible\"\nmodel = \"{model}\"\nallow_private = true\n\
         base_url = \"http://{address}/v1\"\napi_key = {{ file = \"{key}\" }}\n"
    )
}

/// An address where nobody listens.
fn dead() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[tokio::test]
async fn doctor_looks_at_models_now_with_and_without_a_host() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("right"), "the-right-key-of-the-test").unwrap();
    std::fs::write(dir.path().join("wrong"), "the-wrong-key-of-the-test").unwrap();
    let alive = provider(TcpListener::bind("127.0.0.1:0").unwrap());
    let gone = dead();
    let models = [
        model("main", "good-1", alive, "right"),
        model("other", "good-2", alive, "right"),
        model("locked", "good-1", alive, "wrong"),
        model("gone", "good-1", gone, "right"),
        "[models.demo]\nprovider = \"scripted\"\n".to_owned(),
    ];
    configure(dir.path(), &models.concat());
    let look = |with: &str| {
        let doctor = told(dir.path(), &["doctor"]);
        assert!(doctor.starts_with("exit 1"), "{with}: {doctor}");
        assert!(line(&doctor, "ok", "model main").ends_with("answers"), "{with}: {doctor}");
        let unlisted = "answers, but is not in the provider's list of models";
        assert!(line(&doctor, "ok", "model other").ends_with(unlisted), "{with}: {doctor}");
        let locked = "the provider returned 401: Incorrect API key";
        assert!(line(&doctor, "problem", "model locked").ends_with(locked), "{with}: {doctor}");
        let refused = line(&doctor, "problem", "model gone");
        assert!(refused.contains("the provider cannot be reached: Connection refused"), "{doctor}");
        assert!(line(&doctor, "ok", "model demo").contains("no network"), "{with}: {doctor}");
        assert!(!doctor.contains("key-of-the-test"), "{with}: {doctor}");
    };
    look("without a host");
    let _host = serve(dir.path()).await;
    look("with a host");
    // The port is served now, and the next look sees it.
    provider(TcpListener::bind(gone).unwrap());
    let doctor = told(dir.path(), &["doctor"]);
    assert!(line(&doctor, "ok", "model gone").ends_with("answers"), "{doctor}");
}

fn surface(name: &str, address: SocketAddr, keys: &str) -> String {
    format!(
        "[surfaces.{name}]\nkind = \"webhook\"\nurl = \"http://{address}/secret-path\"\n{keys}\n"
    )
}

#[tokio::test]
async fn doctor_connects_to_surfaces_and_check_knows_private_addresses() {
    let dir = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let alive = listener.local_addr().unwrap();
    let allow = "allow_private = true";
    let surfaces = [
        surface("open", alive, allow),
        surface("gone", dead(), allow),
        surface("closed", alive, ""),
        "[surfaces.near]\nkind = \"webhook\"\nurl = \"http://localhost:1/x\"\n".to_owned(),
        "[surfaces.far]\nkind = \"webhook\"\nurl = \"https://hooks.invalid/x\"\n".to_owned(),
    ];
    configure(dir.path(), &surfaces.concat());
    let checked = told(dir.path(), &["check"]);
    let warned: Vec<&str> =
        checked.lines().filter(|line| line.starts_with("warning: surface")).collect();
    assert_eq!(warned.len(), 2, "{checked}");
    assert!(warned[0].contains("surface `closed`: the address `http://127.0.0.1:"), "{checked}");
    assert!(warned[0].ends_with("add `allow_private = true` if this is intended"), "{checked}");
    assert!(warned[1].contains("surface `near`: the address `http://localhost:1/x`"), "{checked}");
    let look = || {
        let doctor = told(dir.path(), &["doctor"]);
        assert!(line(&doctor, "ok", "surface open").contains("can be connected to"), "{doctor}");
        let gone = line(&doctor, "problem", "surface gone");
        assert!(gone.contains("no connection: Connection refused"), "{doctor}");
        let closed = line(&doctor, "problem", "surface closed");
        assert!(closed.contains("the address is private; add `allow_private = true`"), "{doctor}");
        assert!(line(&doctor, "problem", "surface near").contains("is private"), "{doctor}");
        let far = line(&doctor, "problem", "surface far");
        assert!(far.contains("the name cannot be resolved"), "{doctor}");
        let findings = doctor.lines().filter(|line| !line.contains("configuration"));
        assert!(findings.clone().all(|line| !line.contains("secret-path")), "{doctor}");
    };
    look();
    let _host = serve(dir.path()).await;
    look();
}

#[tokio::test]
async fn a_path_that_was_missing_is_no_problem_once_it_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let agent = TYPO.replace("pupet", "puppet");
    configure(dir.path(), &format!("{}{agent}", puppet(dir.path(), "paths = [\"later\"]")));
    let _host = serve(dir.path()).await;
    let missing = "later` in `paths` does not exist";
    until_told(dir.path(), &["doctor"], missing).await;
    wait_for("the runner's own note", PATIENCE, async || {
        let doctor = told(dir.path(), &["doctor"]);
        doctor.lines().any(|l| l.starts_with("note") && l.contains(missing)).then_some(())
    })
    .await;
    std::fs::create_dir(dir.path().join("later")).unwrap();
    wait_for("no path problem", PATIENCE, async || {
        let doctor = told(dir.path(), &["doctor"]);
        let is_ready = doctor.lines().any(|l| l.contains("runner puppet") && l.contains("ready"));
        (is_ready && !doctor.contains("does not exist")).then_some(())
    })
    .await;
}

#[tokio::test]
async fn doctor_names_the_database_and_how_much_stands_in_its_log() {
    let dir = tempfile::tempdir().unwrap();
    let _host = serve(dir.path()).await;
    let log = dir.path().join("greenroom-data/greenroom.db-wal");
    assert!(std::fs::metadata(log).unwrap().len() > 0);
    let doctor = told(dir.path(), &["doctor"]);
    let database = line(&doctor, "ok", "database");
    assert!(database.contains("SQLite database `"), "{doctor}");
    assert!(database.contains("greenroom-data/greenroom.db`, "), "{doctor}");
    assert!(
        database.ends_with(" in the log") && !database.contains(" 0 bytes in the log"),
        "{doctor}"
    );
    let sizes = line(&doctor, "ok", "sizes");
    assert!(sizes.contains(" in the database: "), "{doctor}");
}

#[test]
fn check_warns_of_a_token_that_can_be_guessed_with_a_way_to_make_one() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("token"), "hunter2hunter2\n").unwrap();
    configure(
        dir.path(),
        "[tokens.web]\nrole = \"sender\"\ntoken = { file = \"token\" }\n\
         [runners.far]\ntoken = { env = \"FAR_TOKEN\" }\n",
    );
    let output = greenroom(dir.path(), &["check"]).env("FAR_TOKEN", "short").output().unwrap();
    let checked = crate::read(&output);
    assert!(checked.starts_with("exit 0"), "{checked}");
    for text in [
        "the token `tokens.web.token` has 14 characters and can be guessed; `openssl rand -hex 32` makes one",
        "the token `runners.far.token` has 5 characters and can be guessed; `openssl rand -hex 32` makes one",
    ] {
        assert!(checked.contains(text), "{checked}");
    }
    assert!(!checked.contains("hunter2"), "{checked}");
    std::fs::write(dir.path().join("token"), "hunter2hunter2-x\n").unwrap();
    let long = "0123456789abcdef";
    let output = greenroom(dir.path(), &["check"]).env("FAR_TOKEN", long).output().unwrap();
    let checked = crate::read(&output);
    assert!(!checked.contains("can be guessed"), "{checked}");
}

#[test]
fn check_warns_of_a_password_in_the_file_and_shows_it_to_nobody() {
    let dir = tempfile::tempdir().unwrap();
    let check = |url: &str| {
        configure(dir.path(), &format!("[store]\nurl = {url}\n"));
        let mut command = greenroom(dir.path(), &["check"]);
        let output = command.env("DB", "postgres://ann:hunter2@db.example.com/greenroom").output();
        crate::read(&output.unwrap())
    };
    for url in [
        "\"postgres://ann:hunter2@db.example.com/greenroom\"",
        "\"postgresql://db.example.com/greenroom?user=ann&password=hunter2\"",
    ] {
        let checked = check(url);
        let warning =
            "warning: `store.url` contains a password; write `url = { env = \"DATABASE_URL\" }`";
        assert!(checked.starts_with("exit 0") && checked.contains(warning), "{checked}");
        assert!(
            checked.contains("--> greenroom.toml:2") && !checked.contains("hunter2"),
            "{checked}"
        );
    }
    for url in ["{ env = \"DB\" }", "\"postgres://ann@db.example.com/greenroom\""] {
        assert!(!check(url).contains("password"), "{url}");
    }
}
