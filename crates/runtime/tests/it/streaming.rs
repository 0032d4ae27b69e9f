//! Runs that behave: results in order, ends that say what happened, cancellation.

use crate::kit::{Kit, WAIT, eventually, finish, is_alive, some, texts, with_grace};
use greenroom_runtime::{Limits, RunEnd, RunEvent};
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn results_come_in_order_and_the_answer_ends_the_run() {
    let kit = Kit::wire().await;
    let (results, end) = finish(kit.start("echo one two three").await).await;
    assert_eq!(texts(&results), ["one", "two", "three"]);
    assert_eq!(results.last().unwrap().kind, "run.completed");
    assert_eq!(end, RunEnd::Finished);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_runs_share_one_process() {
    let kit = Kit::wire().await;
    let pid = kit.state().pid;
    let mut waiting = Vec::new();
    for _ in 0..20 {
        waiting.push(kit.start("wait").await);
    }
    for run in &mut waiting {
        some(run).await;
    }
    assert_eq!(kit.state().runs_in_flight, 20);
    for run in waiting {
        run.cancel("enough");
        assert_eq!(finish(run).await.1, RunEnd::Finished);
    }
    assert_eq!((kit.state().runs_in_flight, kit.state().pid), (0, pid));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_answer_fails_the_run_with_its_code() {
    let kit = Kit::wire().await;
    let (_, end) = finish(kit.start("fail no such model").await).await;
    assert_eq!(end, RunEnd::Failed { code: -32050, message: "no such model".into() });
}

#[tokio::test(flavor = "multi_thread")]
async fn results_after_the_answer_are_dropped() {
    let kit = Kit::wire().await;
    let mut run = kit.start("late").await;
    assert!(matches!(run.next().await, RunEvent::End(RunEnd::Finished)));
    // The late result has been read once a later run has been served.
    finish(kit.start("echo x").await).await;
    assert!(matches!(run.next().await, RunEvent::End(RunEnd::Finished)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_that_stops_keeps_its_process() {
    let kit = Kit::wire().await;
    let pid = kit.state().pid;
    let mut run = kit.start("wait").await;
    assert_eq!(some(&mut run).await, ["waiting"]);
    run.cancel("no longer wanted");
    let (results, end) = finish(run).await;
    assert_eq!((texts(&results), end), (vec!["stopped".to_owned()], RunEnd::Finished));
    finish(kit.start("echo x").await).await;
    assert_eq!(kit.state().pid, pid);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_ignores_its_cancel_costs_the_process_but_not_the_other_runs() {
    let grace = Duration::from_millis(200);
    let kit = Kit::wire_with(with_grace(grace)).await;
    let old = kit.state().pid;
    let mut other = kit.start("wait").await;
    some(&mut other).await;
    let mut stubborn = kit.start("stubborn").await;
    some(&mut stubborn).await;
    stubborn.cancel("deadline");
    drop(stubborn);
    let new = kit.replaced(old).await;
    // New runs go to the new process while the old one still serves its last run.
    assert_eq!(texts(&finish(kit.start("echo fresh").await).await.0), ["fresh"]);
    assert!(is_alive(old.unwrap()));
    other.cancel("done");
    assert_eq!(finish(other).await.1, RunEnd::Finished);
    eventually("the old process gone", || (!is_alive(old.unwrap())).then_some(())).await;
    assert!(is_alive(new));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_has_said_its_end_has_longer_to_be_over() {
    let (short, long) = (Duration::from_millis(100), Duration::from_secs(3600));
    for (drain_max, is_replaced) in [(long, false), (short, true)] {
        let limits = Limits { drain_max, ..with_grace(short) };
        let kit = Kit::wire_with(limits).await;
        let pid = kit.state().pid;
        let mut run = kit.start("linger").await;
        assert!(matches!(run.next().await, RunEvent::Results(_)));
        drop(run);
        if is_replaced {
            kit.replaced(pid).await;
            continue;
        }
        tokio::time::sleep(4 * short).await;
        finish(kit.start("echo x").await).await;
        assert_eq!((kit.state().pid, kit.state().restarts), (pid, 0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_run_is_told_to_stop() {
    let kit = Kit::wire().await;
    let pid = kit.state().pid;
    let mut run = kit.start("wait").await;
    some(&mut run).await;
    drop(run);
    assert_eq!(kit.state().runs_in_flight, 0);
    finish(kit.start("echo x").await).await;
    assert_eq!(kit.state().pid, pid);
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_leaves_no_process() {
    let kit = Kit::wire().await;
    let pid = kit.state().pid.unwrap();
    let mut run = kit.start("children").await;
    some(&mut run).await;
    kit.runtime.shutdown(Duration::from_millis(50)).await;
    assert!(matches!(finish(run).await.1, RunEnd::Crashed { .. }));
    assert!(!is_alive(pid));
    assert_eq!(crate::kit::processes_of(kit.folder.path()), Vec::<u32>::new());
    assert_eq!(std::fs::read_dir(kit.path("data/run")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_runner_is_replaced_while_its_run_goes_on() {
    let kit = Kit::wire().await;
    let old = kit.state().pid;
    let mut run = kit.start("wait").await;
    some(&mut run).await;
    let mut spec = kit.spec();
    spec.env.insert("ADDED".into(), "1".into());
    kit.runtime.apply(vec![spec.clone()]).await;
    assert!(kit.runtime.descriptor(&crate::kit::wire()).is_some());
    let new = kit.replaced(old).await;
    run.cancel("done");
    assert_eq!(finish(run).await.1, RunEnd::Finished);
    kit.runtime.apply(vec![spec]).await;
    assert_eq!(kit.state().pid, Some(new));
    kit.runtime.apply(Vec::new()).await;
    assert_eq!(kit.runtime.runners().len(), 0);
    assert!(kit.runtime.ready(&crate::kit::wire(), WAIT).await.is_err());
    eventually("the process gone", || (!is_alive(new)).then_some(())).await;
}
