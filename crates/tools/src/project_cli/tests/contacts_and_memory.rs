use super::*;

async fn contact(records: &InMemory, id: &str, body: Value) {
    let put =
        Put { id: Some(id.to_owned()), body: body.as_object().unwrap().clone(), ..Put::default() };
    records.put(Module::Contacts, put).await.unwrap();
}

async fn people() -> InMemory {
    let records = InMemory::new("u1");
    contact(&records, "con_1", json!({"name": "Zoe Wang", "email": "zoe@example.com"})).await;
    contact(&records, "con_2", json!({"name": "ann Lee", "organization": "ACME"})).await;
    contact(&records, "con_3", json!({"name": "李雷", "actor_id": "lilei"})).await;
    records
}

fn ids(data: &Value) -> Vec<&str> {
    data["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn contacts_are_read_in_pages() {
    let records = people().await;
    let first = data(&records, "contacts.read", json!({"limit": 2})).await;
    assert_eq!(ids(&first), ["con_2", "con_1"]);
    assert_eq!(first["count"], 2);
    assert_eq!(first["total"], 3);
    assert_eq!(first["has_more"], true);
    let cursor = first["next_cursor"].clone();
    let second = data(&records, "contacts.read", json!({"limit": 2, "cursor": cursor})).await;
    assert_eq!(ids(&second), ["con_3"]);
    assert_eq!((&second["has_more"], &second["next_cursor"]), (&json!(false), &Value::Null));
}

#[tokio::test]
async fn contacts_are_found_by_words_and_by_id() {
    let records = people().await;
    for (query, found) in [
        ("wang zoe", vec!["con_1"]),
        ("acme", vec!["con_2"]),
        ("李", vec!["con_3"]),
        ("nobody", vec![]),
    ] {
        assert_eq!(ids(&data(&records, "contacts.read", json!({"query": query})).await), found);
    }
    assert_eq!(
        data(&records, "contacts.read", json!({"contact_id": "con_3"})).await,
        json!({"id": "con_3", "name": "李雷", "actor_id": "lilei"})
    );
    let missing = error(&records, "contacts.read", json!({"contact_id": "con_9"})).await;
    assert_eq!(missing["code"], "NOT_FOUND");
    for (input, field) in [
        (json!({"contact_id": "con_1", "query": "x"}), "contact_id"),
        (json!({"limit": 0}), "limit"),
        (json!({"limit": 101}), "limit"),
        (json!({"cursor": "con_9"}), "cursor"),
    ] {
        assert_eq!(error(&records, "contacts.read", input).await["field"], field);
    }
}

#[tokio::test]
async fn facts_are_remembered_and_forgotten() {
    let records = InMemory::new("u1");
    let update = json!({"set": {"birthday": "1990-05-01", "likes": ["tea", "go"]}});
    assert_eq!(
        data(&records, "memory.update", update).await,
        json!({
            "outcome": "updated", "count": 2, "deleted": [], "missing": [],
            "set": [
                {"key": "birthday", "value": "1990-05-01", "version": 1},
                {"key": "likes", "value": ["tea", "go"], "version": 1},
            ],
        })
    );
    let all = data(&records, "memory.read", json!({})).await;
    assert_eq!(all["count"], 2);
    let found = data(&records, "memory.read", json!({"query": "TEA"})).await;
    assert_eq!(found["items"][0]["key"], "likes");
    let keyed = data(&records, "memory.read", json!({"keys": ["birthday", "none"]})).await;
    assert_eq!(keyed["items"][0]["value"], "1990-05-01");
    assert_eq!(keyed["missing"], json!(["none"]));
    let update = json!({"set": {"birthday": "1990-05-02"}, "delete": ["likes", "none"]});
    let changed = data(&records, "memory.update", update).await;
    assert_eq!(changed["set"][0]["version"], 2);
    assert_eq!((&changed["deleted"], &changed["missing"]), (&json!(["likes"]), &json!(["none"])));
    assert_eq!(changed["count"], 2);
    assert_eq!(data(&records, "memory.read", json!({"keys": ["likes"]})).await["count"], 0);
}

#[tokio::test]
async fn an_invalid_fact_is_refused_before_anything_is_written() {
    let records = InMemory::new("u1");
    let many: Vec<String> = (0..51).map(|n| n.to_string()).collect();
    for (input, field) in [
        (json!({}), "set"),
        (json!({"set": {}}), "set"),
        (json!({"set": {"a": null}}), "set.a"),
        (json!({"set": {"a": "x".repeat(5000)}}), "set.a"),
        (json!({"set": {"a": 1}, "delete": ["a"]}), "delete.a"),
        (json!({"set": {"": 1}}), "set"),
        (json!({"delete": many}), "set"),
        (json!({"set": {"a": 1}, "ttl": 5}), "ttl"),
    ] {
        let error = error(&records, "memory.update", input.clone()).await;
        assert_eq!(error["code"], "INVALID_ACTION_INPUT", "{input}");
        assert!(error["field"].as_str().unwrap().starts_with(field), "{input} {error}");
    }
    let both = error(&records, "memory.read", json!({"keys": ["a"], "query": "b"})).await;
    assert_eq!(both["field"], "query");
    assert_eq!(records.calls(), Vec::<&str>::new());
}

#[tokio::test]
async fn an_interrupted_update_reports_what_was_done() {
    let records = InMemory::new("u1");
    records.refuse_after(1);
    let update = json!({"set": {"a": 1, "b": 2}, "delete": ["c"]});
    let answer = call(&records, "memory.update", update).await;
    let partial = &answer["data"];
    assert_eq!(partial["outcome"], "partial");
    assert_eq!(partial["set"][0]["key"], "a");
    assert_eq!(partial["failed"]["key"], "b");
    assert_eq!(partial["not_tried"], json!(["c"]));
    let output = CliResult::read("memory", "update", answer.to_string().as_bytes()).unwrap();
    assert_eq!(output.into_output().status, crate::Status::Partial);

    records.refuse_after(0);
    let refused = error(&records, "memory.update", json!({"set": {"a": 1}})).await;
    assert_eq!((&refused["code"], &refused["retryable"]), (&json!("RATE_LIMITED"), &json!(true)));
}

#[tokio::test]
async fn facts_are_the_actors_own() {
    let ann = InMemory::new("ann");
    data(&ann, "memory.update", json!({"set": {"pin": "1234"}})).await;
    let eve = ann.seen_by("eve");
    assert_eq!(
        data(&eve, "memory.read", json!({"keys": ["pin"]})).await["missing"],
        json!(["pin"])
    );
    assert_eq!(data(&eve, "memory.read", json!({})).await["count"], 0);
}
