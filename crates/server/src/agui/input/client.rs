//! What a client sends beside its messages: its tools, and instructions in system messages.
//!
//! Invariant: it is data for the runner. It grants nothing, and a tool of the client cannot have the name of another.

use crate::response::Problem;
use greenroom_protocol::Object;
use serde_json::{Value, json};
use std::collections::HashSet;

/// Tools of one client.
const TOOLS_MAX: usize = 128;
/// Longest name of a tool.
const NAME_BYTES_MAX: usize = 128;

/// Checks the client's tools.
pub(super) fn check_tools(tools: &[Object]) -> Result<(), Problem> {
    let invalid = |message: String| Err(Problem::invalid(format!("`tools`: {message}")));
    if tools.len() > TOOLS_MAX {
        return invalid(format!("more than {TOOLS_MAX} tools"));
    }
    let mut names = HashSet::new();
    for tool in tools {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
        if name.is_empty() || name.len() > NAME_BYTES_MAX || name.contains(char::is_control) {
            return invalid(format!("a name has 1 to {NAME_BYTES_MAX} bytes"));
        }
        if !names.insert(name) {
            return invalid(format!("`{name}` is there twice"));
        }
        if !matches!(tool.get("description"), None | Some(Value::Null | Value::String(_))) {
            return invalid(format!("the description of `{name}` is not a text"));
        }
        if !matches!(tool.get("parameters"), None | Some(Value::Null | Value::Object(_))) {
            return invalid(format!("the parameters of `{name}` are not a JSON schema"));
        }
    }
    Ok(())
}

/// The client's system and developer messages, in order.
pub(super) fn instructions(messages: &[Value]) -> Value {
    let is_system =
        |message: &&Value| message["role"] == "system" || message["role"] == "developer";
    let instructions: Vec<Value> = messages
        .iter()
        .filter(is_system)
        .map(|message| json!({"role": message["role"], "content": message["content"]}))
        .collect();
    if instructions.is_empty() { Value::Null } else { instructions.into() }
}

/// Results of the client's tools: the tool messages at the end.
pub(super) fn tool_results(messages: &[Value]) -> Vec<Value> {
    let last = messages.iter().rev().take_while(|message| message["role"] == "tool");
    let mut results: Vec<Value> = last
        .map(|message| {
            let id = message["toolCallId"].as_str().unwrap_or_default();
            let mut result = json!({"tool_call_id": runner_id(messages, id),
                "content": message["content"], "message_id": message["id"]});
            if let Some(error) = message.get("error").filter(|error| !error.is_null()) {
                result["error"] = error.clone();
            }
            result
        })
        .collect();
    results.reverse();
    results
}

/// The runner's id of a call. The client may know it with the number of its message, `run_ID.NUMBER`, because its thread
/// had another call with that id.
fn runner_id<'a>(messages: &[Value], client_id: &'a str) -> &'a str {
    let has_call = |message: &&Value| {
        let calls = message["toolCalls"].as_array();
        calls.is_some_and(|calls| calls.iter().any(|call| call["id"] == client_id))
    };
    let message = messages.iter().rev().find(has_call);
    let id = message.and_then(|message| message["id"].as_str());
    // A thread as it is stored has the id of the item instead.
    let mark = id.and_then(|id| {
        id.strip_suffix(".call").or_else(|| id.rsplit_once('.').map(|(_, number)| number))
    });
    let plain = mark.and_then(|mark| client_id.strip_suffix(mark)?.strip_suffix('.'));
    plain.filter(|id| !id.is_empty()).unwrap_or(client_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(tools: Value) -> Vec<Object> {
        serde_json::from_value(tools).unwrap()
    }

    #[test]
    fn tools_have_names_of_their_own() {
        let one = json!({"name": "open", "description": "opens", "parameters": {}});
        assert!(check_tools(&tools(json!([one, {"name": "shut", "parameters": null}]))).is_ok());
        for wrong in [
            json!([{}]),
            json!([{"name": ""}]),
            json!([{"name": "a\nb"}]),
            json!([{"name": "x".repeat(129)}]),
            json!([one, one]),
            json!([{"name": "a", "parameters": []}]),
            json!([{"name": "a", "description": 1}]),
            Value::from(vec![json!({"name": "a"}); 129]),
        ] {
            assert!(check_tools(&tools(wrong.clone())).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_call_has_the_runners_id_again() {
        let call = |message: &str, id: &str| json!({"id": message, "role": "assistant", "toolCalls": [{"id": id}]});
        let messages = [
            call("run_1.2", "c1"),
            call("run_2.5", "c1.5"),
            call("item_9.call", "c1.item_9"),
            call("x", "c.7"),
        ];
        for (client, runner) in
            [("c1", "c1"), ("c1.5", "c1"), ("c1.item_9", "c1"), ("c.7", "c.7"), ("other", "other")]
        {
            assert_eq!(runner_id(&messages, client), runner);
        }
    }
}
