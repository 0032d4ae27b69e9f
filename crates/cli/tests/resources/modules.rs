//! A module of one's own, from its manifest to what its process may do, and what becomes of it when it misbehaves.

use crate::programs::{descendants, greenroom, method, module, prepared};
use crate::stage::{PATIENCE, Stage, config, event, outcome};
use crate::{call, data, play};
use greenroom_protocol::RunStatus;
use greenroom_testkit::http::Request;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

const CONFIG: &str = r#"
[tools.lab]
kind = "module"
manifest = "lab/module.toml"
[agents.clerk]
runner = "plugin:test/puppet/main"
events = []
deadline_s = 60
grant = { modules = ["lab.*"] }
"#;

const PAY: &str = "input_schema = { type = \"object\", properties = { \
    to = { type = \"string\" }, sum = { type = \"integer\" }, memo = { type = \"string\" } } }";

fn manifest() -> String {
    let place = "input_schema = { type = \"object\", properties = { place = { type = \"string\" } }, \
                 required = [\"place\"], additionalProperties = false }";
    [
        method("echo", place),
        method("slow", "timeout_s = 1\nrisk = \"write\""),
        method("remove", "risk = \"destructive\""),
        method("pay", &format!("risk = \"destructive\"\nshow = [\"to\", \"sum\"]\n{PAY}")),
        method("keep", "risk = \"write\""),
    ]
    .into_iter()
    .chain(
        ["crash", "leave", "garbage", "flood", "bare", "network", "files"]
            .map(|name| method(name, "")),
    )
    .collect()
}

async fn stage() -> Stage {
    let host = prepared(CONFIG);
    module(&host, "lab", &manifest());
    Stage::with(host).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_about_a_method_shows_the_inputs_that_the_manifest_names_or_all() {
    let stage = stage().await;
    let input = json!({"memo": "long", "sum": 12, "to": "bob"});
    for (method, fields) in [
        ("pay", json!([{"name": "to", "value": "bob"}, {"name": "sum", "value": "12"}])),
        (
            "remove",
            json!([{"name": "memo", "value": "long"}, {"name": "sum", "value": "12"},
                {"name": "to", "value": "bob"}]),
        ),
    ] {
        let steps = json!([call(method, "lab", method, input.clone()), ["end"]]);
        let mut sent = event("clerk", method, &steps.to_string());
        sent["actor"]["actor_id"] = "ann".into();
        let run_id = stage.send(&sent).await;
        let question = crate::approvals::asked(&stage).await;
        assert_eq!(question["subject"], json!({"fields": fields}), "{method}");
        crate::approvals::answer(&stage, &question, "deny").await;
        stage.api.ended_run(&run_id).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_of_a_manifest_is_called_with_its_input_and_kept_like_any_other() {
    let stage = stage().await;
    let steps = vec![
        json!(["tell", "resources"]),
        call("echo", "lab", "echo", json!({"place": "台北"})),
        call("wrong", "lab", "echo", json!({"plaice": "x"})),
        call("none", "lab", "shout", json!({})),
        call("bare", "lab", "bare", json!({})),
        call("keep", "lab", "keep", json!({"note": "bread"})),
    ];
    let run = play(&stage, "ann", "c1", steps).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    let echo = data(&stage, "echo").await;
    assert_eq!(echo["payload"], json!({"place": "台北"}));
    assert_eq!(echo["args"], json!(["lab", "echo"]));
    let mut names = echo["environment"].as_array().unwrap().clone();
    // What an interpreter adds for itself.
    names.retain(|name| name != "LC_CTYPE" && name != "PWD");
    let expected = [
        "GREENROOM_CREDENTIAL",
        "GREENROOM_METHODS",
        "GREENROOM_URL",
        "HOME",
        "LANG",
        "PATH",
        "TMPDIR",
    ];
    assert_eq!(names, expected);
    let wrong = stage.told("wrong").await;
    assert_eq!(wrong["result"]["error"]["code"], "INVALID_ACTION_INPUT");
    assert_eq!(wrong["result"]["error"]["input_schema"]["required"], json!(["place"]));
    assert_eq!(stage.told("none").await["result"]["error"]["code"], "METHOD_NOT_ALLOWED");
    assert_eq!(data(&stage, "bare").await, json!([1, 2]));
    let kept = data(&stage, "keep").await;
    assert_eq!(kept, json!({"kept": {"note": "bread"}, "listed": 1, "foreign": 403}));
    let resources: Value = serde_json::from_str(&stage.answers_of(&run).await[0]).unwrap();
    let description = resources["tools"][0]["description"].as_str().unwrap();
    assert!(description.contains("lab.echo") && !description.contains("memory"), "{description}");
    let tools = stage.api.history("c1").await;
    let tools = tools.iter().filter(|item| item.role == greenroom_protocol::TranscriptRole::Tool);
    assert_eq!(tools.count(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_that_fails_in_any_way_is_told_so_and_hurts_nobody() {
    let stage = stage().await;
    let ways = [
        ("crash", "METHOD_CRASHED", "signal"),
        ("leave", "METHOD_CRASHED", "3"),
        ("garbage", "INVALID_OUTPUT", "JSON"),
        ("flood", "OUTPUT_TOO_LARGE", "8388608"),
    ];
    let steps = ways.iter().map(|(name, ..)| call(name, "lab", name, json!({}))).collect();
    let run = play(&stage, "ann", "c1", steps).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    for (name, code, word) in ways {
        let told = stage.told(name).await;
        let error = &told["result"]["error"];
        assert_eq!((&error["code"], &error["method"]), (&json!(code), &json!(name)), "{told}");
        assert!(error["message"].as_str().unwrap().contains(word), "{told}");
        assert_eq!(told["result"]["metadata"]["status"], "failure");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_that_outlives_its_deadline_ends_with_everything_it_started() {
    let stage = stage().await;
    play(&stage, "ann", "c1", vec![call("slow", "lab", "slow", json!({}))]).await;
    let told = stage.told("slow").await;
    assert_eq!(told["result"]["error"]["code"], "TIMEOUT", "{told}");
    let pids = std::fs::read_to_string(stage.host.folder().join("lab/out/pids")).unwrap();
    for pid in serde_json::from_str::<Vec<u32>>(&pids).unwrap() {
        assert!(!Path::new(&format!("/proc/{pid}")).exists(), "{pid} is still there");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_ends_when_its_run_is_cancelled() {
    let stage = stage().await;
    let steps = json!([call("slow", "lab", "slow", json!({})), ["end"]]);
    let mut sent = event("clerk", "c1", &steps.to_string());
    sent["actor"]["actor_id"] = "ann".into();
    let run_id = stage.send(&sent).await;
    let file = stage.host.folder().join("lab/out/pids");
    wait_for("the method", PATIENCE, async || file.exists().then_some(())).await;
    stage.cancel(&run_id).await;
    wait_for("the end of the method", PATIENCE, async || {
        let of_method =
            |(_, words): &(u32, Vec<String>)| words.iter().any(|w| w == "slow" || w == "sleep");
        (!descendants(&stage).iter().any(of_method)).then_some(())
    })
    .await;
    let output = wait_for("an output", PATIENCE, async || {
        let items = stage.api.history("c1").await;
        let mut outputs = items.iter().filter_map(|item| item.metadata.get("tool_agent_output"));
        outputs.next().cloned()
    })
    .await;
    assert_eq!(output["error"]["code"], "CANCELLED", "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_reaches_the_host_and_no_other_network_and_no_foreign_files() {
    let stage = stage().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let socket = stage.host.folder().join("puppet/socket");
    let _unix = UnixListener::bind(&socket).unwrap();
    let folder = stage.host.folder().to_owned();
    std::fs::write(folder.join("puppet/notes"), "theirs").unwrap();
    let forbidden = [
        (stage.host.data().join("admin-token"), "read"),
        (stage.host.data().join("greenroom.db"), "read"),
        (folder.join("greenroom.toml"), "read"),
        (folder.join("puppet/notes"), "read"),
        (folder.join("puppet/new"), "write"),
        (folder.join("lab/new"), "write"),
        (folder.join("lab/module.toml"), "write"),
        (format!("/proc/{}/environ", stage.host.pid()).into(), "read"),
    ];
    let allowed = [
        (folder.join("lab/module.toml"), "read"),
        (folder.join("lab/out/new"), "write"),
        ("/etc/passwd".into(), "read"),
    ];
    let paths: serde_json::Map<String, Value> = forbidden
        .iter()
        .chain(&allowed[1..])
        .map(|(path, how)| (path.display().to_string(), json!(how)))
        .collect();
    let own: serde_json::Map<String, Value> =
        allowed[..1].iter().map(|(path, how)| (path.display().to_string(), json!(how))).collect();
    let steps = vec![
        call("network", "lab", "network", json!({"port": port, "socket": socket})),
        call("files", "lab", "files", json!({"paths": paths})),
        call("own", "lab", "files", json!({"paths": own})),
    ];
    play(&stage, "ann", "c1", steps).await;
    let network = data(&stage, "network").await;
    // UDP and listening sockets stay in its own network, in which only the host's port leads out.
    for (name, is_open) in [("host", true), ("other", false), ("unix", false)] {
        let told = network[name].as_str().unwrap();
        assert_eq!(told.starts_with("done"), is_open, "{network}");
    }
    let (files, own) = (data(&stage, "files").await, data(&stage, "own").await);
    for (path, _) in &forbidden {
        // Missing in its view, on a read-only mount, or closed.
        let refusals = ["FileNotFoundError", "OSError", "PermissionError"];
        let told = files[path.to_str().unwrap()].as_str().unwrap();
        assert!(refusals.contains(&told), "{files}");
    }
    for (path, _) in &allowed {
        let path = path.to_str().unwrap();
        let told =
            if files[path].is_null() || own[path].is_string() { &own[path] } else { &files[path] };
        assert!(told.as_str().unwrap().starts_with("done"), "{path}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_file_and_the_configuration_in_the_folder_of_a_method_are_hidden_from_it() {
    let more = "[tools.other]\ncommand = [\"true\"]\nnetwork = false\n\
        env = { KEY = { file = \"lab/key\" } }\n";
    let host = prepared(&format!("{CONFIG}{more}"));
    let lab = module(&host, "lab", &method("files", ""));
    for name in ["key", "note"] {
        std::fs::write(lab.join(name), "0123456789").unwrap();
        std::fs::set_permissions(lab.join(name), Permissions::from_mode(0o644)).unwrap();
    }
    // The manifest beside the configuration: its folder is that of the configuration.
    let manifest = std::fs::read_to_string(lab.join("module.toml")).unwrap();
    let manifest = manifest.replace("lab.py", "lab/lab.py").replace("\"out\"", "\"lab/out\"");
    std::fs::write(host.folder().join("module.toml"), manifest).unwrap();
    let file = host.folder().join("greenroom.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("lab/module.toml", "module.toml")).unwrap();
    let stage = Stage::with(host).await;
    let paths = json!({"lab/key": "read", "greenroom.toml": "read", "lab/note": "read"});
    play(&stage, "ann", "c1", vec![call("files", "lab", "files", json!({"paths": paths}))]).await;
    let files = data(&stage, "files").await;
    assert_eq!(files["lab/note"], "done: 10", "{files}");
    // Empty, or closed where there is no view of its own.
    for hidden in ["lab/key", "greenroom.toml"] {
        let told = files[hidden].as_str().unwrap();
        assert!(["done: 0", "PermissionError"].contains(&told), "{files}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destructive_method_of_a_manifest_is_asked_about() {
    let stage = stage().await;
    let steps = json!([call("remove", "lab", "remove", json!({})), ["end"]]);
    let run_id = stage.send(&event("clerk", "c1", &steps.to_string())).await;
    let question = wait_for("a question", PATIENCE, async || {
        let page = stage.api.get("/v1/approvals?status=pending").await;
        page["items"].as_array().unwrap().first().cloned()
    })
    .await;
    assert_eq!(question["target"]["risk"], "destructive");
    assert_eq!(question["payload"]["method"], "remove");
    let id = question["approval_id"].as_str().unwrap();
    let body = json!({"decision": "allow", "nonce": question["nonce"]}).to_string();
    stage.api.json(Request::post(format!("/v1/approvals/{id}"), body)).await.unwrap();
    stage.api.ended_run(&run_id).await;
    assert_eq!(data(&stage, "remove").await, "removed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_module_is_added_while_the_host_runs() {
    let without = r#"
[agents.clerk]
runner = "plugin:test/puppet/main"
events = []
"#;
    let host = prepared(without);
    module(&host, "lab", &manifest());
    let stage = Stage::with(host).await;
    stage.host.configure(&config("cancel_grace_s = 1", CONFIG));
    let mut number = 0;
    wait_for("the method", PATIENCE, async || {
        number += 1;
        let name = format!("try{number}");
        play(&stage, "ann", &name, vec![call(&name, "lab", "bare", json!({}))]).await;
        let told = stage.told(&name).await;
        (told["result"]["result"]["data"] == json!([1, 2])).then_some(())
    })
    .await;
}

#[test]
fn a_mistake_in_a_manifest_is_told_with_its_file() {
    let head = "module = \"lab\"\ndescription = \"x\"\ncommand = [\"python3\", \"lab.py\"]\n";
    let remote = "input_schema = { type = \"object\", properties = { x = { \"$ref\" = \"https://example.com/s.json\" } } }";
    for (manifest, expected) in [
        ("module = ".to_owned(), "cannot be understood"),
        (format!("{head}colour = 1\n{}", method("a", "")), "unknown field `colour`"),
        (head.to_owned(), "the module has no methods"),
        (
            head.replace("lab\"", "calendar\"") + &method("a", ""),
            "there is a built-in module `calendar`",
        ),
        (head.replace("command", "#") + &method("a", ""), "`lab.a` has no command"),
        (head.to_owned() + &method("a", "timeout_s = 0"), "the timeout of `lab.a`"),
        (head.to_owned() + &method("a", "risk = \"huge\""), "huge"),
        (head.to_owned() + &method("Upper", ""), "`Upper` is not a name"),
        (
            head.to_owned() + &method("a", "input_schema = { type = \"array\" }"),
            "`type = \"object\"`",
        ),
        (head.to_owned() + &method("a", remote), "https://example.com/s.json"),
    ] {
        let host = prepared(CONFIG);
        for name in ["puppet", "lab"] {
            std::fs::create_dir(host.folder().join(name)).unwrap();
        }
        std::fs::write(host.folder().join("lab/module.toml"), manifest).unwrap();
        let (code, _, stderr) = greenroom(&host, &["check"]);
        assert_eq!(code, 2, "{stderr}");
        for part in [expected, "lab/module.toml", "greenroom.toml:"] {
            assert!(stderr.contains(part), "no `{part}` in: {stderr}");
        }
    }
    let host = prepared(CONFIG);
    std::fs::create_dir(host.folder().join("puppet")).unwrap();
    let (code, _, stderr) = greenroom(&host, &["check"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("cannot read") && stderr.contains("lab/module.toml"), "{stderr}");
    module(&host, "lab", &manifest());
    let (code, _, stderr) = greenroom(&host, &["check"]);
    assert_eq!(code, 0, "{stderr}");
    host.configure(&config("", &CONFIG.replace("lab.*", "lab.ehco")));
    let (code, _, stderr) = greenroom(&host, &["check"]);
    assert_eq!(code, 2);
    assert!(stderr.contains("there is no method `lab.ehco`"), "{stderr}");
}
