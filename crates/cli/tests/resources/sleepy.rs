//! A tool server that starts and never says hello: what it costs runs, and the stop of the host.

use crate::play;
use crate::stage::{PATIENCE, Stage, outcome};
use greenroom_protocol::RunStatus;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const SLEEPY: &str = r#"
[tools.sleepy]
command = ["sleep", "1000"]
[agents.clerk]
runner = "plugin:test/puppet/main"
events = []
deadline_s = 60
grant = { tools = ["sleepy.*"] }
"#;

async fn sleepy(stage: &Stage) -> Value {
    let servers = stage.api.get("/v1/tool-servers").await;
    let servers = servers["items"].as_array().unwrap().iter();
    servers.clone().find(|server| server["name"] == "sleepy").unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_says_hello_costs_one_wait_and_not_one_per_run() {
    // Runs wait five seconds for what starts, counted from its start.
    let stage = Stage::open_with("runner_start_s = 5", SLEEPY).await;
    let run = play(&stage, "ann", "c1", vec![json!(["say", "first"])]).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    assert_eq!(sleepy(&stage).await["status"], "starting");
    let began = Instant::now();
    for _ in 0..3 {
        let run = play(&stage, "ann", "c1", vec![json!(["say", "again"])]).await;
        assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_stops_at_once_while_a_server_has_not_said_hello() {
    let mut stage = Stage::open_with("runner_start_s = 5", SLEEPY).await;
    wait_for("the process of the server", PATIENCE, async || {
        sleepy(&stage).await["pid"].is_u64().then_some(())
    })
    .await;
    let began = Instant::now();
    assert!(stage.host.stop().await.success());
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert!(!stage.host.log().contains("did not end in time"), "{}", stage.host.log());
    assert_eq!(stage.host.leftovers(), Vec::<String>::new());
}
