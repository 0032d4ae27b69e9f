//! Every API method: the call on the wire, and the result.

use crate::calls::{answer, expect_call};
use crate::process::{Process, completed, failed, message, run_agent};
use greenroom_sdk::Method;
use serde_json::{Value, json};

/// Makes the probe send one call and responds; returns the probe's result.
fn round(method: Method, params: Value, result: Value) -> Value {
    let mut runner = Process::probe();
    runner.send(run_agent(1, "r1", "", json!({ "do": "ask", "method": method.as_str() })));
    let mut expected = params;
    expected["run_id"] = json!("r1");
    let id = expect_call(&mut runner, method.as_str(), expected);
    answer(&mut runner, id, result);
    let (results, _) = runner.read_until(1);
    let text = results[0]["params"]["data"]["message"]["content"].as_str();
    let text = text.unwrap_or_else(|| panic!("{method}: {}", results[0]));
    assert_eq!(results, [message("r1", 1, text), completed("r1", 2)], "{method}");
    serde_json::from_str(text).unwrap()
}

#[track_caller]
fn same(method: Method, params: Value, result: Value) {
    let result_seen = round(method, params, result.clone());
    assert_eq!(result_seen, result, "{method}");
}

#[test]
fn history_and_events_are_read() {
    let item = json!({
        "item_id": "i1", "conversation_id": "c1", "thread_id": null, "seq": 7, "role": "user",
        "event_id": "e1", "run_id": null, "actor": null, "text": "数据库连接信息", "segments": [],
        "artifacts": [], "metadata": {}, "created_at": "2026-01-02T03:04:05.678Z",
    });
    same(
        Method::HistoryPage,
        json!({ "after_cursor": "cur", "limit": 20, "direction": "forward", "include_artifacts": true }),
        json!({ "items": [item], "next_cursor": "n", "prev_cursor": null, "has_more": true }),
    );
    let mut hit = item;
    hit["score"] = json!(1.5);
    hit["snippet"] = json!("数据库连接信息");
    hit["highlights"] = json!([{ "start": 0, "end": 3 }]);
    let filters = json!({ "roles": ["user"], "after": 1_700_000_000 });
    let params = json!({ "query": "数据库", "filters": filters, "top_k": 10 });
    let result_seen = round(Method::HistorySearch, params, json!({ "items": [hit] }));
    assert_eq!(result_seen, json!([hit]));

    let event = json!({
        "event_id": "e1", "source": "api", "event_type": "message.received",
        "conversation_id": "c1", "conversation_seq": 3, "run_id": "r0", "seq": 9,
        "created_at": "2026-01-02T03:04:05.678Z", "trigger": "api", "event": { "a": 1 },
    });
    same(Method::EventsGet, json!({ "event_id": "e1" }), event.clone());
    same(
        Method::EventsPage,
        json!({ "event_types": ["tool.call.completed"], "limit": 50 }),
        json!({ "items": [event], "next_cursor": null, "has_more": false }),
    );
}

#[test]
fn artifacts_are_described_read_and_created() {
    let view = json!({
        "artifact_id": "a1", "name": "报告.txt", "mime_type": "text/plain", "size_bytes": 5,
        "sha256": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824",
        "conversation_id": "c1", "run_id": "r1", "agent": "a", "created_at": "2026-01-02T03:04:05.678Z",
        "expires_at": "2026-01-02T03:05:05.678Z", "metadata": {},
    });
    same(Method::ArtifactsMetadata, json!({ "artifact_id": "a1" }), view.clone());
    let range = json!({
        "data_base64": "aGVsbG8=", "offset": 5, "length": 5, "size_bytes": 10, "eof": true,
    });
    let result_seen = round(
        Method::ArtifactsReadRange,
        json!({ "artifact_id": "a1", "offset": 5, "length": 100 }),
        range,
    );
    assert_eq!(result_seen, json!({ "text": "hello", "offset": 5, "eof": true }));
    same(
        Method::ArtifactsCreate,
        json!({
            "name": "报告.txt", "mime_type": "text/plain", "content_base64": "aGVsbG8=",
            "expires_in_s": 60,
        }),
        view,
    );
}

#[test]
fn state_and_storage_are_kept() {
    same(
        Method::StateGet,
        json!({ "scope": "actor", "key": "k" }),
        json!({ "value": { "n": 1 }, "version": 3 }),
    );
    let result_seen = round(
        Method::StateSet,
        json!({ "scope": "actor", "key": "k", "value": { "n": 1 }, "if_version": 0, "ttl_s": 60 }),
        json!({ "version": 4 }),
    );
    assert_eq!(result_seen, json!(4));
    let result_seen = round(
        Method::StateDelete,
        json!({ "scope": "actor", "key": "k", "if_version": 3 }),
        json!({ "deleted": false }),
    );
    assert_eq!(result_seen, json!(false));
    same(
        Method::StateList,
        json!({ "scope": "actor", "prefix": "k", "cursor": "cur", "limit": 2 }),
        json!({ "items": [{ "key": "k", "value": 1, "version": 2 }], "next_cursor": "n", "has_more": true }),
    );

    let key = json!({ "area": "plugin", "key": "k" });
    let found = json!({ "data_base64": "aGk=", "size_bytes": 2 });
    assert_eq!(round(Method::StorageGet, key.clone(), found), json!([104, 105]));
    let none = json!({ "data_base64": null, "size_bytes": 0 });
    assert_eq!(round(Method::StorageGet, key.clone(), none), json!(null));
    round(
        Method::StorageSet,
        json!({ "area": "plugin", "key": "k/1", "value": "aGVsbG8=" }),
        json!({ "size_bytes": 5 }),
    );
    assert_eq!(round(Method::StorageDelete, key, json!({ "deleted": true })), json!(true));
    let entry = json!({ "key": "k/1", "size_bytes": 5, "updated_at": "2026-01-02T03:04:05.678Z" });
    same(
        Method::StorageList,
        json!({ "area": "plugin", "prefix": "k", "cursor": "cur", "limit": 2 }),
        json!({ "items": [entry], "next_cursor": null, "has_more": false }),
    );
}

#[test]
fn actions_are_requested_and_messages_pulled() {
    same(
        Method::PlatformRequestAction,
        json!({ "action": "message.react", "target": { "message_id": "m1" }, "payload": { "emoji": "👍" } }),
        json!({ "status": "queued", "action": "message.react", "delivery_id": "d1" }),
    );
    let input = json!({ "text": "stop", "contents": [], "attachments": [], "message_chain": null });
    let item = json!({
        "event_id": "e2", "event_type": "message.received", "conversation_id": "c1",
        "thread_id": null, "actor": null, "input": input, "data": {},
        "created_at": "2026-01-02T03:04:05.678Z",
    });
    let result_seen =
        round(Method::SteeringPull, json!({ "limit": 7 }), json!({ "items": [item] }));
    assert_eq!(result_seen, json!([item]));
}

#[test]
fn models_tools_and_knowledge_are_used() {
    let messages = json!([{ "role": "user", "content": "hi" }]);
    same(
        Method::ModelsInvoke,
        json!({ "model_id": "m", "messages": messages }),
        json!({ "segments": [{ "type": "text", "text": "hello" }], "metadata": { "model": "x" } }),
    );
    let ranked = json!([{ "index": 1, "relevance_score": 0.5 }]);
    let params = json!({ "model_id": "m", "query": "q", "documents": ["a", "b"], "top_k": 1 });
    assert_eq!(round(Method::ModelsRerank, params, json!({ "results": ranked })), ranked);
    let params = json!({ "model_id": "m", "inputs": ["a"] });
    let result_seen = round(Method::ModelsEmbed, params, json!({ "vectors": [[0.5]] }));
    assert_eq!(result_seen, json!([[0.5]]));
    let params = json!({ "model_id": "m", "text": "hi" });
    assert_eq!(round(Method::ModelsCountTokens, params, json!({ "tokens": 3 })), json!(3));

    let tool = json!({
        "tool_name": "t", "description": "adds", "parameters": {}, "operations": ["call"],
        "metadata": {},
    });
    same(Method::ToolsGetDetail, json!({ "tool_name": "t" }), tool.clone());
    let params = json!({ "query": "sum", "top_k": 2 });
    assert_eq!(round(Method::ToolsSearch, params, json!({ "items": [tool] })), json!([tool]));
    same(
        Method::ToolsCall,
        json!({ "tool_name": "t", "parameters": { "a": 1 }, "tool_call_id": "c1" }),
        json!({ "result": { "sum": 3 }, "content": "3" }),
    );
    let base =
        json!({ "kb_id": "k", "name": "Handbook", "operations": ["retrieve"], "metadata": {} });
    assert_eq!(round(Method::KnowledgeList, json!({}), json!({ "items": [base] })), json!([base]));
    let passage = json!({ "content": "…", "score": 0.5, "metadata": { "page": 3 } });
    let params = json!({ "kb_id": "k", "query_text": "年假", "top_k": 3 });
    let result_seen = round(Method::KnowledgeRetrieve, params, json!({ "items": [passage] }));
    assert_eq!(result_seen, json!([passage]));
}

#[test]
fn a_result_of_another_shape_is_an_error() {
    let mut runner = Process::probe();
    runner.send(run_agent(1, "r1", "", json!({ "do": "ask", "method": "events.get" })));
    let id = expect_call(&mut runner, "events.get", json!({ "run_id": "r1", "event_id": "e1" }));
    answer(&mut runner, id, json!({ "event_id": 7 }));
    let (results, _) = runner.read_until(1);
    assert_eq!(results[0]["params"]["data"]["code"], "runtime_error");
    let text = results[0]["params"]["data"]["message"].as_str().unwrap();
    assert!(text.starts_with("unexpected response to `events.get`"), "{text}");
}

#[test]
fn ungranted_calls_are_rejected_locally() {
    let mut runner = Process::probe();
    let refused = [
        (
            "history.page",
            "unauthorized",
            "this run may not use `history.page`: `available_apis.history_page` is off",
        ),
        (
            "steering.pull",
            "unauthorized",
            "this run may not use `steering.pull`: `available_apis.steering_pull` is off",
        ),
        ("models.invoke", "not_found", "`ctx.resources` contains no model `m`"),
        ("models.stream", "not_found", "`ctx.resources` contains no model `m`"),
        ("tools.call", "unauthorized", "the tool `t` is not granted for `call`"),
        ("knowledge.retrieve", "not_found", "`ctx.resources` contains no knowledge base `k`"),
        ("storage.get", "unauthorized", "the storage area `plugin` is not granted to this run"),
    ];
    for (id, (method, code, text)) in (1..).zip(refused) {
        let run_id = format!("r{id}");
        let mut request = run_agent(id, &run_id, "", json!({ "do": "ask", "method": method }));
        let context = &mut request["params"]["context"];
        context["context"]["available_apis"] = json!({ "storage": true });
        context["resources"] = json!({ "tools": [{ "tool_name": "t", "operations": ["detail"] }] });
        runner.send(request);
        let (results, _) = runner.read_until(id);
        assert_eq!(results, [failed(&run_id, 1, code, text)]);
    }
}

#[test]
fn the_deadline_is_paused_while_waiting_for_approval() {
    let mut runner = Process::probe();
    let mut asking =
        run_agent(1, "r1", "", json!({ "do": "ask", "method": "platform.request_action" }));
    asking["params"]["context"]["runtime"]["metadata"]["remaining_ms"] = json!(100);
    runner.send(asking);
    let id = runner.read()["id"].clone();
    // Another run with the same deadline starts later and ends before the first gets its response.
    let mut other = run_agent(2, "r2", "", json!({ "do": "call" }));
    other["params"]["context"]["runtime"]["metadata"]["remaining_ms"] = json!(100);
    runner.send(other);
    let (results, _) = runner.read_until(2);
    assert_eq!(results.last().unwrap()["params"]["data"]["code"], "deadline_exceeded");

    answer(&mut runner, id, json!({ "status": "done", "action": "message.react" }));
    let (results, _) = runner.read_until(1);
    let text = r#"{"action":"message.react","status":"done"}"#;
    assert_eq!(results, [message("r1", 1, text), completed("r1", 2)]);
}
