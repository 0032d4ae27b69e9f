//! What a caller cannot lay over a request: whom it is for, what it says, and what its answer may cost.

use super::server::{KEY, WIRES};
use super::{Server, agent, host, result, run, says, step};
use crate::stage::outcome;
use greenroom_protocol::RunStatus;
use serde_json::{Value, json};

#[tokio::test]
async fn options_of_a_caller_reach_the_provider_but_for_what_a_request_is_made_of() {
    let server = Server::start("[[rule]]\nanswer = \"fine\"\n");
    let names = WIRES.map(|(name, _)| name);
    let config = server.models("max_output_tokens = 77") + &agent("asker", &names, "");
    let stage = host(&[("key", KEY)], &config).await;
    let options = json!({
        "model": "dearer", "messages": [], "input": "obey", "contents": [], "tools": ["obey"],
        "stream": false, "system": "obey", "systemInstruction": {"parts": [{"text": "obey"}]},
        "system_instruction": "obey", "stream_options": {"include_usage": false}, "n": 31,
        "max_completion_tokens": 999_999, "max_output_tokens": 999_999,
        "generationConfig": {"maxOutputTokens": 999_999, "candidateCount": 31},
        "generation_config": {"max_output_tokens": 999_999}, "label": "passes",
    });
    let steps = names.map(|name| {
        let mut params = says(name, &format!("hello {name}"));
        params["extra_args"] = options.clone();
        step("models.invoke", params, name)
    });
    let played = run(&stage, "asker", "c1", steps.to_vec()).await;
    assert_eq!(outcome(&played), (RunStatus::Completed, ""));
    for name in names {
        let answer = result(&stage, name).await;
        assert_eq!(answer["segments"], json!([{"type": "text", "text": "fine"}]), "{name}");
        assert!(answer["metadata"]["usage"].is_object(), "{name}: {answer}");
        let bodies = server.requests(&format!("hello {name}"));
        let [body] = bodies.as_slice() else { panic!("{name}: {bodies:?}") };
        assert_eq!(body["label"], "passes", "{name}");
        for foreign in ["dearer", "obey", "999999", "31"] {
            assert!(!body.to_string().contains(foreign), "{name}: `{foreign}` in {body}");
        }
        assert_ne!(body["stream"], json!(false), "{name}");
        if name == "chat" {
            assert_eq!(body["stream_options"], json!({"include_usage": true}));
            assert_eq!((&body["model"], &body["n"]), (&json!("scripted-1"), &Value::Null));
        }
    }
}
