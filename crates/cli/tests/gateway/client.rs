//! A run that stays active until its gate is opened, and a client with its token.

use crate::PROGRAM;
use crate::stage::{Stage, config, event};
use greenroom_testkit::host::TestHost;
use greenroom_testkit::http::{self, Request, Response};
use serde_json::{Value, json};
use std::net::SocketAddr;

pub(crate) struct Client {
    pub stage: Stage,
    pub run_id: String,
    pub token: String,
    address: SocketAddr,
}

/// An agent with the puppet and this grant, and what `more` configures.
pub(crate) fn agent(grant: &str, more: &str) -> String {
    format!(
        "[agents.gate]\nrunner = \"plugin:test/puppet/main\"\nevents = []\ndeadline_s = 120\n\
         grant = {{ {grant} }}\n{more}\n"
    )
}

pub(crate) async fn open(files: &[(&str, &str)], configuration: &str) -> Client {
    open_with("cancel_grace_s = 1", files, configuration).await
}

pub(crate) async fn open_with(limits: &str, files: &[(&str, &str)], configuration: &str) -> Client {
    let host = TestHost::prepare(PROGRAM, &config(limits, configuration));
    for (name, text) in files {
        let path = host.folder().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let stage = Stage::with(host).await;
    let (run_id, token) = start(&stage, "c1", "first").await;
    let address = address(&stage);
    Client { stage, run_id, token, address }
}

/// Starts a run that waits for the gate `NAME.go`; returns its id and token.
pub(crate) async fn start(stage: &Stage, conversation: &str, name: &str) -> (String, String) {
    let file = format!("{name}.runtime");
    let steps = json!([["keep", "runtime", file], ["gate", format!("{name}.go")], ["end"]]);
    let run_id = stage.send(&event("gate", conversation, &steps.to_string())).await;
    let runtime = stage.told(&file).await;
    let token = runtime["metadata"]["run_token"].as_str().unwrap().to_owned();
    (run_id, token)
}

fn address(stage: &Stage) -> SocketAddr {
    let file = std::fs::read_to_string(stage.host.data().join("host.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    file["address"].as_str().unwrap().parse().unwrap()
}

impl Client {
    pub(crate) fn mcp(&self) -> String {
        format!("/mcp/runs/{}", self.run_id)
    }

    /// A path of the model gateway.
    pub(crate) fn models(&self, path: &str) -> String {
        format!("/models/runs/{}/{path}", self.run_id)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn signed(&self, request: Request) -> Request {
        request.header("authorization", format!("Bearer {}", self.token))
    }

    pub(crate) async fn send(&self, request: Request) -> Response {
        http::send(self.address, &request).await.unwrap()
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let request = self.signed(Request::post(path, body.to_string()));
        read(self.send(request).await).await
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        read(self.send(self.signed(Request::get(path))).await).await
    }

    /// The result or error of a method of MCP, as JSON.
    pub(crate) async fn rpc(&self, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let (status, mut answer) = self.post(&self.mcp(), &message).await;
        assert_eq!(status, 200, "{answer}");
        assert_eq!((&answer["jsonrpc"], &answer["id"]), (&json!("2.0"), &json!(1)));
        match answer.get("error") {
            Some(_) => answer["error"].take(),
            None => answer["result"].take(),
        }
    }

    /// The text of a tool's result, and whether it is an error.
    pub(crate) async fn tool(&self, name: &str, arguments: Value) -> (String, bool) {
        let result = self.rpc("tools/call", json!({"name": name, "arguments": arguments})).await;
        let text = result["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{result}")).to_owned();
        (text, result["isError"] == true)
    }

    /// Ends the run.
    pub(crate) async fn finish(&self) {
        self.stage.pass("first.go");
        self.stage.api.ended_run(&self.run_id).await;
    }
}

pub(crate) async fn read(response: Response) -> (u16, Value) {
    let status = response.status;
    let body = response.body().await.unwrap();
    let text = String::from_utf8_lossy(&body).into_owned();
    (status, serde_json::from_slice(&body).unwrap_or(Value::String(text)))
}
