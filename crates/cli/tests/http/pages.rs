//! Lists: every item once, in order, over pages of any size; a cursor fits its own list only.

use crate::stage::{Stage, message};
use greenroom_testkit::http::Request;
use serde_json::Value;

const CONVERSATIONS: [&str; 3] = ["c1", "c2", "c3"];

/// Three conversations with four events each, all of them answered.
async fn filled() -> Stage {
    let stage = Stage::start().await;
    for conversation in CONVERSATIONS {
        for number in 0..4 {
            let run_id = stage.play(conversation, &format!("{conversation} {number}")).await;
            stage.api().ended_run(&run_id).await;
        }
    }
    stage
}

/// All pages of a list, and every cursor on the way.
async fn walk(stage: &Stage, target: &str, limit: usize) -> (Vec<Vec<Value>>, Vec<String>) {
    let join = if target.contains('?') { '&' } else { '?' };
    let (mut pages, mut cursors) = (Vec::new(), Vec::new());
    let mut next = format!("{target}{join}limit={limit}");
    loop {
        let reply = stage.get(&next).await;
        assert_eq!(reply.status, 200, "{next}: {reply:?}");
        let items = reply.body["items"].as_array().unwrap().clone();
        assert!(items.len() <= limit, "{next}: {}", items.len());
        pages.push(items);
        match reply.body["next_cursor"].as_str() {
            Some(cursor) => {
                assert_eq!(reply.body["has_more"], true);
                next = format!("{target}{join}limit={limit}&cursor={cursor}");
                cursors.push(cursor.to_owned());
            }
            None => {
                assert_eq!(reply.body["has_more"], false);
                return (pages, cursors);
            }
        }
    }
}

#[tokio::test]
async fn pages_of_any_size_give_every_item_once_and_in_order() {
    let stage = filled().await;
    for (target, count) in [
        ("/v1/runs", 12),
        ("/v1/runs?conversation_id=c2", 4),
        ("/v1/runs?status=completed&agent=game", 12),
        ("/v1/runs?status=failed", 0),
        ("/v1/events", 12),
        ("/v1/events?conversation_id=c3", 4),
        ("/v1/conversations", 3),
        ("/v1/conversations/c1/history?direction=forward", 8),
    ] {
        let (whole, _) = walk(&stage, target, 200).await;
        let whole = whole.concat();
        assert_eq!(whole.len(), count, "{target}");
        for limit in [1, 2, 3, 5, 12] {
            let (pages, _) = walk(&stage, target, limit).await;
            assert_eq!(pages.concat(), whole, "{target} by {limit}");
        }
    }
}

#[tokio::test]
async fn history_backward_starts_with_the_newest_page() {
    let stage = filled().await;
    let (pages, _) = walk(&stage, "/v1/conversations/c1/history", 3).await;
    let seqs = |page: &Vec<Value>| -> Vec<i64> {
        page.iter().map(|item| item["seq"].as_i64().unwrap()).collect()
    };
    let pages: Vec<Vec<i64>> = pages.iter().map(seqs).collect();
    assert_eq!(pages, [vec![6, 7, 8], vec![3, 4, 5], vec![1, 2]]);
    let (newest, _) = walk(&stage, "/v1/conversations/c1/history", 200).await;
    let roles: Vec<&str> = newest[0].iter().map(|item| item["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant"].repeat(4));
    assert_eq!(newest[0][6]["text"], "c1 3");
}

#[tokio::test]
async fn lists_stand_newest_first() {
    let stage = filled().await;
    let (events, _) = walk(&stage, "/v1/events", 200).await;
    let texts: Vec<&str> =
        events[0].iter().map(|event| event["event"]["input"]["text"].as_str().unwrap()).collect();
    assert_eq!((texts[0], texts[11]), ("c3 3", "c1 0"));
    let (conversations, _) = walk(&stage, "/v1/conversations", 200).await;
    let ids: Vec<&str> = conversations[0]
        .iter()
        .map(|conversation| conversation["conversation_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["c3", "c2", "c1"]);
}

#[tokio::test]
async fn a_cursor_of_another_list_or_an_altered_one_is_refused() {
    let stage = filled().await;
    let lists = [
        "/v1/runs",
        "/v1/runs?conversation_id=c1",
        "/v1/runs?conversation_id=c2",
        "/v1/runs?workspace_id=other",
        "/v1/events",
        "/v1/events?conversation_id=c1",
        "/v1/events?conversation_id=c2",
        "/v1/conversations",
        "/v1/conversations/c1/history",
        "/v1/conversations/c2/history",
    ];
    let with = |list: &str, cursor: &str| {
        format!("{list}{}cursor={cursor}", if list.contains('?') { '&' } else { '?' })
    };
    for from in lists.iter().filter(|list| !list.contains("workspace_id")) {
        let (_, cursors) = walk(&stage, from, 2).await;
        let cursor = &cursors[0];
        for into in lists {
            let reply = stage.get(&with(into, cursor)).await;
            if into == *from {
                assert_eq!(reply.status, 200, "{from}: {reply:?}");
            } else {
                reply.refused(400, "invalid_argument");
            }
        }
        let mut altered =
            vec![String::new(), "A".repeat(64), format!("{cursor}A"), cursor[1..].to_owned()];
        for at in [0, cursor.len() / 2, cursor.len() - 1] {
            let mut bytes = cursor.clone().into_bytes();
            bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
            altered.push(String::from_utf8(bytes).unwrap());
        }
        for cursor in altered {
            stage.get(&with(from, &cursor)).await.refused(400, "invalid_argument");
        }
    }
}

#[tokio::test]
async fn a_cursor_outlives_the_host_that_gave_it() {
    let stage = filled().await;
    let target = "/v1/conversations/c1/history?direction=forward";
    let (pages, cursors) = walk(&stage, target, 3).await;
    let mut stage = stage;
    stage.host.kill();
    let stage = stage.restart().await;
    let reply = stage.get(&format!("{target}&limit=3&cursor={}", cursors[0])).await;
    assert_eq!(reply.body["items"], Value::from(pages[1].clone()));
}

#[tokio::test]
async fn results_are_paged_by_number() {
    let stage = Stage::start().await;
    let run_id = stage.play("c", "/count n=7").await;
    stage.api().ended_run(&run_id).await;
    let whole = stage.get(&format!("/v1/runs/{run_id}/results")).await.body;
    assert_eq!(whole["items"].as_array().unwrap().len(), 9, "7 deltas, the message, the end");
    let mut items = Vec::new();
    let mut after = 0;
    loop {
        let page =
            stage.get(&format!("/v1/runs/{run_id}/results?limit=2&after={after}")).await.body;
        items.extend(page["items"].as_array().unwrap().clone());
        after = page["next_cursor"].as_i64().unwrap();
        if page["has_more"] == false {
            break;
        }
    }
    assert_eq!(Value::from(items), whole["items"]);
}

#[tokio::test]
async fn an_id_that_two_sources_used_is_told_apart_by_its_source() {
    let stage = Stage::start().await;
    for source in ["one", "two"] {
        let mut event = message("c", source);
        event["event_id"] = "same".into();
        event["source"] = source.into();
        let reply = stage.ask(Request::post("/v1/events", event.to_string())).await;
        assert_eq!(reply.status, 202, "{reply:?}");
    }
    stage.get("/v1/events/same").await.refused(409, "invalid_argument");
    let one = stage.get("/v1/events/same?source=one").await;
    assert_eq!(one.body["event"]["input"]["text"], "one");
    stage.get("/v1/events/same?source=three").await.refused(404, "not_found");
}
