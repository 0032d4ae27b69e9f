//! A runtime over a temporary folder, and short words for what tests do with it.

use greenroom_protocol::{AgentAPIError, AgentRunRequest, ErrorCode, RawResult, RunnerId};
use greenroom_runtime::{
    Limits, PluginToolAnswer, PluginToolCall, PluginToolError, Proxy, ProxyCall, ProxyFuture,
    RunEnd, RunEvent, RunHandle, RunnerSpec, RunnerState, RunnerStatus, Runtime, Settings,
    Standing, Without,
};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;

pub(crate) const WAIT: Duration = Duration::from_secs(30);
pub(crate) const WIRE: &str = "plugin:test/wire/main";

/// The default limits with another grace for cancelled runs.
pub(crate) fn with_grace(cancel_grace: Duration) -> Limits {
    greenroom_config::Limits { cancel_grace, ..Default::default() }.into()
}

pub(crate) struct Kit {
    pub(crate) folder: TempDir,
    pub(crate) runtime: Runtime,
    /// Calls of `test.hang` that are under way.
    pub(crate) hanging: Arc<AtomicU64>,
    runs: AtomicU64,
}

impl Kit {
    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        Self::over(tempfile::tempdir().unwrap(), limits)
    }

    /// On a kernel without these parts.
    pub(crate) fn without(without: Without) -> Self {
        Self::on(tempfile::tempdir().unwrap(), Limits::default(), without)
    }

    /// A host over what an earlier one has left.
    pub(crate) fn over(folder: TempDir, limits: Limits) -> Self {
        Self::on(folder, limits, Without::default())
    }

    fn on(folder: TempDir, limits: Limits, without: Without) -> Self {
        for name in ["data/run", "wire", "other"] {
            std::fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join("data/admin-token"), "secret").unwrap();
        std::fs::write(folder.path().join("other/code.py"), "secret").unwrap();
        let settings = Settings {
            users: greenroom_runtime::UserIds::default(),
            without,
            supervisor: vec![fixture(), "supervise".into()],
            run_dir: folder.path().join("data/run"),
            hidden: vec![folder.path().join("data")],
            cleaner: greenroom_runtime::Cleaner::default(),
            host_version: "test".into(),
            limits,
        };
        let hanging = Arc::new(AtomicU64::new(0));
        let runtime = Runtime::new(settings, Arc::new(TestProxy(hanging.clone())));
        Self { folder, runtime, hanging, runs: AtomicU64::new(0) }
    }

    /// With one runner, the Python one, ready to use.
    pub(crate) async fn wire() -> Self {
        Self::wire_with(Limits::default()).await
    }

    pub(crate) async fn wire_with(limits: Limits) -> Self {
        let kit = Self::with(limits);
        kit.runtime.apply(vec![kit.spec()]).await;
        kit.ready().await;
        kit
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn spec(&self) -> RunnerSpec {
        RunnerSpec {
            name: "wire".into(),
            command: vec!["python3".into(), script("wire.py")],
            dir: self.path("wire"),
            ..RunnerSpec::default()
        }
    }

    pub(crate) async fn ready(&self) {
        self.runtime.ready(&wire(), WAIT).await.unwrap();
    }

    /// Starts a run that does what `text` says.
    pub(crate) async fn start(&self, text: &str) -> RunHandle {
        self.runtime.start_run(self.request(text)).await.unwrap()
    }

    pub(crate) fn request(&self, text: &str) -> AgentRunRequest {
        request(WIRE, &format!("run-{}", self.runs.fetch_add(1, Ordering::Relaxed)), text)
    }

    /// Runs `text` and returns the JSON that the runner sends.
    pub(crate) async fn output(&self, text: &str) -> Value {
        let (results, end) = finish(self.start(text).await).await;
        assert_eq!(end, RunEnd::Finished, "{results:?}");
        let content = data(&results[0])["message"]["content"].clone();
        serde_json::from_str(content.as_str().unwrap()).unwrap()
    }

    pub(crate) fn state(&self) -> RunnerState {
        self.runtime.runners().into_iter().find(|runner| runner.name == "wire").unwrap()
    }

    /// Waits until the runner is ready in another process than `pid`.
    pub(crate) async fn replaced(&self, pid: Option<u32>) -> u32 {
        eventually("a new process", || {
            let state = self.state();
            (state.status == RunnerStatus::Ready && state.pid != pid).then_some(state.pid?)
        })
        .await
    }
}

pub(crate) fn wire() -> RunnerId {
    RunnerId::parse(WIRE).unwrap()
}

/// Set for tests that another user repeats: a folder with copies of the files that tests start, open to that user.
pub(crate) const COPIES: &str = "RUNTIME_TEST_COPIES";

/// The program of this package that becomes a supervisor.
pub(crate) fn fixture() -> String {
    started("runtime-fixture", Path::new(env!("CARGO_BIN_EXE_runtime-fixture")))
}

pub(crate) fn script(name: &str) -> String {
    started(name, &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runners").join(name))
}

fn started(name: &str, original: &Path) -> String {
    let copies = std::env::var_os(COPIES).map(PathBuf::from);
    let path = copies.map_or_else(|| original.to_owned(), |folder| folder.join(name));
    path.to_str().unwrap().to_owned()
}

pub(crate) fn request(runner: &str, run_id: &str, text: &str) -> AgentRunRequest {
    serde_json::from_value(json!({
        "runner_id": runner, "runner_name": "main",
        "context": {
            "run_id": run_id,
            "trigger": {"type": "message.received", "source": "api"},
            "event": {"event_id": "e", "event_type": "message.received", "source": "api"},
            "input": {"text": text},
            "delivery": {"surface": "api"},
            "resources": {},
            "context": {"inline_policy": {"mode": "current_event"}, "available_apis": {}},
            "state": {},
            "runtime": {"trace_id": "t"}
        }
    }))
    .unwrap()
}

pub(crate) fn tool_call(tool: &str, parameters: Value) -> PluginToolCall {
    PluginToolCall {
        tool_name: tool.to_owned(),
        parameters: parameters.as_object().unwrap().clone(),
        tool_call_id: "c1".to_owned(),
        run_id: Some("r1".to_owned()),
        caller: Default::default(),
        deadline: tokio::time::Instant::now() + WAIT,
    }
}

pub(crate) async fn call_tool(
    runtime: &Runtime,
    runner: &str,
    tool: &str,
    parameters: Value,
) -> Result<PluginToolAnswer, PluginToolError> {
    runtime.call_tool(runner, tool_call(tool, parameters), Default::default()).await
}

/// Reads a run to its end.
pub(crate) async fn finish(mut run: RunHandle) -> (Vec<RawResult>, RunEnd) {
    let mut all = Vec::new();
    loop {
        match tokio::time::timeout(WAIT, run.next()).await.expect("the run ends in time") {
            RunEvent::Results(results) => all.extend(results),
            RunEvent::End(end) => return (all, end),
        }
    }
}

/// Waits for the next results of a run.
pub(crate) async fn some(run: &mut RunHandle) -> Vec<String> {
    match tokio::time::timeout(WAIT, run.next()).await.expect("results come in time") {
        RunEvent::Results(results) => texts(&results),
        RunEvent::End(end) => panic!("the run ended: {end:?}"),
    }
}

pub(crate) fn data(result: &RawResult) -> Value {
    serde_json::from_str(result.data.as_ref().unwrap().get()).unwrap()
}

/// The texts of the deltas.
pub(crate) fn texts(results: &[RawResult]) -> Vec<String> {
    let deltas = results.iter().filter(|result| result.kind == "message.delta");
    deltas.map(|result| data(result)["chunk"]["content"].as_str().unwrap().to_owned()).collect()
}

/// Polls until there is a value.
pub(crate) async fn eventually<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = tokio::time::Instant::now() + WAIT;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(tokio::time::Instant::now() < deadline, "never saw {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) fn is_alive(pid: u32) -> bool {
    // A zombie that waits for its parent is as good as gone.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')')
        .next()
        .is_some_and(|rest| !rest.is_empty() && !rest.trim_start().starts_with('Z'))
}

/// Processes whose environment or command line mentions the folder.
pub(crate) fn processes_of(folder: &Path) -> Vec<u32> {
    let needle = folder.to_str().unwrap().as_bytes().to_vec();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mentions = |pid: &u32| {
        let read = |name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let text = [read("environ"), read("cmdline")].concat();
        text.windows(needle.len()).any(|window| window == needle)
    };
    pids.filter(|pid| *pid != std::process::id() && mentions(pid) && is_alive(*pid)).collect()
}

/// Answers `echo` with the call, refuses `deny`, never answers `hang`.
struct TestProxy(Arc<AtomicU64>);

/// Counts while it lives.
struct Counted(Arc<AtomicU64>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Proxy for TestProxy {
    fn call(&self, call: ProxyCall) -> ProxyFuture<'_> {
        Box::pin(async move {
            match call.method.as_str() {
                "test.deny" => Err(AgentAPIError::new(ErrorCode::Unauthorized, "not granted")),
                "test.panic" => panic!("a mistake of the host's"),
                "test.hang" => {
                    self.0.fetch_add(1, Ordering::Relaxed);
                    let _counted = Counted(self.0.clone());
                    std::future::pending().await
                }
                "test.stream" => {
                    for number in 0..3 {
                        let item = serde_json::value::to_raw_value(&json!({"number": number}));
                        call.sink.send(&item.unwrap()).await.unwrap();
                    }
                    Ok(serde_json::value::to_raw_value(&json!({"sent": 3})).unwrap())
                }
                _ => {
                    let seen = json!({
                        "runner": &*call.runner, "plugin": &*call.plugin, "run_id": call.run_id,
                        "on_connection": call.standing == Standing::Live, "method": call.method,
                    });
                    Ok(serde_json::value::to_raw_value(&seen).unwrap())
                }
            }
        })
    }

    fn refused(&self, _call: &ProxyCall, _error: &AgentAPIError) {}
}
