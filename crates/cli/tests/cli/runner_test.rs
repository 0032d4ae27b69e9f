//! `runner new` and `runner test` with real processes.

use crate::{greenroom, told};
use insta::assert_snapshot;
use serde_json::Value;
use std::path::Path;

/// A runner in Python that is changed as a test wants it.
fn runner(dir: &Path, change: &[(&str, &str)]) {
    let made = told(dir, &["runner", "new", "--lang", "python", "--from", "plain", "my-runner"]);
    assert!(made.starts_with("exit 0"), "{made}");
    let path = dir.join("my-runner/runner.py");
    let mut text = std::fs::read_to_string(&path).unwrap();
    for (from, to) in change {
        assert!(text.contains(from), "{from} is not in the template");
        text = text.replace(from, to);
    }
    std::fs::write(path, text).unwrap();
}

fn test(dir: &Path) -> String {
    told(dir, &["runner", "test", "--timeout", "20", "python3", "my-runner/runner.py"])
}

#[test]
fn a_new_python_runner_passes() {
    let dir = tempfile::tempdir().unwrap();
    runner(dir.path(), &[]);
    // Whether the cancel overtakes the answer is up to the machine.
    let told = test(dir.path());
    let lines = told.lines().map(|line| match line.starts_with("ok    cancel") {
        true => "ok    cancel",
        false => line,
    });
    assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @r#"
    exit 0
    --- stdout
    ok    initialize            local/my-runner 0.1.0
    ok    list_agent_runners    plugin:local/my-runner/default
    ok    list_tools            none
    ok    run                   deltas: 3, messages: 1, run.completed
    ok    two runs at once      deltas: 3, messages: 1, run.completed
    ok    cancel
    ok    late cancel
    ok    unknown method
    ok    unknown notification
    ok    broken line
    ok    shutdown
    ok    end of input

    checks: 12, failed: 0, with a warning: 0
    --- stderr
    "#);
}

#[test]
fn a_langbot_plugin_is_not_taken_for_a_runner_of_ours() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("zoo")).unwrap();
    std::fs::write(dir.path().join("zoo/manifest.yaml"), "kind: Plugin\n").unwrap();
    std::fs::write(dir.path().join("zoo/main.py"), "").unwrap();
    for command in [&["zoo"][..], &["python3", "zoo/main.py"]] {
        let told = told(dir.path(), &[&["runner", "test"], command].concat());
        assert!(told.starts_with("exit 2"), "{told}");
        assert!(told.contains("is a LangBot plugin, which this command cannot check"), "{told}");
        assert!(told.contains("`greenroom runner add "), "{told}");
    }
}

#[test]
fn a_plugin_for_tools_alone_passes_without_runs() {
    let dir = tempfile::tempdir().unwrap();
    let tools = r#""list_tools": {"tools": [{"name": "dice.roll", "input_schema": {"type": "object"}, "risk": "read"}]}, "shutdown""#;
    runner(
        dir.path(),
        &[(r#"{"runners": [RUNNER]}"#, r#"{"runners": []}"#), (r#""shutdown""#, "SHUTDOWN")],
    );
    let path = dir.path().join("my-runner/runner.py");
    let text = std::fs::read_to_string(&path).unwrap().replacen("SHUTDOWN", tools, 1);
    std::fs::write(&path, text.replace("SHUTDOWN", r#""shutdown""#)).unwrap();
    assert_snapshot!(test(dir.path()), @r#"
    exit 0
    --- stdout
    ok    initialize            local/my-runner 0.1.0
    ok    list_agent_runners    none
    ok    list_tools            1: dice.roll
    skip  run                   there is no runner
    skip  two runs at once      there is no runner
    skip  cancel                there is no runner
    ok    late cancel
    ok    unknown method
    ok    unknown notification
    ok    broken line
    ok    shutdown
    ok    end of input

    checks: 12, failed: 0, with a warning: 0
    --- stderr
    "#);
}

#[test]
fn a_tool_that_no_host_would_take_is_found() {
    let found = |schema: &str| {
        let dir = tempfile::tempdir().unwrap();
        let tool = format!(r#"{{"name": "dice.roll", "input_schema": {schema}}}"#);
        let listed = format!(
            r#""list_agent_runners": {{"runners": [RUNNER]}}, "list_tools": {{"tools": [{tool}]}}"#
        );
        runner(dir.path(), &[(r#""list_agent_runners": {"runners": [RUNNER]}"#, &listed)]);
        let told = test(dir.path());
        assert!(told.starts_with("exit 1"), "{told}");
        told.lines().find(|line| line.contains("list_tools")).unwrap().to_owned()
    };
    let told = found(r#"{"type": "array"}"#);
    assert_eq!(
        told,
        "FAIL  list_tools            tool 1 \"dice.roll\": `input_schema` must be a JSON Schema of the type `object`"
    );
    let told = found(r#"{"type": "object", "properties": {"n": {"type": "dice"}}}"#);
    assert!(told.contains("tool `dice.roll`: `input_schema`: the schema is not valid: "), "{told}");
}

#[test]
fn a_second_terminal_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let once = r#"    send("run.completed", {"finish_reason": "stop"})"#;
    runner(dir.path(), &[(once, &format!("{once}\n{once}"))]);
    let told = test(dir.path());
    assert!(told.starts_with("exit 1"), "{told}");
    assert!(
        told.contains("FAIL  run                   `run.completed` came after `run.completed`"),
        "{told}"
    );
}

#[test]
fn a_missing_terminal_and_a_crash_are_found() {
    let dir = tempfile::tempdir().unwrap();
    runner(dir.path(), &[(r#"    send("run.completed", {"finish_reason": "stop"})"#, "    pass")]);
    assert!(test(dir.path()).contains("`run_agent` was answered without a terminal result"));
    let dir = tempfile::tempdir().unwrap();
    runner(
        dir.path(),
        &[(
            "    text = \"You said: \"",
            "    import os; print('oh no', file=sys.stderr, flush=True); os._exit(3)\n    text = \"You said: \"",
        )],
    );
    let told = test(dir.path());
    assert!(
        told.contains("the process closed its output (1 of 1 runs without a terminal)"),
        "{told}"
    );
    assert!(told.contains("Its log ends with:\noh no\n"), "{told}");
}

#[test]
fn a_run_that_was_refused_fails_the_test() {
    let dir = tempfile::tempdir().unwrap();
    let once = r#"    send("run.completed", {"finish_reason": "stop"})"#;
    let refused =
        r#"    send("run.failed", {"code": "unauthorized", "message": "no model is granted"})"#;
    runner(dir.path(), &[(once, refused)]);
    let told = test(dir.path());
    assert!(told.starts_with("exit 1"), "{told}");
    let why = "the run was refused: it needs a grant, and this test grants nothing; \
               try it on a host with `greenroom send`";
    for check in ["FAIL  run  ", "FAIL  two runs at once  "] {
        let line = told.lines().find(|line| line.starts_with(check));
        assert!(line.is_some_and(|line| line.ends_with(why)), "{check}: {told}");
    }
}

#[test]
fn print_on_standard_output_is_found() {
    let dir = tempfile::tempdir().unwrap();
    runner(dir.path(), &[("writing, cancelled =", "print('ready')\nwriting, cancelled =")]);
    assert!(
        test(dir.path())
            .contains("FAIL  initialize            a line on standard output is not JSON: `ready`")
    );
}

#[test]
fn a_command_that_does_not_exist_is_told() {
    let dir = tempfile::tempdir().unwrap();
    assert_snapshot!(told(dir.path(), &["runner", "test", "./nothing-here"]), @r#"
    exit 1
    --- stdout
    FAIL  start                 cannot start `./nothing-here`: No such file or directory (os error 2)

    checks: 1, failed: 1, with a warning: 0
    --- stderr
    "#);
}

#[test]
fn the_report_can_be_read_by_programs() {
    let dir = tempfile::tempdir().unwrap();
    runner(dir.path(), &[]);
    let args = ["runner", "test", "--json", "python3", "my-runner/runner.py"];
    let output = greenroom(dir.path(), &args).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["ok"], true);
    assert_eq!(report["checks"][0]["name"], "initialize");
}
