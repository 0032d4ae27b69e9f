//! More runs than a plugin serves at once: the host lets them wait, and none is refused.

use crate::stage::{PATIENCE, Stage, agent, outcome};
use greenroom_protocol::RunStatus;
use greenroom_testkit::wait::wait_for;

const RUNS: usize = 140;
/// What the plugin is given at once.
const WINDOW: usize = 124;

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_and_forty_runs_on_one_plugin_all_come_to_their_end() {
    let stage = Stage::open(&["basics"], &agent("slow", "basics", "slow", "")).await;
    stage.api.ready_runner("basics").await;
    let mut runs = Vec::new();
    for number in 0..RUNS {
        runs.push(stage.send("slow", &format!("c{number}"), &number.to_string()).await);
    }
    let began = || {
        let entries = std::fs::read_dir(stage.host.folder().join("basics")).unwrap().flatten();
        entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("began-")).count()
    };
    wait_for("a full window", PATIENCE, async || (began() == WINDOW).then_some(())).await;
    // One that still waits is cancelled, and never begins.
    let waiting = RUNS - 1;
    assert_eq!(stage.cancel(&runs[waiting]).await.status, RunStatus::Cancelled);
    std::fs::write(stage.host.folder().join("basics/gate"), "").unwrap();
    for (number, run_id) in runs.iter().enumerate().take(waiting) {
        let run = stage.api.ended_run(run_id).await;
        assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{run:?}");
        assert_eq!(stage.api.answers(&format!("c{number}")).await, [number.to_string()]);
    }
    assert_eq!(began(), waiting);
}
