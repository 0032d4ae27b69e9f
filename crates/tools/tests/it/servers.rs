//! Unmodified servers over stdio: list, call, progress, cancel, and reconnecting after a crash.

use crate::kit::{
    Kit, call, eventually, failure, installed_servers, names, object, ready, text, watched, within,
};
use greenroom_runtime::Network;
use greenroom_tools::{
    McpCall, McpServer, McpSettings, McpStatus, McpTransport, Risk, Source, Status, ToolFailure,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

impl Kit {
    /// One of the installed servers, in their folder, without network.
    fn real(&self, package: &str, args: &[&str], paths: &[PathBuf]) -> Arc<McpServer> {
        self.real_with(package, args, paths, |_| {})
    }

    fn real_with(
        &self,
        package: &str,
        args: &[&str],
        paths: &[PathBuf],
        change: impl FnOnce(&mut McpSettings),
    ) -> Arc<McpServer> {
        let script = format!("node_modules/@modelcontextprotocol/server-{package}/dist/index.js");
        let command: Vec<&str> =
            ["node", &script].into_iter().chain(args.iter().copied()).collect();
        let mut program = self.program(&command);
        program.dir = installed_servers();
        program.owns_dir = false;
        program.paths = paths.to_vec();
        program.network = Network::Off;
        let memory = self.path("own/memory.jsonl").to_str().unwrap().to_owned();
        program.env.insert("MEMORY_FILE_PATH".into(), memory);
        let mut settings = self.settings(package, McpTransport::Stdio(Box::new(program)));
        change(&mut settings);
        self.start(settings)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_lists_its_tools_and_answers_over_stdio() {
    let kit = Kit::new();
    let server = kit.real("everything", &["stdio"], &[]);
    ready(&server).await;
    let tools = server.tools();
    let echo = tools.iter().find(|tool| tool.name == "everything.echo").unwrap();
    assert_eq!((echo.risk, &echo.source), (Risk::Read, &Source::Mcp("everything".into())));
    assert_eq!(echo.input_schema["properties"]["message"]["type"], "string");
    let gzip = tools.iter().find(|tool| tool.name == "everything.gzip-file-as-resource").unwrap();
    assert_eq!(gzip.risk, Risk::External);
    let health = server.health();
    assert_eq!(health.server.as_deref(), Some("mcp-servers/everything 2.0.0"));
    assert_eq!(health.protocol_version.as_deref(), Some("2025-11-25"));
    assert!(health.isolation.unwrap().contains("net:off"));
    assert_eq!(health.warnings, Vec::<String>::new());

    let said = server.call("everything.echo", object(json!({"message": "hi"})), call()).await;
    assert_eq!(text(&said), "Echo: hi");
    let sum = server.call("everything.get-sum", object(json!({"a": 2, "b": 3})), call()).await;
    assert_eq!(text(&sum), "The sum of 2 and 3 is 5.");
    let weather = object(json!({"location": "Chicago"}));
    let weather = server.call("everything.get-structured-content", weather, call()).await;
    assert!(weather.result["temperature"].is_number(), "{weather:?}");
    // The server refuses a wrong argument.
    let wrong = server.call("everything.get-sum", object(json!({"a": "x"})), call()).await;
    assert_eq!(wrong.status, Status::Failure);
    server.stop().await;
    assert!(kit.is_clear());
    assert_eq!(server.health().status, McpStatus::Stopped);
}

#[tokio::test(flavor = "multi_thread")]
async fn images_and_resources_become_attachments() {
    let kit = Kit::new();
    let server = kit.real("everything", &["stdio"], &[]);
    ready(&server).await;
    let image = server.call("everything.get-tiny-image", object(json!({})), call()).await;
    assert_eq!(image.attachments.len(), 1);
    assert_eq!(image.attachments[0].mime_type, "image/png");
    assert!(image.attachments[0].bytes.starts_with(b"\x89PNG"));
    let refers = |block: &Value| block["attachment"] == 0 && block["type"] == "image";
    assert!(image.result["content"].as_array().unwrap().iter().any(refers), "{}", image.result);

    let args = object(json!({"resourceType": "Blob", "resourceId": 2}));
    let embedded = server.call("everything.get-resource-reference", args, call()).await;
    assert_eq!(embedded.attachments.len(), 1, "{embedded:?}");
    let links = server.call("everything.get-resource-links", object(json!({"count": 2})), call());
    let links = links.await;
    assert_eq!(links.attachments.len(), 2, "{links:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_reported_and_ends_the_silence_but_moves_no_deadline() {
    let kit = Kit::new();
    let silent = Duration::from_millis(800);
    let server = kit.real_with("everything", &["stdio"], &[], |settings| settings.timeout = silent);
    ready(&server).await;
    let long = |duration: f64, steps: u32| object(json!({"duration": duration, "steps": steps}));
    let name = "everything.trigger-long-running-operation";
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    let watched = watched(move |progress| sink.lock().unwrap().push(progress.progress));
    // Longer than the silence timeout, with progress in between.
    let done = server.call(name, long(2.0, 20), watched).await;
    assert_eq!(done.status, Status::Success, "{done:?}");
    let reported = seen.lock().unwrap().clone();
    assert!(
        reported.len() > 10 && reported.is_sorted() && *reported.last().unwrap() <= 20.0,
        "{reported:?}"
    );
    let timeout = |message: &str| ToolFailure::new("TIMEOUT", message);
    let late = server.call(name, long(100.0, 2), call()).await;
    assert_eq!(failure(late), timeout("the MCP server `everything` did not answer within 0.8 s"));
    let late = server.call(name, long(100.0, 1000), within(Duration::from_millis(350))).await;
    let late = failure(late).message;
    let beginning =
        "the MCP server `everything` did not answer by the end of its time; it had got to ";
    assert!(late.starts_with(beginning) && late.ends_with(" of 1000"), "{late}");
    // The server still serves others.
    let said = server.call("everything.echo", object(json!({"message": "hi"})), call()).await;
    assert_eq!(text(&said), "Echo: hi");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_can_be_cancelled() {
    let kit = Kit::new();
    let server = kit.real("everything", &["stdio"], &[]);
    ready(&server).await;
    let cancel = CancellationToken::new();
    let token = cancel.clone();
    let watched = watched(move |_| token.cancel());
    let long = object(json!({"duration": 100, "steps": 1000}));
    let call_it = McpCall { cancel, ..watched };
    let ended = server.call("everything.trigger-long-running-operation", long, call_it).await;
    assert_eq!(failure(ended), ToolFailure::new("CANCELLED", "the call was cancelled"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_is_restarted() {
    let kit = Kit::new();
    let server = kit.real("everything", &["stdio"], &[]);
    ready(&server).await;
    let before = names(&server);
    let pid = server.health().pid.unwrap();
    let other = server.clone();
    let under_way = tokio::task::JoinSet::from_iter([async move {
        let long = object(json!({"duration": 100, "steps": 2}));
        other.call("everything.trigger-long-running-operation", long, call()).await
    }]);
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
    let ended = under_way.join_all().await.remove(0);
    assert_eq!(failure(ended).code, "UNAVAILABLE");
    eventually("a new process", || {
        server.health().pid.filter(|now| *now != pid && server.health().status == McpStatus::Ready)
    })
    .await;
    assert_eq!(names(&server), before);
    let said = server.call("everything.echo", object(json!({"message": "again"})), call()).await;
    assert_eq!(text(&said), "Echo: again");
    let health = server.health();
    assert_eq!(health.restarts, 1);
    assert!(health.last_error.unwrap().starts_with("was killed by signal 9"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_filesystem_server_works_in_its_allowed_folders() {
    let kit = Kit::new();
    let own = kit.path("own");
    let server = kit.real("filesystem", &[own.to_str().unwrap()], std::slice::from_ref(&own));
    ready(&server).await;
    let path = own.join("note.txt");
    let note = object(json!({"path": path, "content": "hello"}));
    let written = server.call("filesystem.write_file", note, call()).await;
    assert_eq!(written.status, Status::Success, "{written:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "hello");
    let read = server.call("filesystem.read_text_file", object(json!({"path": path})), call());
    assert_eq!(read.await.result["content"], "hello");
    let outside = object(json!({"path": "/etc/hostname"}));
    let outside = server.call("filesystem.read_text_file", outside, call()).await;
    assert_eq!(failure(outside).code, "TOOL_ERROR");
    let risk = |name: &str| server.tools().into_iter().find(|tool| tool.name == name).unwrap().risk;
    assert_eq!(risk("filesystem.read_file"), Risk::Read);
    assert_eq!(risk("filesystem.write_file"), Risk::Destructive);
    assert_eq!(risk("filesystem.create_directory"), Risk::Write);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_memory_server_remembers_after_a_restart() {
    let kit = Kit::new();
    let own = kit.path("own");
    let server = kit.real("memory", &[], std::slice::from_ref(&own));
    ready(&server).await;
    let entity = json!({"name": "Ada", "entityType": "person", "observations": ["wrote programs"]});
    let made = object(json!({"entities": [entity]}));
    let made = server.call("memory.create_entities", made, call()).await;
    assert_eq!(made.status, Status::Success, "{made:?}");
    server.stop().await;
    let server = kit.real("memory", &[], std::slice::from_ref(&own));
    ready(&server).await;
    let found = server.call("memory.read_graph", object(json!({})), call()).await;
    assert_eq!(found.result["entities"], json!([entity]), "{found:?}");
}
