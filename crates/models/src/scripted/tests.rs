mod built_in;

use super::*;
use crate::ToolSpec;
use futures_util::StreamExt;
use greenroom_protocol::api::models::{ModelMessage, ModelToolCall};
use greenroom_protocol::{Object, Role};
use serde_json::{Value, json};
use std::time::UNIX_EPOCH;

fn asks(text: &str) -> ModelRequest {
    ModelRequest { messages: vec![ModelMessage::text(Role::User, text)], ..ModelRequest::default() }
}

fn offering(mut request: ModelRequest, names: &[&str]) -> ModelRequest {
    request.tools = names
        .iter()
        .map(|name| ToolSpec { name: (*name).to_owned(), description: None, parameters: json!({}) })
        .collect();
    request
}

/// The request that follows when a call was made and answered.
fn answered(mut request: ModelRequest, name: &str, result: &str) -> ModelRequest {
    let id = format!("id-{}", request.messages.len());
    let call = ModelToolCall {
        id: id.clone(),
        name: name.to_owned(),
        args: json!({}),
        args_text: None,
        args_error: None,
    };
    let mut assistant = ModelMessage::text(Role::Assistant, "");
    assistant.tool_calls.push(call);
    let mut tool = ModelMessage::text(Role::Tool, result);
    tool.tool_call_id = Some(id);
    request.messages.extend([assistant, tool]);
    request
}

fn play(script: &str, request: &ModelRequest) -> Vec<PlanStep> {
    Script::parse(script).unwrap().plan(request, UNIX_EPOCH)
}

fn text(plan: &[PlanStep]) -> String {
    let texts = plan.iter().filter_map(|step| match step {
        PlanStep::Item(ModelStreamItem::TextDelta { text }) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

fn calls(plan: &[PlanStep]) -> Vec<(String, Value)> {
    let calls = plan.iter().filter_map(|step| match step {
        PlanStep::Item(ModelStreamItem::ToolCallEnd(call)) => {
            Some((call.name.clone(), call.args.clone()))
        }
        _ => None,
    });
    calls.collect()
}

fn object(value: Value) -> Object {
    value.as_object().unwrap().clone()
}

fn refused(script: &str) -> String {
    Script::parse(script).unwrap_err().to_string()
}

#[test]
fn an_answer_is_its_steps_then_usage_then_one_finish() {
    let script = r#"
        [[rule]]
        when.text = "HELLO"
        answer = [
          { reasoning = "hm", signature = "sig" },
          { text = "one two", pace_ms = 7 },
          { wait_ms = 50 },
          { usage = { input_tokens = 3, output_tokens = 2, reasoning_tokens = 1 } },
          { finish = "length" },
        ]"#;
    let item = PlanStep::Item;
    let expected = vec![
        item(ModelStreamItem::ReasoningDelta { text: "hm".into() }),
        item(ModelStreamItem::Media {
            segment: object(json!({"type": "reasoning", "data": "sig"})),
        }),
        item(ModelStreamItem::TextDelta { text: "one ".into() }),
        PlanStep::Wait(Duration::from_millis(7)),
        item(ModelStreamItem::TextDelta { text: "two".into() }),
        PlanStep::Wait(Duration::from_millis(50)),
        item(ModelStreamItem::Usage(object(
            json!({"input_tokens": 3, "output_tokens": 2, "reasoning_tokens": 1, "total_tokens": 5}),
        ))),
        item(ModelStreamItem::Finish { reason: "length".into() }),
    ];
    assert_eq!(play(script, &asks("oh hello there")), expected);
}

#[test]
fn usage_is_estimated_unless_given_or_false() {
    let usage = |script: &str| {
        play(script, &asks("12345678")).into_iter().find_map(|step| match step {
            PlanStep::Item(ModelStreamItem::Usage(usage)) => Some(Value::Object(usage)),
            _ => None,
        })
    };
    // Four for the message overhead and two for the eight characters; five characters are two tokens.
    let counted = json!({"input_tokens": 6, "output_tokens": 2, "total_tokens": 8});
    assert_eq!(usage("[[rule]]\nanswer = 'abcde'"), Some(counted));
    assert_eq!(usage("[[rule]]\nanswer = [{ text = 'abcde' }, { usage = false }]"), None);
}

#[test]
fn calls_are_filled_from_the_request() {
    let script = r#"
        [[rule]]
        when.regex = 'add (?<a>\d+) to (\w+)'
        answer = [
          { call = "math.add", args = { a = "{{match.a | json}}", b = "{{match.2 | json}}", all = ["<{{text}}>"] } },
          { call = "clock", id = "call_fixed" },
        ]"#;
    let request = asks("please add 12 to seven");
    let plan = play(script, &request);
    let expected = [
        (
            "math.add".to_owned(),
            json!({"a": 12, "b": "seven", "all": ["<please add 12 to seven>"]}),
        ),
        ("clock".to_owned(), json!({})),
    ];
    assert_eq!(calls(&plan), expected);
    assert_eq!(
        plan.last(),
        Some(&PlanStep::Item(ModelStreamItem::Finish { reason: "tool_calls".into() }))
    );
    assert_eq!(play(script, &request), plan, "the same request gets the same answer, ids included");
}

#[test]
fn call_ids_differ_as_the_conversation_grows() {
    let script = "[[rule]]\nanswer = [{ call = 'a' }, { call = 'a' }]";
    let ids = |request: &ModelRequest| {
        let started = play(script, request).into_iter().filter_map(|step| match step {
            PlanStep::Item(ModelStreamItem::ToolCallStart { id, .. }) => Some(id),
            _ => None,
        });
        started.collect::<Vec<_>>()
    };
    let mut all = ids(&asks("go"));
    all.extend(ids(&answered(asks("go"), "a", "done")));
    let unique: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!((all.len(), unique.len()), (4, 4));
}

#[test]
fn invalid_arguments_are_sent_unchanged() {
    let script = r#"
        [[rule]]
        answer = [{ call = "x", id = "c1", args_text = '{"a": ', piece = 3 }]"#;
    let plan = play(script, &asks("go"));
    let delta = |text: &str| {
        PlanStep::Item(ModelStreamItem::ToolCallDelta { id: "c1".into(), args_text: text.into() })
    };
    assert_eq!(plan[1..3], [delta("{\"a"), delta("\": ")]);
    let PlanStep::Item(ModelStreamItem::ToolCallEnd(call)) = &plan[3] else { panic!("{plan:?}") };
    assert_eq!((&call.args, call.args_text.as_deref()), (&Value::Null, Some("{\"a\": ")));
    assert!(call.args_error.as_ref().unwrap().contains("EOF"));
}

#[test]
fn a_rule_can_match_text_anywhere_in_a_request() {
    let script = r#"
        [[rule]]
        when = { text = "code", context = "HERON" }
        answer = "the code is heron"
        [[rule]]
        answer = "nobody told me"
    "#;
    let says = |request: &ModelRequest| text(&play(script, request));
    assert_eq!(says(&asks("the code?")), "nobody told me");
    let mut request = asks("the code is heron");
    request.messages.push(ModelMessage::text(Role::Assistant, "noted"));
    request.messages.push(ModelMessage::text(Role::User, "the code?"));
    assert_eq!(says(&request), "the code is heron");
}

#[test]
fn rules_match_every_property_of_a_request() {
    let script = r#"
        [[rule]]
        when = { result_of = "weather", result_text = ["rain", "snow"] }
        answer = "umbrella for {{last_tool_name}}: {{last_tool_result}}"
        [[rule]]
        when = { tool_result = true, round = 3 }
        answer = "third round"
        [[rule]]
        when.tool_result = true
        answer = "round {{round}}"
        [[rule]]
        when = { turn = 2, role = "user" }
        answer = "second turn"
        [[rule]]
        when = { offers = ["a", "b"] }
        answer = "tools {{tools}}"
        [[rule]]
        when.system = "pirate"
        answer = "arr"
        [[rule]]
        when.lang = "zh"
        answer = "你好"
        [[rule]]
        when.wants_json = true
        answer = [{ sample = true }]
    "#;
    let says = |request: &ModelRequest| text(&play(script, request));
    assert_eq!(
        says(&answered(asks("x"), "weather", "It will RAIN")),
        "umbrella for weather: It will RAIN"
    );
    assert_eq!(says(&answered(asks("x"), "weather", "sun")), "round 2");
    assert_eq!(says(&answered(answered(asks("x"), "a", ""), "b", "")), "third round");
    let mut second = asks("x");
    second.messages.push(ModelMessage::text(Role::User, "y"));
    assert_eq!(says(&second), "second turn");
    assert_eq!(says(&offering(asks("x"), &["b", "a", "c"])), "tools b, a, c");
    let mut pirate = asks("x");
    pirate.messages.insert(0, ModelMessage::text(Role::System, "You are a Pirate"));
    assert_eq!(says(&pirate), "arr");
    assert_eq!(says(&asks("你好 there")), "你好");
    let mut wants = asks("x");
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    wants
        .options
        .insert("response_format".into(), json!({"type": "json_schema", "schema": schema}));
    assert_eq!(says(&wants), r#"{"n":0}"#);
    assert_eq!(says(&asks("x")), "No rule of this script matches: x");
}

#[test]
fn a_rule_with_times_matches_that_often() {
    let script =
        Script::parse("[[rule]]\ntimes = 2\nanswer = [{ error = 503 }]\n[[rule]]\nanswer = 'now'")
            .unwrap();
    let texts = || text(&script.plan(&asks("x"), UNIX_EPOCH));
    assert_eq!([texts(), texts(), texts(), texts()], ["", "", "now", "now"]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_the_scripted_fault() {
    let cases = [
        (
            "{ error = 429, message = 'slow', retry_after_s = 2 }",
            ModelError::RateLimited {
                message: "slow".into(),
                retry_after: Some(Duration::from_secs(2)),
            },
        ),
        (
            "{ error = 500, message = 'x' }",
            ModelError::Rejected { status: 500, message: "x".into() },
        ),
        ("{ cut = true }", ModelError::Unavailable("the connection was cut".into())),
        ("{ silence = true }", ModelError::IdleTimeout(Duration::from_secs(9))),
        ("{ garbage = '<html>' }", ModelError::InvalidResponse("scripted garbage".into())),
        ("{ wait_ms = 10000 }", ModelError::IdleTimeout(Duration::from_secs(9))),
    ];
    for (step, error) in cases {
        let script = format!("[[rule]]\nanswer = [{{ text = 'so' }}, {step}]");
        let script = Arc::new(Script::parse(&script).unwrap());
        let items: Vec<_> = stream(script, asks("x"), Duration::from_secs(9)).collect().await;
        let expected = vec![Ok(ModelStreamItem::TextDelta { text: "so".into() }), Err(error)];
        assert_eq!(items, expected, "{step}");
    }
}

#[test]
fn an_invalid_script_is_rejected_with_its_line() {
    let rule = |step: &str| {
        format!("# a script\n[[rule]]\nanswer = [\n  {{ text = \"a\" }},\n  {step},\n]\n")
    };
    for (script, expected) in [
        ("[[rule]]\nanswer = 'x'\nwhat = 1".to_owned(), "line 3: unknown field `what`"),
        ("[[rule]]\nwhen.txt = 'x'\nanswer = 'x'".to_owned(), "line 2: unknown field `txt`"),
        ("\n[[rule]]\nwhen.regex = '('\nanswer = 'x'".to_owned(), "line 3: `regex`"),
        ("[[rule]]\nanswer = '{{nope}}'".to_owned(), "line 2: `{{nope}}` is unknown"),
        (rule("{ text = \"{{match.1}}\" }"), "line 5: `{{match.1}}` needs `when.regex`"),
        (rule("{ call = \"x\", args = { a = \"{{\" } }"), "line 5: `{{` is not closed"),
        (
            rule("{ text = \"b\", finish = \"stop\" }"),
            "line 5: the step has several kinds: text, finish",
        ),
        (rule("{ piece = 3 }"), "line 5: the step is empty"),
        (
            rule("{ text = \"b\", retry_after_s = 3 }"),
            "line 5: `retry_after_s` does not belong to `text`",
        ),
        (rule("{ tex = \"b\" }"), "line 5: unknown field `tex`"),
        (rule("{ finish = \"done\" }"), "line 5: `finish` must be one of"),
        (rule("{ error = 200 }"), "line 5: `error` must be an HTTP status"),
        (rule("{ usage = { input = 3 } }"), "line 5: unknown key `usage.input`"),
        (rule("{ cut = true }, { text = \"b\" }"), "line 5: nothing can follow"),
        (rule("{ media = { type = \"image\" } }"), "line 5: `media` needs"),
        ("[[rule]]\ntimes = 0\nanswer = 'x'".to_owned(), "line 1: `times = 0`"),
        (
            "[[rule]]\nanswer = 3".to_owned(),
            "line 2: invalid type: integer `3`, expected a string or a list of steps",
        ),
    ] {
        let message = refused(&script);
        assert!(message.starts_with(expected), "{script}\n{message}\n{expected}");
    }
}

#[test]
fn a_script_is_loaded_from_a_file_and_errors_name_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("demo.toml");
    std::fs::write(&path, "[[rule]]\nanswer = 'hi'\n").unwrap();
    assert_eq!(text(&Script::load(&path).unwrap().plan(&asks("x"), UNIX_EPOCH)), "hi");
    std::fs::write(&path, "[[rule]]\nanswr = 'hi'\n").unwrap();
    let message = Script::load(&path).unwrap_err().to_string();
    assert!(message.contains("demo.toml`, line 2: unknown field `answr`"), "{message}");
    let missing = Script::load(&dir.path().join("none.toml")).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read the script `"), "{missing}");
}
