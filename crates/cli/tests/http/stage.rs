//! A real host with tokens of every role and one agent that does what the text says.
//!
//! Invariant: a refusal counts as one only if it has the stable shape; `refused` looks at all of it.

use greenroom_testkit::api::Api;
use greenroom_testkit::host::TestHost;
use greenroom_testkit::http::{self, Request};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");

/// Tokens by role; `limited` may reach agent `echo` only.
pub(crate) const SENDER: &str = "sender-token-0123456789abcdef";
pub(crate) const LIMITED: &str = "limited-token-0123456789abcdef";
pub(crate) const READER: &str = "reader-token-0123456789abcdef";
pub(crate) const RUNNER: &str = "runner-token-0123456789abcdef";
/// Of senders that a test configures itself, from the files `ann` and `bridge`.
pub(crate) const ANN: &str = "ann-token-0123456789abcdef";
pub(crate) const BRIDGE: &str = "bridge-token-0123456789abcdef";

const CONFIG: &str = r#"
[agents.game]
runner = "plugin:greenroom/echo/default"
events = []
config = { modes = true }

[tokens.sender]
role = "sender"
token = { file = "sender" }

[tokens.limited]
role = "sender"
agents = ["echo"]
token = { file = "limited" }

[tokens.reader]
role = "reader"
token = { file = "reader" }

[runners.far-away]
token = { file = "runner" }
"#;

pub(crate) struct Stage {
    pub(crate) host: TestHost,
    pub(crate) address: SocketAddr,
    pub(crate) admin: String,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str())
    }

    /// A refusal in the one shape there is; gives its message.
    pub(crate) fn refused(&self, status: u16, code: &str) -> String {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        let error = self.body["error"].as_object().unwrap_or_else(|| panic!("{self:?}"));
        assert_eq!(self.body.as_object().unwrap().len(), 1, "{self:?}");
        let mut keys: Vec<&str> = error.keys().map(String::as_str).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["code", "details", "message", "retryable"], "{self:?}");
        assert_eq!(error["code"], code, "{self:?}");
        assert!(error["details"].is_object() && error["retryable"].is_boolean(), "{self:?}");
        let message = error["message"].as_str().unwrap();
        assert!(!message.is_empty() && message.chars().count() <= 501, "{self:?}");
        message.to_owned()
    }
}

impl Stage {
    /// Starts a host with more configuration than the usual.
    pub(crate) async fn with(more: &str) -> Self {
        let mut host = TestHost::prepare(PROGRAM, &format!("{CONFIG}\n{more}"));
        let secrets = [
            ("sender", SENDER),
            ("limited", LIMITED),
            ("reader", READER),
            ("runner", RUNNER),
            ("ann", ANN),
            ("bridge", BRIDGE),
        ];
        for (file, token) in secrets {
            std::fs::write(host.folder().join(file), token).unwrap();
        }
        host.start_again().await;
        Self::look(host)
    }

    pub(crate) async fn start() -> Self {
        Self::with("").await
    }

    /// Kills the host and starts it again, elsewhere.
    pub(crate) async fn restart(mut self) -> Self {
        self.host.start_again().await;
        Self::look(self.host)
    }

    fn look(host: TestHost) -> Self {
        let place = std::fs::read_to_string(host.data().join("host.json")).unwrap();
        let place: Value = serde_json::from_str(&place).unwrap();
        let address = place["address"].as_str().unwrap().parse().unwrap();
        let admin = std::fs::read_to_string(host.data().join("admin-token")).unwrap();
        Self { host, address, admin: admin.trim().to_owned() }
    }

    pub(crate) fn api(&self) -> Api {
        self.host.api()
    }

    /// Asks as whoever has the token.
    pub(crate) async fn ask_as(&self, token: Option<&str>, request: Request) -> Reply {
        let request = match token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        };
        let answer = http::send(self.address, &request).await.unwrap();
        let (status, headers) = (answer.status, answer.headers.clone());
        let body = if request.method == "HEAD" { Vec::new() } else { answer.body().await.unwrap() };
        let text = String::from_utf8_lossy(&body);
        let body = serde_json::from_str(&text).unwrap_or_else(|_| Value::from(&*text));
        Reply { status, headers, body }
    }

    /// Asks as the admin.
    pub(crate) async fn ask(&self, request: Request) -> Reply {
        self.ask_as(Some(&self.admin), request).await
    }

    pub(crate) async fn get(&self, target: &str) -> Reply {
        self.ask(Request::get(target)).await
    }

    pub(crate) async fn post(&self, body: impl Into<Vec<u8>>) -> Reply {
        self.ask(Request::post("/v1/events", body)).await
    }

    /// Sends a message to agent `game` and gives its run.
    pub(crate) async fn play(&self, conversation: &str, text: &str) -> String {
        let reply = self.post(message(conversation, text).to_string()).await;
        assert_eq!(reply.status, 202, "{reply:?}");
        reply.body["run_id"].as_str().unwrap().to_owned()
    }

    /// Sends bytes as they are and reads until the host closes the connection.
    pub(crate) async fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // The host may answer and close before it has read everything.
        let _ = stream.write_all(bytes).await;
        let mut answer = Vec::new();
        let read = stream.read_to_end(&mut answer);
        let _ = tokio::time::timeout(Duration::from_secs(30), read).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Nothing was stored, and the host still takes an event and answers it.
    pub(crate) async fn is_untouched_and_well(&self) {
        assert_eq!(self.api().events().await, [Value::Null; 0]);
        assert_eq!(self.api().runs().await.len(), 0);
        let run_id = self.play("well", "still there?").await;
        let run = self.api().ended_run(&run_id).await;
        assert_eq!(run.status.as_str(), "completed");
    }
}

pub(crate) fn message(conversation: &str, text: &str) -> Value {
    json!({"event_type": "message.received", "conversation_id": conversation, "agent": "game",
        "actor": {"actor_type": "user", "actor_id": "u1"}, "input": {"text": text}})
}
