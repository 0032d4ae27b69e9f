//! The same script through every wire gives the same segments.

use super::*;
use greenroom_protocol::Object;
use greenroom_protocol::api::models::{
    CountTokensParams, ModelEmbedParams, ModelRerankParams, ModelToolCall,
};
use serde_json::{Value, json};

const SCRIPT: &str = r#"
    [[rule]]
    when = { result_of = "weather.get", text = "Oslo" }
    answer = "It is {{last_tool_result}}, says {{last_tool_name}}."

    [[rule]]
    when = { regex = 'in (\w+)', offers = "weather.get" }
    answer = [
      { reasoning = "The weather is asked for.", signature = "c2ln" },
      { text = "Ich schaue nach: 今天的天气…", piece = 5 },
      { call = "weather.get", args = { city = "{{match.1}}" }, piece = 3 },
      { call = "weather.get", args = { city = "Bergen" } },
      { usage = { input_tokens = 30, output_tokens = 9, cached_input_tokens = 10 } },
    ]
"#;

/// Segments without what differs by nature: ids that are made, and opaque data.
fn plain(segments: &[Object]) -> Vec<Value> {
    let mut segments: Vec<Value> = segments.iter().cloned().map(Value::Object).collect();
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

/// The names as these wires write them: a script sees what is on the wire.
fn script() -> String {
    format!("{SCRIPT}\n{}", SCRIPT.replace("weather.get", "weather_get"))
}

#[tokio::test]
async fn a_conversation_with_tools_has_equal_segments_in_every_wire() {
    let server = Server::start(&script());
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
    for kind in KINDS {
        let model = server.model(kind, 0);
        let mut request = asks("What is the weather in Oslo?");
        request.messages.insert(0, ModelMessage::text(Role::System, "be brief"));
        request.tools = vec![tool("weather.get")];
        let answer = model.invoke(request.clone(), soon()).await.unwrap();
        assert_eq!(plain(&answer.segments), expected, "{kind:?}");
        assert_eq!(answer.metadata["finish_reason"], "tool_calls", "{kind:?}");
        let usage = &answer.metadata["usage"];
        assert_eq!(
            (&usage["input_tokens"], &usage["output_tokens"], &usage["total_tokens"]),
            (&json!(30), &json!(9), &json!(39)),
            "{kind:?}"
        );

        let mut said = ModelMessage::text(Role::Assistant, answer.text());
        let calls = answer.segments.iter().filter_map(|segment| segment.get("tool_call"));
        said.tool_calls = calls
            .map(|call| serde_json::from_value::<ModelToolCall>(call.clone()).unwrap())
            .collect();
        said.segments = Some(answer.segments.clone());
        let results =
            said.tool_calls.clone().into_iter().zip(["rain", "cold"]).map(|(call, text)| {
                let mut result = ModelMessage::text(Role::Tool, text);
                result.tool_call_id = Some(call.id);
                result.name = Some(call.name);
                result
            });
        request.messages.push(said);
        request.messages.extend(results);
        let answer = model.invoke(request, soon()).await.unwrap();
        let text = answer.text().replace("weather_get", "weather.get");
        assert_eq!(text, "It is cold, says weather.get.", "{kind:?}");
        assert_eq!(answer.metadata["finish_reason"], "stop", "{kind:?}");
    }
    assert!(!server.log().contains("sk-not-to-be-logged"));
    assert_eq!(server.log().lines().count(), 2 * KINDS.len());
}

#[tokio::test]
async fn counts_vectors_and_rankings_come_through_the_network_as_without_it() {
    let server = Server::start("[[rule]]\nanswer = 'x'");
    let without = server.model(ProviderKind::Scripted, 0);
    let params = ModelEmbedParams {
        model_id: "m".to_owned(),
        inputs: vec!["a cat".to_owned(), "今天".to_owned(), "a dog".to_owned()],
    };
    let (expected, _) = without.embed(&params, soon()).await.unwrap();
    assert_eq!(expected.len(), 3);
    for kind in [ProviderKind::OpenAiChat, ProviderKind::Gemini, ProviderKind::Ollama] {
        let (vectors, _) = server.model(kind, 0).embed(&params, soon()).await.unwrap();
        assert_eq!(vectors, expected, "{kind:?}");
    }
    let params = ModelRerankParams {
        model_id: "m".to_owned(),
        query: "red fox".to_owned(),
        documents: vec!["a dog".to_owned(), "a red fox".to_owned(), "red".to_owned()],
        top_k: Some(2),
    };
    let (ranked, _) =
        server.model(ProviderKind::OpenAiChat, 0).rerank(&params, soon()).await.unwrap();
    assert_eq!(ranked.iter().map(|one| one.index).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(without.rerank(&params, soon()).await.unwrap().0, ranked);
    let params = CountTokensParams {
        model_id: "m".to_owned(),
        messages: Some(vec![ModelMessage::text(Role::User, "12345678")]),
        text: None,
    };
    for kind in [ProviderKind::Anthropic, ProviderKind::Gemini, ProviderKind::Scripted] {
        let tokens = server.model(kind, 0).count_tokens(&params, soon()).await.unwrap();
        assert_eq!(tokens, 6, "{kind:?}");
    }
    // No counter on this wire: OpenAI's own table. Two tokens of three digits and one of two, and the frames.
    let tokens = server.model(ProviderKind::OpenAiChat, 0).count_tokens(&params, soon()).await;
    assert_eq!(tokens, Ok(3 + 3 + 3));
}
