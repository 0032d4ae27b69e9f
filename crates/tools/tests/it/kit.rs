//! A temporary folder with child processes, and helpers for MCP servers.

use greenroom_protocol::Object;
use greenroom_runtime::{ChildSpec, Children, Limits, Settings};
use greenroom_tools::{
    McpCall, McpServer, McpSettings, McpStatus, McpTransport, Progress, ToolFailure, ToolOutput,
};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) const WAIT: Duration = Duration::from_secs(60);

pub(crate) struct Kit {
    pub(crate) folder: TempDir,
    pub(crate) children: Children,
}

impl Kit {
    pub(crate) fn new() -> Self {
        // Another test of this process may have done it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["data/run", "own"] {
            std::fs::create_dir_all(path(name)).unwrap();
        }
        for (name, mode) in [("", 0o755), ("data", 0o700), ("own", 0o777)] {
            std::fs::set_permissions(path(name), PermissionsExt::from_mode(mode)).unwrap();
        }
        let settings = Settings {
            supervisor: vec![env!("CARGO_BIN_EXE_tools-fixture").into(), "supervise".into()],
            run_dir: path("data/run"),
            hidden: vec![path("data")],
            cleaner: greenroom_runtime::Cleaner::default(),
            host_version: "test".into(),
            limits: Limits::default(),
            users: greenroom_runtime::UserIds::default(),
            without: greenroom_runtime::Without::default(),
        };
        Self { children: Children::new(settings), folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A program in the folder `own`.
    pub(crate) fn program(&self, command: &[&str]) -> ChildSpec {
        ChildSpec {
            name: "program".into(),
            command: command.iter().map(|word| (*word).to_owned()).collect(),
            dir: self.path("own"),
            owns_dir: true,
            env: [("CANCELLED".into(), self.path("own/cancelled").to_str().unwrap().into())].into(),
            ..ChildSpec::default()
        }
    }

    /// Settings with short pauses.
    pub(crate) fn settings(&self, name: &str, transport: McpTransport) -> McpSettings {
        let mut settings = McpSettings::new(name, transport);
        settings.limits.backoff_min = Duration::from_millis(50);
        settings.limits.refresh_min = Duration::from_millis(100);
        settings
    }

    pub(crate) fn start(&self, settings: McpSettings) -> Arc<McpServer> {
        McpServer::start(settings, self.children.clone(), None)
    }

    /// No child process is left.
    pub(crate) fn is_clear(&self) -> bool {
        std::fs::read_dir(self.path("data/run")).unwrap().count() == 0
    }
}

/// The system's Python if installed: every user can run it.
pub(crate) fn python() -> &'static str {
    let system = "/usr/bin/python3";
    if Path::new(system).exists() { system } else { "python3" }
}

pub(crate) fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers").join(name);
    path.to_str().unwrap().to_owned()
}

pub(crate) fn call() -> McpCall {
    McpCall {
        deadline: Instant::now() + WAIT,
        cancel: CancellationToken::new(),
        progress: None,
        ask: None,
    }
}

pub(crate) fn within(time: Duration) -> McpCall {
    McpCall { deadline: Instant::now() + time, ..call() }
}

pub(crate) fn watched(receive: impl Fn(Progress) + Send + Sync + 'static) -> McpCall {
    McpCall { progress: Some(Arc::new(receive)), ..call() }
}

pub(crate) fn object(value: Value) -> Object {
    serde_json::from_value(value).unwrap()
}

pub(crate) async fn ready(server: &McpServer) {
    let seen = server.ready(Instant::now() + WAIT).await;
    assert!(seen, "{:?}", server.health());
}

/// Waits until the server has failed; returns why.
pub(crate) async fn refused(server: &McpServer) -> String {
    eventually("a failure", || {
        let health = server.health();
        (health.status == McpStatus::BackingOff).then_some(health.last_error?)
    })
    .await
}

pub(crate) fn names(server: &McpServer) -> Vec<String> {
    server.tools().into_iter().map(|tool| tool.name).collect()
}

pub(crate) fn failure(output: ToolOutput) -> ToolFailure {
    output.error.unwrap_or_else(|| panic!("it did not fail: {}", output.result))
}

/// The one text of a result.
pub(crate) fn text(output: &ToolOutput) -> String {
    let text = output.result["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("no text: {output:?}")).to_owned()
}

/// Polls until there is a value.
pub(crate) async fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + WAIT;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(Instant::now() < deadline, "never saw {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The folder of the unmodified servers, installed on first use.
pub(crate) fn installed_servers() -> PathBuf {
    // Beside the build, so that it is kept between runs and outside the clone.
    let built = Path::new(env!("CARGO_BIN_EXE_tools-fixture"));
    let folder = built.ancestors().nth(2).unwrap().join("outside/mcp-servers");
    std::fs::create_dir_all(&folder).unwrap();
    let lock = std::fs::File::create(folder.join("lock")).unwrap();
    // One test installs, the others wait for it.
    lock.lock().unwrap();
    let wanted = std::fs::read(file("package.json")).unwrap();
    if std::fs::read(folder.join("installed.json")).ok().as_ref() != Some(&wanted) {
        std::fs::write(folder.join("package.json"), &wanted).unwrap();
        #[expect(clippy::disallowed_methods, reason = "the test installs what it is run against")]
        let status = std::process::Command::new("npm")
            .args(["install", "--silent", "--no-audit", "--no-fund", "--no-package-lock"])
            .current_dir(&folder)
            .status();
        assert!(status.unwrap().success(), "npm cannot install the servers");
        std::fs::write(folder.join("installed.json"), &wanted).unwrap();
    }
    folder
}
