//! The files of `greenroom runner new` work unchanged.

use crate::process::{Process, command, completed, message, run_agent};
use greenroom_sdk::template::{self, SdkSource};
use serde_json::json;

#[test]
fn the_plain_python_template_answers_on_the_wire() {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in template::plain_python("parrot") {
        std::fs::write(folder.path().join(path), text).unwrap();
    }
    let mut runner = Process::start(command("python3").arg(folder.path().join("runner.py")));
    runner.send(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol_version":"1","host":{"name":"h","version":"0"}}}"#,
    );
    let plugin = json!({ "author": "local", "name": "parrot", "version": "0.1.0" });
    let greeting = json!({ "protocol_version": "1", "plugin": plugin });
    assert_eq!(runner.read(), json!({ "jsonrpc": "2.0", "id": 1, "result": greeting }));
    runner.send(r#"{"jsonrpc":"2.0","id":2,"method":"list_agent_runners","params":{}}"#);
    let listed = runner.read();
    assert_eq!(listed["result"]["runners"][0]["id"], "plugin:local/parrot/default");
    runner.send(r#"{"jsonrpc":"2.0","id":3,"method":"make_coffee","params":{}}"#);
    assert_eq!(runner.read()["error"]["code"], -32601);

    runner.send_bytes(b"not \xff JSON\n");
    assert_eq!(runner.read()["error"]["code"], -32700);

    runner.send(run_agent(4, "r1", "hi", json!({})));
    let (results, answer) = runner.read_until(4);
    assert_eq!(answer, json!({ "jsonrpc": "2.0", "id": 4, "result": {} }));
    let (end, deltas) = (&results[results.len() - 2..], &results[..results.len() - 2]);
    let joined: String = deltas
        .iter()
        .map(|delta| delta["params"]["data"]["chunk"]["content"].as_str().unwrap())
        .collect();
    assert_eq!(joined, "You said: hi");
    let mut expected = [message("r1", 0, "You said: hi"), completed("r1", 0)];
    for line in &mut expected {
        line["params"].as_object_mut().unwrap().remove("sequence");
    }
    assert_eq!(end, expected);
    runner.send(r#"{"jsonrpc":"2.0","id":5,"method":"shutdown","params":{}}"#);
    assert_eq!(runner.read(), json!({ "jsonrpc": "2.0", "id": 5, "result": {} }));
    assert_eq!(runner.wait().code(), Some(0));
}

#[test]
fn the_python_template_is_filled_in_completely() {
    let files = template::python("parrot", SdkSource::Path("/my src/sdk"));
    let paths: Vec<_> = files.iter().map(|(path, _)| path.to_str().unwrap()).collect();
    assert_eq!(paths, ["runner.py", "tests/test_runner.py", "requirements.txt", "README.md"]);
    for (path, text) in &files {
        assert!(!text.contains("{{") && !text.contains("my-runner"), "{}", path.display());
    }
    assert_eq!(files[2].1, "greenroom-sdk @ file:///my%20src/sdk\npytest\n");
    let published = template::python("parrot", SdkSource::Published);
    assert!(published[2].1.starts_with(concat!("greenroom-sdk==", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn the_rust_template_is_filled_in_completely() {
    let files = template::rust("parrot", SdkSource::Path("/src/sdk"));
    let paths: Vec<_> = files.iter().map(|(path, _)| path.to_str().unwrap()).collect();
    assert_eq!(paths, ["Cargo.toml", "src/main.rs", "tests/answers.rs", "README.md"]);
    for (path, text) in &files {
        assert!(!text.contains("{{"), "{} has a hole left", path.display());
    }
    assert!(files[0].1.contains("greenroom-sdk = { path = \"/src/sdk\" }"));
    let published = template::rust("parrot", SdkSource::Published);
    let version = env!("CARGO_PKG_VERSION");
    assert!(published[0].1.contains(&format!("greenroom-sdk = \"{version}\"")));
}
