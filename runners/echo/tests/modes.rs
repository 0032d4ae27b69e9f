//! Every mode of echo, as its process shows it on the wire.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on shall panic where it is")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

struct Echo {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Echo {
    #[expect(clippy::disallowed_methods, reason = "the tests are the host here")]
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_greenroom-echo"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, stdin, stdout: BufReader::new(stdout) }
    }

    fn send(&mut self, message: impl ToString) {
        self.stdin.write_all((message.to_string() + "\n").as_bytes()).unwrap();
    }

    /// The next line; `None` at the end of the output.
    fn line(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        (self.stdout.read_until(b'\n', &mut line).unwrap() > 0).then_some(line)
    }

    /// All results up to the answer of `run_agent`; lines that are not JSON read as null.
    fn results(&mut self) -> Vec<Value> {
        let mut results = Vec::new();
        while let Some(line) = self.line() {
            let message: Value = serde_json::from_slice(&line).unwrap_or_default();
            if message.get("id").is_some() {
                assert_eq!(message["result"], json!({}));
                return results;
            }
            results.push(message["params"].clone());
        }
        panic!("echo ended before its run: {results:?}");
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        // Fails only when the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run_agent(run_id: &str, text: &str, config: Value) -> Value {
    json!({
        "jsonrpc": "2.0", "id": run_id, "method": "run_agent",
        "params": {
            "runner_id": "plugin:greenroom/echo/default",
            "runner_name": "default",
            "context": {
                "run_id": run_id,
                "trigger": { "type": "message.received", "source": "api" },
                "event": { "event_id": "e1", "event_type": "message.received", "source": "api" },
                "input": { "text": text },
                "delivery": { "surface": "api" },
                "resources": {},
                "context": { "inline_policy": { "mode": "current_event" }, "available_apis": { "state": true } },
                "state": {},
                "runtime": { "trace_id": "t1" },
                "config": config,
            },
        },
    })
}

/// One run in a process of its own.
fn run(text: &str, config: Value) -> Vec<Value> {
    let mut echo = Echo::start();
    echo.send(run_agent("r1", text, config));
    echo.results()
}

/// Type and content of each result, in short.
fn short(results: &[Value]) -> Vec<(&str, &str)> {
    results
        .iter()
        .map(|result| {
            let data = &result["data"];
            let content = [
                &data["chunk"]["content"],
                &data["message"]["content"],
                &data["code"],
                &data["finish_reason"],
                &data["value"],
                &data["text"],
            ];
            let content = content.into_iter().find_map(Value::as_str).unwrap_or("");
            (result["type"].as_str().unwrap_or("garbage"), content)
        })
        .collect()
}

const COMPLETED: (&str, &str) = ("run.completed", "stop");

#[test]
fn echo_answers_word_by_word_with_exactly_the_text() {
    let results = run("one  two\nthree ", json!({}));
    let expected = [
        ("message.delta", "one "),
        ("message.delta", " "),
        ("message.delta", "two\nthree "),
        ("message.completed", "one  two\nthree "),
        COMPLETED,
    ];
    assert_eq!(short(&results), expected);
}

#[test]
fn the_assistant_style_says_that_no_agent_is_configured() {
    let results = run("hello", json!({ "style": "assistant" }));
    let answer = "You said: hello\n\nNo agent is configured yet, so I can only repeat your words.";
    assert_eq!(short(&results)[results.len() - 2..], [("message.completed", answer), COMPLETED]);
}

#[test]
fn the_text_chooses_a_mode_only_where_the_config_allows_it() {
    let results = run("/fail", json!({}));
    assert_eq!(short(&results)[1..], [("message.completed", "/fail"), COMPLETED]);
    let results = run("/fail code=my.code hard", json!({ "modes": true }));
    assert_eq!(short(&results), [("run.failed", "my.code")]);
    let results = run("/dance", json!({ "modes": true }));
    assert_eq!(short(&results), [("run.failed", "echo.invalid_config")]);
    let results = run("/slow delay_ms=1 a=b is left", json!({ "modes": true }));
    assert_eq!(short(&results)[1..], [("message.completed", "is left"), COMPLETED]);
}

#[test]
fn modes_that_behave() {
    let results = run("", json!({ "mode": "count", "n": 2 }));
    let expected = [
        ("message.delta", "1 "),
        ("message.delta", "2 "),
        ("message.completed", "1 2 "),
        COMPLETED,
    ];
    assert_eq!(short(&results), expected);

    let results = run("", json!({ "mode": "stream", "n": 1, "delay_ms": 1 }));
    let (piece, answer) = (("message.delta", "piece 1 "), ("message.completed", "piece 1 "));
    assert_eq!(short(&results), [piece, answer, COMPLETED]);

    let results = run("blue", json!({ "mode": "state", "key": "colour", "scope": "actor" }));
    let update = json!({ "scope": "actor", "key": "colour", "value": "blue" });
    assert_eq!((&results[0]["type"], &results[0]["data"]), (&json!("state.updated"), &update));

    let results = run("", json!({ "mode": "huge", "megabytes": 3 }));
    assert_eq!(results[0]["data"]["message"]["content"].as_str().unwrap().len(), 3 * 1024 * 1024);
    let results = run("", json!({ "mode": "huge", "megabytes": 1, "form": "deltas" }));
    assert_eq!(results.len(), 1024 + 1);
}

#[test]
fn modes_that_break_a_rule() {
    let results = run("hi", json!({ "mode": "no_terminal" }));
    assert_eq!(short(&results), [("message.completed", "hi")]);

    let results = run("hi", json!({ "mode": "unknown" }));
    let expected = [("echo.unheard_of", "hi"), ("message.completed", "hi"), COMPLETED];
    assert_eq!(short(&results), expected);

    let results = run("", json!({ "mode": "sequence" }));
    let numbers: Vec<_> = results.iter().map(|result| result["sequence"].as_i64()).collect();
    assert_eq!(numbers, [1, 1, 2, 5, 6].map(Some));

    let results = run("hi", json!({ "mode": "wrong_run", "run_id": "theirs" }));
    let runs: Vec<_> = results.iter().map(|result| result["run_id"].as_str().unwrap()).collect();
    assert_eq!(runs, ["theirs", "r1", "r1"]);

    let results = run("hi", json!({ "mode": "after_terminal" }));
    let expected = [
        ("message.completed", "hi"),
        COMPLETED,
        ("message.completed", "too late"),
        ("run.failed", "echo.too_late"),
    ];
    assert_eq!(short(&results), expected);

    let results = run("hi", json!({ "mode": "garbage" }));
    let expected = [("garbage", ""), ("message.completed", "hi"), COMPLETED];
    assert_eq!(short(&results), expected);

    let results = run("hi", json!({ "mode": "panic" }));
    assert_eq!(short(&results), [("run.failed", "runner.error")]);
}

#[test]
fn a_crash_takes_the_process_down_before_or_in_the_middle() {
    for (at, lines) in [("before", 0), ("middle", 1)] {
        let mut echo = Echo::start();
        echo.send(run_agent("r1", "", json!({ "mode": "crash", "at": at })));
        let read = std::iter::from_fn(|| echo.line()).count();
        assert_eq!((read, echo.child.wait().unwrap().code()), (lines, Some(3)));
    }
}

#[test]
fn slow_and_hang_honour_a_cancellation_and_stubborn_does_not() {
    let cancel = r#"{"jsonrpc":"2.0","method":"run.cancel","params":{"run_id":"r1"}}"#;
    for config in [json!({ "mode": "slow", "delay_ms": 3_600_000 }), json!({ "mode": "hang" })] {
        let mut echo = Echo::start();
        echo.send(run_agent("r1", "", config));
        echo.send(cancel);
        assert_eq!(short(&echo.results()), [("run.failed", "cancelled")]);
    }
    let mut echo = Echo::start();
    echo.send(run_agent("r1", "", json!({ "mode": "stubborn", "n": 2, "delay_ms": 20 })));
    echo.send(cancel);
    let results = echo.results();
    let kinds: Vec<_> = short(&results).into_iter().map(|(kind, _)| kind).collect();
    let expected = ["message.delta", "message.delta", "message.completed", "run.completed"];
    assert_eq!(kinds, expected);
}

#[test]
fn the_mode_calls_reports_times_of_sequential_and_concurrent_calls() {
    let mut echo = Echo::start();
    echo.send(run_agent("r1", "", json!({ "mode": "calls", "n": 6, "at_once": 3 })));
    let mut params = Vec::new();
    let message = loop {
        let message: Value = serde_json::from_slice(&echo.line().unwrap()).unwrap();
        if message["method"] != "state.get" {
            break message;
        }
        let result = json!({ "value": null, "version": 0 });
        echo.send(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
        params.push(message["params"].clone());
    };
    let asked = json!({ "run_id": "r1", "scope": "conversation", "key": "echo.last" });
    assert_eq!(params, vec![asked; 12]);
    let text = message["params"]["data"]["message"]["content"].as_str().unwrap();
    let output: Value = serde_json::from_str(text).unwrap();
    assert_eq!((&output["calls"], &output["at_once"]), (&json!(6), &json!(3)));
    assert!(
        output["p50_us"].as_f64() > Some(0.0) && output["per_s"].as_f64() > Some(0.0),
        "{output}"
    );
}

#[test]
fn the_form_of_the_config_is_labelled_in_two_languages() {
    let mut echo = Echo::start();
    echo.send(r#"{"jsonrpc":"2.0","id":1,"method":"list_agent_runners","params":{}}"#);
    let answer: Value = serde_json::from_slice(&echo.line().unwrap()).unwrap();
    let manifest = &answer["result"]["runners"][0];
    assert_eq!(manifest["id"], "plugin:greenroom/echo/default");
    let items = manifest["config_schema"].as_array().unwrap();
    assert!(items.iter().any(|item| item["name"] == "mode"));
    let options = items.iter().flat_map(|item| item["options"].as_array().into_iter().flatten());
    for labelled in items.iter().chain(options) {
        let label = labelled["label"].as_object().unwrap();
        assert!(label.contains_key("en_US") && label.contains_key("zh_Hans"), "{labelled}");
    }
}
