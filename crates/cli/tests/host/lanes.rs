//! Conversations and the ways their runs queue (DESIGN §2 "lane", §3 "order"; CONTRACT §2).

use crate::stage::{PATIENCE, Stage, event, outcome};
use greenroom_protocol::RunStatus::{Cancelled, Completed, Queued, Running};
use greenroom_protocol::{RunView, TranscriptRole};
use greenroom_testkit::api::{Api, Failure};
use greenroom_testkit::http::Request;
use greenroom_testkit::reader::{SeenResults, follow};
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use tokio::task::JoinSet;

const CONVERSATIONS: usize = 1_000;

fn agent(name: &str, more: &str) -> String {
    format!("[agents.{name}]\nrunner = \"plugin:test/puppet/main\"\nevents = []\n{more}\n")
}

/// Steps that end once the gate is open.
fn held(mark: &str, gate: &str) -> String {
    json!([["say", mark], ["mark", mark], ["gate", gate], ["end"]]).to_string()
}

fn quick(text: &str) -> String {
    json!([["message", text], ["end"]]).to_string()
}

/// Sends three messages, one after the other, and waits for the end of the last.
async fn talk(api: Api, conversation: String) {
    let mut last = None;
    for number in 1..=3 {
        last = api.send_event(&event("echo", &conversation, &number.to_string())).await.run_id;
    }
    let run = api.ended_run(&last.unwrap()).await;
    assert_eq!(outcome(&run), (Completed, ""));
    let items = api.history(&conversation).await;
    let said = |role: TranscriptRole| {
        let items = items.iter().filter(move |item| item.role == role);
        items.map(|item| item.text.as_deref().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(said(TranscriptRole::User), ["1", "2", "3"], "{conversation}");
    assert_eq!(said(TranscriptRole::Assistant), ["1", "2", "3"], "{conversation}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_conversations_keep_their_order_and_wait_for_nobody() {
    let more = "[agents.stuck]\nrunner = \"plugin:greenroom/echo/default\"\nevents = []\nconfig = { mode = \"hang\" }";
    let stage = Stage::open(more).await;
    // On the same process as all the others.
    let stuck = stage.send(&event("stuck", "stuck", "x")).await;
    let behind = stage.send(&event("echo", "stuck", "behind")).await;
    let mut conversations = JoinSet::new();
    for number in 0..CONVERSATIONS {
        conversations.spawn(talk(stage.api.clone(), format!("c-{number}")));
    }
    conversations.join_all().await;
    assert_eq!(stage.api.run(&stuck).await.status, Running);
    assert_eq!(stage.api.run(&behind).await.status, Queued);
    assert_eq!(outcome(&stage.cancel(&stuck).await), (Cancelled, "cancelled"));
    assert_eq!(outcome(&stage.api.ended_run(&behind).await), (Completed, ""));
    let runs = stage.api.runs().await;
    assert_eq!(runs.len(), 3 * CONVERSATIONS + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_run_of_a_lane_starts_when_the_one_before_has_ended() {
    let stage = Stage::open("").await;
    let first = stage.send(&event("puppet", "c", &held("first", "go"))).await;
    stage.marked("first").await;
    let second = stage.send(&event("puppet", "c", &quick("second"))).await;
    assert_eq!(stage.api.run(&second).await.status, Queued);
    assert_eq!(stage.wire_log(), ["start".to_owned(), format!("run {first}")]);
    stage.pass("go");
    let second = stage.api.ended_run(&second).await;
    let first = stage.api.run(&first).await;
    assert_eq!([outcome(&first), outcome(&second)], [(Completed, ""); 2]);
    assert!(first.finished_at <= second.started_at, "{first:?} {second:?}");
    assert_eq!(stage.api.answers("c").await, ["first", "second"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_runs_are_under_way_at_once() {
    let stage = Stage::open(&agent("parallel", "queue = \"parallel\"")).await;
    // Each of them waits for the mark of the other.
    let steps = |mine: &str, other: &str| {
        json!([["mark", mine], ["gate", other], ["message", mine], ["end"]]).to_string()
    };
    let one = stage.send(&event("parallel", "c", &steps("one", "two"))).await;
    let two = stage.send(&event("parallel", "c", &steps("two", "one"))).await;
    for run_id in [one, two] {
        assert_eq!(outcome(&stage.api.ended_run(&run_id).await), (Completed, ""));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn replace_ends_the_active_and_the_queued_runs_before_the_new_one_starts() {
    let all = "queue = \"replace\"\nreplace = \"conversation\"";
    let stage = Stage::open(&agent("replacing", all)).await;
    let active = stage.send(&event("puppet", "c", &held("active", "never"))).await;
    stage.marked("active").await;
    let queued = stage.send(&event("puppet", "c", &quick("queued"))).await;
    let newest = stage.send(&event("replacing", "c", &quick("newest"))).await;
    let newest = stage.api.ended_run(&newest).await;
    assert_eq!(outcome(&newest), (Completed, ""));
    let older: [RunView; 2] = [stage.api.run(&active).await, stage.api.run(&queued).await];
    for run in &older {
        assert_eq!(outcome(run), (Cancelled, "cancelled"));
        assert!(run.finished_at.as_ref() <= newest.started_at.as_ref(), "{run:?} {newest:?}");
        let terminal = stage.api.results(&run.run_id).await.pop().unwrap();
        assert_eq!(
            (terminal.kind.as_str(), &terminal.data["code"]),
            ("run.failed", &json!("cancelled"))
        );
    }
    assert_eq!(older[1].started_at, None);
    assert_eq!(stage.api.answers("c").await, ["active", "newest"]);
    // The older run's end was stored, and its runner told, before the newer run was handed out.
    let told = stage.wire_log();
    let expected =
        [format!("run {active}"), format!("cancel {active}"), format!("run {}", newest.run_id)];
    assert_eq!(told[1..], expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_a_run_that_ended_before_it_was_replaced() {
    let more = "[agents.replacing]\nrunner = \"plugin:greenroom/echo/default\"\nevents = []\nqueue = \"replace\"";
    let mut stage = Stage::open(more).await;
    let mut senders = JoinSet::new();
    for sender in 0..16 {
        let api = stage.api.clone();
        senders.spawn(async move {
            for number in 0..40 {
                let text = format!("{sender}.{number}");
                api.send_event(&event("replacing", &format!("c-{}", sender % 4), &text)).await;
            }
        });
    }
    senders.join_all().await;
    wait_for("the end of all runs", PATIENCE, async || {
        let runs = stage.api.runs().await;
        runs.iter().all(|run| !run.status.is_open()).then_some(())
    })
    .await;
    assert!(stage.host.stop().await.success(), "{}", stage.host.log());
    assert!(!stage.host.log().contains("did not end in time"), "{}", stage.host.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_of_replacing_events_leaves_the_last() {
    let stage = Stage::open(&agent("replacing", "queue = \"replace\"")).await;
    let mut runs = Vec::new();
    for number in 0..10 {
        let steps = if number == 9 { quick("last") } else { held(&format!("m{number}"), "never") };
        runs.push(stage.send(&event("replacing", "c", &steps)).await);
    }
    let last = runs.pop().unwrap();
    assert_eq!(outcome(&stage.api.ended_run(&last).await), (Completed, ""));
    for run_id in runs {
        assert_eq!(outcome(&stage.api.run(&run_id).await), (Cancelled, "cancelled"));
    }
    assert_eq!(stage.api.answers("c").await.last().unwrap(), "last");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_nobody_takes_is_recorded_as_unbound() {
    let stage = Stage::open("").await;
    let unbound = json!({"event_type": "member.joined", "event_id": "e-1", "conversation_id": "c",
        "actor": {"actor_type": "user", "actor_id": "u1"}, "input": {"text": "hello"}});
    let request = || Request::post("/v1/events", unbound.to_string());
    let body = json!({"event_id": "e-1", "run_id": null, "status": "unbound"});
    assert_eq!(stage.api.json(request()).await.unwrap(), (202, body.clone()));
    assert_eq!(stage.api.json(request()).await.unwrap(), (200, body));
    let events = stage.api.events().await;
    assert_eq!(events.len(), 1);
    assert_eq!((&events[0]["event_id"], &events[0]["run_id"]), (&json!("e-1"), &Value::Null));
    let event = stage.api.get("/v1/events/e-1").await;
    assert_eq!((&event["event_type"], &event["run_id"]), (&json!("member.joined"), &Value::Null));
    assert_eq!(stage.api.runs().await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_does_not_exist_is_not_found_and_nothing_is_stored() {
    let stage = Stage::open("").await;
    let refused = stage.api.post_event(&event("nobody", "c", "x")).await;
    let Err(Failure::Refused { status: 404, body }) = refused else { panic!("{refused:?}") };
    assert_eq!(body["error"]["code"], "not_found");
    assert_eq!(stage.api.events().await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_cancelled_in_the_queue_never_starts_and_holds_nobody_up() {
    let stage = Stage::open("").await;
    let active = stage.send(&event("puppet", "c", &held("active", "go"))).await;
    stage.marked("active").await;
    let unwanted = stage.send(&event("puppet", "c", &quick("unwanted"))).await;
    let wanted = stage.send(&event("puppet", "c", &quick("wanted"))).await;
    let reader = follow(stage.api.clone(), unwanted.clone(), SeenResults::default());
    let (reading, cancelled) = tokio::join!(reader, stage.cancel(&unwanted));
    assert_eq!(reading.results, stage.api.results(&unwanted).await);
    assert_eq!(
        (outcome(&cancelled), cancelled.started_at.clone()),
        ((Cancelled, "cancelled"), None)
    );
    assert_eq!(stage.api.run(&active).await.status, Running);
    assert_eq!(stage.api.run(&wanted).await.status, Queued);
    stage.pass("go");
    assert_eq!(outcome(&stage.api.ended_run(&wanted).await), (Completed, ""));
    assert_eq!(stage.api.answers("c").await, ["active", "wanted"]);
    assert!(!stage.wire_log().contains(&format!("run {unwanted}")));
    // Asking again, or too late, changes nothing.
    assert_eq!(stage.cancel(&unwanted).await, cancelled);
    assert_eq!(outcome(&stage.cancel(&wanted).await), (Completed, ""));
    assert_eq!(stage.api.answers("c").await, ["active", "wanted"]);
    let unknown = stage.api.json(Request::post("/v1/runs/run-none/cancel", "")).await;
    assert!(matches!(unknown, Err(Failure::Refused { status: 404, .. })), "{unknown:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_heeds_its_cancel_keeps_its_process() {
    let stage = Stage::open("").await;
    let pid = stage.api.ready_runner("puppet").await["pid"].clone();
    let steps =
        json!([["say", "so far"], ["mark", "on"], ["cancelled"], ["say", "too late"], ["answer"]]);
    let run_id = stage.start("c", steps).await;
    stage.marked("on").await;
    let (one, two) = tokio::join!(stage.cancel(&run_id), stage.cancel(&run_id));
    assert_eq!([outcome(&one), outcome(&two)], [(Cancelled, "cancelled"); 2]);
    wait_for("the answer of the runner", PATIENCE, async || {
        (stage.api.runner("puppet").await["runs_in_flight"] == 0).then_some(())
    })
    .await;
    assert_eq!(stage.api.answers("c").await, ["so far"]);
    let results = stage.api.results(&run_id).await;
    let terminals = results.iter().filter(|result| result.kind == "run.failed").count();
    assert_eq!((terminals, results.len()), (1, 2));
    stage.play(json!([["message", "next"], ["end"]])).await;
    assert_eq!(stage.api.runner("puppet").await["pid"], pid);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_deadline_runs_from_the_start_not_from_the_queue() {
    let stage = Stage::open(&agent("brief", "deadline_s = 1")).await;
    let first = stage.send(&event("puppet", "c", &held("first", "go"))).await;
    stage.marked("first").await;
    let brief = stage.send(&event("brief", "c", &quick("in time"))).await;
    let queued = std::time::Instant::now();
    let timed_out = stage.send(&event("brief", "elsewhere", &held("other", "never"))).await;
    // Another run with the same deadline has missed it by now, and so would this one if waiting counted.
    assert_eq!(outcome(&stage.api.ended_run(&timed_out).await).1, "deadline_exceeded");
    assert!(queued.elapsed() >= std::time::Duration::from_secs(1));
    stage.pass("go");
    assert_eq!(outcome(&stage.api.ended_run(&brief).await), (Completed, ""));
    assert_eq!(outcome(&stage.api.run(&first).await), (Completed, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replacing_run_cancels_those_of_its_own_agent_only() {
    let agents = [
        agent("other", ""),
        agent("replacing", "queue = \"replace\""),
        agent("sweeping", "queue = \"replace\"\nreplace = \"conversation\""),
    ];
    let stage = Stage::open(&agents.concat()).await;
    let running = stage.send(&event("other", "c", &held("busy", "go"))).await;
    let queued = stage.send(&event("other", "c", &quick("other"))).await;
    let first = stage.send(&event("replacing", "c", &quick("first"))).await;
    let second = stage.send(&event("replacing", "c", &quick("second"))).await;
    assert_eq!(outcome(&stage.api.ended_run(&first).await), (Cancelled, "cancelled"));
    assert_eq!(stage.api.run(&running).await.status, Running);
    assert_eq!(stage.api.run(&queued).await.status, Queued);
    assert_eq!(stage.api.run(&second).await.status, Queued);
    let sweeping = stage.send(&event("sweeping", "c", &quick("all"))).await;
    for run in [&running, &queued, &second] {
        assert_eq!(outcome(&stage.api.ended_run(run).await), (Cancelled, "cancelled"));
    }
    assert_eq!(outcome(&stage.api.ended_run(&sweeping).await), (Completed, ""));
}
