//! What an operator watches from outside: metrics for Prometheus, traces for an OpenTelemetry collector.

use crate::stage::Stage;
use greenroom_testkit::http::Request;
use greenroom_testkit::receiver::{Reaction, Receiver};
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);
const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const SENDER_SPAN: &str = "b7ad6b7169203331";

async fn staged(collector: &Receiver) -> Stage {
    let base = collector.url();
    let base = base.trim_end_matches("/hook");
    Stage::with(&format!("[telemetry]\notlp = \"{base}\"\nservice_name = \"desk\"\n")).await
}

/// A message for which the built-in agent calls its model, a tool, and its model again.
async fn plan_lunch(stage: &Stage, traceparent: &str) -> String {
    let event = json!({"event_type": "message.received", "conversation_id": "c1", "agent": "assistant",
        "actor": {"actor_type": "user", "actor_id": "u1"},
        "input": {"text": "schedule lunch tomorrow at 12:00"}});
    let request = Request::post("/v1/events", event.to_string());
    let reply = stage.ask(request.header("traceparent", traceparent)).await;
    assert_eq!(reply.status, 202, "{reply:?}");
    let run_id = reply.body["run_id"].as_str().unwrap().to_owned();
    let run = stage.api().ended_run(&run_id).await;
    assert_eq!(run.status.as_str(), "completed");
    run_id
}

fn spans(collector: &Receiver) -> Vec<Value> {
    let bodies = collector.received().into_iter().map(|request| request.payload);
    let spans = bodies.flat_map(|body| {
        let resource = &body["resourceSpans"][0];
        assert_eq!(
            attribute(&resource["resource"], "service.name"),
            json!({"stringValue": "desk"})
        );
        resource["scopeSpans"][0]["spans"].as_array().unwrap().clone()
    });
    spans.collect()
}

fn attribute(holder: &Value, key: &str) -> Value {
    let all = holder["attributes"].as_array().unwrap();
    let found = all.iter().find(|attribute| attribute["key"] == key);
    found.map_or(Value::Null, |attribute| attribute["value"].clone())
}

async fn span_of_run(collector: &Receiver, run_id: &str) -> Value {
    wait_for("the span of the run", PATIENCE, async || {
        spans(collector).into_iter().find(|span| {
            attribute(span, "gen_ai.operation.name")["stringValue"] == "invoke_agent"
                && attribute(span, "greenroom.run.id")["stringValue"] == run_id
        })
    })
    .await
}

#[tokio::test]
async fn a_run_its_model_calls_and_its_tool_calls_are_spans_of_the_senders_trace() {
    let collector = Receiver::start().await;
    let stage = staged(&collector).await;
    let run_id = plan_lunch(&stage, &format!("00-{TRACE}-{SENDER_SPAN}-01")).await;
    let run = span_of_run(&collector, &run_id).await;
    assert_eq!(run["name"], "invoke_agent assistant");
    assert_eq!(run["traceId"], TRACE);
    assert_eq!(run["parentSpanId"], SENDER_SPAN);
    assert_eq!(attribute(&run, "gen_ai.agent.name"), json!({"stringValue": "assistant"}));
    assert_eq!(attribute(&run, "gen_ai.conversation.id"), json!({"stringValue": "c1"}));
    assert_eq!(run.get("status"), None, "an unset status is no failure");

    let all = spans(&collector);
    let within = |operation: &str| -> Vec<&Value> {
        let fits = |span: &&Value| {
            attribute(span, "gen_ai.operation.name")["stringValue"] == operation
                && span["parentSpanId"] == run["spanId"]
                && span["traceId"] == TRACE
        };
        all.iter().filter(fits).collect()
    };
    let (chats, tools) = (within("chat"), within("execute_tool"));
    assert!(chats.len() >= 2, "{all:#?}");
    assert_eq!(chats[0]["kind"], 3, "a call of a model is a client's span");
    assert_eq!(attribute(chats[0], "gen_ai.request.model"), json!({"stringValue": "scripted"}));
    assert_eq!(tools.len(), 1, "{all:#?}");
    assert_eq!(tools[0]["name"], "execute_tool project_cli");
    for span in chats.iter().chain(&tools) {
        let time = |key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"));
    }
    let ids: std::collections::BTreeSet<_> =
        all.iter().map(|span| &span["spanId"]).map(Value::to_string).collect();
    assert_eq!(ids.len(), all.len(), "every span has an id of its own");
    let exported = serde_json::to_string(&all).unwrap();
    assert!(!exported.contains("lunch"), "what was said is not exported");
}

#[tokio::test]
async fn a_trace_that_its_sender_does_not_record_is_not_exported() {
    let collector = Receiver::start().await;
    let stage = staged(&collector).await;
    let silent = plan_lunch(&stage, &format!("00-{TRACE}-{SENDER_SPAN}-00")).await;
    let recorded = plan_lunch(&stage, "not a traceparent").await;
    let run = span_of_run(&collector, &recorded).await;
    assert_eq!(run.get("parentSpanId"), None, "a header that is none begins a trace of its own");
    let exported = serde_json::to_string(&spans(&collector)).unwrap();
    assert!(!exported.contains(&silent), "{exported}");
}

#[tokio::test]
async fn a_repeated_event_of_another_trace_gets_the_first_answer() {
    let collector = Receiver::start().await;
    let stage = staged(&collector).await;
    let event = json!({"event_type": "message.received", "event_id": "e1", "agent": "echo", "input": {"text": "hi"}});
    let mut answers = Vec::new();
    for span in [SENDER_SPAN, "00f067aa0ba902b7"] {
        let request = Request::post("/v1/events", event.to_string());
        let reply = stage.ask(request.header("traceparent", format!("00-{TRACE}-{span}-01"))).await;
        answers.push((reply.status, reply.body["run_id"].clone()));
    }
    assert_eq!((answers[0].0, answers[1].0), (202, 200));
    assert_eq!(answers[0].1, answers[1].1);
}

#[tokio::test]
async fn a_collector_that_fails_or_hangs_costs_spans_and_nothing_else() {
    let collector = Receiver::reacting(|index, _| match index {
        0 => Reaction::Answer(500),
        _ => Reaction::Hang,
    });
    let collector = collector.await;
    let stage = staged(&collector).await;
    for _ in 0..3 {
        plan_lunch(&stage, "none").await;
    }
    wait_for("an export", PATIENCE, async || (!collector.received().is_empty()).then_some(()))
        .await;
    plan_lunch(&stage, "none").await;
}

#[tokio::test]
async fn durations_are_histograms_in_seconds() {
    let stage = Stage::start().await;
    plan_lunch(&stage, "none").await;
    let text = stage.get("/metrics").await.body.as_str().unwrap().to_owned();
    for name in [
        "run_wait",
        "run_duration",
        "proxy_call_duration",
        "model_call_duration",
        "tool_call_duration",
    ] {
        let name = format!("greenroom_{name}_seconds");
        assert!(text.contains(&format!("# TYPE {name} histogram\n")), "{text}");
        let value = |line: String| -> f64 {
            let found = text.lines().find_map(|row| row.strip_prefix(&line));
            found.unwrap_or_else(|| panic!("{line}: {text}")).trim().parse().unwrap()
        };
        let count = value(format!("{name}_count"));
        assert!(count >= 1.0, "{name}: {count}");
        assert_eq!(value(format!("{name}_bucket{{le=\"+Inf\"}}")), count);
        assert!(value(format!("{name}_sum")) >= 0.0);
    }
    assert!(text.contains("greenroom_build_info{version=\""), "{text}");
    assert!(!text.contains("milliseconds"), "{text}");
}
