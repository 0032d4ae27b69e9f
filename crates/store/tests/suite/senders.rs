//! Limited senders: whose a conversation and an event id are, decided in the transaction that accepts an event.

use super::support::*;
use greenroom_protocol::{Replaces, RunStatus};
use greenroom_store::commands::{AcceptEvent, Accepted, Displaced, Joins, LimitedTo};
use greenroom_store::reads::conversations::{Names, Own, Reach};
use greenroom_store::types::Queue;
use greenroom_store::{Store, reads};
use std::sync::Arc;

/// An event of a limited token.
fn from(sender: &str, joins: Joins, event: AcceptEvent) -> AcceptEvent {
    let limited_to = Some(LimitedTo { sender: sender.to_owned(), joins });
    AcceptEvent { limited_to, sent_by: Some(sender.to_owned()), ..event }
}

fn with_run_id(run_id: &str, mut event: AcceptEvent) -> AcceptEvent {
    event.run.as_mut().unwrap().run_id = run_id.to_owned();
    event
}

fn of_agent(agent: &str, mut event: AcceptEvent) -> AcceptEvent {
    event.run.as_mut().unwrap().agent = agent.to_owned();
    event
}

async fn commit(store: &Store, event: AcceptEvent) -> Accepted {
    store.commit(event).await.unwrap()
}

pub(crate) async fn a_limited_sender_joins_no_conversation_of_another(ground: Ground) {
    let store = ground.open();
    let web = |event| from("token:web", Joins::Own, event);
    let shop = |event| from("token:shop", Joins::Own, event);
    accept(&store, web(event("c", "a"))).await;
    accept(&store, web(event("c", "b"))).await;
    assert_eq!(commit(&store, shop(event("c", "d"))).await, Accepted::ForeignConversation);
    accept(&store, event("office", "e")).await;
    assert_eq!(commit(&store, web(event("office", "f"))).await, Accepted::ForeignConversation);
    let named = from("token:web", Joins::Named, event("office", "f"));
    accept(&store, named).await;
    // A refusal writes nothing, so that the same event can be accepted elsewhere.
    let counted = store.read(|tx| reads::conversations::get(tx, W, "c")).await.unwrap().unwrap();
    assert_eq!((counted.event_seq, counted.begun_by.as_deref()), (2, Some("token:web")));
    accept(&store, shop(event("c@token:shop", "d"))).await;
    // A sender without limits joins any.
    accept(&store, event("c", "g")).await;
    let own = Own { begun_by: "token:web".to_owned(), named: Names(vec!["off*".to_owned()]) };
    let reach = Reach::Own(Arc::new(own));
    let page = store.read(move |tx| reads::conversations::page(tx, W, &reach, None, 9)).await;
    let ids: Vec<String> = page.unwrap().into_iter().map(|row| row.conversation_id).collect();
    assert_eq!(ids, ["office", "c"]);
}

pub(crate) async fn event_ids_of_a_limited_sender_are_its_own(ground: Ground) {
    let store = ground.open();
    let web = |run_id, event| from("token:web", Joins::Own, with_run_id(run_id, event));
    let shop = |run_id, event| from("token:shop", Joins::Own, with_run_id(run_id, event));
    accept(&store, event("c", "a")).await;
    accept(&store, web("run-w", event("w", "a"))).await;
    let other = AcceptEvent { body_hash: [9; 32], ..event("s", "a") };
    accept(&store, shop("run-s", other.clone())).await;
    let Accepted::Repeated { run: Some(run) } = commit(&store, web("again", event("w", "a"))).await
    else {
        panic!("not repeated")
    };
    assert_eq!(run.run_id, "run-w");
    assert_eq!(commit(&store, web("again", other.clone())).await, Accepted::Conflict);
    assert_eq!(commit(&store, with_run_id("again", other)).await, Accepted::Conflict);
    let events = store.read(|tx| reads::events::by_id(tx, W, "a")).await.unwrap();
    let senders: Vec<_> =
        events.iter().map(|event| (event.source.as_str(), event.sender.as_deref())).collect();
    assert_eq!(senders, [("api", None), ("api", Some("token:web")), ("api", Some("token:shop"))]);
}

/// Before its event ids were its own, a limited token stored events under the keys of all.
pub(crate) async fn an_event_from_before_is_still_a_repetition(ground: Ground) {
    let store = ground.open();
    let before = AcceptEvent { sent_by: Some("token:web".to_owned()), ..event("c", "a") };
    accept(&store, before).await;
    let again = with_run_id("again", event("c", "a"));
    let repeated = commit(&store, from("token:web", Joins::Own, again.clone())).await;
    assert!(matches!(repeated, Accepted::Repeated { run: Some(run) } if run.run_id == "run-a"));
    let elsewhere = AcceptEvent { conversation_id: Some("d".to_owned()), ..again };
    let new = commit(&store, from("token:shop", Joins::Own, elsewhere)).await;
    assert!(matches!(new, Accepted::New { .. }), "{new:?}");
}

pub(crate) async fn a_run_replaces_those_of_its_own_agent(ground: Ground) {
    let store = ground.open();
    accept(&store, of_agent("other", event("c", "a"))).await;
    accept(&store, of_agent("other", event("c", "b"))).await;
    let beside = with_queue(of_agent("other", event("c", "p")), Queue::Parallel);
    accept(&store, beside).await;
    accept(&store, with_queue(event("c", "d"), Queue::Replace)).await;
    let newest = with_queue(event("c", "e"), Queue::Replace);
    let Accepted::New { displaced: Displaced { cancelled, replaced, .. }, .. } =
        commit(&store, newest).await
    else {
        panic!("not accepted")
    };
    assert_eq!(cancelled.iter().map(|run| run.run_id.as_str()).collect::<Vec<_>>(), ["run-d"]);
    assert!(replaced.is_empty(), "{replaced:?}");
    for (name, expected) in [("run-a", RunStatus::Running), ("run-b", RunStatus::Queued)] {
        assert_eq!(status(&store, name).await, expected);
        assert!(!run(&store, name).await.cancel_requested);
    }
    // Runs of other agents come first, parallel ones aside.
    let first = run(&store, "run-a").await;
    assert_eq!(apply(&store, completed(&first, 1)).await.as_deref(), Some("run-b"));
    let second = run(&store, "run-b").await;
    assert_eq!(apply(&store, completed(&second, 1)).await.as_deref(), Some("run-e"));
    let mut all = with_queue(of_agent("third", event("c", "f")), Queue::Replace);
    all.run.as_mut().unwrap().replaces = Replaces::Conversation;
    let Accepted::New { displaced: Displaced { mut replaced, .. }, .. } = commit(&store, all).await
    else {
        panic!("not accepted")
    };
    replaced.sort();
    assert_eq!(replaced, ["run-e", "run-p"]);
}
