//! `greenroom dev model-server` over real sockets: our own client in every wire, and faults that are real.

#[path = "model_server/faults.rs"]
mod faults;
#[path = "model_server/keys.rs"]
mod keys;
#[path = "model_server/wires.rs"]
mod wires;

use crate::greenroom;
use greenroom_models::{ModelRequest, ModelSettings, Models, ProviderKind, Secret, ToolSpec};
use greenroom_protocol::Role;
use greenroom_protocol::api::models::ModelMessage;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const KINDS: [ProviderKind; 5] = [
    ProviderKind::OpenAiChat,
    ProviderKind::OpenAiResponses,
    ProviderKind::Anthropic,
    ProviderKind::Gemini,
    ProviderKind::Ollama,
];

/// A server that ends with the test.
struct Server {
    process: Child,
    url: String,
    dir: tempfile::TempDir,
}

impl Server {
    fn start(script: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("script.toml"), script).unwrap();
        let args = ["dev", "model-server", "--script", "script.toml", "--log", "log"];
        let mut command = greenroom(dir.path(), &args);
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { process, url: url.trim().to_owned(), dir }
    }

    fn model(&self, kind: ProviderKind, retries: u32) -> Arc<greenroom_models::Model> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut settings = ModelSettings::new("m", kind, "scripted-1");
        settings.base_url = Some(match kind {
            ProviderKind::OpenAiChat | ProviderKind::OpenAiResponses => format!("{}/v1", self.url),
            _ => self.url.clone(),
        });
        settings.api_key = Some(Secret::new("sk-not-to-be-logged"));
        settings.allow_private = true;
        settings.retries = retries;
        settings.idle_timeout = Duration::from_millis(700);
        Models::new(vec![settings]).unwrap().get("m").unwrap()
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("log")).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn asks(text: &str) -> ModelRequest {
    ModelRequest { messages: vec![ModelMessage::text(Role::User, text)], ..ModelRequest::default() }
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: Some("a tool".to_owned()),
        parameters: serde_json::json!({"type": "object", "properties": {"city": {"type": "string"}}}),
    }
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(20)
}
