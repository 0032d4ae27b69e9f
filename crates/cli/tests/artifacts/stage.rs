//! A host with an artist: a runner that carries out the calls and results that a test writes down.

use crate::PROGRAM;
use greenroom_testkit::api::Api;
use greenroom_testkit::host::TestHost;
use greenroom_testkit::http::{Request, Response};
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// May reach agent `artist` only.
pub(crate) const LIMITED: &str = "limited-token-0123456789abcdef";
pub(crate) const READER: &str = "reader-token-0123456789abcdef";
pub(crate) const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01";

pub(crate) struct Stage {
    pub(crate) host: TestHost,
    pub(crate) api: Api,
}

/// An answer that was read whole.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) async fn read(answer: Response) -> Self {
        let (status, headers) = (answer.status, answer.headers.clone());
        let body = if status == 304 { Vec::new() } else { answer.body().await.unwrap() };
        Self { status, headers, body }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {text}"))
    }

    /// A refusal in the one shape there is.
    pub(crate) fn refused(&self, status: u16, code: &str) {
        let shown = String::from_utf8_lossy(&self.body);
        assert_eq!(self.status, status, "{shown}");
        assert_eq!(self.json()["error"]["code"], code, "{shown}");
    }
}

impl Stage {
    pub(crate) async fn open(more: &str) -> Self {
        let mut stage = Self::prepare(more);
        stage.host.start_again().await;
        stage
    }

    /// Everything but the start.
    pub(crate) fn prepare(more: &str) -> Self {
        let host = TestHost::prepare(PROGRAM, &config(more));
        std::fs::create_dir(host.folder().join("artist")).unwrap();
        std::fs::write(host.folder().join("limited"), LIMITED).unwrap();
        std::fs::write(host.folder().join("reader"), READER).unwrap();
        let api = host.api();
        Self { host, api }
    }

    pub(crate) async fn ask(&self, request: Request) -> Reply {
        Reply::read(self.api.send(request).await.unwrap()).await
    }

    pub(crate) async fn ask_as(&self, token: &str, request: Request) -> Reply {
        let request = request.header("authorization", format!("Bearer {token}"));
        let answer = greenroom_testkit::http::send(self.address(), &request).await;
        Reply::read(answer.unwrap()).await
    }

    pub(crate) fn address(&self) -> std::net::SocketAddr {
        let place = std::fs::read_to_string(self.host.data().join("host.json")).unwrap();
        let place: Value = serde_json::from_str(&place).unwrap();
        place["url"].as_str().unwrap().strip_prefix("http://").unwrap().parse().unwrap()
    }

    pub(crate) async fn upload(&self, query: &str, mime_type: &str, bytes: &[u8]) -> Reply {
        self.ask(upload(query, mime_type, bytes)).await
    }

    /// Keeps bytes and gives their id.
    pub(crate) async fn keep(&self, query: &str, bytes: &[u8]) -> String {
        let reply = self.upload(query, "application/octet-stream", bytes).await;
        assert_eq!(reply.status, 201, "{reply:?}");
        reply.json()["artifact_id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn download(&self, artifact_id: &str) -> Reply {
        self.ask(Request::get(format!("/v1/artifacts/{artifact_id}"))).await
    }

    /// Sends steps to an agent and gives what came of each, once the run is over.
    pub(crate) async fn play(&self, agent: &str, conversation: &str, steps: Value) -> Vec<Value> {
        let event = event(agent, conversation, &steps.to_string());
        self.answers(&event).await.1
    }

    /// Sends an event and gives its run and what came of its steps.
    pub(crate) async fn answers(&self, event: &Value) -> (String, Vec<Value>) {
        let run_id = self.api.send_event(event).await.run_id.unwrap();
        let run = self.api.ended_run(&run_id).await;
        assert_eq!(run.status.as_str(), "completed", "{run:?}\n{}", self.host.log());
        let results = self.api.results(&run_id).await;
        let said = results.iter().rev().find(|result| result.kind == "message.completed").unwrap();
        let said = said.data["message"]["content"].as_str().unwrap();
        (run_id, serde_json::from_str(said).unwrap())
    }

    /// The folder of bytes.
    pub(crate) fn folder(&self) -> PathBuf {
        self.host.data().join("artifacts")
    }

    /// The names of all bytes that are kept, and of those on their way.
    pub(crate) fn bytes(&self) -> (Vec<String>, Vec<String>) {
        let mut kept = Vec::new();
        for shard in names(&self.folder()).iter().filter(|name| name.len() == 2) {
            kept.extend(names(&self.folder().join(shard)));
        }
        (kept, names(&self.folder().join("incoming")))
    }

    /// Waits until no bytes are kept or on their way.
    pub(crate) async fn no_bytes_are_left(&self) {
        wait_for("an empty folder of bytes", PATIENCE, async || {
            (self.bytes() == (Vec::new(), Vec::new())).then_some(())
        })
        .await;
    }
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

pub(crate) fn upload(query: &str, mime_type: &str, bytes: &[u8]) -> Request {
    let mut request = Request::post(format!("/v1/artifacts?{query}"), bytes);
    request.headers.clear();
    match mime_type {
        "" => request,
        mime_type => request.header("content-type", mime_type),
    }
}

pub(crate) fn event(agent: &str, conversation: &str, text: &str) -> Value {
    json!({"event_type": "message.received", "agent": agent, "conversation_id": conversation,
        "actor": {"actor_type": "user", "actor_id": "u1"}, "input": {"text": text}})
}

fn config(more: &str) -> String {
    let artist = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/artifacts/runners/artist.py");
    format!(
        r#"
[store]
sync = "normal"
[retention]
collect_every_s = 1
[runners.artist]
command = ["python3", "{}"]
dir = "artist"
[agents.artist]
runner = "plugin:test/artist/main"
events = []
[agents.wide]
runner = "plugin:test/artist/main"
events = []
[agents.wide.grant]
artifacts = "workspace"
[tokens.limited]
role = "sender"
agents = ["artist"]
token = {{ file = "limited" }}
[tokens.reader]
role = "reader"
token = {{ file = "reader" }}
{more}
"#,
        artist.display()
    )
}
