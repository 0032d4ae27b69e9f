//! A changed configuration, put in force whole or not at all, without touching what is under way.

use crate::stage::{PATIENCE, Stage, config, event, outcome, runners};
use greenroom_protocol::RunStatus::Completed;
use greenroom_testkit::wait::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

const LIMITS: &str = "cancel_grace_s = 1";

fn agent(name: &str, steps: &Value) -> String {
    format!(
        "[agents.{name}]\nrunner = \"plugin:test/puppet/main\"\nevents = []\nconfig = {{ steps = '{steps}' }}\n"
    )
}

fn hang_up(stage: &Stage) {
    let pid = i32::try_from(stage.host.pid()).ok().and_then(Pid::from_raw).unwrap();
    kill_process(pid, Signal::HUP).unwrap();
}

async fn agents(stage: &Stage) -> Vec<String> {
    let agents = stage.api.get("/v1/agents").await;
    let names = agents["items"].as_array().unwrap().iter().map(|agent| agent["name"].as_str());
    names.map(|name| name.unwrap().to_owned()).collect()
}

async fn until_there_is(stage: &Stage, name: &str) {
    wait_for(&format!("agent {name}"), PATIENCE, async || {
        agents(stage).await.iter().any(|agent| agent == name).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_agent_appears_on_sighup_and_on_a_change_of_the_file() {
    let stage = Stage::open("").await;
    let hello = agent("hello", &json!([["message", "hello"], ["end"]]));
    stage.host.configure(&config(LIMITS, &hello));
    hang_up(&stage);
    until_there_is(&stage, "hello").await;
    let run_id = stage.send(&event("hello", "c", "x")).await;
    assert_eq!(outcome(&stage.api.ended_run(&run_id).await), (Completed, ""));
    assert_eq!(stage.api.answers("c").await, ["hello"]);
    // Nobody says anything this time.
    let again = agent("again", &json!([["message", "again"], ["end"]]));
    stage.host.configure(&config(LIMITS, &again));
    until_there_is(&stage, "again").await;
    assert!(!agents(&stage).await.contains(&"hello".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_runner_puts_in_place_of_its_manifest_delays_no_reload() {
    let stage = Stage::open("").await;
    let manifest = stage.host.folder().join("puppet/manifest.yaml");
    let (mode, fifo) = (rustix::fs::Mode::from_raw_mode(0o666), rustix::fs::FileType::Fifo);
    rustix::fs::mknodat(rustix::fs::CWD, &manifest, fifo, mode, 0).unwrap();
    let hello = agent("hello", &json!([["message", "hello"], ["end"]]));
    stage.host.configure(&config(LIMITS, &hello));
    until_there_is(&stage, "hello").await;
    std::fs::remove_file(&manifest).unwrap();
    std::fs::File::create(&manifest).unwrap().set_len(1 << 40).unwrap();
    let again = agent("again", &json!([["message", "again"], ["end"]]));
    stage.host.configure(&config(LIMITS, &again));
    until_there_is(&stage, "again").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_file_changes_nothing_and_says_where_it_is_broken() {
    let stage = Stage::open("").await;
    let pid = stage.api.ready_runner("puppet").await["pid"].clone();
    let before = agents(&stage).await;
    let broken = config(
        LIMITS,
        "[agents.fresh]\nrunner = \"plugin:greenroom/echo/default\"\nqeue = \"serial\"",
    );
    let line = 1 + broken.lines().position(|line| line.starts_with("qeue")).unwrap();
    stage.host.configure(&broken);
    hang_up(&stage);
    let log = wait_for("a complaint", PATIENCE, async || {
        Some(stage.host.log()).filter(|log| log.contains("unchanged"))
    })
    .await;
    assert!(log.contains("qeue") && log.contains("queue"), "{log}");
    assert!(log.contains(&format!("greenroom.toml:{line}:1")), "{log}");
    assert_eq!(agents(&stage).await, before);
    assert_eq!(stage.api.runner("puppet").await["pid"], pid);
    let run = stage.play(json!([["message", "still here"], ["end"]])).await;
    assert_eq!(outcome(&run), (Completed, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_that_tie_are_refused_together() {
    let stage = Stage::open("").await;
    let agent = |name: &str| {
        format!("[agents.{name}]\nrunner = \"plugin:greenroom/echo/default\"\nevents = [\"a.b\"]\n")
    };
    stage.host.configure(&config(LIMITS, &(agent("one") + &agent("two"))));
    hang_up(&stage);
    let log = wait_for("a complaint", PATIENCE, async || {
        Some(stage.host.log()).filter(|log| log.contains("unchanged"))
    })
    .await;
    assert!(log.contains("agents `one` and `two` match the same events"), "{log}");
    assert!(!agents(&stage).await.contains(&"one".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_that_were_accepted_keep_their_config_and_their_grant() {
    let update =
        json!(["result", "state.updated", {"scope": "conversation", "key": "k", "value": 1}]);
    let steps = json!([["say", "old"], ["mark", "on"], ["gate", "go"], update, ["end"]]);
    let stage = Stage::open(&agent("kept", &steps)).await;
    stage.api.ready_runner("puppet").await;
    let running = stage.send(&event("kept", "c", "x")).await;
    stage.marked("on").await;
    let queued = stage.send(&event("kept", "c", "x")).await;
    let new = agent("kept", &json!([["message", "new"], update, ["tell", "state"], ["end"]]));
    let new = format!(
        "{new}[agents.kept.grant]\nstate = []\n[agents.mark]\nrunner = \"plugin:greenroom/echo/default\"\nevents = []\n"
    );
    stage.host.configure(&config(LIMITS, &new));
    hang_up(&stage);
    until_there_is(&stage, "mark").await;
    stage.pass("go");
    for run_id in [&running, &queued] {
        let run = stage.api.ended_run(run_id).await;
        assert_eq!(outcome(&run), (Completed, ""));
        assert_eq!(run.extra["diagnostics"], json!([]), "the old grant covered it");
    }
    assert_eq!(stage.api.answers("c").await, ["old", "old"]);
    let after = stage.send(&event("kept", "c", "x")).await;
    assert_eq!(outcome(&stage.api.ended_run(&after).await), (Completed, ""));
    assert_eq!(stage.api.answers("c").await[2], "new");
    assert_eq!(stage.diagnostics(&after).await[0].0, "refused_result");
    let state: Value = serde_json::from_str(&stage.api.answers("c").await[3]).unwrap();
    assert_eq!(state["conversation"], json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_runner_finishes_its_runs_and_then_ends() {
    let other = format!(
        "[runners.other]\ncommand = [\"python3\", \"{}\"]\ndir = \"other\"\nenv = {{ NAME = \"other\" }}\n\
         [agents.other]\nrunner = \"plugin:test/other/main\"\nevents = []\n",
        runners().join("puppet.py").display()
    );
    let stage = Stage::open(&other).await;
    let pid = stage.api.ready_runner("other").await["pid"].as_u64().unwrap();
    let go = stage.host.folder().join("other/go");
    let steps =
        json!([["mark", "on"], ["gate", "go"], ["message", "last words"], ["end"]]).to_string();
    let run_id = stage.send(&event("other", "c", &steps)).await;
    let on = stage.host.folder().join("other/on");
    wait_for("the run", PATIENCE, async || on.exists().then_some(())).await;
    stage.host.configure(&config(LIMITS, ""));
    hang_up(&stage);
    wait_for("the removal", PATIENCE, async || {
        stage.api.runner("other").await.is_null().then_some(())
    })
    .await;
    std::fs::write(go, "").unwrap();
    assert_eq!(outcome(&stage.api.ended_run(&run_id).await), (Completed, ""));
    assert_eq!(stage.api.answers("c").await, ["last words"]);
    wait_for("the end of the process", PATIENCE, async || {
        (!std::path::Path::new(&format!("/proc/{pid}")).exists()).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_runner_is_replaced_beside_its_old_runs() {
    let stage = Stage::open("").await;
    let pid = stage.api.ready_runner("puppet").await["pid"].clone();
    let beside = stage.start_waiting().await;
    let changed =
        config(LIMITS, "").replace("dir = \"puppet\"", "dir = \"puppet\"\nmemory_mb = 512");
    stage.host.configure(&changed);
    hang_up(&stage);
    stage.replaced(&pid).await;
    assert_eq!(outcome(&stage.play(json!([["message", "x"], ["end"]])).await), (Completed, ""));
    stage.finish_waiting(&beside).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_was_taken_gets_its_first_answer_also_when_its_agent_is_gone() {
    let hello = agent("hello", &json!([["message", "hello"], ["end"]]));
    let stage = Stage::open_with(LIMITS, &hello).await;
    let mut taken = event("hello", "c", "x");
    taken["event_id"] = "e-1".into();
    let (status, first) = stage.api.post_event(&taken).await.unwrap();
    assert_eq!(status, 202);
    stage.api.ended_run(&first.run_id.clone().unwrap()).await;
    let other = agent("other", &json!([["end"]]));
    stage.host.configure(&config(LIMITS, &other));
    until_there_is(&stage, "other").await;
    let (status, again) = stage.api.post_event(&taken).await.unwrap();
    assert_eq!((status, again.run_id, again.status.as_str()), (200, first.run_id, "completed"));
    let status_of = async |event: &Value| match stage.api.post_event(event).await {
        Err(greenroom_testkit::api::Failure::Refused { status, .. }) => status,
        other => panic!("it was taken: {other:?}"),
    };
    let mut changed = taken.clone();
    changed["input"]["text"] = "y".into();
    assert_eq!(status_of(&changed).await, 409);
    let mut unknown = taken.clone();
    unknown["event_id"] = "e-2".into();
    assert_eq!(status_of(&unknown).await, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_whose_script_is_saved_is_started_anew() {
    let stage = Stage::open("").await;
    let folder = stage.host.folder().join("mine");
    std::fs::create_dir(&folder).unwrap();
    for file in ["puppet.py", "wire.py"] {
        std::fs::copy(runners().join(file), folder.join(file)).unwrap();
    }
    let mine = "[runners.mine]\ncommand = [\"python3\", \"puppet.py\"]\ndir = \"mine\"\n\
                env = { NAME = \"mine\" }\n";
    stage.host.configure(&config(LIMITS, mine));
    let pid = async || {
        let runner = stage.api.runner("mine").await;
        (runner["status"] == "ready").then(|| runner["pid"].clone())
    };
    let before = wait_for("the runner", PATIENCE, &pid).await;
    let script = folder.join("puppet.py");
    let text = std::fs::read_to_string(&script).unwrap();
    std::fs::write(&script, format!("{text}# changed\n")).unwrap();
    wait_for("a new process", PATIENCE, async || pid().await.filter(|now| *now != before)).await;
}
