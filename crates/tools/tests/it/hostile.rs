//! Hostile servers: each is confined to its connection and does not affect the others.

use crate::kit::{
    Kit, WAIT, call, eventually, failure, file, names, object, python, ready, refused, text, within,
};
use greenroom_tools::{McpCall, McpServer, McpStatus, McpTransport, ToolFailure};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

impl Kit {
    fn hostile(&self, vice: &str) -> Arc<McpServer> {
        self.hostile_with(vice, |_| {})
    }

    fn hostile_with(
        &self,
        vice: &str,
        change: impl FnOnce(&mut greenroom_tools::McpSettings),
    ) -> Arc<McpServer> {
        let program = self.program(&[python(), &file("hostile.py"), vice]);
        let mut settings = self.settings("bad", McpTransport::Stdio(Box::new(program)));
        change(&mut settings);
        self.start(settings)
    }

    /// A well-behaved server.
    async fn good(&self) -> Arc<McpServer> {
        let program = self.program(&[python(), &file("hostile.py"), "none"]);
        let server = self.start(self.settings("good", McpTransport::Stdio(Box::new(program))));
        ready(&server).await;
        server
    }
}

/// The other server still answers at once.
async fn unharmed(server: &McpServer) {
    let said = server.call("good.echo", object(json!({"x": 1})), within(Duration::from_secs(5)));
    assert_eq!(text(&said.await), r#"{"x": 1}"#);
    assert_eq!(server.health().restarts, 0);
}

/// The peak memory of this process, in MB.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_result_and_an_endless_line_end_the_connection() {
    let kit = Kit::new();
    let good = kit.good().await;
    for vice in ["huge", "endless"] {
        let server = kit.hostile(vice);
        ready(&server).await;
        let ended = server.call("bad.echo", object(json!({})), call()).await;
        let expected = "the MCP server `bad` ended the connection during the call: whether it took \
                        effect is not known";
        assert_eq!(failure(ended), ToolFailure::new("UNAVAILABLE", expected), "{vice}");
        let error = eventually("the reason", || server.health().last_error).await;
        assert_eq!(error, "sent a line of more than 33554432 bytes");
        // It is connected again.
        eventually("it to be back", || (server.health().status == McpStatus::Ready).then_some(()))
            .await;
        unharmed(&good).await;
        server.stop().await;
    }
    assert!(peak_mb() < 400, "{} MB", peak_mb());
}

#[tokio::test(flavor = "multi_thread")]
async fn misleading_names_are_refused() {
    let kit = Kit::new();
    let server = kit.hostile("names");
    ready(&server).await;
    // The name of another server is prefixed with this one's.
    assert_eq!(names(&server), ["bad.echo", "bad.victim.echo"]);
    let warnings = server.health().warnings;
    assert_eq!(warnings.len(), 8, "{warnings:#?}");
    assert!(warnings.iter().all(|warning| !warning.chars().any(char::is_control)));
    for name in ["victim.echo", "bad.../x", "../x", "echo", "bad."] {
        let ended = server.call(name, object(json!({})), call()).await;
        assert_eq!(failure(ended).code, "NOT_FOUND", "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn external_and_expensive_schemas_are_refused() {
    let kit = Kit::new();
    let server = kit.hostile("schemas");
    ready(&server).await;
    let names = names(&server);
    assert!(names.contains(&"bad.echo".to_owned()));
    for name in ["bad.remote", "bad.file", "bad.laughs", "bad.wide", "bad.output"] {
        assert!(!names.contains(&name.to_owned()), "{name} among {names:?}");
    }
    let warnings = server.health().warnings.join("\n");
    assert!(warnings.contains("`remote` is not taken"), "{warnings}");
    assert!(warnings.contains("`http://127.0.0.1:1/schema.json`"), "{warnings}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_list_is_cut() {
    let kit = Kit::new();
    let many = kit.hostile_with("many", |settings| settings.limits.tools_max = 2000);
    ready(&many).await;
    assert_eq!(many.tools().len(), 2000);
    assert!(!many.health().warnings.is_empty());
    let pages = kit.hostile_with("pages", |settings| settings.limits.pages_max = 20);
    ready(&pages).await;
    assert_eq!(pages.tools().len(), 20);
    assert!(pages.health().warnings[0].starts_with("the list goes on"), "{:?}", pages.health());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_speak_the_protocol_is_retried_with_backoff() {
    let kit = Kit::new();
    let good = kit.good().await;
    for (vice, expected) in [
        ("greeting", "answers the handshake with something else"),
        ("prose", "writes what is not MCP"),
        ("too_deep", "the answer is not MCP"),
    ] {
        let server = kit.hostile(vice);
        let error = refused(&server).await;
        assert!(error.contains(expected), "{vice}: {error}");
        assert_eq!(server.tools(), []);
        eventually("another attempt", || (server.health().restarts >= 2).then_some(())).await;
        server.stop().await;
    }
    let silent = kit.hostile_with("silent", |settings| {
        settings.limits.start_timeout = Duration::from_millis(500);
    });
    assert_eq!(refused(&silent).await, "did not answer within 0.5 s; is it an MCP server?");
    silent.stop().await;
    unharmed(&good).await;
    good.stop().await;
    assert!(kit.is_clear());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_answer_to_an_abandoned_request_changes_nothing() {
    let kit = Kit::new();
    let server = kit.hostile("late");
    ready(&server).await;
    let said = server.call("bad.echo", object(json!({"x": 3})), call()).await;
    assert_eq!(text(&said), r#"{"x": 3}"#);
    assert_eq!(server.health().restarts, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_burst_of_changes_is_rate_limited() {
    let kit = Kit::new();
    let good = kit.good().await;
    let server = kit.hostile("storm");
    ready(&server).await;
    for _ in 0..3 {
        let said = server.call("bad.echo", object(json!({"x": 2})), call()).await;
        assert_eq!(text(&said), r#"{"x": 2}"#);
        unharmed(&good).await;
    }
    assert_eq!(server.health().restarts, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_an_answer_times_out_and_is_cancelled() {
    let kit = Kit::new();
    let server = kit.hostile("mute");
    ready(&server).await;
    let ended =
        server.call("bad.echo", object(json!({})), within(Duration::from_millis(300))).await;
    let message = "the MCP server `bad` did not answer by the end of its time";
    let expected = ToolFailure::new("TIMEOUT", message);
    assert_eq!(failure(ended), expected);
    let cancelled = kit.path("own/cancelled");
    eventually("the cancellation", || cancelled.exists().then_some(())).await;
    std::fs::remove_file(&cancelled).unwrap();
    // The same when the caller disconnects.
    let cancel = CancellationToken::new();
    let asked = server.call("bad.echo", object(json!({})), McpCall { cancel, ..call() });
    assert!(tokio::time::timeout(Duration::from_millis(200), asked).await.is_err());
    eventually("the cancellation", || cancelled.exists().then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_from_a_server_are_refused() {
    let kit = Kit::new();
    let server = kit.hostile("asks");
    ready(&server).await;
    let said = server.call("bad.echo", object(json!({})), call()).await;
    assert_eq!(text(&said), "[-32601, -32600, -32601]");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_of_an_unknown_shape_is_a_failure_and_not_a_wait() {
    let kit = Kit::new();
    let server = kit.hostile("shape");
    ready(&server).await;
    let ended = server.call("bad.echo", object(json!({})), call()).await;
    assert_eq!(failure(ended).code, "PROTOCOL_ERROR");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stderr_of_a_crashed_server_is_for_operators_only() {
    let kit = Kit::new();
    let server = kit.hostile("crash");
    ready(&server).await;
    let ended = failure(server.call("bad.echo", object(json!({})), call()).await);
    assert_eq!(ended.code, "UNAVAILABLE");
    assert!(!ended.message.contains("goodbye"));
    let error = eventually("the reason", || server.health().last_error).await;
    assert_eq!(error, "exited with code 7; its last words: goodbye");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_has_its_configured_environment_and_allowed_tools() {
    let kit = Kit::new();
    let server = kit.hostile_with("environment", |settings| {
        settings.allow = Some(vec!["echo".to_owned()]);
    });
    ready(&server).await;
    assert_eq!(names(&server), ["bad.echo"]);
    let said = server.call("bad.echo", object(json!({})), call()).await;
    let expected = json!(["CANCELLED", "HOME", "LANG", "PATH", "TMPDIR"]);
    let seen: serde_json::Value = serde_json::from_str(&text(&said)).unwrap();
    assert_eq!(seen, expected);
    let ended = server.call("bad.other", object(json!({})), call()).await;
    assert_eq!(failure(ended).code, "NOT_FOUND");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_waited_for_only_during_its_first_start() {
    let kit = Kit::new();
    let transport = McpTransport::Stdio(Box::new(kit.program(&["sleep", "1000"])));
    let mut settings = kit.settings("sleepy", transport);
    settings.limits.start_timeout = Duration::from_millis(500);
    let server = kit.start(settings);
    assert!(server.is_awaited(WAIT));
    assert!(!server.is_awaited(Duration::ZERO), "nobody waits longer than they want to");
    refused(&server).await;
    assert!(!server.is_awaited(WAIT));
    eventually("another start", || {
        let health = server.health();
        (health.status == McpStatus::Starting && health.restarts > 0).then_some(())
    })
    .await;
    assert!(!server.is_awaited(WAIT), "it has had its time");
    server.stop().await;
    assert!(kit.is_clear());
}
