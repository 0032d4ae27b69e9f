//! Cursors of other conversations, workspaces, lists and owners, and altered ones.

use super::{ALPHA, refused};
use crate::stage::{Stage, WIDE, agent, event};
use crate::wire::{Run, Wire};
use greenroom_protocol::ErrorCode::InvalidArgument;
use serde_json::{Value, json};

/// The lists, each with the field that takes a cursor and the parameters that make it end early.
fn lists() -> [(&'static str, &'static str, Value); 5] {
    [
        ("history.page", "before_cursor", json!({"limit": 1})),
        ("history.page", "after_cursor", json!({"limit": 1, "direction": "forward"})),
        ("events.page", "before_cursor", json!({"limit": 1})),
        ("state.list", "cursor", json!({"scope": "actor", "limit": 1})),
        ("storage.list", "cursor", json!({"area": "workspace", "limit": 1})),
    ]
}

async fn cursor(wire: &Wire, run: &Run, method: &str, params: &Value) -> String {
    let page = wire.call_for(&run.id, method, params.clone()).await.unwrap();
    page["next_cursor"].as_str().unwrap_or_else(|| panic!("{method}: {page}")).to_owned()
}

/// A run in a conversation with a past, and two entries in every list of its own.
async fn furnished(stage: &Stage, wire: &Wire, event: &Value) -> Run {
    for _ in 0..2 {
        let run = stage.start(wire, event).await;
        stage.end(wire, &run).await;
    }
    let run = stage.start(wire, event).await;
    for key in ["a", "b"] {
        let state = json!({"scope": "actor", "key": key, "value": 1});
        wire.call_for(&run.id, "state.set", state).await.unwrap();
        let storage = json!({"area": "workspace", "key": key, "value": ""});
        wire.call_for(&run.id, "storage.set", storage).await.unwrap();
    }
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_opens_nothing_but_the_list_that_it_was_made_for() {
    let mut stage =
        Stage::open(&["alpha"], "", &agent("wide", ALPHA, "queue = \"parallel\"", WIDE)).await;
    let alpha = stage.connect("alpha").await;
    let own = furnished(&stage, &alpha, &event("wide", "c")).await;
    let mut elsewhere = event("wide", "elsewhere");
    elsewhere["actor"]["actor_id"] = "u2".into();
    let elsewhere = furnished(&stage, &alpha, &elsewhere).await;
    let mut there = event("wide", "c");
    there["workspace_id"] = "w2".into();
    let there = furnished(&stage, &alpha, &there).await;
    for (method, field, mut params) in lists() {
        // Kept to a conversation, as the same cursor may serve the whole workspace otherwise.
        let kept = |run: &Run, mut params: Value| {
            let conversation = &run.context["conversation"]["conversation_id"];
            if method == "events.page" {
                params["conversation_id"] = conversation.clone();
            }
            params
        };
        let good = cursor(&alpha, &own, method, &kept(&own, params.clone())).await;
        let mut foreign = vec![cursor(&alpha, &there, method, &kept(&there, params.clone())).await];
        if method != "storage.list" {
            foreign
                .push(cursor(&alpha, &elsewhere, method, &kept(&elsewhere, params.clone())).await);
        }
        for (other, _, params) in lists().into_iter().filter(|(other, ..)| *other != method) {
            foreign.push(cursor(&alpha, &own, other, &params).await);
        }
        foreign.extend(altered(&good));
        params = kept(&own, params);
        for cursor in foreign {
            params[field] = cursor.as_str().into();
            let reply = alpha.call_for(&own.id, method, params.clone()).await;
            assert_eq!(refused(&reply), InvalidArgument, "{method} {cursor}");
        }
        params[field] = good.into();
        let served = alpha.call_for(&own.id, method, params).await;
        assert!(served.is_ok(), "{method}: {served:?}");
    }
    stage.assert_sound();
}

/// The cursor with each character changed, cut short, drawn out and made up.
fn altered(cursor: &str) -> Vec<String> {
    let mut altered: Vec<String> = (0..cursor.len())
        .map(|at| {
            let other = if cursor.as_bytes()[at] == b'A' { 'B' } else { 'A' };
            format!("{}{other}{}", &cursor[..at], &cursor[at + 1..])
        })
        .collect();
    altered.extend(
        [&cursor[1..], &cursor[..cursor.len() - 1], "", "0", "MTAw", "=", "\u{0}"]
            .map(str::to_owned),
    );
    altered.extend([
        format!("{cursor}="),
        format!("{cursor}A"),
        format!(" {cursor}"),
        cursor.repeat(1000),
    ]);
    altered
}

/// What a run was told where history ends is a cursor like any other.
#[tokio::test(flavor = "multi_thread")]
async fn the_latest_cursor_of_one_conversation_is_foreign_to_another() {
    let stage = Stage::open(&["alpha"], "", &agent("wide", ALPHA, "", WIDE)).await;
    let alpha = stage.connect("alpha").await;
    let (one, two) = (
        stage.start(&alpha, &event("wide", "one")).await,
        stage.start(&alpha, &event("wide", "two")).await,
    );
    let latest = one.context["context"]["latest_cursor"].clone();
    let page = json!({"before_cursor": latest});
    assert!(alpha.call_for(&one.id, "history.page", page.clone()).await.is_ok());
    let reply = alpha.call_for(&two.id, "history.page", page).await;
    assert_eq!(refused(&reply), InvalidArgument);
    assert_eq!(reply.unwrap_err().details["reason"], "foreign_cursor");
}
