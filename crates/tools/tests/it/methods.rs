//! Methods of modules as child processes: answers, failures and timeouts.

use crate::kit::{Kit, python};
use greenroom_tools::{MethodCall, Status, ToolFailure, ToolOutput, run_method};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;

impl Kit {
    /// Runs `code`, a Python program, as the method `notes.add`.
    async fn method(&self, code: &str, time: Duration) -> ToolOutput {
        std::fs::write(self.path("own/method.py"), code).unwrap();
        let mut program = self.program(&[python(), "method.py"]);
        program.env = [("SECRET".to_owned(), "s3cret".to_owned())].into();
        let call = MethodCall {
            program,
            module: "notes",
            method: "add",
            input: &json!({"text": "hello"}),
            first_line: None,
            deadline: Instant::now() + time,
        };
        run_method(&self.children, call).await
    }
}

const LONG: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn a_method_gets_its_names_its_payload_and_its_environment() {
    let kit = Kit::new();
    let code = r#"
import json, os, sys
seen = {"argv": sys.argv[1:], "input": json.load(sys.stdin), "secret": os.environ["SECRET"], "user": os.environ.get("USER")}
print(json.dumps({"ok": True, "module": "forged", "method": "forged", "data": seen}))
"#;
    let output = kit.method(code, LONG).await;
    let seen = json!({"argv": ["notes", "add"], "input": {"text": "hello"}, "secret": "s3cret", "user": Value::Null});
    let expected = json!({"module": "notes", "method": "add", "data": seen});
    assert_eq!(output, ToolOutput::success(expected));
    assert!(kit.is_clear());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_that_refuses_gives_a_reason() {
    let kit = Kit::new();
    let code = r#"
import json, sys
print(json.dumps({"ok": False, "error": {"code": "INVALID_ACTION_INPUT", "message": "no", "input_schema": {"a": "b"}}}))
sys.exit(1)
"#;
    let failure = ToolFailure::new("INVALID_ACTION_INPUT", "no")
        .detail("input_schema", json!({"a": "b"}))
        .detail("module", "notes")
        .detail("method", "add");
    assert_eq!(kit.method(code, LONG).await, ToolOutput::failure(failure));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_without_a_valid_answer_is_a_failure_with_its_code() {
    let kit = Kit::new();
    let cases = [
        ("import time; time.sleep(1000)", "TIMEOUT", "the method did not end in time"),
        ("import os; os._exit(3)", "METHOD_CRASHED", "the method exited with code 3"),
        (
            "import os; os.kill(os.getpid(), 9)",
            "METHOD_CRASHED",
            "the method was killed by signal 9",
        ),
        (
            "print('{\"ok\": true, \"data\": 1}'); raise SystemExit(4)",
            "METHOD_CRASHED",
            "the method exited with code 4",
        ),
        (
            "while True: print('x' * 1000)",
            "OUTPUT_TOO_LARGE",
            "the method wrote more than 8388608 bytes",
        ),
    ];
    for (code, kind, message) in cases {
        let time = if kind == "TIMEOUT" { Duration::from_millis(500) } else { LONG };
        let output = kit.method(code, time).await;
        let failure =
            ToolFailure::new(kind, message).detail("module", "notes").detail("method", "add");
        assert_eq!(output, ToolOutput::failure(failure), "{code}");
        assert!(kit.is_clear());
    }
    for code in ["print('this is not JSON')", "print('{\"ok\": true} {}')", ""] {
        let output = kit.method(code, LONG).await;
        assert_eq!(output.status, Status::Failure, "{code}");
        assert_eq!(output.error.unwrap().code, "INVALID_OUTPUT", "{code}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stderr_of_a_method_is_not_shown_to_the_model() {
    let kit = Kit::new();
    let code = "import os, sys; sys.exit('the credential is ' + os.environ['SECRET'])";
    let output = kit.method(code, LONG).await;
    let error = output.error.unwrap();
    assert_eq!(error.code, "METHOD_CRASHED");
    assert!(!format!("{error:?}").contains("s3cret"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_program_is_unavailable() {
    let kit = Kit::new();
    let call = MethodCall {
        program: kit.program(&["no-such-program"]),
        module: "notes",
        method: "add",
        input: &json!({}),
        first_line: None,
        deadline: Instant::now() + LONG,
    };
    let output = run_method(&kit.children, call).await;
    assert_eq!(output.error.unwrap().code, "UNAVAILABLE");
}
