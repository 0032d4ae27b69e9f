//! Tools that plugins offer: listed, called, given up, and what becomes of plugins that break.

use crate::kit::{Kit, WAIT, call_tool, eventually, script, tool_call};
use greenroom_protocol::RunnerId;
use greenroom_protocol::wire::ToolRisk;
use greenroom_runtime::{
    Limits, PluginToolAnswer, PluginToolCall, PluginToolError, PluginTools, RunnerSpec,
    RunnerState, RunnerStatus,
};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

fn spec(kit: &Kit, env: &[(&str, &str)]) -> RunnerSpec {
    RunnerSpec {
        name: "shelf".into(),
        command: vec!["python3".into(), script("tools.py")],
        dir: kit.path("other"),
        env: env.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect(),
        ..RunnerSpec::default()
    }
}

fn state(kit: &Kit) -> RunnerState {
    kit.runtime.runners().into_iter().find(|runner| runner.name == "shelf").unwrap()
}

async fn ready(kit: &Kit) -> RunnerState {
    eventually("a plugin that is ready", || {
        Some(state(kit)).filter(|state| state.status == RunnerStatus::Ready)
    })
    .await
}

async fn shelf(limits: Limits) -> Kit {
    let kit = Kit::with(limits);
    kit.runtime.apply(vec![spec(&kit, &[])]).await;
    ready(&kit).await;
    kit
}

async fn call(
    kit: &Kit,
    tool: &str,
    parameters: Value,
) -> Result<PluginToolAnswer, PluginToolError> {
    call_tool(&kit.runtime, "shelf", tool, parameters).await
}

/// How many calls the plugin was told to cancel.
async fn given_up(kit: &Kit) -> u64 {
    call(kit, "given_up", json!({})).await.unwrap().result.as_u64().unwrap()
}

fn names(list: &PluginTools) -> Vec<&str> {
    list.tools.iter().map(|tool| tool.name.as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_for_tools_alone_is_ready_and_answers() {
    let kit = shelf(Limits::default()).await;
    let tools = kit.runtime.tools();
    assert_eq!((tools.len(), tools[0].runner.as_str()), (1, "shelf"));
    let first = &tools[0].tools[0];
    assert_eq!(
        (first.name.as_str(), first.risk, first.timeout_s),
        ("echo", ToolRisk::Read, Some(5))
    );
    let seen = ready(&kit).await;
    assert_eq!((seen.restarts, seen.last_error, seen.warnings), (0, None, vec![]));

    let answer = call(&kit, "echo", json!({"city": "东京"})).await.unwrap();
    let told = json!({
        "tool_name": "echo", "parameters": {"city": "东京"}, "tool_call_id": "c1", "run_id": "r1",
        "deadline_ms": true,
    });
    let expected = PluginToolAnswer { result: told, content: Some("echoed".into()), error: None };
    assert_eq!(answer, expected);
    let failed = call(&kit, "fail", json!({})).await.unwrap();
    assert_eq!(failed.error, Some(json!({"code": "no_station", "message": "there is none"})));
    let refused = PluginToolError::Refused {
        code: -32602,
        message: "not like this".into(),
        data: Some(json!({"why": "as asked"})),
    };
    assert_eq!(call(&kit, "refuse", json!({})).await, Err(refused));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_may_offer_runners_and_tools() {
    let kit = Kit::new();
    kit.runtime.apply(vec![spec(&kit, &[("RUNNERS", "1")])]).await;
    let id = RunnerId::parse("plugin:test/tools/main").unwrap();
    kit.runtime.ready(&id, WAIT).await.unwrap();
    assert_eq!(call(&kit, "echo", json!({})).await.unwrap().content.as_deref(), Some("echoed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_knows_no_tools_offers_none() {
    let kit = Kit::wire().await;
    assert_eq!((kit.runtime.tools(), kit.state().warnings), (vec![], vec![]));
    let unknown = call_tool(&kit.runtime, "wire", "echo", json!({})).await;
    let message = "runner `wire` does not offer the tool `echo`".to_owned();
    assert_eq!(unknown, Err(PluginToolError::Unavailable { message }));
    let nobody = call_tool(&kit.runtime, "nobody", "echo", json!({})).await;
    let message = "there is no runner `nobody`".to_owned();
    assert_eq!(nobody, Err(PluginToolError::Unavailable { message }));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_with_neither_runners_nor_tools_is_broken() {
    let kit = Kit::new();
    kit.runtime.apply(vec![spec(&kit, &[("MODE", "knows_none")])]).await;
    let told = eventually("a failed start", || state(&kit).last_error).await;
    assert_eq!(told, "runner `shelf` offers neither runners nor tools: unknown");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_tool_hides_only_itself() {
    let kit = Kit::new();
    let object = json!({"type": "object"});
    let tools = json!([
        {"name": "good.one", "input_schema": object},
        {"name": "two/parts", "input_schema": object},
        {"name": "no_schema"},
        {"name": "list", "input_schema": {"type": "array"}},
        {"name": "harmless", "input_schema": object, "risk": "none"},
        {"name": "huge", "input_schema": object, "description": "x".repeat(70_000)},
        {"name": "good.one", "input_schema": object},
        17,
    ]);
    kit.runtime.apply(vec![spec(&kit, &[("TOOLS", &tools.to_string())])]).await;
    let warnings = ready(&kit).await.warnings;
    let lists = kit.runtime.tools();
    assert_eq!(names(&lists[0]), ["good.one"]);
    assert_eq!(lists[0].tools[0].risk, ToolRisk::External);
    assert_eq!(warnings.len(), 7, "{warnings:#?}");
    for word in
        ["\"two/parts\"", "\"no_schema\"", "\"list\"", "\"harmless\"", "\"huge\"", "twice", "null"]
    {
        let told = warnings.iter().filter(|warning| warning.contains(word)).count();
        assert_eq!(told, 1, "{word}: {warnings:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn too_many_tools_are_refused_as_a_whole() {
    let kit = Kit::new();
    let many = |count: usize| {
        let tool = |n| json!({"name": format!("t{n}"), "input_schema": {}});
        Value::from((0..count).map(tool).collect::<Vec<_>>()).to_string()
    };
    kit.runtime.apply(vec![spec(&kit, &[("RUNNERS", "1"), ("TOOLS", &many(501))])]).await;
    let warnings = ready(&kit).await.warnings;
    assert_eq!(warnings, ["no tools: it offers 501 tools, and more than 500 are refused"]);
    assert_eq!(kit.runtime.tools(), []);
    kit.runtime.apply(vec![spec(&kit, &[("RUNNERS", "1"), ("TOOLS", &many(500))])]).await;
    eventually("the tools", || kit.runtime.tools().first().map(|l| assert_eq!(l.tools.len(), 500)))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_is_refused_or_never_comes_costs_the_runners_nothing() {
    for mode in ["refuses", "silent"] {
        let runner_start = Duration::from_secs(2);
        let limits = greenroom_config::Limits { runner_start, ..Default::default() };
        let kit = Kit::with(limits.into());
        kit.runtime.apply(vec![spec(&kit, &[("RUNNERS", "1"), ("MODE", mode)])]).await;
        ready(&kit).await;
        let told = eventually("a warning", || state(&kit).warnings.pop()).await;
        let expected = match mode {
            "refuses" => "no tools: it refused `list_tools`: the shelf is locked",
            _ => "no tools: it did not answer `list_tools`",
        };
        assert_eq!((told.as_str(), state(&kit).status), (expected, RunnerStatus::Ready));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_that_comes_late_is_taken_and_announced() {
    let kit = Kit::new();
    let mut changes = kit.runtime.tools_changes();
    kit.runtime.apply(vec![spec(&kit, &[("RUNNERS", "1"), ("MODE", "late")])]).await;
    ready(&kit).await;
    assert_eq!(kit.runtime.tools(), []);
    assert!(!changes.has_changed().unwrap());
    std::fs::write(kit.path("other/go"), "").unwrap();
    tokio::time::timeout(WAIT, changes.changed()).await.unwrap().unwrap();
    assert_eq!(call(&kit, "fail", json!({})).await.unwrap().result, Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_version_changes_with_the_list_and_with_nothing_else() {
    let kit = shelf(Limits::default()).await;
    let version = || kit.runtime.tools()[0].version;
    let before = version();
    let mut changes = kit.runtime.tools_changes();
    assert!(matches!(call(&kit, "crash", json!({})).await, Err(PluginToolError::Crashed { .. })));
    call(&kit, "echo", json!({})).await.unwrap();
    assert_eq!((version(), changes.has_changed().unwrap()), (before, false));

    let fewer = json!([{"name": "echo", "input_schema": {}}]).to_string();
    kit.runtime.apply(vec![spec(&kit, &[("TOOLS", &fewer)])]).await;
    tokio::time::timeout(WAIT, changes.wait_for(|count| *count > 1)).await.unwrap().unwrap();
    assert_eq!(names(&kit.runtime.tools()[0]), ["echo"]);
    assert_ne!(version(), before);
    changes.mark_unchanged();
    kit.runtime.apply(vec![]).await;
    assert!(changes.has_changed().unwrap());
    assert_eq!(kit.runtime.tools(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_in_the_middle_fails_every_call_at_once_and_the_next_waits_for_the_new_process() {
    let kit = shelf(Limits::default()).await;
    let (waits, crashes) =
        tokio::join!(call(&kit, "wait", json!({})), call(&kit, "crash", json!({})));
    let message = "runner `shelf` exited with code 3".to_owned();
    assert_eq!(waits, Err(PluginToolError::Crashed { message: message.clone() }));
    assert_eq!(crashes, Err(PluginToolError::Crashed { message }));
    assert_eq!(call(&kit, "echo", json!({})).await.unwrap().content.as_deref(), Some("echoed"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_given_up_is_told_to_the_plugin_and_its_late_answer_is_dropped() {
    let kit = shelf(Limits::default()).await;
    let cancel = CancellationToken::new();
    let cancelled = kit.runtime.call_tool("shelf", tool_call("late", json!({})), cancel.clone());
    // In this order: a call that was not sent before it is given up is not told to the plugin.
    let (cancelled, ()) = tokio::join!(cancelled, async {
        call(&kit, "echo", json!({})).await.unwrap();
        cancel.cancel();
    });
    assert_eq!(cancelled, Err(PluginToolError::Cancelled));
    assert_eq!(given_up(&kit).await, 1);

    let soon = Instant::now() + Duration::from_millis(50);
    let overdue = PluginToolCall { deadline: soon, ..tool_call("late", json!({})) };
    let overdue = kit.runtime.call_tool("shelf", overdue, CancellationToken::new()).await;
    assert_eq!(overdue, Err(PluginToolError::TimedOut));
    assert_eq!(given_up(&kit).await, 2);

    let dropped = tokio::time::timeout(Duration::from_millis(50), call(&kit, "late", json!({})));
    assert!(dropped.await.is_err());
    assert_eq!(given_up(&kit).await, 3);
    let never = kit.runtime.call_tool("shelf", tool_call("wait", json!({})), cancel).await;
    assert_eq!(never, Err(PluginToolError::Cancelled));
    assert_eq!(given_up(&kit).await, 3);
    assert_eq!((state(&kit).restarts, state(&kit).runs_in_flight), (0, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_calls_than_the_limit_are_under_way() {
    let kit = shelf(Limits { tool_calls_in_flight_max: 2, ..Limits::default() }).await;
    let cancel = CancellationToken::new();
    let waiting = || kit.runtime.call_tool("shelf", tool_call("wait", json!({})), cancel.clone());
    let refused = async {
        let third = call(&kit, "echo", json!({})).await;
        cancel.cancel();
        third
    };
    let (_, _, third) = tokio::join!(biased; waiting(), waiting(), refused);
    let message = "runner `shelf` has as many tool calls as it may".to_owned();
    assert_eq!(third, Err(PluginToolError::Unavailable { message }));
    call(&kit, "echo", json!({})).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_over_the_limit_ends_its_call_alone() {
    let limits = greenroom_config::Limits { line_bytes: 100_000, ..Default::default() };
    let kit = shelf(limits.into()).await;
    let cancel = CancellationToken::new();
    let other = kit.runtime.call_tool("shelf", tool_call("wait", json!({})), cancel.clone());
    let big = async {
        let big = call(&kit, "big", json!({"bytes": 200_000})).await;
        cancel.cancel();
        big
    };
    let (other, big) = tokio::join!(other, big);
    let message = "the answer has more than 100000 bytes".to_owned();
    assert_eq!(big, Err(PluginToolError::TooLarge { message }));
    assert_eq!(other, Err(PluginToolError::Cancelled));
    call(&kit, "echo", json!({})).await.unwrap();
    assert_eq!(state(&kit).restarts, 0);

    let long = call(&kit, "echo", json!({"text": "x".repeat(100_000)})).await;
    let message = "the parameters have more than 100000 bytes".to_owned();
    assert_eq!(long, Err(PluginToolError::TooLarge { message }));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_cannot_be_read_ends_the_calls_it_may_belong_to() {
    let kit = shelf(Limits::default()).await;
    let malformed = call(&kit, "malformed", json!({})).await;
    assert!(matches!(malformed, Err(PluginToolError::Protocol { .. })), "{malformed:?}");
    assert_eq!(state(&kit).restarts, 0);

    let cancel = CancellationToken::new();
    let other = kit.runtime.call_tool("shelf", tool_call("wait", json!({})), cancel.clone());
    let named = async {
        let named = call(&kit, "garbage_named", json!({})).await;
        cancel.cancel();
        named
    };
    let (other, named) = tokio::join!(other, named);
    assert_eq!(other, Err(PluginToolError::Cancelled));
    assert!(matches!(named, Err(PluginToolError::Protocol { .. })), "{named:?}");

    let (other, garbage) =
        tokio::join!(call(&kit, "wait", json!({})), call(&kit, "garbage", json!({})));
    for ended in [other, garbage] {
        let Err(PluginToolError::Protocol { message }) = ended else { panic!("{ended:?}") };
        assert!(message.contains("this is not json"), "{message}");
    }
    call(&kit, "echo", json!({})).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_process_may_finish_its_calls() {
    let kit = shelf(Limits::default()).await;
    let first = state(&kit).pid;
    let cancel = CancellationToken::new();
    let call_before = kit.runtime.call_tool("shelf", tool_call("late", json!({})), cancel.clone());
    let replaced = async {
        call(&kit, "echo", json!({})).await.unwrap();
        kit.runtime.apply(vec![spec(&kit, &[("CHANGED", "1")])]).await;
        eventually("a new process", || Some(ready_pid(&kit)?).filter(|pid| Some(*pid) != first))
            .await;
        assert!(crate::kit::is_alive(first.unwrap()));
        cancel.cancel();
    };
    let (ended, ()) = tokio::join!(call_before, replaced);
    assert_eq!(ended, Err(PluginToolError::Cancelled));
    eventually("the old process gone", || (!crate::kit::is_alive(first.unwrap())).then_some(()))
        .await;
}

fn ready_pid(kit: &Kit) -> Option<u32> {
    let state = state(kit);
    (state.status == RunnerStatus::Ready).then_some(state.pid?)
}
