//! From a provider's stream to the loop: fragments, broken arguments, finish reasons, usage, media, names, ids.

use crate::checks::{call_ids, is_paired, kinds, offered, results, shown};
use crate::raw::{Raw, delta, finish};
use crate::scene::{Scene, Setting};
use crate::server::WIRES;
use crate::yard::{FOLDER, yard};
use greenroom_protocol::{RunView, TranscriptRole};
use serde_json::{Value, json};
use std::collections::HashSet;

/// The terminal of a run.
async fn terminal(scene: &Scene, run: &RunView) -> Value {
    kinds(scene, run).await;
    let results = scene.stage.api.results(&run.run_id).await;
    serde_json::to_value(results.last().unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_come_with_the_end_or_in_many_fragments_are_kept() {
    let script = r#"
[[rule]]
when.round = 1
answer = [{ call = "forge_add", args = { a = 20, b = 22 }, piece = 1 }]
[[rule]]
answer = "It is {{last_tool_result}}."
"#;
    // Gemini sends the arguments with the end of the call alone, the others in pieces of a character.
    for (_, provider) in WIRES {
        let scene = Setting { script, provider, ..Setting::default() }.open().await;
        assert_eq!(scene.answer("c1", "add").await, r#"It is {"sum":42}."#, "{provider}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_before_the_name_and_fragments_with_an_index_alone_are_assembled() {
    let call = |index: u32, function: Value| {
        delta(json!({"tool_calls": [{"index": index, "function": function}]}))
    };
    let mut asked = 0;
    let raw = Raw::start(move |_| {
        asked += 1;
        Some(match asked {
            1 => vec![
                call(0, json!({"arguments": "{\"a\":"})),
                call(0, json!({"name": "forge_add"})),
                call(1, json!({"name": "forge_add", "arguments": "{\"a\":4,"})),
                call(0, json!({"arguments": " 2, \"b\": 3}"})),
                call(1, json!({"arguments": "\"b\":5}"})),
                finish("tool_calls"),
            ],
            _ => vec![delta(json!({"content": "done"})), finish("stop")],
        })
    });
    let more = raw.model("raw", "");
    let setting = Setting { more: &more, models: &["raw"], ..Setting::default() };
    let scene = setting.open().await;
    assert_eq!(scene.answer("c1", "add").await, "done");
    let items = scene.history("c1").await;
    let told = items.iter().filter(|item| item.role == TranscriptRole::Tool);
    let mut told: Vec<&str> = told.map(|item| item.text.as_deref().unwrap()).collect();
    // They ran side by side, so either may have ended first.
    told.sort_unstable();
    assert_eq!(told, [r#"{"sum":5}"#, r#"{"sum":9}"#]);
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_are_no_json_are_never_executed_and_the_model_corrects_itself() {
    let script = r#"
[[rule]]
when.round = 1
answer = [{ call = "forge_add", args_text = '{"a": 2, "b": ' }]
[[rule]]
when = { round = 2, result_text = "EOF while parsing" }
answer = [{ call = "forge_add", args = { a = 2, b = 3 } }]
[[rule]]
when.round = 3
answer = "It is {{last_tool_result}}."
"#;
    for provider in ["openai", "openai-responses", "anthropic"] {
        let scene = Setting { script, provider, ..Setting::default() }.open().await;
        assert_eq!(scene.answer("c1", "add").await, r#"It is {"sum":5}."#, "{provider}");
        let log = scene.stage.host.folder().join("other/wire.log");
        let log = std::fs::read_to_string(log).unwrap();
        assert_eq!(log.lines().filter(|line| line.starts_with("call ")).count(), 1, "{provider}");
        if provider == "openai" {
            let asked = scene.asked();
            asked.iter().for_each(|messages| is_paired(messages));
            let error = &results(&asked[1])[0]["error"];
            assert_eq!(error["code"], "invalid_arguments", "{error}");
            assert!(error["message"].as_str().unwrap().contains("EOF while parsing"), "{error}");
            assert_eq!(error["arguments"], "{\"a\": 2, \"b\": ");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_beside_any_finish_reason_leave_no_call_without_its_result() {
    let script = r#"
[[rule]]
when = { text = "stop", round = 1 }
answer = [{ text = "Well." }, { call = "forge_add", args = { a = 1, b = 1 } }, { finish = "stop" }]
[[rule]]
when = { text = "length", round = 1 }
answer = [{ call = "forge_add", args = { a = 1, b = 1 } }, { finish = "length" }]
[[rule]]
answer = "It is {{last_tool_result}}."
"#;
    for (_, provider) in WIRES {
        let scene = Setting { script, provider, ..Setting::default() }.open().await;
        for reason in ["stop", "length"] {
            let answer = scene.answer(reason, reason).await;
            assert_eq!(answer, r#"It is {"sum":2}."#, "{provider} {reason}");
            // And the next run takes the history with it.
            scene.answer(reason, "and now?").await;
        }
        if provider == "openai" {
            scene.asked().iter().for_each(|messages| is_paired(messages));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn usage_without_a_total_is_summed_and_missing_usage_is_unknown() {
    let mut asked = 0;
    let raw = Raw::start(move |_| {
        asked += 1;
        let mut events = vec![delta(json!({"content": "yes"})), finish("stop")];
        if asked == 1 {
            let usage = json!({"prompt_tokens": 30, "completion_tokens": 12});
            events.push(json!({"choices": [], "usage": usage}));
        }
        Some(events)
    });
    let more = raw.model("raw", "");
    let scene = Setting { more: &more, models: &["raw"], ..Setting::default() }.open().await;
    let told = scene.say("c1", "told").await;
    let usage = terminal(&scene, &told).await["usage"].clone();
    let tokens = ["input_tokens", "output_tokens", "total_tokens"].map(|key| usage[key].as_u64());
    assert_eq!(tokens, [Some(30), Some(12), Some(42)]);
    let untold = scene.say("c2", "not told").await;
    let usage = terminal(&scene, &untold).await["usage"].clone();
    for key in ["input_tokens", "output_tokens", "total_tokens"] {
        assert_eq!(usage.get(key), None, "{usage}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reasoning_is_a_segment_of_its_own_and_large_media_travel_as_artifacts() {
    let picture = "iVBORw0KGgoAAAAN".repeat(30_000);
    let script = format!(
        "[[rule]]\nanswer = [{{ reasoning = \"A picture is wanted.\" }}, {{ text = \"Here it is.\" }}, \
         {{ media = {{ type = \"image\", mime_type = \"image/png\", data = \"{picture}\" }} }}]\n"
    );
    let scene = Setting { script: &script, provider: "gemini", ..Setting::default() }.open().await;
    assert_eq!(scene.answer("c1", "draw").await, "Here it is.");
    let items = scene.history("c1").await;
    let segments = serde_json::to_value(&items.last().unwrap().segments).unwrap();
    let kinds: Vec<&Value> =
        segments.as_array().unwrap().iter().map(|segment| &segment["type"]).collect();
    assert_eq!(kinds, ["reasoning", "text", "image"], "{segments}");
    assert_eq!(segments[0]["text"], "A picture is wanted.");
    assert!(segments[2]["artifact_id"].is_string(), "{segments}");
    assert!(segments.to_string().len() < 4000, "the picture travels by reference");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_an_api_refuses_come_back_as_they_were_and_do_not_collide() {
    let raw = Raw::start(|body| {
        if body["messages"].as_array().unwrap().last().unwrap()["role"] == "tool" {
            return Some(vec![delta(json!({"content": "done"})), finish("stop")]);
        }
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let names = offered(&body);
        assert!(names.iter().all(|name| name.chars().all(fits)), "{names:?}");
        let said = |tool: &&Value| tool["function"]["description"] == "Says zwei";
        let tool = body["tools"].as_array().unwrap().iter().find(said).unwrap();
        let function = json!({"name": tool["function"]["name"], "arguments": "{}"});
        let call = json!({"tool_calls": [{"index": 0, "id": "c1", "function": function}]});
        Some(vec![delta(call), finish("tool_calls")])
    });
    let more = raw.model("raw", "") + &yard(0);
    let setting = Setting {
        more: &more,
        models: &["raw"],
        grant: "tools = [\"yard.*\"]",
        files: &[FOLDER],
        ..Setting::default()
    };
    let scene = setting.open().await;
    assert_eq!(scene.answer("c1", "two words").await, "done");
    let items = scene.history("c1").await;
    let item = items.iter().find(|item| item.role == TranscriptRole::Tool).unwrap();
    assert_eq!(item.metadata["tool_name"], "yard.two_words");
    assert_eq!(item.text.as_deref(), Some(r#"{"given":{},"tool":"two_words"}"#));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_only_model_is_told_its_tools_and_its_calls_are_taken_out_of_what_it_writes() {
    let script = r#"
[[rule]]
when.text = "add two"
answer = [{ piece = 3, text = '''Let me see.

```json
{"tool": "forge.add", "args": {"a": 2, "b": 3}}
```
Result: {"sum": 99}''' }]
[[rule]]
when.text = '"sum":5'
answer = "It is five."
[[rule]]
when.text = "broken"
answer = '{"tool": "forge.add", "args": {"a": 2, }}'
[[rule]]
when.text = "invalid_arguments"
answer = '{"name": "forge.add", "arguments": {"a": 2, "b": 3}}'
"#;
    for (model, config) in [("tool_calling = false", "{}"), ("", "{ tool_calling = \"prompted\" }")]
    {
        let scene = Setting { script, model, config, ..Setting::default() }.open().await;
        let run = scene.say("c1", "add two and three").await;
        let items = scene.history("c1").await;
        let told: Vec<(TranscriptRole, &str)> =
            items.iter().map(|item| (item.role, item.text.as_deref().unwrap())).collect();
        let expected = [
            (TranscriptRole::User, "add two and three"),
            (TranscriptRole::Assistant, "Let me see."),
            (TranscriptRole::Tool, r#"{"sum":5}"#),
            (TranscriptRole::Assistant, "It is five."),
        ];
        assert_eq!(told, expected);
        assert_eq!(shown(&scene, &run).await, "Let me see.It is five.");
        for request in scene.requests() {
            assert_eq!(request.get("tools"), None);
            assert!(!request.to_string().contains("\"role\":\"tool\""), "{request}");
        }
        let asked = scene.asked();
        let prompt = asked[0][0]["content"].to_string();
        assert!(prompt.contains("## forge.add") && prompt.contains("additionalProperties"));
        assert_eq!(asked[0][0], asked[1][0], "the prompt stays as it is");
        assert_eq!(scene.answer("c2", "broken").await, "It is five.");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_only_model_that_calls_when_it_is_to_answer_shows_no_call() {
    let script = r#"
[[rule]]
answer = """That is all I found.
{"tool": "forge.add", "args": {"a": 2, "b": {{round}}}}"""
"#;
    let setting = Setting {
        script,
        model: "tool_calling = false",
        config: "{ max_tool_rounds = 1 }",
        ..Setting::default()
    };
    let scene = setting.open().await;
    let run = scene.say("c1", "add").await;
    assert_eq!(shown(&scene, &run).await, "That is all I found.".repeat(2));
    assert_eq!(scene.stage.api.answers("c1").await, ["That is all I found."; 2]);
    assert_eq!(scene.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_has_an_id_that_is_its_own() {
    let script = r#"
[[rule]]
when.round = 1
answer = [
  { call = "forge_add", args = { a = 1, b = 1 }, id = "same" },
  { call = "forge_add", args = { a = 1, b = 2 }, id = "same" },
]
[[rule]]
when.round = 2
answer = [{ call = "forge_add", args = { a = 1, b = 3 }, id = "same" }]
[[rule]]
answer = "done"
"#;
    for (_, provider) in WIRES {
        let scene = Setting { script, provider, ..Setting::default() }.open().await;
        for text in ["first", "again"] {
            assert_eq!(scene.answer("c1", text).await, "done", "{provider}");
        }
        let ids = call_ids(&scene, "c1").await;
        assert_eq!(ids.len(), 6, "{provider}: {ids:?}");
        for run in ids.chunks(3) {
            let own: HashSet<&String> = run.iter().filter(|id| !id.is_empty()).collect();
            assert_eq!(own.len(), 3, "{provider}: {ids:?}");
        }
        if provider == "openai" {
            scene.asked().iter().for_each(|messages| is_paired(messages));
        }
    }
}
