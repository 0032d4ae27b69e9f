//! Which deliveries go where, and what a receiver gets to see.

use crate::stage::{Stage, message};
use crate::webhook::{outcome, settled, staged, surface, tell, texts};
use greenroom_testkit::http::Request;
use greenroom_testkit::receiver::{Reaction, Receiver};
use serde_json::json;

#[tokio::test]
async fn private_addresses_are_refused_unless_the_surface_allows_them() {
    let receiver = Receiver::start().await;
    let port = receiver.url().rsplit(':').next().unwrap().to_owned();
    for address in ["127.0.0.1", "localhost", "[::1]", "0x7f.1", "169.254.169.254"] {
        let url = format!("http://{address}:{port}");
        let config = format!("{}\n[limits]\ndelivery_retry_s = 0", surface(&url, ""));
        let stage = Stage::with(&config).await;
        let run_id = tell(&stage, "c", "x").await;
        let deliveries = settled(&stage, &run_id).await;
        assert_eq!(outcome(&deliveries[0]), ("failed", 1), "{address}: {deliveries:?}");
    }
    assert_eq!(receiver.received(), []);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = Receiver::start().await;
    let to = elsewhere.url();
    let receiver = Receiver::reacting(move |_, _| Reaction::Redirect(to.clone())).await;
    let stage = staged(&receiver, "").await;
    let run_id = tell(&stage, "c", "x").await;
    assert_eq!(outcome(&settled(&stage, &run_id).await[0]), ("failed", 1));
    assert_eq!((receiver.received().len(), elsewhere.received().len()), (1, 0));
}

#[tokio::test]
async fn a_long_answer_is_delivered_in_parts_that_the_surface_takes() {
    let receiver = Receiver::start().await;
    let stage = staged(&receiver, "max_message_size = 12").await;
    let run_id = tell(&stage, "c", "one two three four 一二三四五六七八九十一二三四").await;
    let deliveries = settled(&stage, &run_id).await;
    assert!(deliveries.iter().all(|delivery| outcome(delivery) == ("done", 1)));
    let received = receiver.received();
    assert_eq!(texts(&received), ["one two", "three four", "一二三四五六七八九十一二", "三四"]);
    let places: Vec<(i64, i64)> = received
        .iter()
        .map(|it| (it.payload["part"].as_i64().unwrap(), it.payload["parts"].as_i64().unwrap()))
        .collect();
    assert_eq!(places, [(1, 4), (2, 4), (3, 4), (4, 4)]);
}

#[tokio::test]
async fn the_event_says_where_its_answer_goes() {
    let receiver = Receiver::start().await;
    let stage = staged(&receiver, "").await;
    let mut event = message("c", "by name");
    event["delivery"] = json!({"surface": "hook"});
    let reply = stage.post(event.to_string()).await;
    settled(&stage, reply.body["run_id"].as_str().unwrap()).await;
    event["agent"] = "told".into();
    event["delivery"] = json!({"surface": "api"});
    event["input"]["text"] = "not this one".into();
    let reply = stage.post(event.to_string()).await;
    stage.api().ended_run(reply.body["run_id"].as_str().unwrap()).await;
    event["delivery"] = json!({"surface": "elsewhere"});
    stage.post(event.to_string()).await.refused(400, "invalid_argument");
    event["delivery"] = json!({"surface": "http://127.0.0.1/"});
    stage.post(event.to_string()).await.refused(400, "invalid_argument");
    let last = tell(&stage, "c", "and this").await;
    settled(&stage, &last).await;
    assert_eq!(texts(&receiver.received()), ["by name", "and this"]);
    assert_eq!(stage.api().runs().await.len(), 3);
}

#[tokio::test]
async fn a_replay_delivers_nothing() {
    let receiver = Receiver::start().await;
    let stage = staged(&receiver, "").await;
    let first = tell(&stage, "c", "said once").await;
    settled(&stage, &first).await;
    let mut event = message("c", "said once");
    event["agent"] = "told".into();
    event["metadata"] = json!({"replay_of": first});
    let reply = stage.ask(Request::post("/v1/events", event.to_string())).await;
    let run_id = reply.body["run_id"].as_str().unwrap();
    assert_eq!(stage.api().ended_run(run_id).await.status.as_str(), "completed");
    assert_eq!(stage.get(&format!("/v1/runs/{run_id}")).await.body["deliveries"], json!([]));
    let after = tell(&stage, "c", "after").await;
    settled(&stage, &after).await;
    assert_eq!(texts(&receiver.received()), ["said once", "after"]);
}

#[tokio::test]
async fn requests_are_signed_when_the_surface_has_a_secret() {
    let receiver = Receiver::start().await;
    let stage = staged(&receiver, "secret = { file = \"sender\" }").await;
    let run_id = tell(&stage, "c", "x").await;
    settled(&stage, &run_id).await;
    let received = receiver.received();
    let header = |name: &str| {
        let found = received[0].headers.iter().find(|(header, _)| header == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    };
    assert_eq!(header("content-type"), "application/json");
    assert!(header("webhook-signature").starts_with("v1,"), "{:?}", received[0].headers);
    assert!(header("webhook-timestamp").parse::<i64>().is_ok());
    assert!(header("user-agent").starts_with("greenroom/"));
}
