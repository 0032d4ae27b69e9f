//! Commands that need no host.

use crate::{greenroom, told};
use insta::assert_snapshot;

#[test]
fn init_writes_a_file_once() {
    let dir = tempfile::tempdir().unwrap();
    assert_snapshot!(told(dir.path(), &["init"]), @r#"
    exit 0
    --- stdout
    --- stderr
    wrote `greenroom.toml`
    hint: `greenroom serve` uses it; a host that already runs in this folder loads it by itself
    "#);
    let written = std::fs::read_to_string(dir.path().join("greenroom.toml")).unwrap();
    assert!(written.contains("# [agents.my-agent]"));
    assert_snapshot!(told(dir.path(), &["init"]), @r#"
    exit 1
    --- stdout
    --- stderr
    error: `greenroom.toml` already exists
    hint: edit it, or choose another file with `--config`
    "#);
}

#[test]
fn completions_know_the_commands() {
    let dir = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let output = greenroom(dir.path(), &["completions", shell]).output().unwrap();
        assert!(String::from_utf8(output.stdout).unwrap().contains("runner-process"), "{shell}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = greenroom(dir.path(), &["completions", "bash"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = command.stdout(writer).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
}

#[test]
fn without_a_host_the_user_learns_how_to_start_one() {
    let dir = tempfile::tempdir().unwrap();
    assert_snapshot!(told(dir.path(), &["send", "hello"]), @r#"
    exit 3
    --- stdout
    --- stderr
    error: no host is running with the data folder `greenroom-data`
      caused by: No such file or directory (os error 2)
    hint: start one with `greenroom serve`, or select another with `--data DIR` or `GREENROOM_URL`
    "#);
}

#[test]
fn an_address_needs_a_token() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = greenroom(dir.path(), &["runs", "list"]);
    let output = command.env("GREENROOM_URL", "http://127.0.0.1:1").output().unwrap();
    assert_snapshot!(crate::read(&output), @r#"
    exit 2
    --- stdout
    --- stderr
    error: `GREENROOM_URL` is set but `GREENROOM_TOKEN` is not
    hint: the admin token is in `admin-token` in the host's data folder
    "#);
}

#[test]
fn a_host_that_does_not_answer_is_told_as_such() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = greenroom(dir.path(), &["runs", "list"]);
    command.env("GREENROOM_URL", "http://127.0.0.1:1").env("GREENROOM_TOKEN", "t");
    assert_snapshot!(crate::read(&command.output().unwrap()), @r#"
    exit 3
    --- stdout
    --- stderr
    error: cannot reach the host at `http://127.0.0.1:1`
      caused by: Connection refused (os error 111)
    hint: is it running? `greenroom serve` starts it
    "#);
}

#[test]
fn a_failure_is_told_in_json_as_well_when_json_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("greenroom.toml"), "[limits]\nrun_deadline = 5\n").unwrap();
    assert_snapshot!(told(dir.path(), &["check", "--json"]), @r#"
    exit 2
    --- stdout
    {"error":{"code":"invalid_argument","details":{"problems":[{"column":1,"file":"greenroom.toml","hint":"did you mean `run_deadline_s`?","line":2,"message":"unknown key `run_deadline` in `limits`"}]},"message":"the configuration is not valid","retryable":false}}
    --- stderr
    error: unknown key `run_deadline` in `limits`
      --> greenroom.toml:2:1
       |
     2 | run_deadline = …
       | ^^^^^^^^^^^^
    hint: did you mean `run_deadline_s`?
    "#);
}

/// Everything that may be missing around a valid file.
const GAPS: &str = "\
[runners.gone]
command = [\"python3\", \"runner.py\"]
dir = \"gone\"
plugin = \"local/gone\"

[runners.unbuilt]
command = [\"target/release/unbuilt\"]
plugin = \"local/unbuilt\"

[agents.a]
runner = \"plugin:local/other/default\"
";

#[test]
fn check_tells_of_every_model_whose_address_is_private_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let model = |name: &str, address: &str| {
        format!(
            "[models.{name}]\nprovider = \"openai-compatible\"\nmodel = \"m\"\nbase_url = \"http://{address}/v1\"\n"
        )
    };
    let text = model("one", "127.0.0.1:9") + &model("two", "10.0.0.1") + &model("open", "8.8.8.8");
    std::fs::write(dir.path().join("greenroom.toml"), text).unwrap();
    let text = told(dir.path(), &["check"]);
    let places: Vec<&str> = text.lines().filter(|line| line.contains("-->")).collect();
    assert_eq!(places, ["  --> greenroom.toml:4:1", "  --> greenroom.toml:8:1"], "{text}");
    assert!(text.starts_with("exit 2"), "{text}");
}

#[test]
fn a_limit_of_an_earlier_version_is_a_warning_that_names_the_new_one() {
    let dir = tempfile::tempdir().unwrap();
    let text = "[limits]\nlane_length = 5\ndelivery_attempts = 8\n";
    std::fs::write(dir.path().join("greenroom.toml"), text).unwrap();
    let text = told(dir.path(), &["check"]);
    assert!(text.starts_with("exit 0"), "{text}");
    let warning = "warning: `limits.delivery_attempts` has no effect: deliveries are retried for \
                   `limits.delivery_retry_s` seconds, set that instead\n  --> greenroom.toml:3";
    assert!(text.contains(warning), "{text}");
}

#[test]
fn check_warns_of_what_is_missing_and_doctor_calls_it_a_problem() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("greenroom.toml"), GAPS).unwrap();
    let here = dir.path().display().to_string();
    let text = told(dir.path(), &["check"]).replace(&here, "HERE");
    assert_snapshot!(text, @r#"
    exit 0
    --- stdout
    AGENT      EVENTS                                        SCOPE     RUNNER
    a          message.received                              anywhere  plugin:local/other/default
    assistant  message.received that no other agent matches  anywhere  plugin:greenroom/local-agent/default
    echo       only when named                               anywhere  plugin:greenroom/echo/default
    --- stderr
    `greenroom.toml` is valid, with 4 warnings
    warning: runner `gone`: folder `HERE/gone` does not exist
      --> greenroom.toml:3
    warning: runner `unbuilt`: program `HERE/target/release/unbuilt` does not exist
      --> greenroom.toml:7
    warning: agent `a`: no runner offers `plugin:local/other/default`; did you mean `plugin:local/gone/default`? `greenroom runner list` shows the ids that exist
      --> greenroom.toml:11
    warning: runner `gone`, `unbuilt`: without `network` it reaches every address; a later version will change this to `false`, so add `network = false` (only the host), a list such as `network = ["api.example.com:443"]`, or `network = true`
      --> greenroom.toml:1
    note: runner `gone` reaches every address
    note: runner `unbuilt` reaches every address
    note: if several agents match an event, the one with the narrowest scope handles it
    "#);
    let output = greenroom(dir.path(), &["check", "--json"]).output().unwrap();
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(told["warnings"].as_array().unwrap().len(), 4);
    assert_eq!(told["warnings"][1]["line"], 7);
    let output = greenroom(dir.path(), &["doctor"]).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let line = |what: &str| told.lines().find(|line| line.contains(what)).unwrap_or_default();
    assert!(line("runner gone").contains("gone` does not exist"), "{told}");
    assert!(line("runner unbuilt").contains("unbuilt` does not exist"), "{told}");
    assert!(line("disk").contains("MiB free"), "{told}");
    assert!(line("database").contains("created at the first start"), "{told}");
    assert!(line("limits").ends_with("defaults"), "{told}");
    assert!(!told.contains("sizes"), "there is nothing to measure yet: {told}");
}

#[test]
fn check_tells_of_granted_files_that_cannot_be_read_and_refuses_secret_ones() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str| dir.path().join(name);
    std::fs::create_dir(file("docs")).unwrap();
    std::fs::write(file("docs/handbook.md"), "# Whales").unwrap();
    std::os::unix::fs::symlink("handbook.md", file("docs/link.md")).unwrap();
    std::fs::write(file("key"), "key-0123456789abcdef").unwrap();
    let with = |files: &str| {
        let text = format!(
            "[agents.a]\nrunner = \"plugin:greenroom/echo/default\"\nevents = []\n\
             grant = {{ files = [{files}] }}\n\
             [tokens.t]\nrole = \"reader\"\ntoken = {{ file = \"key\" }}\n"
        );
        std::fs::write(file("greenroom.toml"), text).unwrap();
        told(dir.path(), &["check"])
    };
    let fine = with("\"docs/handbook.md\"");
    assert!(fine.starts_with("exit 0") && !fine.contains("granted file"), "{fine}");
    let lacking = with(r#""docs/gone.md", "docs/link.md", "docs", "docs/handbook.md""#);
    assert!(lacking.starts_with("exit 0") && lacking.contains("with 3 warnings"), "{lacking}");
    for reason in [
        "agent `a`: the granted file `docs/gone.md` does not exist",
        "agent `a`: the granted file `docs/link.md` is behind a symbolic link",
        "agent `a`: the granted file `docs` is a folder",
    ] {
        assert!(lacking.contains(reason), "{lacking}");
    }
    for (files, reason) in [
        ("\"key\"", "`key` is a file with a secret"),
        ("\"greenroom.toml\"", "`greenroom.toml` is the configuration itself"),
        ("\"../docs\"", "`../docs` is not the path of a file to grant"),
    ] {
        let refused = with(files);
        assert!(refused.starts_with("exit 2") && refused.contains(reason), "{refused}");
    }
}

#[test]
fn doctor_goes_on_behind_a_broken_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let broken = format!("[limits]\nlane_lenght = 5\nlane_length = 7\n\n{GAPS}");
    std::fs::write(dir.path().join("greenroom.toml"), broken).unwrap();
    let output = greenroom(dir.path(), &["doctor"]).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1));
    let line = |what: &str| told.lines().find(|line| line.contains(what)).unwrap_or_default();
    assert!(line("configuration").contains("unknown key `lane_lenght`"), "{told}");
    assert!(line("runner gone").contains("gone` does not exist"), "{told}");
    assert!(line("database").contains("created at the first start"), "{told}");
    assert!(line("ok       limits").contains("lane_length = 7"), "{told}");
    // What is no TOML at all says nothing about anything.
    std::fs::write(dir.path().join("greenroom.toml"), "[limits").unwrap();
    let output = greenroom(dir.path(), &["doctor"]).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("problem  configuration") && told.contains("MiB free"), "{told}");
}

#[test]
fn a_misspelt_tool_is_refused_or_warned_of_with_the_nearest_name() {
    let dir = tempfile::tempdir().unwrap();
    let check = |tools: &str, grant: &str| {
        let agent = format!(
            "{tools}[agents.a]\nrunner = \"plugin:greenroom/echo/default\"\nevents = []\n\
             [agents.a.grant]\n{grant}\n"
        );
        std::fs::write(dir.path().join("greenroom.toml"), agent).unwrap();
        told(dir.path(), &["check"])
    };
    let said = check("", "tools = [\"calender.read\"]");
    assert!(said.starts_with("exit 2") && said.contains("modules = [\"calendar.read\"]"), "{said}");
    let files = "[tools.files]\nurl = \"https://mcp.example.com/mcp\"\nallow = [\"read_file\"]\n";
    let said = check(files, "tools = [\"fiels.read_file\"]");
    assert!(
        said.starts_with("exit 2") && said.contains("did you mean `files.read_file`?"),
        "{said}"
    );
    let said = check(files, "tools = [\"files.raed_file\"]");
    assert!(said.starts_with("exit 0"), "{said}");
    assert!(said.contains("excludes `files.raed_file`; did you mean `files.read_file`?"), "{said}");
    std::fs::create_dir(dir.path().join("skills")).unwrap();
    let said = check("[tools.book]\nkind = \"skills\"\ndir = \"skills\"\n", "tools = [\"book.*\"]");
    assert!(said.starts_with("exit 2") && said.contains("grant it with `skills = […]`"), "{said}");
}

#[test]
fn doctor_shows_how_much_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let location =
        greenroom_store::Location::Sqlite(dir.path().join("greenroom-data/greenroom.db"));
    std::fs::create_dir(dir.path().join("greenroom-data")).unwrap();
    let options = greenroom_store::Options { location, sync: greenroom_store::Sync::Normal };
    greenroom_store::Store::open(&options).unwrap().close();
    let output = greenroom(dir.path(), &["doctor", "--json"]).output().unwrap();
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(told["sizes"]["database_bytes"].as_i64().unwrap() > 0, "{told}");
    let events = serde_json::json!({"name": "events", "rows": 0, "precision": "exact"});
    assert!(told["sizes"]["tables"].as_array().unwrap().contains(&events), "{told}");
    let output = greenroom(dir.path(), &["doctor"]).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    let line = told.lines().find(|line| line.contains("sizes")).unwrap_or_default();
    assert!(line.contains("KiB in the database: nothing yet"), "{told}");
}

#[test]
fn a_new_runner_needs_a_plain_name() {
    let dir = tempfile::tempdir().unwrap();
    assert_snapshot!(told(dir.path(), &["runner", "new", "--lang", "python", "My Runner"]), @r#"
    exit 2
    --- stdout
    --- stderr
    error: `My Runner` is not a name for a runner
    hint: write lowercase letters, digits and dashes, e.g. `my-runner`
    "#);
}

const FAILING: &str = r#"[models.main]
provider = "openai"
model = "gpt-5-mini"
[models.spare]
provider = "scripted"
[models.vectors]
provider = "ollama"
model = "embed"
kind = "embedding"
[models.gateway]
provider = "openai"
model = "m"
base_url = "https://llm.example.com/v1"
[agents.wrong]
runner = "plugin:greenroom/local-agent/default"
events = []
config = { promt = "You answer." }
grant = { models = ["spare"] }
[agents.elsewhere]
runner = "plugin:greenroom/local-agent/default"
events = []
config = { model = "main", fallback_models = ["spare", "vectors"] }
grant = { models = ["spare", "vectors"] }
[agents.mute]
runner = "plugin:greenroom/local-agent/default"
events = []
grant = { models = ["vectors"] }
[agents.well]
runner = "plugin:greenroom/local-agent/default"
events = []
config = { model = "main", fallback_models = ["spare"], max_tool_rounds = 3 }
grant = { models = ["spare", "main"] }
"#;

#[test]
fn check_and_doctor_tell_of_agents_that_would_fail_on_every_message() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("greenroom.toml"), FAILING).unwrap();
    let output = greenroom(dir.path(), &["check", "--json"]).output().unwrap();
    let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let warnings = told["warnings"].as_array().unwrap().iter();
    let warnings: Vec<(u64, &str)> = warnings
        .map(|one| (one["line"].as_u64().unwrap(), one["message"].as_str().unwrap()))
        .collect();
    let expected = [
        (1, "model `main`: `openai` needs a key; add `api_key = { env = \"OPENAI_API_KEY\" }`"),
        (22, "agent `elsewhere`: `model` names `main`, which is not a granted chat model"),
        (
            22,
            "agent `elsewhere`: `fallback_models` names `vectors`, which is not a granted chat model",
        ),
        (
            27,
            "agent `mute`: no chat model is granted, so every message fails; add `models = [\"NAME\"]` to its grant",
        ),
    ];
    assert_eq!(warnings[..4], expected);
    let (line, wrong) = warnings[4];
    assert!(
        line == 17 && wrong.contains("agent `wrong`: invalid agent config: unknown field `promt`")
    );
    assert_eq!(warnings.len(), 5, "{warnings:?}");
    let output = greenroom(dir.path(), &["doctor"]).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.contains("line 27: agent `mute`: no chat model is granted"), "{told}");
    assert_eq!(output.status.code(), Some(1));
}
