//! Runners that break: each costs its own runs and nothing else.

use crate::kit::{Kit, eventually, finish, is_alive, request, some, texts};
use greenroom_runtime::{Limits, RunEnd, RunHandle};
use std::time::Duration;

/// Runs `text` beside a run that waits; returns how it ended, after checking that the other did not.
async fn ends_alone(kit: &Kit, text: &str) -> RunEnd {
    let old = kit.state().pid;
    let mut other = kit.start("wait").await;
    some(&mut other).await;
    let (_, end) = finish(kit.start(text).await).await;
    kit.replaced(old).await;
    assert_eq!(texts(&finish(kit.start("echo fresh").await).await.0), ["fresh"]);
    other.cancel("done");
    assert_eq!(finish(other).await.1, RunEnd::Finished);
    eventually("the old process gone", || (!is_alive(old.unwrap())).then_some(())).await;
    end
}

fn memory_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_ends_every_run_at_once_and_keeps_stderr_for_operators() {
    let kit = Kit::wire().await;
    let mut other = kit.start("wait").await;
    some(&mut other).await;
    let (results, end) = finish(kit.start("crash").await).await;
    assert_eq!(texts(&results), ["before"]);
    let message = "runner `wire` exited with code 3".to_owned();
    assert_eq!(end, RunEnd::Crashed { message: message.clone() });
    assert_eq!(finish(other).await.1, RunEnd::Crashed { message });
    let told = eventually("the story", || kit.state().last_error).await;
    assert_eq!(told, "runner `wire` exited with code 3: about to crash");
    kit.replaced(None).await;
    assert_eq!(texts(&finish(kit.start("echo back").await).await.0), ["back"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_that_names_its_run_ends_only_that_one() {
    let kit = Kit::wire().await;
    let end = ends_alone(&kit, "garbage_named").await;
    assert!(matches!(end, RunEnd::ProtocolError { .. }), "{end:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_that_names_no_run_ends_all_of_its_connection() {
    let kit = Kit::wire().await;
    let old = kit.state().pid;
    let mut other = kit.start("wait").await;
    some(&mut other).await;
    let garbage = kit.start("garbage").await;
    for run in [garbage, other] {
        let (_, end) = finish(run).await;
        let RunEnd::ProtocolError { message } = end else { panic!("{end:?}") };
        assert!(message.contains("this is not json"), "{message}");
    }
    kit.replaced(old).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_utf8_ends_its_run() {
    let kit = Kit::wire().await;
    let end = ends_alone(&kit, "invalid_utf8").await;
    assert!(matches!(end, RunEnd::ProtocolError { .. }), "{end:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_100_mb_ends_its_run_and_is_never_held() {
    let kit = Kit::wire().await;
    let end = ends_alone(&kit, "long_line 100").await;
    assert!(matches!(end, RunEnd::ProtocolError { .. }), "{end:?}");
    assert!(memory_mb() < 80, "{} MB", memory_mb());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unread_flood_overflows_the_run_and_not_the_host() {
    let limits =
        greenroom_config::Limits { run_buffer_bytes: 4 * 1024 * 1024, ..Default::default() };
    let kit = Kit::wire_with(limits.into()).await;
    let old = kit.state().pid;
    let mut other = kit.start("wait").await;
    some(&mut other).await;
    let flood = kit.start("flood 1000").await;
    kit.replaced(old).await;
    assert!(matches!(finish(flood).await.1, RunEnd::Overflow { .. }));
    other.cancel("done");
    assert_eq!(finish(other).await.1, RunEnd::Finished);
    assert!(memory_mb() < 80, "{} MB", memory_mb());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_writes_1_gb_ends_at_its_limit() {
    let kit = Kit::wire().await;
    let (results, end) = finish(kit.start("flood 1000").await).await;
    let RunEnd::Overflow { message } = end else { panic!("{end:?}") };
    assert_eq!(message, "the run wrote more than 268435456 bytes of results");
    assert!(results.len() < 300_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn results_for_another_connections_run_are_dropped() {
    let kit = Kit::new();
    let other = greenroom_runtime::RunnerSpec {
        name: "other".into(),
        dir: kit.path("other"),
        env: [
            ("PLUGIN", r#"{"author":"test","name":"other"}"#),
            (
                "MANIFESTS",
                r#"[{"id":"plugin:test/other/main","name":"main","label":{"en_US":"x"}}]"#,
            ),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into(),
        ..kit.spec()
    };
    kit.runtime.apply(vec![kit.spec(), other]).await;
    kit.ready().await;
    let id = greenroom_protocol::RunnerId::parse("plugin:test/other/main").unwrap();
    kit.runtime.ready(&id, crate::kit::WAIT).await.unwrap();
    let mut victim =
        kit.runtime.start_run(request(crate::kit::WIRE, "victim", "wait")).await.unwrap();
    some(&mut victim).await;
    let forger = request(id.as_str(), "forger", "for_other victim");
    assert_eq!(finish(kit.runtime.start_run(forger).await.unwrap()).await.1, RunEnd::Finished);
    victim.cancel("done");
    assert_eq!(texts(&finish(victim).await.0), ["stopped"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_bomb_is_stopped_and_leaves_nothing() {
    let kit = Kit::wire().await;
    let (_, end) = finish(kit.start("fork_bomb").await).await;
    let RunEnd::Crashed { message } = end else { panic!("{end:?}") };
    assert_eq!(message, "runner `wire` was stopped: it had more than 64 processes (`processes`)");
    kit.replaced(None).await;
    kit.runtime.shutdown(Duration::ZERO).await;
    assert_eq!(crate::kit::processes_of(kit.folder.path()), Vec::<u32>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_over_its_memory_is_stopped() {
    let kit = Kit::new();
    let spec = greenroom_runtime::RunnerSpec { memory_mb: 200, ..kit.spec() };
    kit.runtime.apply(vec![spec]).await;
    kit.ready().await;
    let (_, end) = finish(kit.start("eat").await).await;
    let RunEnd::Crashed { message } = end else { panic!("{end:?}") };
    assert_eq!(
        message,
        "runner `wire` was stopped: it used more than 200 MB of memory (`memory_mb`)"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_stdout_ends_the_connection() {
    let kit = Kit::wire().await;
    let old = kit.state().pid;
    let (_, end) = finish(kit.start("close_stdout").await).await;
    let message = "runner `wire` closed its standard output".to_owned();
    assert_eq!(end, RunEnd::Crashed { message });
    kit.replaced(old).await;
    eventually("the old process gone", || (!is_alive(old.unwrap())).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_does_not_read_never_blocks_the_host() {
    let stdin_stall_timeout = Duration::from_millis(200);
    let kit = Kit::with(Limits {
        queue_bytes_max: 1024 * 1024,
        stdin_stall_timeout,
        ..Limits::default()
    });
    let mut spec = kit.spec();
    spec.env.insert("MODE".into(), "stall".into());
    kit.runtime.apply(vec![spec]).await;
    kit.ready().await;
    let text = format!("echo {}", "x".repeat(100_000));
    let mut started: Vec<RunHandle> = Vec::new();
    let refused = loop {
        assert!(started.len() < 100);
        match kit.runtime.start_run(kit.request(&text)).await {
            Ok(run) => started.push(run),
            Err(error) => break error,
        }
    };
    let reason = "runner `wire` has not read its input for 0.2 s";
    assert!(refused.message.starts_with(reason), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_on_stderr_does_not_stop_the_run() {
    let kit = Kit::wire().await;
    assert_eq!(finish(kit.start("stderr_flood").await).await.1, RunEnd::Finished);
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_stdin_costs_the_process_its_new_runs() {
    let kit = Kit::wire().await;
    let old = kit.state().pid;
    let mut run = kit.start("close_stdin").await;
    some(&mut run).await;
    // Python's own reader still holds the pipe open until it has read one more line.
    let mut refused = None;
    while refused.is_none() {
        refused = kit.runtime.start_run(kit.request("echo x")).await.err();
        tokio::task::yield_now().await;
    }
    let other = kit.replaced(old).await;
    assert!(is_alive(other));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_dies_with_its_supervisor() {
    let kit = Kit::wire().await;
    let old = kit.state().pid.unwrap();
    let status = std::fs::read_to_string(format!("/proc/{old}/status")).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:")).unwrap();
    let parent = rustix::process::Pid::from_raw(parent.trim().parse().unwrap()).unwrap();
    let mut run = kit.start("wait").await;
    some(&mut run).await;
    rustix::process::kill_process(parent, rustix::process::Signal::KILL).unwrap();
    assert!(matches!(finish(run).await.1, RunEnd::Crashed { .. }));
    eventually("the runner gone", || (!is_alive(old)).then_some(())).await;
    kit.replaced(Some(old)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_runs_cannot_fill_the_hosts_memory_together() {
    const MIB: usize = 1 << 20;
    let limits = Limits { connection_buffer_bytes_max: 4 * MIB, ..Limits::default() };
    let kit = Kit::wire_with(limits).await;
    let unread = kit.start("flood 3").await;
    eventually("its end", || (kit.state().runs_in_flight == 0).then_some(())).await;
    let message = "more than 4194304 bytes of its process's results waited to be read".to_owned();
    let too_much = kit.start("flood 3").await;
    eventually("the process replaced", || (kit.state().restarts > 0).then_some(())).await;
    assert_eq!(finish(too_much).await.1, RunEnd::Overflow { message });
    let (results, end) = finish(unread).await;
    assert_eq!((results.len(), end), (3001, RunEnd::Finished));
}
