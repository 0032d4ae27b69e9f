//! One caller among many: what a run or a plugin asks for at once does not keep others waiting.
//!
//! Invariant: what is asserted is an order or a number that holds however fast the machine is.

use super::ALPHA;
use crate::stage::{ALL, Stage, agent, event};
use crate::wire::{TAPPED, Wire, with_run};
use greenroom_protocol::ErrorCode::{RateLimited, Unauthorized};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Instant;

/// Streams that one run has open at once.
const STREAMS_MAX: usize = 8;

async fn open(limits: &str) -> (Stage, Wire) {
    let agents = agent("full", ALPHA, "queue = \"parallel\"", ALL);
    let stage = Stage::open(&["alpha"], limits, &agents).await;
    let alpha = stage.connect("alpha").await;
    (stage, alpha)
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_that_a_run_holds_open_are_bounded() {
    const STREAMS: usize = 24;
    let (mut stage, alpha) = open("").await;
    let run = stage.start(&alpha, &event("full", "c")).await;
    // Several items each, and together more than the wire takes at once.
    let text = "whales ".repeat(150_000);
    let artifact = stage.upload("conversation_id=c", &text).await;
    let asked = with_run(json!({"artifact_id": artifact}), &run.id);
    for call in alpha.call_together(vec![("artifacts.open_stream", asked); STREAMS]).await {
        call.reply().await.unwrap();
    }
    let items: Vec<String> = alpha
        .told("stream.item")
        .iter()
        .map(|item| item["params"]["request_id"].to_string())
        .collect();
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    items.iter().for_each(|id| *left.entry(id).or_default() += 1);
    assert_eq!(left.len(), STREAMS);
    let each = left.values().copied().max().unwrap();
    assert!(each > 1 && left.values().all(|count| *count == each), "{left:?}");
    let (mut open_now, mut open_max) = (0, 0);
    for id in &items {
        let left = left.get_mut(id.as_str()).unwrap();
        open_now += usize::from(*left == each);
        open_max = open_max.max(open_now);
        *left -= 1;
        open_now -= usize::from(*left == 0);
    }
    assert!((2..=STREAMS_MAX).contains(&open_max), "{open_max} streams were open at once");
    stage.end(&alpha, &run).await;
    stage.assert_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn long_reads_of_one_run_let_those_of_another_pass() {
    const SEARCHES: usize = 400;
    let (mut stage, alpha) = open("").await;
    let greedy = stage.start(&alpha, &event("full", "c")).await;
    let modest = stage.start(&alpha, &event("full", "d")).await;
    let mut answers = alpha.tap(2 * SEARCHES);
    let call = |id: String, method: &str, params: Value| {
        let id = format!("{TAPPED}{id}");
        format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    };
    let query = with_run(json!({"query": "whales"}), &greedy.id);
    let searches = (0..SEARCHES).map(|it| call(it.to_string(), "history.search", query.clone()));
    let page = call("page".to_owned(), "history.page", with_run(json!({}), &modest.id));
    // In one breath, another run's in the middle: it is the only one that need not wait for its turn.
    let mut calls: Vec<String> = searches.collect();
    calls.insert(SEARCHES / 2, page);
    alpha.write(calls.concat().as_bytes()).await;
    let mut before = None;
    for place in 0..=SEARCHES {
        let answer = answers.recv().await.unwrap();
        let answer: Value = serde_json::from_str(&answer).unwrap();
        assert!(answer.get("result").is_some(), "{answer}");
        if answer["id"] == format!("{TAPPED}page") {
            before = Some(place);
        }
    }
    let before = before.unwrap();
    assert!(before < SEARCHES / 4, "{before} of {SEARCHES} went before one of another run");
    stage.end(&alpha, &greedy).await;
    stage.end(&alpha, &modest).await;
    stage.assert_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn made_up_runs_cost_their_plugin_far_more_than_calls_of_a_run() {
    const RATE: u32 = 2_000;
    const CALLS: usize = 100;
    // A look-up for which there is no run costs so much in all.
    const COST: f64 = 201.0;
    let (mut stage, alpha) = open(&format!("calls_per_s_plugin = {RATE}")).await;
    let run = stage.start(&alpha, &event("full", "c")).await;
    let begin = Instant::now();
    let key = json!({"scope": "conversation", "key": "k"});
    for _ in 0..CALLS {
        alpha.call_for(&run.id, "state.get", key.clone()).await.unwrap();
    }
    let mut unauthorized = 0_u32;
    for number in 0..CALLS {
        let made_up = format!("run_{number}");
        let refused = alpha.call_for(&made_up, "state.get", key.clone()).await.unwrap_err();
        match refused.code {
            Unauthorized => unauthorized += 1,
            code => assert_eq!(code, RateLimited),
        }
    }
    let most = f64::from(RATE) * (1.0 + begin.elapsed().as_secs_f64()) / COST + 1.0;
    assert!(unauthorized > 0 && f64::from(unauthorized) <= most, "{unauthorized}, most {most}");
    stage.end(&alpha, &run).await;
    stage.assert_sound();
}
