//! Everything that the read API answers, so that two hosts can be compared.

use greenroom_testkit::api::Api;
use greenroom_testkit::http::Request;
use serde_json::Value;
use std::collections::BTreeMap;

/// Answers by address. Pages are small, so that cursors are among them.
pub(crate) type Answers = BTreeMap<String, Value>;

pub(crate) async fn all(api: &Api) -> Answers {
    let mut answers = Answers::new();
    for list in [
        "events",
        "runs",
        "conversations",
        "audit",
        "deliveries",
        "approvals",
        "artifacts",
        "state",
    ] {
        let items = pages(api, &format!("/v1/{list}"), &mut answers).await;
        assert!(!items.is_empty(), "nothing to compare in {list}");
        for item in &items {
            match list {
                "events" => {
                    keep(api, &format!("/v1/events/{}", id(item, "event_id")), &mut answers).await
                }
                "runs" => of_run(api, &id(item, "run_id"), &mut answers).await,
                "conversations" => {
                    of_conversation(api, &id(item, "conversation_id"), &mut answers).await;
                }
                "artifacts" => of_artifact(api, &id(item, "artifact_id"), &mut answers).await,
                "approvals" => {
                    keep(api, &format!("/v1/approvals/{}", id(item, "approval_id")), &mut answers)
                        .await;
                }
                "deliveries" => {
                    keep(api, &format!("/v1/deliveries/{}", id(item, "delivery_id")), &mut answers)
                        .await;
                }
                _ => {}
            }
        }
    }
    for text in ["word", "word7", "waiting", "report"] {
        keep(api, &format!("/v1/search?q={text}"), &mut answers).await;
    }
    answers
}

async fn of_run(api: &Api, run_id: &str, answers: &mut Answers) {
    keep(api, &format!("/v1/runs/{run_id}"), answers).await;
    let target = format!("/v1/runs/{run_id}/story");
    let mut story = api.get(&target).await;
    // The process that offers it now is no fact of the run.
    story.as_object_mut().unwrap().remove("runner");
    answers.insert(target, story);
    keep(api, &format!("/v1/runs/{run_id}/results?limit=200"), answers).await;
}

async fn of_conversation(api: &Api, conversation: &str, answers: &mut Answers) {
    pages(api, &format!("/v1/conversations/{conversation}/history"), answers).await;
    keep(api, &format!("/v1/conversations/{conversation}/search?q=word"), answers).await;
}

async fn of_artifact(api: &Api, id: &str, answers: &mut Answers) {
    keep(api, &format!("/v1/artifacts/{id}/metadata"), answers).await;
    let target = format!("/v1/artifacts/{id}");
    let answer = api.send(Request::get(&target)).await.unwrap();
    assert_eq!(answer.status, 200, "{target}");
    let bytes = answer.body().await.unwrap();
    answers.insert(target, Value::from(bytes));
}

/// All pages of a list of three, each with its cursor; the items of all.
async fn pages(api: &Api, list: &str, answers: &mut Answers) -> Vec<Value> {
    let sign = if list.contains('?') { '&' } else { '?' };
    let (mut items, mut target) = (Vec::new(), format!("{list}{sign}limit=3"));
    loop {
        let page = api.get(&target).await;
        items.extend(page["items"].as_array().unwrap().iter().cloned());
        let next = match (&page["has_more"], &page["next_cursor"]) {
            (Value::Bool(true), Value::String(cursor)) => {
                Some(format!("{list}{sign}limit=3&cursor={cursor}"))
            }
            _ => None,
        };
        answers.insert(target, page);
        match next {
            Some(next) => target = next,
            None => return items,
        }
    }
}

async fn keep(api: &Api, target: &str, answers: &mut Answers) {
    let answer = api.get(target).await;
    answers.insert(target.to_owned(), answer);
}

fn id(item: &Value, field: &str) -> String {
    item[field].as_str().unwrap_or_else(|| panic!("no {field}: {item}")).to_owned()
}

/// Says which answers differ, one by one.
pub(crate) fn assert_equal(before: &Answers, after: &Answers) {
    for (target, answer) in before {
        assert_eq!(after.get(target), Some(answer), "{target}");
    }
    assert_eq!(after.len(), before.len());
}
