//! The MCP gateway: lists, calls, approvals, cancellation, sessions.

use crate::client::{Client, agent, open, read};
use greenroom_testkit::http::{Request, Response};
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);
const SKILL: &str = "---\nname: booking\ndescription: Book a room\n---\n# How to book\n";
const HISTORY: [&str; 8] = [
    "history_page",
    "artifact_read",
    "artifact_create",
    "state_get",
    "state_set",
    "storage_get",
    "storage_set",
    "storage_list",
];

async fn opened(grant: &str) -> Client {
    let skills = "[tools.know_how]\nkind = \"skills\"\ndir = \"skills\"\n";
    // Nothing is sent there: no action of these tests is allowed.
    let surface = "[surfaces.hook]\nkind = \"webhook\"\nurl = \"http://127.0.0.1:9/\"\n\
        secret = { file = \"token\" }\nallow_private = true\nactions = [\"message.send\"]\n";
    let configuration = format!("{skills}{surface}{}", agent(grant, "delivery = \"hook\""));
    open(&[("skills/booking/SKILL.md", SKILL)], &configuration).await
}

async fn names(client: &Client) -> Vec<String> {
    let listed = client.rpc("tools/list", json!({})).await;
    let tools = listed["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn call(id: u64, name: &str, arguments: &Value, meta: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": name, "arguments": arguments, "_meta": meta}})
    .to_string()
}

/// A call as a stream.
async fn streamed(client: &Client, session: &str, body: String) -> Response {
    let request = Request::post(client.mcp(), body)
        .header("accept", "application/json, text/event-stream")
        .header("mcp-session-id", session);
    let response = client.send(client.signed(request)).await;
    assert_eq!(response.header("content-type"), Some("text/event-stream"));
    response
}

async fn messages(response: Response) -> Vec<Value> {
    let body = String::from_utf8(response.body().await.unwrap()).unwrap();
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[tokio::test]
async fn a_client_gets_a_version_that_both_speak_and_a_session() {
    let client = opened("").await;
    for (asked, expected) in [
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2031-01-01", "2025-11-25"),
    ] {
        let params = json!({"protocolVersion": asked, "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        let result = client.rpc("initialize", params).await;
        assert_eq!(result["protocolVersion"], expected);
        assert_eq!(result["capabilities"], json!({"tools": {}}));
        assert_eq!(result["serverInfo"]["name"], "greenroom");
    }
    assert_eq!(client.rpc("ping", json!({})).await, json!({}));
    for method in ["server/discover", "sampling/createMessage", "logging/setLevel"] {
        assert_eq!(client.rpc(method, json!({})).await["code"], -32601, "{method}");
    }
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(client.post(&client.mcp(), &told).await.0, 202);
    let get = client.send(client.signed(Request::get(client.mcp()))).await;
    assert_eq!((get.status, get.header("allow")), (405, Some("POST, DELETE")));
    let old =
        Request::post(client.mcp(), told.to_string()).header("mcp-protocol-version", "2020-01-01");
    assert_eq!(client.send(client.signed(old)).await.status, 400);
}

#[tokio::test]
async fn the_tools_are_those_of_the_grant_and_the_hosts_own() {
    let client = opened("modules = [\"memory.read\"], skills = [\"booking\"]").await;
    let mut expected = vec!["project_cli", "skill.read"];
    expected.extend(HISTORY);
    expected.push("storage_delete");
    assert_eq!(names(&client).await, expected);
    let listed = client.rpc("tools/list", json!({})).await;
    for tool in listed["tools"].as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
        assert!(tool["description"].is_string(), "{tool}");
    }
    let scopes = &listed["tools"][5]["inputSchema"]["properties"]["scope"]["enum"];
    assert_eq!(*scopes, json!(["conversation", "actor", "runner"]));
    let nothing = "history = \"none\", artifacts = \"none\", state = [], storage = []";
    let narrow = opened(nothing).await;
    assert_eq!(names(&narrow).await, Vec::<String>::new());
    for name in ["history_page", "state_get", "project_cli", "nothing"] {
        let answer = narrow.rpc("tools/call", json!({"name": name, "arguments": {}})).await;
        assert_eq!(answer["code"], -32602, "{name}: {answer}");
    }
}

#[tokio::test]
async fn the_hosts_own_tools_do_what_the_methods_do() {
    let client = opened("skills = [\"booking\"]").await;
    let tool = async |name, arguments| {
        let (text, is_error) = client.tool(name, arguments).await;
        (serde_json::from_str::<Value>(&text).unwrap_or(Value::String(text)), is_error)
    };
    let key = json!({"scope": "conversation", "key": "k"});
    let value = json!({"scope": "conversation", "key": "k", "value": [1, "zwei"]});
    assert_eq!(tool("state_set", value).await, (json!({"version": 1}), false));
    let got = tool("state_get", key).await;
    assert_eq!(got, (json!({"value": [1, "zwei"], "version": 1}), false));
    let (error, is_error) = tool("state_get", json!({"scope": "binding", "key": "k"})).await;
    assert_eq!((&error["code"], is_error), (&json!("unauthorized"), true));
    let file = json!({"name": "a.txt", "mime_type": "text/plain", "text": "héllo"});
    let (made, _) = tool("artifact_create", file).await;
    let (read, _) = tool("artifact_read", json!({"artifact_id": made["artifact_id"]})).await;
    assert_eq!((&read["text"], &read["eof"]), (&json!("héllo"), &json!(true)));
    assert!(tool("artifact_create", json!({"name": "a.txt"})).await.1);
    let stored = json!({"area": "plugin", "key": "p/1", "base64": "//8="});
    assert_eq!(tool("storage_set", stored).await, (json!({"size_bytes": 2}), false));
    let (got, _) = tool("storage_get", json!({"area": "plugin", "key": "p/1"})).await;
    assert_eq!(got["data_base64"], "//8=");
    let (page, _) = tool("storage_list", json!({"area": "plugin", "prefix": "p/"})).await;
    assert_eq!(page["items"][0]["key"], "p/1");
    let (gone, _) = tool("storage_delete", json!({"area": "plugin", "key": "p/1"})).await;
    assert_eq!(gone, json!({"deleted": true}));
    let (page, is_error) = tool("history_page", json!({"limit": 5})).await;
    assert!(page["items"].is_array() && !is_error, "{page}");
    // Each call has its audit record, under the runner's name.
    for (method, code) in [
        ("state.set", "ok"),
        ("state.get", "ok"),
        ("state.get", "unauthorized"),
        ("artifacts.create", "ok"),
        ("artifacts.read_range", "ok"),
        ("storage.delete", "ok"),
        ("history.page", "ok"),
    ] {
        let is_it = |call: &Value| {
            call["method"] == method
                && call["code"] == code
                && call["runner"] == "puppet"
                && call["plugin"] == "test/puppet"
                && call["run_id"] == client.run_id.as_str()
        };
        // Reads are recorded in batches.
        wait_for(&format!("the record of {method}, {code}"), PATIENCE, async || {
            let audit = client.stage.api.get("/v1/audit?limit=100").await;
            audit["items"].as_array().unwrap().iter().any(is_it).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn skills_are_resources() {
    let client = opened("skills = [\"booking\"]").await;
    let listed = client.rpc("resources/list", json!({})).await;
    let expected = json!([{"uri": "skill://booking/SKILL.md", "name": "booking",
        "description": "Book a room", "mimeType": "text/markdown"}]);
    assert_eq!(listed["resources"], expected);
    let read = client.rpc("resources/read", json!({"uri": "skill://booking/SKILL.md"})).await;
    assert_eq!(read["contents"][0]["text"], SKILL);
    for uri in ["skill://hidden/SKILL.md", "skill://booking/../../token", "file:///etc/passwd", "x"]
    {
        assert_eq!(
            client.rpc("resources/read", json!({"uri": uri})).await["code"],
            -32002,
            "{uri}"
        );
    }
    let without = opened("").await;
    assert_eq!(without.rpc("resources/list", json!({})).await, json!({"resources": []}));
}

const ASKS: &str = "actions = { \"message.send\" = \"ask\" }";

/// The pending approvals of the host.
async fn pending(client: &Client) -> Vec<Value> {
    let page = client.stage.api.get("/v1/approvals?status=pending").await;
    page["items"].as_array().unwrap().clone()
}

async fn asked(client: &Client) -> Value {
    wait_for("an approval", PATIENCE, async || pending(client).await.pop()).await
}

#[tokio::test]
async fn a_call_stays_open_until_its_approval_is_answered() {
    let client = opened(ASKS).await;
    let action = json!({"action": "message.send", "payload": {"text": "hello"}});
    let open = call(7, "request_action", &action, &json!({"progressToken": "p"}));
    let waiting = streamed(&client, "s1", open).await;
    let approval = asked(&client).await;
    let id = approval["approval_id"].as_str().unwrap();
    let answer = json!({"decision": "deny", "nonce": approval["nonce"]});
    let path = format!("/v1/approvals/{id}");
    client.stage.api.json(Request::post(path, answer.to_string())).await.unwrap();
    let messages = messages(waiting).await;
    let last = messages.last().unwrap();
    assert_eq!((&last["id"], &last["result"]["isError"]), (&json!(7), &json!(true)));
    let text = last["result"]["content"][0]["text"].as_str().unwrap();
    let error: Value = serde_json::from_str(text).unwrap();
    assert_eq!(
        (&error["code"], &error["details"]["reason"]),
        (&json!("unauthorized"), &json!("denied"))
    );
}

#[tokio::test]
async fn a_cancelled_call_is_not_answered_and_withdraws_its_approval() {
    let client = opened(ASKS).await;
    let action = json!({"action": "message.send", "payload": {"text": "hello"}});
    let waiting = streamed(&client, "s1", call(7, "request_action", &action, &json!({}))).await;
    asked(&client).await;
    let cancel = |session: &str, id: u64| {
        let told = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": id}});
        let request = Request::post(client.mcp(), told.to_string());
        client.signed(request.header("mcp-session-id", session))
    };
    // Neither another session nor another id cancels it.
    assert_eq!(client.send(cancel("s2", 7)).await.status, 202);
    assert_eq!(client.send(cancel("s1", 8)).await.status, 202);
    assert_eq!(pending(&client).await.len(), 1);
    assert_eq!(client.send(cancel("s1", 7)).await.status, 202);
    assert_eq!(messages(waiting).await, Vec::<Value>::new());
    let withdrawn = async || pending(&client).await.is_empty().then_some(());
    wait_for("the withdrawal", PATIENCE, withdrawn).await;
    // The same by the end of the session, after which it is gone.
    let waiting = streamed(&client, "s1", call(9, "request_action", &action, &json!({}))).await;
    asked(&client).await;
    let mut delete = Request::get(client.mcp()).header("mcp-session-id", "s1");
    delete.method = "DELETE";
    assert_eq!(client.send(client.signed(delete)).await.status, 204);
    assert_eq!(messages(waiting).await, Vec::<Value>::new());
    let request = Request::post(client.mcp(), call(1, "state_get", &json!({}), &json!({})))
        .header("mcp-session-id", "s1");
    assert_eq!(client.send(client.signed(request)).await.status, 404);
}

#[tokio::test]
async fn a_client_that_goes_away_gives_up_its_call() {
    let client = opened(ASKS).await;
    let action = json!({"action": "message.send", "payload": {"text": "hello"}});
    let waiting = streamed(&client, "s1", call(7, "request_action", &action, &json!({}))).await;
    asked(&client).await;
    drop(waiting);
    let withdrawn = async || pending(&client).await.is_empty().then_some(());
    wait_for("the withdrawal", PATIENCE, withdrawn).await;
}

#[tokio::test]
async fn a_message_that_is_none_is_refused_as_json_rpc_says() {
    let client = opened("").await;
    for (body, code) in [("{", -32700), ("[]", -32600), ("{\"jsonrpc\":\"2.0\",\"id\":1}", -32600)]
    {
        let response = client.send(client.signed(Request::post(client.mcp(), body))).await;
        let (status, answer) = read(response).await;
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(code)), "{body}");
    }
    let call = client.rpc("tools/call", json!({"name": "state_get", "arguments": 7})).await;
    assert_eq!(call["code"], -32602);
}
