//! The host is killed at every pass of a place while a run asks, somebody allows, and the action goes out.

use super::*;
use crate::PROGRAM;
use crate::faults::Lives;
use crate::stage;
use crate::stage::TOKEN;
use greenroom_testkit::api::Api;
use greenroom_testkit::host::TestHost;

const PASSES_MAX: usize = 60;

#[tokio::test]
async fn before_any_commit_nothing_is_done_twice() {
    kill_at_every_pass("before_commit").await;
}

#[tokio::test]
async fn after_any_commit_nothing_is_done_twice() {
    kill_at_every_pass("after_commit").await;
}

#[tokio::test]
async fn after_the_delivery_nothing_is_done_twice() {
    kill_at_every_pass("after_delivery").await;
}

async fn kill_at_every_pass(place: &str) {
    for pass in 1..=PASSES_MAX {
        let fault = format!("{place}:{pass}");
        eprintln!("GREENROOM_FAULT={fault}");
        if play(&fault).await == 0 {
            assert!(pass > 1, "the scenario never passes {place}");
            return;
        }
    }
    panic!("the scenario passes {place} more than {PASSES_MAX} times");
}

/// Says how often the host was killed.
async fn play(fault: &str) -> usize {
    let receiver = Receiver::start().await;
    let host =
        TestHost::prepare(PROGRAM, &stage::config("cancel_grace_s = 1", &config(&receiver, "")));
    for name in ["puppet", "other"] {
        std::fs::create_dir(host.folder().join(name)).unwrap();
    }
    std::fs::write(host.folder().join("token"), TOKEN).unwrap();
    let mut lives = Lives { host, faults: [fault].into(), deaths: 0 };
    lives.next().await;
    tokio::select! {
        () = scenario(lives.host.api()) => {}
        never = lives.go_on() => match never {},
    }
    let Lives { mut host, deaths, .. } = lives;
    host.stop().await;
    host.set_fault(None);
    host.start_again().await;
    check(&host.api(), &receiver, deaths).await;
    deaths
}

/// A run asks by a call and by a result; both are allowed as soon as they are seen; over when nothing of
/// it is open.
async fn scenario(api: Api) {
    let steps = json!([
        ["result", "action.requested", asks("by a result")],
        ["call", "platform.request_action", asks("by a call"), "told"],
        ["end"]
    ]);
    let mut sent = event("asking", "c", &steps.to_string());
    sent["event_id"] = "e-1".into();
    let run_id = api.send_event(&sent).await.run_id.unwrap();
    wait_for("everything to be settled", PATIENCE, async || {
        // First: a run that is over asks nothing more.
        let mut settled = !api.run(&run_id).await.status.is_open();
        let page = api.get("/v1/approvals?limit=200").await;
        let approvals = page["items"].as_array().unwrap();
        for approval in approvals {
            if approval["status"] == "pending" {
                let id = approval["approval_id"].as_str().unwrap();
                let body = json!({"decision": "allow", "nonce": approval["nonce"]});
                // Whether this is answered or the host is killed meanwhile: it is looked at again.
                let _ =
                    api.json(Request::post(format!("/v1/approvals/{id}"), body.to_string())).await;
            }
            let is_open = ["pending", "queued"].map(Value::from);
            settled &= !is_open.contains(&approval["status"]);
            settled &= !is_open.contains(&approval["outcome"]["status"]);
        }
        settled.then_some(())
    })
    .await;
}

/// Each action was done at most once, and what is shown of it is what happened.
async fn check(api: &Api, receiver: &Receiver, deaths: usize) {
    let page = api.get("/v1/approvals?limit=200").await;
    let approvals = page["items"].as_array().unwrap();
    if deaths == 0 {
        assert_eq!(approvals.len(), 2);
    }
    let done = actions(receiver);
    let mut shown = 0;
    for approval in approvals {
        let times = done.iter().filter(|action| action["payload"] == approval["payload"]).count();
        let status = approval["status"].as_str().unwrap();
        let outcome = approval["outcome"]["status"].as_str();
        let fits = match (status, outcome) {
            ("allowed", Some("done")) => times == 1,
            ("allowed", Some("unknown")) => times <= 1 && deaths > 0,
            ("cancelled", None) => times == 0 && deaths > 0,
            _ => false,
        };
        assert!(fits, "done {times} times: {approval}");
        shown += times;
    }
    assert_eq!(done.len(), shown, "something was done that nobody was asked about");
    check_records(api, approvals, deaths).await;
}

/// The call has one record from the moment on at which it asked, and none before.
async fn check_records(api: &Api, approvals: &[Value], deaths: usize) {
    let of_the_call = |approval: &&Value| approval["payload"]["text"] == "by a call";
    let asked = approvals.iter().filter(of_the_call).collect::<Vec<_>>();
    let page = api.get("/v1/audit?method=platform.request_action").await;
    let records = page["items"].as_array().unwrap();
    let codes: Vec<&str> = records.iter().map(|it| it["code"].as_str().unwrap()).collect();
    let fits = match (asked.first().map(|asked| asked["status"].as_str().unwrap()), &codes[..]) {
        (None, []) | (Some("cancelled"), ["runtime_error"]) => deaths > 0,
        (Some("allowed"), ["runtime_error"]) => deaths > 0,
        (Some("allowed"), ["ok"]) => true,
        _ => false,
    };
    assert!(fits && asked.len() <= 1, "{records:#?} of {asked:#?}");
}
