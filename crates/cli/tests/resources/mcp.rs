//! Unmodified MCP servers behind the host: listed, granted, called, asked about, lost and found again.

use crate::play;
use crate::programs::{descendants, prepared};
use crate::stage::{PATIENCE, Stage, event, outcome};
use greenroom_protocol::{RunStatus, RunView};
use greenroom_testkit::http::Request;
use greenroom_testkit::wait::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder of the unmodified servers, installed when that has not been done yet; shared with the tests of
/// the crate that speaks MCP.
fn installed() -> PathBuf {
    let folder = Path::new(crate::PROGRAM).ancestors().nth(2).unwrap().join("outside/mcp-servers");
    std::fs::create_dir_all(&folder).unwrap();
    let lock = std::fs::File::create(folder.join("lock")).unwrap();
    // One test installs, the others wait for it.
    lock.lock().unwrap();
    let wanted = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tools/tests/servers/package.json");
    let wanted = std::fs::read(wanted).unwrap();
    if std::fs::read(folder.join("installed.json")).ok().as_ref() != Some(&wanted) {
        std::fs::write(folder.join("package.json"), &wanted).unwrap();
        #[expect(clippy::disallowed_methods, reason = "the test installs what it is run against")]
        let status = Command::new("npm")
            .args(["install", "--silent", "--no-audit", "--no-fund", "--no-package-lock"])
            .current_dir(&folder)
            .status();
        assert!(status.unwrap().success(), "npm cannot install the servers");
        std::fs::write(folder.join("installed.json"), &wanted).unwrap();
    }
    folder
}

pub(crate) fn script(package: &str) -> PathBuf {
    let script = format!("node_modules/@modelcontextprotocol/server-{package}/dist/index.js");
    installed().join(script)
}

/// A host with both servers; `files` works in the folder `docs`.
pub(crate) async fn stage(of_files: &str, grant: &str) -> Stage {
    let (files, everything) = (script("filesystem"), script("everything"));
    let servers = installed();
    let servers = servers.display();
    let config = format!(
        r#"
[tools.files]
command = ["node", "{}", "DOCS"]
dir = "{servers}"
paths = ["DOCS"]
network = false
{of_files}
[tools.everything]
command = ["node", "{}", "stdio"]
dir = "{servers}"
network = false
risk = {{ trigger-long-running-operation = "external" }}
[agents.clerk]
runner = "plugin:test/puppet/main"
events = []
deadline_s = 60
grant = {{ {grant} }}
"#,
        files.display(),
        everything.display()
    );
    let host = prepared("");
    let docs = host.folder().join("docs");
    std::fs::create_dir(&docs).unwrap();
    std::fs::set_permissions(&docs, Permissions::from_mode(0o777)).unwrap();
    std::fs::write(docs.join("note.txt"), "hello 台北").unwrap();
    let config = config.replace("DOCS", docs.to_str().unwrap());
    host.configure(&crate::stage::config("cancel_grace_s = 1", &config));
    Stage::with(host).await
}

fn docs(stage: &Stage) -> PathBuf {
    stage.host.folder().join("docs")
}

pub(crate) fn use_tool(name: &str, tool: &str, parameters: Value) -> Value {
    let params = json!({"tool_name": tool, "parameters": parameters, "tool_call_id": name});
    json!(["call", "tools.call", params, name])
}

pub(crate) async fn resources(stage: &Stage, run: &RunView) -> Value {
    serde_json::from_str(&stage.answers_of(run).await[0]).unwrap()
}

pub(crate) fn names(tools: &Value) -> Vec<String> {
    let tools = tools.as_array().unwrap().iter();
    tools.map(|tool| tool["tool_name"].as_str().unwrap().to_owned()).collect()
}

/// What a server lists, asked without any of our code.
#[expect(clippy::disallowed_methods, reason = "the test starts the server that it asks")]
fn listed(package: &str, args: &[&str]) -> Vec<Value> {
    let mut command = Command::new("node");
    command.arg(script(package)).args(args).current_dir(std::env::temp_dir());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = command.spawn().unwrap();
    let mut stdin = server.stdin.take().unwrap();
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}});
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
    ] {
        writeln!(stdin, "{message}").unwrap();
    }
    let lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut messages =
        lines.map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok());
    let answer: Value = messages.find(|message: &Value| message["id"] == 2).unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    answer["result"]["tools"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_tools_of_a_server_are_resources_with_their_own_schemas_from_the_first_run_on() {
    let stage = stage("", r#"tools = ["files.*"]"#).await;
    let steps = vec![
        json!(["tell", "resources"]),
        json!(["call", "tools.get_detail", {"tool_name": "files.read_text_file"}, "detail"]),
        json!(["call", "tools.search", {"query": "read a text file", "top_k": 3}, "english"]),
        json!(["call", "tools.search", {"query": "读取文件", "top_k": 5}, "chinese"]),
        json!(["call", "tools.search", {"query": "echo", "top_k": 5}, "foreign"]),
    ];
    let run = play(&stage, "ann", "c1", steps).await;
    let resources = resources(&stage, &run).await;
    let tools = resources["tools"].as_array().unwrap();
    let own = std::env::temp_dir();
    let mut listed = listed("filesystem", &[own.to_str().unwrap()]);
    listed.sort_by_key(|tool| tool["name"].as_str().unwrap().to_owned());
    assert_eq!(tools.len(), listed.len());
    for (tool, listed) in tools.iter().zip(&listed) {
        assert_eq!(tool["tool_name"], format!("files.{}", listed["name"].as_str().unwrap()));
        assert_eq!(tool["description"], listed["description"]);
        assert_eq!(tool["parameters"], listed["inputSchema"]);
        assert_eq!(tool["metadata"]["output_schema"], listed["outputSchema"]);
        assert_eq!(tool["operations"], json!(["detail", "call"]));
    }
    let detail = stage.told("detail").await["result"].clone();
    assert!(tools.contains(&detail), "{detail}");
    let found = async |name: &str| names(&stage.told(name).await["result"]["items"]);
    assert!(found("english").await.contains(&"files.read_text_file".to_owned()));
    let chinese = found("chinese").await;
    assert!(chinese.iter().any(|name| name.contains("read")), "{chinese:?}");
    // What was not granted is not found either.
    assert!(!found("foreign").await.iter().any(|name| name.starts_with("everything")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_checked_carried_out_and_kept() {
    let grant = r#"tools = ["files.read_text_file", "files.list_directory"]"#;
    let stage = stage("", grant).await;
    let note = docs(&stage).join("note.txt");
    let outside = stage.host.data().join("admin-token");
    let steps = vec![
        use_tool("read", "files.read_text_file", json!({"path": note})),
        use_tool("wrong", "files.read_text_file", json!({"path": 7})),
        use_tool("absent", "files.read_text_file", json!({})),
        use_tool("outside", "files.read_text_file", json!({"path": outside})),
        use_tool("denied", "files.write_file", json!({"path": note, "content": ""})),
        use_tool("near", "files.read_text_fil", json!({"path": note})),
    ];
    let run = play(&stage, "ann", "c1", steps).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    let read = stage.told("read").await;
    assert_eq!(read["result"]["result"]["content"], "hello 台北", "{read}");
    let content: Value = serde_json::from_str(read["result"]["content"].as_str().unwrap()).unwrap();
    assert_eq!(content, read["result"]["result"]);
    for name in ["wrong", "absent"] {
        let error = stage.told(name).await["result"]["error"].clone();
        assert_eq!(error["code"], "INVALID_ARGUMENT", "{error}");
        assert!(error["message"].as_str().unwrap().contains("path"), "{error}");
        assert!(error["input_schema"].is_object());
    }
    assert_eq!(stage.told("wrong").await["result"]["error"]["field"], "path");
    assert_eq!(stage.told("outside").await["result"]["error"]["code"], "TOOL_ERROR");
    for name in ["denied", "near"] {
        let told = stage.told(name).await;
        assert_eq!(told["error"]["data"]["code"], "not_found", "{told}");
    }
    let near = stage.told("near").await["error"]["data"]["details"]["close_matches"].clone();
    assert_eq!(near[0], "files.read_text_file");
    let history = stage.api.history("c1").await;
    let outputs: Vec<&Value> =
        history.iter().filter_map(|item| item.metadata.get("tool_agent_output")).collect();
    assert_eq!(outputs.len(), 4, "calls of what does not exist are no calls");
    assert_eq!(outputs[0]["tool_name"], "files.read_text_file");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_file_in_the_folders_of_a_server_is_hidden_from_it() {
    let secret = "[tools.other]\ncommand = [\"true\"]\nnetwork = false\nenv = { KEY = { file = \"DOCS/note.txt\" } }";
    let stage = stage(secret, r#"tools = ["files.*"]"#).await;
    let note = docs(&stage).join("note.txt");
    let steps = vec![
        use_tool("read", "files.read_text_file", json!({"path": note})),
        use_tool("list", "files.list_directory", json!({"path": docs(&stage)})),
    ];
    let run = play(&stage, "ann", "c1", steps).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    // Not even `[redacted]`: the server itself did not see it.
    let read = stage.told("read").await;
    assert_eq!(read["result"]["result"]["content"], "", "{read}");
    // The server works, and sees that there is something.
    let list = stage.told("list").await.to_string();
    assert!(list.contains("note.txt"), "{list}");
}

#[tokio::test(flavor = "multi_thread")]
async fn large_results_and_images_become_artifacts() {
    let stage = stage("", r#"tools = ["files.*", "everything.*"]"#).await;
    let large = docs(&stage).join("large.txt");
    let text = "line of text\n".repeat(40_000);
    std::fs::write(&large, &text).unwrap();
    let steps = vec![
        use_tool("large", "files.read_text_file", json!({"path": large})),
        use_tool("image", "everything.get-tiny-image", json!({})),
        use_tool("sum", "everything.get-sum", json!({"a": 2, "b": 3})),
    ];
    play(&stage, "ann", "c1", steps).await;
    let told = stage.told("large").await["result"]["result"].clone();
    assert_eq!(told["truncated"], true, "{told}");
    assert!(told["preview"].as_str().unwrap().contains("line of text"));
    let id = told["artifact"]["artifact_id"].as_str().unwrap();
    let answer = stage.api.send(Request::get(format!("/v1/artifacts/{id}"))).await.unwrap();
    let whole: Value = serde_json::from_slice(&answer.body().await.unwrap()).unwrap();
    assert_eq!(whole["content"], text.as_str());

    let told = stage.told("image").await["result"]["result"].clone();
    let blocks = told["content"].as_array().unwrap();
    let image = blocks.iter().find(|block| block["type"] == "image").unwrap();
    assert_eq!(image["artifact"]["mime_type"], "image/png", "{image}");
    assert_eq!(image.get("data"), None);
    let id = image["artifact"]["artifact_id"].as_str().unwrap();
    let answer = stage.api.send(Request::get(format!("/v1/artifacts/{id}"))).await.unwrap();
    assert!(answer.body().await.unwrap().starts_with(b"\x89PNG"));
    let sum = stage.told("sum").await;
    assert_eq!(sum["result"]["result"]["content"][0]["text"], "The sum of 2 and 3 is 5.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_destructive_tool_is_asked_about_and_the_configuration_has_the_last_word() {
    let risk = r#"risk = { create_directory = "external" }"#;
    let stage = stage(risk, r#"tools = ["files.*"], risk = { external = "never" }"#).await;
    let path = docs(&stage).join("new.txt");
    let steps = json!([
        use_tool("made", "files.create_directory", json!({"path": docs(&stage).join("sub")})),
        use_tool("written", "files.write_file", json!({"path": path, "content": "x"})),
        ["end"]
    ]);
    let run_id = stage.send(&event("clerk", "c1", &steps.to_string())).await;
    let question = wait_for("a question", PATIENCE, async || {
        let page = stage.api.get("/v1/approvals?status=pending").await;
        page["items"].as_array().unwrap().first().cloned()
    })
    .await;
    assert_eq!(question["target"]["tool_name"], "files.write_file");
    assert_eq!(question["target"]["risk"], "destructive");
    assert!(!path.exists());
    let id = question["approval_id"].as_str().unwrap();
    let body = json!({"decision": "allow", "nonce": question["nonce"]}).to_string();
    stage.api.json(Request::post(format!("/v1/approvals/{id}"), body)).await.unwrap();
    stage.api.ended_run(&run_id).await;
    let told = stage.told("written").await;
    assert_eq!(told["result"]["metadata"]["status"], "success", "{told}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "x");
    let refused = stage.told("made").await;
    assert_eq!(refused["error"]["data"]["code"], "unauthorized", "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_killed_is_there_again_for_the_next_call() {
    let stage = stage("", r#"tools = ["everything.*"]"#).await;
    let echo = |name: &str| use_tool(name, "everything.echo", json!({"message": name}));
    play(&stage, "ann", "c1", vec![echo("one")]).await;
    let server = |stage: &Stage| {
        let all = descendants(stage).into_iter();
        let mut found = all.filter(|(_, words)| {
            words.first().is_some_and(|word| word.ends_with("node"))
                && words.concat().contains("server-everything")
        });
        found.next().map(|(pid, _)| pid)
    };
    let first = server(&stage).unwrap();
    // One call is under way when it dies.
    let long = json!({"duration": 100, "steps": 2});
    let steps = json!([
        use_tool("lost", "everything.trigger-long-running-operation", long),
        echo("two"),
        ["end"]
    ]);
    let run_id = stage.send(&event("clerk", "c2", &steps.to_string())).await;
    wait_for("the call", PATIENCE, async || {
        (stage.log("tool.call.started").await.len() == 1).then_some(())
    })
    .await;
    kill_process(Pid::from_raw(i32::try_from(first).unwrap()).unwrap(), Signal::KILL).unwrap();
    let run = stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    let lost = stage.told("lost").await["result"]["error"].clone();
    let message = "the MCP server `everything` ended the connection during the call: whether it \
                   took effect is not known";
    assert_eq!(lost, json!({"code": "UNAVAILABLE", "message": message}));
    let two = stage.told("two").await;
    assert_eq!(two["result"]["result"]["content"][0]["text"], "Echo: two", "{two}");
    assert_ne!(server(&stage), Some(first));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_block_of_tools_has_one_hash_as_long_as_it_is_the_same() {
    let stage = stage("allow = [\"read_*\"]", r#"tools = ["files.*", "everything.echo"]"#).await;
    let hash = async |conversation: &str| {
        let steps = vec![json!(["tell", "runtime"]), json!(["tell", "resources"])];
        let run = play(&stage, "ann", conversation, steps).await;
        let told = stage.answers_of(&run).await;
        let runtime: Value = serde_json::from_str(&told[0]).unwrap();
        let resources: Value = serde_json::from_str(&told[1]).unwrap();
        (
            runtime["static_refs"]["tools"]["hash"].as_str().unwrap().to_owned(),
            names(&resources["tools"]),
        )
    };
    let (first, tools) = hash("c1").await;
    let expected = [
        "everything.echo",
        "files.read_file",
        "files.read_media_file",
        "files.read_multiple_files",
        "files.read_text_file",
    ];
    assert_eq!(tools, expected);
    assert!(first.starts_with("sha256:"));
    assert_eq!(hash("c2").await.0, first);
    let file = std::fs::read_to_string(stage.host.folder().join("greenroom.toml")).unwrap();
    stage.host.configure(&file.replace("\"read_*\"", "\"read_text_file\""));
    let mut number = 2;
    let other = wait_for("another set", PATIENCE, async || {
        number += 1;
        let (hash, tools) = hash(&format!("c{number}")).await;
        (tools == ["everything.echo", "files.read_text_file"]).then_some(hash)
    })
    .await;
    assert_ne!(other, first);
}
