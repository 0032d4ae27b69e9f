//! Every action that a plugin may ask of the host, made by the SDK; refusals arrive there as typed errors.

use crate::stage::{Stage, agent};
use greenroom_testkit::host::TestHost;
use serde_json::{Value, json};

fn agents() -> String {
    agent("calls", "reader", "calls", "queue = \"steer\"\nconfig = { prompt = \"Be brief.\" }")
        + "[agents.calls.grant]\nmodels = [\"main\", \"vectors\", \"ranks\"]\nmodules = [\"memory.*\"]\n\
           storage = [\"plugin\", \"workspace\"]\n"
        + &agent("greedy", "reader", "greedy", "")
        + "[agents.greedy.grant]\nmodels = [\"main\"]\nstorage = [\"plugin\", \"workspace\"]\n"
        + "[models.main]\nprovider = \"scripted\"\n"
        + "[models.vectors]\nprovider = \"scripted\"\nkind = \"embedding\"\n"
        + "[models.ranks]\nprovider = \"scripted\"\nkind = \"rerank\"\n"
}

async fn stage() -> Stage {
    Stage::open(&["reader"], &agents()).await
}

/// The answers to these calls, each of which must have one.
async fn served(stage: &Stage, conversation: &str, calls: Value) -> Vec<Value> {
    let told = stage.told("calls", conversation, &calls).await;
    let outcomes = told.as_array().unwrap().iter();
    outcomes
        .map(|outcome| outcome.get("ok").cloned().unwrap_or_else(|| panic!("{outcome} of {told}")))
        .collect()
}

#[tokio::test]
async fn state_and_storage_are_kept_between_runs() {
    let stage = stage().await;
    let told = served(
        &stage,
        "c1",
        json!([
            ["state_set", {"scope": "conversation", "key": "a.b", "value": {"n": 1}}],
            ["state_set", {"scope": "runner", "key": "gone", "value": 1}],
            ["state_delete", {"scope": "runner", "key": "gone"}],
            ["state_delete", {"scope": "runner", "key": "gone"}],
            ["set_plugin_storage", {"key": "blob", "bytes": "hello"}],
            ["set_workspace_storage", {"key": "shared", "bytes": "all"}],
            ["set_plugin_storage", {"key": "other", "bytes": "x"}],
            ["delete_plugin_storage", {"key": "other"}],
        ]),
    )
    .await;
    let success = json!({"success": true});
    assert_eq!(
        told[..4],
        [&success, &success, &success, &json!({"success": false})].map(Clone::clone)
    );
    let told = served(
        &stage,
        "c1",
        json!([
            ["state_get", {"scope": "conversation", "key": "a.b"}],
            ["state_get", {"scope": "conversation", "key": "none"}],
            ["state_list", {"scope": "conversation", "prefix": "a."}],
            ["get_plugin_storage", {"key": "blob"}],
            ["get_plugin_storage_keys", {}],
            ["get_workspace_storage", {"key": "shared"}],
            ["get_workspace_storage_keys", {}],
            ["delete_workspace_storage", {"key": "shared"}],
        ]),
    )
    .await;
    assert_eq!(told[0]["value"], json!({"n": 1}));
    assert_eq!(told[1]["value"], Value::Null);
    assert_eq!(told[2], json!({"keys": ["a.b"], "has_more": false}));
    assert_eq!((&told[3], &told[4]), (&json!("aGVsbG8="), &json!(["blob"])));
    assert_eq!((&told[5], &told[6]), (&json!("YWxs"), &json!(["shared"])));
}

#[tokio::test]
async fn a_number_that_json_lacks_is_null_and_ends_no_process() {
    let stage = stage().await;
    // Python reads and writes `NaN`.
    let long = "NaN ".repeat(5_000);
    for text in ["NaN stays", long.as_str()] {
        let calls = format!(
            r#"[["state_set", {{"scope": "conversation", "key": "k",
                "value": {{"a": NaN, "b": [-Infinity], "text": "{text}"}}}}],
                ["state_get", {{"scope": "conversation", "key": "k"}}]]"#
        );
        let told: Value = serde_json::from_str(&stage.answer("calls", "c1", &calls).await).unwrap();
        let value = json!({"a": null, "b": [null], "text": text});
        assert_eq!(told[1]["ok"]["value"], value, "{told}");
    }
    assert_eq!(stage.api.ready_runner("reader").await["restarts"], 0);
}

#[tokio::test]
async fn history_and_events_are_read_as_the_sdk_knows_them() {
    let stage = stage().await;
    served(&stage, "c1", json!([["get_langbot_version", {}]])).await;
    let told = served(
        &stage,
        "c1",
        json!([
            ["history_page", {"before_cursor": "$CURSOR", "limit": 10, "include_attachments": true}],
            ["history_search", {"query": "get_langbot_version"}],
            ["event_get", {"event_id": "$EVENT"}],
            ["event_page", {"event_types": ["message.received"], "limit": 5}],
            ["get_langbot_version", {}],
            ["get_prompt", {}],
        ]),
    )
    .await;
    let items = told[0]["items"].as_array().unwrap();
    let roles: Vec<&Value> = items.iter().map(|item| &item["role"]).collect();
    // A page back is newest first.
    assert_eq!(roles, ["assistant", "user"]);
    assert_eq!(items[1]["content"], "[[\"get_langbot_version\",{}]]");
    assert!(items[0]["created_at"].as_i64().unwrap() > 1_700_000_000);
    assert_eq!(told[1]["query"], "get_langbot_version");
    assert_eq!(told[2]["event_type"], "message.received");
    assert_eq!(told[2]["actor_id"], "u1");
    assert_eq!(told[3]["items"].as_array().unwrap().len(), 2);
    assert_eq!(told[4], env!("CARGO_PKG_VERSION"));
    assert_eq!(told[5], json!([{"role": "system", "content": "Be brief."}]));
}

#[tokio::test]
async fn a_run_reads_its_own_record_and_those_beside_it() {
    let stage = stage().await;
    let first = stage.play("calls", "c1", "[]").await;
    let other = stage.play("calls", "c2", "[]").await;
    let told = stage
        .told(
            "calls",
            "c1",
            &json!([
                ["run_get", {}],
                ["run_get", {"run_id": first.run_id}],
                ["run_get", {"run_id": other.run_id}],
                ["run_list", {"statuses": ["completed"]}],
                ["run_events_page", {"run_id": first.run_id, "limit": 10}],
                ["run_events_page", {"run_id": first.run_id, "limit": 10, "direction": "backward"}],
                ["run_append_result", {"result": {"run_id": "$RUN", "type": "x", "data": {}}}],
                ["run_finalize", {}],
                ["run_cancel", {"run_id": first.run_id}],
                ["run_list", {"conversation_id": "c2"}],
            ]),
        )
        .await;
    assert_eq!(
        (&told[0]["ok"]["status"], &told[0]["ok"]["agent_id"]),
        (&json!("running"), &json!("calls"))
    );
    assert_eq!(told[1]["ok"]["status"], "completed");
    assert!(told[1]["ok"]["finished_at"].as_i64().unwrap() > 1_700_000_000);
    assert_eq!(told[2]["code"], "not_found");
    let listed = told[3]["ok"]["items"].as_array().unwrap();
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["run_id"], first.run_id.as_str());
    for page in [4, 5] {
        let results = told[page]["ok"]["items"].as_array().unwrap();
        assert_eq!(results.last().unwrap()["type"], "run.completed", "{results:?}");
    }
    // What is not offered is denied before it leaves the SDK.
    assert_eq!(
        (&told[6], &told[7]),
        (&json!({"denied": "run_append_result"}), &json!({"denied": "run_finalize"}))
    );
    assert_eq!(told[8]["code"], "unauthorized");
    assert_eq!(told[9]["code"], "not_found");
}

#[tokio::test]
async fn a_run_may_cancel_itself() {
    let stage = stage().await;
    let run = stage.play("calls", "c1", "[[\"run_cancel\", {\"reason\": \"enough\"}]]").await;
    assert_eq!(run.status, greenroom_protocol::RunStatus::Cancelled, "{}", stage.host.log());
    assert_eq!(run.error.unwrap().message, "enough");
}

#[tokio::test]
async fn models_tools_and_knowledge_are_asked_by_their_names() {
    let stage = stage().await;
    let messages = json!([{"role": "user", "content": "hello"}]);
    let told = stage
        .told(
            "calls",
            "c1",
            &json!([
                ["count_tokens", {"llm_model_uuid": "main", "messages": messages}],
                ["invoke_llm", {"llm_model_uuid": "main", "messages": messages}],
                ["invoke_llm", {"llm_model_uuid": "none", "messages": messages}],
                ["invoke_rerank", {"rerank_model_uuid": "ranks", "query": "q", "documents": ["a", "b"], "top_k": 1}],
                ["invoke_embedding", {"embedding_model_uuid": "vectors", "texts": ["a", "b"]}],
                ["get_tool_detail", {"tool_name": "project_cli"}],
                ["call_tool", {"tool_name": "project_cli", "parameters":
                    {"module": "memory", "method": "nothing", "input": {}}}],
                ["call_tool", {"tool_name": "none", "parameters": {}}],
                ["retrieve_knowledge", {"kb_id": "none", "query_text": "q"}],
                ["steering_pull", {"mode": "all"}],
                ["get_plugin_storage", {"key": "none"}],
                ["state_set", {"scope": "nowhere", "key": "k", "value": 1}],
                ["history_page", {"before_cursor": "nonsense"}],
            ]),
        )
        .await;
    assert!(told[0]["ok"].as_u64().unwrap() > 0, "{told}");
    assert_eq!(told[1]["ok"]["role"], "assistant");
    assert_eq!(told[2], json!({"denied": "invoke_llm"}));
    let ranked = told[3]["ok"].as_array().unwrap();
    assert_eq!(ranked.len(), 1, "{told}");
    assert!(ranked[0]["index"].is_u64() && ranked[0]["relevance_score"].is_number(), "{told}");
    assert_eq!(told[4]["ok"].as_array().unwrap().len(), 2, "{told}");
    assert_eq!(told[5]["ok"]["name"], "project_cli");
    assert_eq!(told[6]["code"], "unauthorized", "{told}");
    assert_eq!(
        (&told[7], &told[8]),
        (&json!({"denied": "call_tool"}), &json!({"denied": "retrieve_knowledge"}))
    );
    assert_eq!(told[9]["ok"], json!({"items": []}));
    assert_eq!(told[10]["code"], "not_found");
    assert_eq!(told[11]["code"], "invalid_argument");
    assert_eq!(told[12]["code"], "invalid_argument");
}

#[tokio::test]
async fn a_message_that_comes_meanwhile_is_pulled() {
    let stage = stage().await;
    let calls = json!([["wait", {}], ["steering_pull", {"mode": "all"}], ["steering_pull", {}]]);
    let run_id = stage.send("calls", "c1", &calls.to_string()).await;
    stage.marked("reader/waits").await;
    let steered = stage.api.send_event(&crate::stage::event("calls", "c1", "also this")).await;
    assert_eq!((steered.status.as_str(), steered.run_id.as_ref()), ("steered", Some(&run_id)));
    std::fs::write(stage.host.folder().join("reader/gate"), "").unwrap();
    stage.api.ended_run(&run_id).await;
    let told: Value = serde_json::from_str(&stage.api.answers("c1").await.pop().unwrap()).unwrap();
    let items = told[0]["ok"]["items"].as_array().unwrap();
    assert_eq!(items.len(), 1, "{told}");
    assert_eq!(items[0]["claimed_run_id"], run_id.as_str());
    assert_eq!(items[0]["runner_id"], "plugin:greenroom-tests/reader/calls");
    assert_eq!(items[0]["input"]["text"], "also this");
    assert_eq!(items[0]["actor"]["actor_id"], "u1");
    assert_eq!(told[1]["ok"]["items"], json!([]));
}

#[tokio::test]
async fn state_needs_no_permission_for_storage_on_this_wire() {
    let stage = stage().await;
    let state = |action: &str, mut data: Value| {
        data["run_id"] = "$RUN".into();
        data["scope"] = "conversation".into();
        data["key"] = "session".into();
        json!([[action, data]])
    };
    let set = state("state_set", json!({"value": {"id": "s1"}}));
    assert_eq!(stage.told("greedy", "c1", &set).await[0]["ok"], json!({"success": true}));
    let get = state("state_get", json!({}));
    assert_eq!(stage.told("greedy", "c1", &get).await[0]["ok"]["value"], json!({"id": "s1"}));
    assert_eq!(stage.told("greedy", "c2", &get).await[0]["ok"]["value"], Value::Null);
}

#[tokio::test]
async fn pages_have_the_order_and_the_bounds_of_langbot() {
    let stage = stage().await;
    for _ in 0..3 {
        stage.told("calls", "c1", &json!([])).await;
    }
    let page = async |given: Value| {
        let told = stage.told("calls", "c1", &json!([["history_page", given]])).await;
        told[0]["ok"].clone()
    };
    let numbers = |page: &Value| -> Vec<i64> {
        page["items"].as_array().unwrap().iter().map(|item| item["seq"].as_i64().unwrap()).collect()
    };
    let sorted = |numbers: &[i64]| numbers.is_sorted();
    // Newest first, going back from the end; the next page begins below the last item.
    let newest = page(json!({"limit": 4})).await;
    let first = numbers(&newest);
    assert_eq!((first.len(), newest["has_more"].clone()), (4, json!(true)));
    assert!(sorted(&first.iter().rev().copied().collect::<Vec<_>>()), "{first:?}");
    let older = page(json!({"limit": 100, "before_cursor": newest["next_cursor"]})).await;
    assert!(numbers(&older).iter().all(|number| number < first.last().unwrap()), "{older}");
    // Forward from an item's own cursor, oldest first, without that item.
    let from = &newest["items"][3]["cursor"];
    let after = page(json!({"limit": 2, "direction": "forward", "after_cursor": from})).await;
    assert_eq!(numbers(&after), [first[2], first[1]]);
    // Forward from nowhere is what LangBot reads back from the end.
    let nowhere = page(json!({"limit": 3, "direction": "forward"})).await;
    let read = numbers(&nowhere);
    assert!(sorted(&read.iter().rev().copied().collect::<Vec<_>>()) && read.len() == 3, "{read:?}");
    // More than a page may have is less than asked for, not an error.
    assert!(numbers(&page(json!({"limit": 5000})).await).len() > 4);
}

/// Calls that must be in the audit, although they were refused.
const RECORDED: [&str; 5] =
    ["models.invoke", "tools.call", "langbot.history_page", "langbot.run_finalize", "acquire_box"];

#[tokio::test]
async fn what_was_not_granted_is_refused_with_a_code_and_recorded() {
    let stage = stage().await;
    let run = |data: Value| {
        let mut data = data;
        data["run_id"] = "$RUN".into();
        data
    };
    let actions = json!([
        ["invoke_llm", run(json!({"llm_model_uuid": "main", "messages": [{"role": "user", "content": "x"}]}))],
        ["invoke_llm", {"llm_model_uuid": "main", "messages": []}],
        ["invoke_llm_stream", {"run_id": "someone-else", "llm_model_uuid": "main", "messages": []}],
        ["call_tool", run(json!({"tool_name": "project_cli", "parameters": {}}))],
        ["retrieve_knowledge_base", run(json!({"kb_id": "k", "query_text": "q"}))],
        ["history_page", run(json!({}))],
        ["event_get", run(json!({"event_id": "e"}))],
        ["state_get", run(json!({"scope": "subject", "key": "k"}))],
        ["set_plugin_storage", run(json!({"key": "k", "value_base64": "eA=="}))],
        ["get_workspace_storage_keys", run(json!({}))],
        ["steering_pull", run(json!({}))],
        ["get_config_file", run(json!({"file_key": "f"}))],
        ["run_append_result", run(json!({"target_run_id": "$RUN", "result": {}}))],
        ["run_finalize", run(json!({"target_run_id": "$RUN"}))],
        ["call_platform_api", run(json!({"action": "send_message", "params": {}}))],
        ["acquire_box", run(json!({}))],
        ["get_bots", {}],
        ["__file_chunk", {"file_key": "f"}],
    ]);
    let told = stage.told("greedy", "c1", &actions).await;
    let codes: Vec<&str> = told
        .as_array()
        .unwrap()
        .iter()
        .map(|outcome| outcome["code"].as_str().unwrap_or("ok"))
        .collect();
    assert_eq!(
        codes,
        [
            "unauthorized",
            "unauthorized",
            "unauthorized",
            "unauthorized",
            "unauthorized",
            "unauthorized",
            "unauthorized",
            "unauthorized",
            "unauthorized",
            "unauthorized",
            "unauthorized",
            "not_found",
            "unauthorized",
            "unauthorized",
            "unauthorized",
            "invalid_argument",
            "invalid_argument",
            "invalid_argument",
        ],
        "{told}"
    );
    greenroom_testkit::wait::wait_for("the records", crate::stage::PATIENCE, async || {
        let audit = stage.api.get("/v1/audit?limit=100").await;
        let records = audit["items"].as_array().unwrap().clone();
        let has = |method: &&str| records.iter().any(|record| record["method"] == **method);
        RECORDED.iter().all(has).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_plugin_is_found_by_its_manifest_and_a_stranger_is_not_let_in() {
    let mut host = TestHost::prepare(crate::PROGRAM, "");
    let stranger = "import json,sys\nprint('hi')\nprint(json.dumps({'seq_id': 1, 'action': 'register_plugin', \
        'data': {'plugin_container': {}, 'registration_capability': 'guessed'}}), flush=True)\nsys.stdin.read()\n";
    std::fs::create_dir(host.folder().join("stranger")).unwrap();
    std::fs::write(host.folder().join("stranger/run.py"), stranger).unwrap();
    std::fs::write(host.folder().join("stranger/manifest.yaml"), "kind: Plugin\n").unwrap();
    host.configure(
        "[limits]\nrunner_start_s = 20\n[runners.stranger]\ncommand = [\"python3\", \"run.py\"]\ndir = \"stranger\"\n",
    );
    host.start_again().await;
    let api = host.api();
    let stage = Stage { host, api };
    let error =
        greenroom_testkit::wait::wait_for("a refusal", crate::stage::PATIENCE, async || {
            let error =
                stage.api.runner("stranger").await["last_error"].as_str().map(str::to_owned);
            error.filter(|error| error.contains("could not register"))
        })
        .await;
    assert!(error.contains("not the secret"), "{error}");
}
