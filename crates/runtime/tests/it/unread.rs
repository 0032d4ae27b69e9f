//! A process that does not read: unread runs go to another process, and read ones stay.

use crate::kit::{Kit, eventually, finish, is_alive, some, texts, with_grace};
use greenroom_runtime::{Limits, RunEnd, RunHandle};
use std::time::Duration;

fn soon() -> Limits {
    let (stdin_stall_timeout, cancel_grace) =
        (Duration::from_millis(200), Duration::from_secs(3600));
    Limits { stdin_stall_timeout, ..with_grace(cancel_grace) }
}

/// A run that blocks the process, and one that it does not read.
async fn blocked_and_unread(kit: &Kit) -> (RunHandle, RunHandle) {
    let mut blocked = kit.start("block").await;
    assert_eq!(some(&mut blocked).await, ["blocked"]);
    (blocked, kit.start("echo unread").await)
}

fn unblock(kit: &Kit) {
    std::fs::write(kit.path("wire/go"), "").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_not_read_is_another_processs_and_the_one_that_blocks_ends_in_its_time() {
    let kit = Kit::wire_with(soon()).await;
    let old = kit.state().pid;
    let (blocked, unread) = blocked_and_unread(&kit).await;
    assert_eq!(finish(unread).await.1, RunEnd::NotDelivered);
    let told = eventually("the reason", || kit.state().last_error).await;
    assert!(told.starts_with("runner `wire` has not read its input for 0.2 s"), "{told}");
    let new = kit.replaced(old).await;
    assert_eq!(texts(&finish(kit.start("echo fresh").await).await.0), ["fresh"]);
    assert!(is_alive(old.unwrap()));
    unblock(&kit);
    assert_eq!(finish(blocked).await.1, RunEnd::Finished);
    eventually("the old process gone", || (!is_alive(old.unwrap())).then_some(())).await;
    assert!(is_alive(new));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blocked_run_that_is_cancelled_costs_no_run_that_was_not_read() {
    let (stdin_stall_timeout, cancel_grace) =
        (Duration::from_secs(3600), Duration::from_millis(200));
    let kit = Kit::wire_with(Limits { stdin_stall_timeout, ..with_grace(cancel_grace) }).await;
    let old = kit.state().pid;
    let (blocked, unread) = blocked_and_unread(&kit).await;
    drop(blocked);
    assert_eq!(finish(unread).await.1, RunEnd::NotDelivered);
    kit.replaced(old).await;
    eventually("the old process gone", || (!is_alive(old.unwrap())).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_costs_no_run_that_was_not_read() {
    let kit =
        Kit::wire_with(Limits { stdin_stall_timeout: Duration::from_secs(3600), ..soon() }).await;
    let old = kit.state().pid.unwrap();
    let (blocked, unread) = blocked_and_unread(&kit).await;
    let process = rustix::process::Pid::from_raw(old.cast_signed()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
    let end = finish(blocked).await.1;
    assert!(matches!(end, RunEnd::Crashed { .. }), "{end:?}");
    assert_eq!(finish(unread).await.1, RunEnd::NotDelivered);
}

/// Each run that blocks keeps its process; the number of processes is limited.
#[tokio::test(flavor = "multi_thread")]
async fn a_runner_that_always_blocks_gets_so_many_processes_and_no_more() {
    let kit = Kit::wire_with(Limits { draining_max: 2, ..soon() }).await;
    let mut blocked = Vec::new();
    for _ in 0..2 {
        let old = kit.state().pid;
        let (run, unread) = blocked_and_unread(&kit).await;
        assert_eq!(finish(unread).await.1, RunEnd::NotDelivered);
        kit.replaced(old).await;
        blocked.push(run);
    }
    let (last, mut unread) = blocked_and_unread(&kit).await;
    let waits = tokio::time::timeout(Duration::from_secs(1), unread.next()).await;
    assert!(waits.is_err(), "{waits:?}");
    assert_eq!(kit.state().restarts, 2);
    unblock(&kit);
    for run in blocked.into_iter().chain([last]) {
        assert_eq!(finish(run).await.1, RunEnd::Finished);
    }
    assert_eq!(texts(&finish(unread).await.0), ["unread"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_called_off_before_it_is_read_harms_neither_the_process_nor_its_runs() {
    let (stdin_stall_timeout, cancel_grace) =
        (Duration::from_secs(3600), Duration::from_millis(100));
    let kit = Kit::wire_with(Limits { stdin_stall_timeout, ..with_grace(cancel_grace) }).await;
    let old = kit.state().pid;
    let (blocked, unread) = blocked_and_unread(&kit).await;
    let behind = kit.start("echo behind").await;
    drop(unread);
    assert_eq!(kit.state().runs_in_flight, 2);
    tokio::time::sleep(2 * cancel_grace).await;
    unblock(&kit);
    assert_eq!(finish(blocked).await.1, RunEnd::Finished);
    assert_eq!(texts(&finish(behind).await.0), ["behind"]);
    assert_eq!((kit.state().pid, kit.state().restarts), (old, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_wait_for_a_process_that_has_much_to_read() {
    let kit = Kit::wire_with(Limits { queue_bytes_max: 1 << 20, ..Limits::default() }).await;
    let text = format!("echo {}", "x".repeat(300_000));
    let runs = (0..40).map(|_| async { finish(kit.start(&text).await).await.1 });
    let ends = futures_util::future::join_all(runs).await;
    assert_eq!(ends, vec![RunEnd::Finished; 40]);
    assert_eq!(kit.state().restarts, 0);
}

/// The other runs were not cancelled: they have their deadlines.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_replaced_ends_the_runs_that_it_has_read() {
    let cancel_grace = Duration::from_millis(100);
    let kit = Kit::wire_with(with_grace(cancel_grace)).await;
    let old = kit.state().pid;
    let mut waiting = kit.start("wait").await;
    some(&mut waiting).await;
    let mut called_off = kit.start("wait").await;
    some(&mut called_off).await;
    let mut blocked = kit.start("block").await;
    some(&mut blocked).await;
    drop(called_off);
    kit.replaced(old).await;
    unblock(&kit);
    assert_eq!(finish(blocked).await.1, RunEnd::Finished);
    waiting.cancel("done");
    assert_eq!(finish(waiting).await.1, RunEnd::Finished);
    eventually("the old process gone", || (!is_alive(old.unwrap())).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_gone_does_not_count_among_those_that_finish() {
    let kit = Kit::wire_with(Limits { draining_max: 1, ..soon() }).await;
    let old = kit.state().pid;
    let (blocked, unread) = blocked_and_unread(&kit).await;
    assert_eq!(finish(unread).await.1, RunEnd::NotDelivered);
    let new = kit.replaced(old).await;
    assert!(matches!(finish(kit.start("crash").await).await.1, RunEnd::Crashed { .. }));
    kit.replaced(Some(new)).await;
    unblock(&kit);
    assert_eq!(finish(blocked).await.1, RunEnd::Finished);
}

/// Whichever part notices first that the process is gone.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_under_load_ends_no_other() {
    for _ in 0..5 {
        let kit = Kit::wire_with(Limits { draining_max: 1, ..soon() }).await;
        let old = kit.state().pid;
        let (blocked, unread) = blocked_and_unread(&kit).await;
        assert_eq!(finish(unread).await.1, RunEnd::NotDelivered);
        let new = kit.replaced(old).await;
        let process = rustix::process::Pid::from_raw(new.cast_signed()).unwrap();
        rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
        while kit.runtime.start_run(kit.request("echo x")).await.is_ok() {}
        kit.replaced(Some(new)).await;
        unblock(&kit);
        assert_eq!(finish(blocked).await.1, RunEnd::Finished);
    }
}

/// All parts that take runs back do so at once.
#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_not_read_when_a_process_is_killed_is_another_processs() {
    for _ in 0..20 {
        let kit =
            Kit::wire_with(Limits { stdin_stall_timeout: Duration::from_secs(3600), ..soon() })
                .await;
        let old = kit.state().pid.unwrap();
        let (blocked, unread) = blocked_and_unread(&kit).await;
        let mut runs = vec![unread];
        let process = rustix::process::Pid::from_raw(old.cast_signed()).unwrap();
        let killed = std::thread::spawn(move || {
            rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
        });
        while let Ok(run) = kit.runtime.start_run(kit.request("echo more")).await {
            runs.push(run);
        }
        killed.join().unwrap();
        assert!(matches!(finish(blocked).await.1, RunEnd::Crashed { .. }));
        for run in runs {
            assert_eq!(finish(run).await.1, RunEnd::NotDelivered);
        }
    }
}
