//! Runs that raise what the SDK takes no notice of: each fails alone and says what it raised.

use crate::stage::{PATIENCE, Stage, agent, outcome};
use greenroom_protocol::RunStatus;
use greenroom_testkit::wait::wait_for;

fn agents() -> String {
    ["raising", "slow", "plain"].map(|name| agent(name, "basics", name, "")).concat()
}

async fn fails(stage: &Stage, way: &str, message: &str) {
    let run = stage.play("raising", &way.replace(' ', "-"), way).await;
    let log = stage.host.log();
    assert_eq!(outcome(&run), (RunStatus::Failed, "runner.exception"), "{way}: {run:?}\n{log}");
    let raised = format!("run {}: the plugin raised", run.run_id);
    wait_for(&raised, PATIENCE, async || stage.host.log().contains(&raised).then_some(())).await;
    let told = run.error.unwrap().message;
    assert!(told.ends_with(message), "{way}: {told}");
}

async fn each_fails_alone(stage: &Stage) {
    let pid = stage.api.ready_runner("basics").await["pid"].clone();
    let beside = stage.send("slow", "beside", "one").await;
    stage.marked("basics/began-one").await;
    for place in ["coroutine", "stream"] {
        for kind in ["SystemExit", "GeneratorExit", "KeyboardInterrupt", "Unheard"] {
            let message = format!("raised {kind}('that is enough'), which is no Exception");
            fails(stage, &format!("{place} {kind}"), &message).await;
        }
        for kind in ["CancelledError", "CancelledChild"] {
            let message = "raised CancelledError, but its run was not cancelled";
            fails(stage, &format!("{place} {kind}"), message).await;
        }
    }
    fails(stage, "call Unheard", "raised Unheard('that is enough'), which is no Exception").await;
    fails(
        stage,
        "iterated SystemExit",
        "raised SystemExit('that is enough'), which is no Exception",
    )
    .await;
    assert_eq!(stage.api.answers("stream-SystemExit").await, ["so far "]);
    for kind in ["SystemExit", "KeyboardInterrupt"] {
        let answer = stage.answer("raising", kind, &format!("beside {kind}")).await;
        assert_eq!(answer, format!("after {kind}('that is enough')"));
    }

    std::fs::write(stage.host.folder().join("basics/gate"), "").unwrap();
    let run = stage.api.ended_run(&beside).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{run:?}\n{}", stage.host.log());
    assert_eq!(stage.api.ready_runner("basics").await["pid"], pid);
}

#[tokio::test]
async fn what_is_no_exception_fails_its_run_and_no_other() {
    each_fails_alone(&Stage::open(&["basics"], &agents()).await).await;
}

#[tokio::test]
async fn it_does_so_without_a_sandbox() {
    // It follows the runner's own keys.
    let config = format!("sandbox = \"off\"\n{}", agents());
    each_fails_alone(&Stage::open(&["basics"], &config).await).await;
}

#[tokio::test]
async fn a_run_that_exits_when_it_is_told_to_stop_is_cancelled_alone() {
    let stage = Stage::open(&["basics"], &agents()).await;
    let pid = stage.api.ready_runner("basics").await["pid"].clone();
    let run_id = stage.send("raising", "c1", "stopped SystemExit").await;
    stage.marked("basics/waits").await;
    let run = stage.cancel(&run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Cancelled, "cancelled"));
    stage.marked("basics/stops").await;
    assert_eq!(stage.answer("plain", "c2", "hello").await, "Received: hello");
    assert_eq!(stage.api.ready_runner("basics").await["pid"], pid);
}

#[tokio::test]
async fn a_plugin_that_cancels_its_own_start_says_so() {
    let stage = Stage::open(&["basics"], &agents()).await;
    stage.api.ready_runner("basics").await;
    let file = stage.host.folder().join("basics/components/runner/plain.py");
    let code = std::fs::read_to_string(&file).unwrap();
    let start = "class Plain(Runner):\n    async def initialize(self):\n        \
        raise __import__(\"asyncio\").CancelledError\n\n";
    std::fs::write(&file, code.replace("class Plain(Runner):\n", start)).unwrap();
    wait_for("its last words", PATIENCE, async || {
        let log = stage.host.log();
        log.contains("raised CancelledError, but its run was not cancelled").then_some(())
    })
    .await;
}
