//! What the guides show, tried: the Python tool, and the codes of tools that have a page.

use crate::{greenroom, told};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The blocks of Python behind a heading or a bold beginning, in order.
fn python_after(guide: &str, beginning: &str) -> Vec<String> {
    let from = guide.find(beginning).unwrap();
    let blocks = guide[from..].split("```python\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

/// The template with the two blocks of the guide where it says that they belong.
fn with_tool(dir: &Path) -> PathBuf {
    let guide = std::fs::read_to_string(root().join("docs/guides/write-a-runner.md")).unwrap();
    let blocks = python_after(&guide, "**Offering tools.**");
    let made = greenroom(dir, &["runner", "new", "--lang", "python", "--from", "plain", "parrot"])
        .output()
        .unwrap();
    assert!(made.status.success());
    let file = dir.join("parrot/runner.py");
    let text = std::fs::read_to_string(&file).unwrap();
    let text = text
        .replace(
            "for line in sys.stdin.buffer:",
            &format!("{}\n\nfor line in sys.stdin.buffer:", blocks[0]),
        )
        .replace(
            "    if method == \"run_agent\":",
            &format!("{}    if method == \"run_agent\":", blocks[1]),
        );
    std::fs::write(&file, text).unwrap();
    file
}

#[test]
#[expect(clippy::disallowed_methods, reason = "the test is the host of this process")]
fn the_python_tool_of_the_guide_is_offered_and_answers() {
    let dir = tempfile::tempdir().unwrap();
    let file = with_tool(dir.path());
    let tested = told(dir.path(), &["runner", "test", "python3", "parrot/runner.py"]);
    assert!(tested.starts_with("exit 0") && tested.contains("1: roll"), "{tested}");
    let mut child = Command::new("python3")
        .arg(file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut lines = BufReader::new(stdout).lines();
    let mut ask = |tool_name: &str| -> Value {
        let params =
            json!({"tool_name": tool_name, "parameters": {"sides": 6}, "tool_call_id": "t"});
        let call = json!({"jsonrpc": "2.0", "id": 7, "method": "call_tool", "params": params});
        writeln!(stdin, "{call}").unwrap();
        serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
    };
    let total = ask("roll")["result"]["result"]["total"].as_i64().unwrap();
    assert!((1..=6).contains(&total), "{total}");
    assert_eq!(ask("rool")["result"]["error"]["code"], "tool.error");
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

/// The codes that a file gives failures.
fn codes(path: &Path, found: &mut Vec<String>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            codes(&entry.unwrap().path(), found);
        }
        return;
    }
    let is_code =
        |text: &str| text.len() > 3 && text.chars().all(|c| c.is_ascii_uppercase() || c == '_');
    let text = std::fs::read_to_string(path).unwrap();
    for place in text.split("ToolFailure::new(").skip(1) {
        let code = place.trim_start().strip_prefix('"').and_then(|rest| rest.split('"').next());
        found.extend(code.filter(|code| is_code(code)).map(str::to_owned));
    }
}

#[test]
fn every_code_of_a_failed_tool_call_is_on_its_page() {
    let page = std::fs::read_to_string(root().join("docs/errors/tools.md")).unwrap();
    let mut found = Vec::new();
    for folder in ["crates/tools/src", "crates/host/src/proxy"] {
        codes(&root().join(folder), &mut found);
    }
    assert!(found.len() > 10, "{found:?}");
    found.retain(|code| !page.contains(&format!("`{code}`")));
    assert_eq!(found, [""; 0]);
}
