//! What an earlier version answered about settled facts, this one answers too; fields may have been added.

use crate::folder::{Opened, Recorded};
use greenroom_testkit::http::Request;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// Every answer that was recorded, and the bytes of every artifact.
pub(crate) async fn settled(recorded: Recorded) {
    let opened = recorded.open().await;
    check_all(&opened).await;
}

pub(crate) async fn check_all(opened: &Opened) {
    opened.settle().await;
    let under_way = under_way(opened).await;
    for read in opened.expected["reads"].as_array().unwrap() {
        check(opened, read, &under_way).await;
    }
    for artifact in opened.expected["artifacts"].as_array().unwrap() {
        let target = artifact["get"].as_str().unwrap();
        let answer = opened.api.send(Request::get(target)).await.unwrap();
        assert_eq!(answer.status, 200, "{target}");
        let bytes = answer.body().await.unwrap();
        let hash: String =
            Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            (hash.as_str(), bytes.len()),
            (
                artifact["sha256"].as_str().unwrap(),
                usize::try_from(artifact["size"].as_u64().unwrap()).unwrap()
            ),
            "{target}"
        );
    }
}

/// The runs that the kill interrupted or that came of it.
async fn under_way(opened: &Opened) -> BTreeSet<String> {
    let runs = opened.api.runs().await.into_iter();
    runs.filter(|run| run.conversation_id.as_deref().is_some_and(|id| id.starts_with("open")))
        .map(|run| run.run_id)
        .collect()
}

async fn check(opened: &Opened, read: &Value, under_way: &BTreeSet<String>) {
    if let Some(operation) = read.get("operation") {
        let request = Request::post(read["post"].as_str().unwrap(), operation.to_string())
            .header("x-greenroom-actor", read["actor"].as_str().unwrap());
        let (_, body) = opened.api.json(request).await.unwrap();
        return holds(&read["body"], &body, &format!("{} {operation}", read["actor"]));
    }
    let target = read["get"].as_str().unwrap();
    let body = opened.api.get(target).await;
    match read.get("items") {
        None => holds(&read["body"], &body, target),
        Some(items) => {
            let found = body["items"].as_array().unwrap().iter();
            let found = found.filter(|item| is_settled(item, under_way)).cloned().collect();
            check_list(target, items.as_array().unwrap(), found);
        }
    }
}

/// As `tests/folders/reading.py` has it.
fn is_settled(item: &Value, under_way: &BTreeSet<String>) -> bool {
    let text = |field: &str| item[field].as_str().unwrap_or_default();
    let is_open = ["pending", "claimed", "queued", "running"].contains(&text("status"));
    !text("conversation_id").starts_with("open") && !is_open && !under_way.contains(text("run_id"))
}

/// A whole list is as it was. A page behind an old cursor begins as it did: where items have left it, more follow.
/// A search finds the same; order and scores depend on everything else that is there.
fn check_list(target: &str, expected: &[Value], mut found: Vec<Value>) {
    let is_search = target.contains("/search?");
    let is_behind_cursor = target.contains("cursor=");
    if target.contains("limit=7") || target.contains("limit=3") {
        if !is_behind_cursor {
            return;
        }
        found.truncate(expected.len());
    }
    let mut expected = expected.to_vec();
    if is_search {
        for items in [&mut expected, &mut found] {
            items.sort_by_key(|item| item["item_id"].to_string());
            items.iter_mut().for_each(|item| drop(item.as_object_mut().unwrap().remove("score")));
        }
    }
    let ids = |items: &[Value]| items.iter().map(brief).collect::<Vec<_>>();
    assert_eq!(ids(&expected), ids(&found), "{target}");
    for (expected, found) in expected.iter().zip(&found) {
        holds(expected, found, target);
    }
}

/// What tells an item from others, for a message that can be read.
fn brief(item: &Value) -> String {
    let names =
        ["run_id", "item_id", "event_id", "artifact_id", "approval_id", "sequence", "key", "at"];
    let fields =
        names.iter().filter_map(|name| Some(((*name).to_owned(), item.get(*name)?.clone())));
    let fields: Map<String, Value> = fields.collect();
    json!(fields).to_string()
}

/// Whether everything that was said before is said now.
fn holds(expected: &Value, found: &Value, place: &str) {
    match (expected, found) {
        (Value::Object(expected), Value::Object(found)) => {
            // Cards are compiled when they are read: the id of their catalogue is that of current renderers.
            for (name, value) in expected.iter().filter(|(name, _)| *name != "catalogId") {
                let place = format!("{place} › {name}");
                let found = found.get(name).unwrap_or_else(|| panic!("{place} is gone: {found:?}"));
                holds(value, found, &place);
            }
        }
        (Value::Array(expected), Value::Array(found)) => {
            assert_eq!(expected.len(), found.len(), "{place}: {expected:#?} and now {found:#?}");
            for (number, (expected, found)) in expected.iter().zip(found).enumerate() {
                holds(expected, found, &format!("{place} › {number}"));
            }
        }
        _ => assert_eq!(expected, found, "{place}"),
    }
}
