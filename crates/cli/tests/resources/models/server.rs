//! `greenroom dev model-server` as a provider: a process of its own, real sockets.
//!
//! Invariant: the process ends with its `Server`.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

pub(crate) const KEY: &str = "sk-a-key-that-nobody-may-read";

/// The four wires: a model's name in the configuration and its provider.
pub(crate) const WIRES: [(&str, &str); 4] = [
    ("chat", "openai"),
    ("responses", "openai-responses"),
    ("claude", "anthropic"),
    ("gemini", "gemini"),
];

pub(crate) struct Server {
    process: Child,
    pub(crate) url: String,
    dir: tempfile::TempDir,
}

impl Server {
    #[expect(clippy::disallowed_methods, reason = "the program under test is started here")]
    pub(crate) fn start(script: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("script.toml"), script).unwrap();
        let mut process = Command::new(crate::PROGRAM)
            .args(["dev", "model-server", "--script", "script.toml", "--log", "log"])
            .current_dir(dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut url = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
        Self { process, url: url.trim().to_owned(), dir }
    }

    /// A model on this server, with the key in the file `key`.
    pub(crate) fn model(&self, name: &str, provider: &str, more: &str) -> String {
        let path = if provider.starts_with("openai") { "/v1" } else { "" };
        format!(
            "[models.{name}]\nprovider = \"{provider}\"\nmodel = \"scripted-1\"\nbase_url = \"{}{path}\"\n\
             allow_private = true\napi_key = {{ file = \"key\" }}\n{more}\n",
            self.url
        )
    }

    /// A model for each wire.
    pub(crate) fn models(&self, more: &str) -> String {
        WIRES.map(|(name, provider)| self.model(name, provider, more)).concat()
    }

    /// The bodies of the requests so far that hold a text.
    pub(crate) fn requests(&self, text: &str) -> Vec<Value> {
        let log = std::fs::read_to_string(self.dir.path().join("log")).unwrap_or_default();
        let lines = log.lines().filter(|line| line.contains(text));
        lines.map(|line| serde_json::from_str::<Value>(line).unwrap()["body"].take()).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
