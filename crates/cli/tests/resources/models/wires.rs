//! One conversation through the host and four wires: the same segments, whole and streamed.

use super::server::{KEY, WIRES};
use super::{Server, agent, host, result, run, step};
use crate::stage::{Stage, outcome};
use greenroom_protocol::RunStatus;
use serde_json::{Value, json};

const SCRIPT: &str = r#"
[[rule]]
when = { result_of = ["weather.get", "weather_get"], text = "Oslo" }
answer = "It is {{last_tool_result}}."
[[rule]]
when = { regex = 'in (\w+)' }
answer = [
  { reasoning = "The weather is asked for.", signature = "c2ln" },
  { text = "Ich schaue nach: 今天的天气…", piece = 5 },
  { call = "weather.get", args = { city = "{{match.1}}" }, piece = 3 },
  { call = "weather.get", args = { city = "Bergen" } },
  { usage = { input_tokens = 30, output_tokens = 9, cached_input_tokens = 10 } },
]
"#;

fn tools() -> Value {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}});
    json!([{"tool_name": "weather.get", "description": "the weather", "parameters": parameters}])
}

/// Segments without what differs by nature: ids that are made, and opaque data.
fn plain(answer: &Value) -> Vec<Value> {
    let mut segments = answer["segments"].as_array().unwrap().clone();
    for segment in &mut segments {
        segment.as_object_mut().unwrap().remove("data");
        if let Some(call) = segment.get_mut("tool_call") {
            assert!(!call["id"].as_str().unwrap().is_empty());
            call["id"] = Value::Null;
        }
    }
    // Opaque data without a reasoning in front stand alone, where a provider puts them elsewhere.
    segments.retain(|segment| *segment != json!({"type": "reasoning"}));
    segments
}

/// The second request of the conversation: the answer to the first, and what its tools gave.
fn second(model: &str, first: &Value) -> Value {
    let calls: Vec<&Value> =
        first["segments"].as_array().unwrap().iter().filter_map(|s| s.get("tool_call")).collect();
    let mut messages = vec![
        json!({"role": "user", "content": "What is the weather in Oslo?"}),
        json!({"role": "assistant", "content": "Ich schaue nach: 今天的天气…", "tool_calls": calls,
            "segments": first["segments"]}),
    ];
    for (call, text) in calls.iter().zip(["rain", "cold"]) {
        let result = json!({"role": "tool", "content": text, "tool_call_id": call["id"], "name": call["name"]});
        messages.push(result);
    }
    json!({"model_id": model, "messages": messages, "tools": tools()})
}

async fn first_answers(stage: &Stage) -> Vec<Value> {
    let mut answers = Vec::new();
    for (model, _) in WIRES {
        answers.push(result(stage, &format!("whole {model}")).await);
    }
    answers
}

#[tokio::test]
async fn a_conversation_with_tools_and_reasoning_is_the_same_in_four_wires() {
    let server = Server::start(&SCRIPT.replace("call = \"weather.get\"", "call = \"weather_get\""));
    let names = WIRES.map(|(name, _)| name);
    let config = server.models("") + &agent("asker", &names, "");
    let stage = host(&[("key", KEY)], &config).await;
    let mut steps = Vec::new();
    for name in names {
        let params = json!({"model_id": name, "tools": tools(), "messages": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "What is the weather in Oslo?"}]});
        steps.push(step("models.invoke", params.clone(), &format!("whole {name}")));
        steps.push(step("models.stream", params, &format!("stream {name}")));
    }
    let played = run(&stage, "asker", "c1", steps).await;
    assert_eq!(outcome(&played), (RunStatus::Completed, ""));
    let call = |city: &str| {
        let call = json!({"id": null, "name": "weather.get", "args": {"city": city}});
        json!({"type": "tool_call", "tool_call": call})
    };
    let expected = [
        json!({"type": "reasoning", "text": "The weather is asked for."}),
        json!({"type": "text", "text": "Ich schaue nach: 今天的天气…"}),
        call("Oslo"),
        call("Bergen"),
    ];
    for name in names {
        let stream = stage.told(&format!("stream {name}")).await;
        for answer in [&result(&stage, &format!("whole {name}")).await, &stream["result"]] {
            assert_eq!(plain(answer), expected, "{name}");
            assert_eq!(answer["metadata"]["finish_reason"], "tool_calls", "{name}");
            assert_eq!(answer["metadata"]["model"], name);
            let usage = &answer["metadata"]["usage"];
            let tokens = ["input_tokens", "output_tokens", "total_tokens"].map(|key| &usage[key]);
            assert_eq!(tokens, [30, 9, 39], "{name}");
        }
        let items = stream["items"].as_array().unwrap();
        let deltas = items.iter().filter(|item| item["type"] == "text_delta");
        let text: String = deltas.map(|item| item["text"].as_str().unwrap()).collect();
        assert_eq!(text, "Ich schaue nach: 今天的天气…", "{name}");
        assert_eq!(items.last().unwrap(), &json!({"type": "finish", "reason": "tool_calls"}));
    }
    let answers = first_answers(&stage).await;
    let steps = names
        .iter()
        .zip(&answers)
        .map(|(name, first)| step("models.invoke", second(name, first), &format!("second {name}")));
    run(&stage, "asker", "c1", steps.collect()).await;
    for name in names {
        let answer = result(&stage, &format!("second {name}")).await;
        assert_eq!(plain(&answer), [json!({"type": "text", "text": "It is cold."})], "{name}");
        assert_eq!(answer["metadata"]["finish_reason"], "stop", "{name}");
    }
    // The key went to the provider and nowhere else.
    assert!(!stage.host.log().contains(KEY));
}
