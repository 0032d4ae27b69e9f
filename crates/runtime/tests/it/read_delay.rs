//! Output of a runner with many long runs is read in batches, and nothing is lost.

use crate::kit::{Kit, finish, some, texts};
use greenroom_runtime::{RunEnd, RunHandle};

const AT_ONCE: usize = 16;

async fn started(kit: &Kit, text: &str) -> Vec<RunHandle> {
    let mut runs = Vec::new();
    for _ in 0..AT_ONCE {
        runs.push(kit.start(text).await);
    }
    runs
}

/// A runner that is known to take long.
async fn slow_runner() -> Kit {
    let kit = Kit::wire().await;
    for _ in 0..3 {
        for run in started(&kit, "slow 0.1").await {
            assert_eq!(finish(run).await.1, RunEnd::Finished);
        }
    }
    kit
}

#[tokio::test(flavor = "multi_thread")]
async fn output_read_in_batches_is_whole_and_in_order() {
    let kit = slow_runner().await;
    let runs = started(&kit, "slow 0.1").await;
    assert!(runs[0].read_delay().is_some());
    for run in runs {
        let (results, end) = finish(run).await;
        assert_eq!((texts(&results), end), (vec!["one".into(), "two".into()], RunEnd::Finished));
        assert_eq!(results.last().unwrap().kind, "run.completed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_alone_is_read_at_once_and_so_is_a_runner_that_asks() {
    let kit = slow_runner().await;
    let mut alone = kit.start("wait").await;
    assert_eq!(some(&mut alone).await, ["waiting"]);
    assert!(alone.read_delay().is_none());
    let mut waiting = started(&kit, "wait").await;
    for run in &mut waiting {
        assert_eq!(some(run).await, ["waiting"]);
    }
    assert!(alone.read_delay().is_some());
    assert_eq!(kit.output("call state.get").await["on_connection"], true);
    assert!(alone.read_delay().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_writes_much_is_read_to_the_end() {
    let kit = slow_runner().await;
    let waiting = started(&kit, "wait").await;
    assert!(waiting[0].read_delay().is_some());
    let (results, end) = finish(kit.start("flood 3").await).await;
    let deltas = results.iter().filter(|result| result.kind == "message.delta").count();
    assert_eq!((deltas, end), (3_000, RunEnd::Finished));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crash_between_two_batches_ends_all_runs() {
    let kit = slow_runner().await;
    let waiting = started(&kit, "wait").await;
    assert!(waiting[0].read_delay().is_some());
    let (results, end) = finish(kit.start("crash").await).await;
    assert_eq!(texts(&results), ["before"]);
    assert!(matches!(end, RunEnd::Crashed { .. }), "{end:?}");
    for run in waiting {
        let (results, end) = finish(run).await;
        assert_eq!(texts(&results), ["waiting"]);
        assert!(matches!(end, RunEnd::Crashed { .. }), "{end:?}");
    }
}
