use super::*;

async fn create(records: &InMemory, title: &str, start_at: &str, end_at: &str) -> String {
    let input = json!({"title": title, "start_at": start_at, "end_at": end_at});
    data(records, "calendar.create", input).await["id"].as_str().unwrap().to_owned()
}

fn titles(data: &Value) -> Vec<&str> {
    let items = data["items"].as_array().unwrap();
    assert_eq!(data["count"], items.len());
    items.iter().map(|item| item["title"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_event_is_created_and_read_again() {
    let records = InMemory::new("u1");
    let created = data(
        &records,
        "calendar.create",
        json!({
            "title": "  Project sync ",
            "start_at": "2026-04-21T10:00:00+08:00",
            "end_at": "2026-04-21T11:30:00+08:00",
            "timezone": "Asia/Shanghai",
            "location": "Room 3",
        }),
    )
    .await;
    assert_eq!(
        created,
        json!({
            "id": "rec_1",
            "title": "Project sync",
            "start_at": "2026-04-21T10:00:00+08:00",
            "end_at": "2026-04-21T11:30:00+08:00",
            "timezone": "Asia/Shanghai",
            "location": "Room 3",
            "owner": "u1",
            "attendees": [],
            "version": 1,
            "updated_at": "2026-04-20T08:00:00.000Z",
            "outcome": "created",
        })
    );
    let read = data(&records, "calendar.read", json!({"mode": "event", "event_id": "rec_1"})).await;
    let mut expected = created;
    expected.as_object_mut().unwrap().remove("outcome");
    assert_eq!(read, expected);
}

#[tokio::test]
async fn a_range_returns_overlapping_events_by_start() {
    let records = InMemory::new("u1");
    create(&records, "late", "2026-04-21T23:00:00+08:00", "2026-04-22T01:00:00+08:00").await;
    create(&records, "before", "2026-04-20T22:00:00+08:00", "2026-04-21T00:00:00+08:00").await;
    create(&records, "over midnight", "2026-04-20T23:00:00+08:00", "2026-04-21T00:30:00+08:00")
        .await;
    create(&records, "after", "2026-04-22T00:00:00+08:00", "2026-04-22T01:00:00+08:00").await;
    create(&records, "noon", "2026-04-21T04:00:00Z", "2026-04-21T05:00:00Z").await;
    let read = data(
        &records,
        "calendar.read",
        json!({"mode": "range", "start_at": "2026-04-21T00:00:00+08:00", "end_at": "2026-04-22T00:00:00+08:00"}),
    )
    .await;
    assert_eq!(titles(&read), ["over midnight", "noon", "late"]);
    assert_eq!(read["has_more"], false);
    assert_eq!(read["mode"], "range");
    assert_eq!(read["items"][1]["start_at"], "2026-04-21T04:00:00+00:00");
}

#[tokio::test]
async fn the_length_of_a_day_depends_on_its_zone() {
    let records = InMemory::new("u1");
    let cases = [
        ("2026-04-21", "Asia/Shanghai", "2026-04-21T00:00:00+08:00", "2026-04-22T00:00:00+08:00"),
        // 23 hours: clocks go forward at 02:00.
        ("2026-03-29", "Europe/Berlin", "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00"),
        // 25 hours: clocks go back at 03:00.
        ("2026-10-25", "Europe/Berlin", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00"),
        // Midnight itself is left out: the day begins at 01:00.
        (
            "2018-11-04",
            "America/Sao_Paulo",
            "2018-11-04T01:00:00-02:00",
            "2018-11-05T00:00:00-02:00",
        ),
        // Midnight comes twice: the day begins with the first.
        ("2026-11-01", "America/Havana", "2026-11-01T00:00:00-04:00", "2026-11-02T00:00:00-05:00"),
        // A day that Samoa left out.
        ("2011-12-30", "Pacific/Apia", "2011-12-31T00:00:00+14:00", "2011-12-31T00:00:00+14:00"),
    ];
    for (date, timezone, start_at, end_at) in cases {
        let input = json!({"mode": "day", "date": date, "timezone": timezone});
        let read = data(&records, "calendar.read", input).await;
        assert_eq!(
            read,
            json!({
                "mode": "day", "date": date, "timezone": timezone, "start_at": start_at, "end_at": end_at,
                "items": [], "count": 0, "has_more": false,
            })
        );
    }
}

#[tokio::test]
async fn the_last_hour_of_a_long_day_belongs_to_it_and_is_shown_in_its_zone() {
    let records = InMemory::new("u1");
    create(&records, "in the 25th hour", "2026-10-25T22:30:00Z", "2026-10-25T22:45:00Z").await;
    create(&records, "next day", "2026-10-25T23:00:00Z", "2026-10-25T23:30:00Z").await;
    let input = json!({"mode": "day", "date": "2026-10-25", "timezone": "Europe/Berlin"});
    let read = data(&records, "calendar.read", input).await;
    assert_eq!(titles(&read), ["in the 25th hour"]);
    assert_eq!(read["items"][0]["start_at"], "2026-10-25T23:30:00+01:00");
}

#[tokio::test]
async fn inputs_are_strict() {
    let records = InMemory::new("u1");
    let range = |start: &str, end: &str| json!({"mode": "range", "start_at": start, "end_at": end});
    let ok = "2026-04-22T00:00:00+08:00";
    let new = |key: &str, value: Value| {
        let mut input = json!({"title": "t", "start_at": "2026-04-21T00:00:00Z", "end_at": "2026-04-21T01:00:00Z"});
        input[key] = value;
        input
    };
    let cases = [
        ("calendar.read", json!({}), "mode"),
        ("calendar.read", json!({"mode": 1}), "mode"),
        ("calendar.read", json!({"mode": "day", "date": "2026-04-21"}), "timezone"),
        ("calendar.read", json!({"mode": "day", "date": "21.4.2026", "timezone": "UTC"}), "date"),
        ("calendar.read", json!({"mode": "day", "date": "2026-02-30", "timezone": "UTC"}), "date"),
        (
            "calendar.read",
            json!({"mode": "day", "date": "2026-04-21T00:00:00Z", "timezone": "UTC"}),
            "date",
        ),
        (
            "calendar.read",
            json!({"mode": "day", "date": "2026-04-21", "timezone": "Beijing"}),
            "timezone",
        ),
        (
            "calendar.read",
            json!({"mode": "day", "date": "2026-04-21", "timezone": "+08:00"}),
            "timezone",
        ),
        (
            "calendar.read",
            json!({"mode": "day", "date": "2026-04-21", "timezone": "UTC", "event_id": "x"}),
            "event_id",
        ),
        ("calendar.read", range("2026-04-21T00:00:00", ok), "start_at"),
        ("calendar.read", range("2026-04-21", ok), "start_at"),
        ("calendar.read", range("2026-04-21 00:00:00+08:00", ok), "start_at"),
        ("calendar.read", range("2026-04-21T00:00:00+08:00[Asia/Shanghai]", ok), "start_at"),
        ("calendar.read", range("2026-04-21T25:00:00+08:00", ok), "start_at"),
        ("calendar.read", range("2026-04-21T00:00:00+0800", ok), "start_at"),
        ("calendar.read", range(ok, ok), "end_at"),
        ("calendar.read", json!({"mode": "event"}), "event_id"),
        ("calendar.read", json!({"mode": "event", "event_id": ""}), "event_id"),
        ("calendar.create", json!({"title": "t"}), "start_at"),
        ("calendar.create", new("title", json!(" ")), "title"),
        ("calendar.create", new("title", json!("x".repeat(201))), "title"),
        ("calendar.create", new("end_at", json!("2026-04-21T00:00:00Z")), "end_at"),
        ("calendar.create", new("owner_id", json!("u2")), "owner_id"),
        ("calendar.create", new("location", json!(null)), "location"),
        ("calendar.update", json!({"event_id": "rec_1"}), ""),
        ("calendar.update", json!({"event_id": "rec_1", "title": null}), "title"),
        ("calendar.share", json!({"event_id": "rec_1", "with": []}), "with"),
        ("calendar.share", json!({"event_id": "rec_1", "with": ["u2", 3]}), "with[1]"),
        ("calendar.share", json!({"event_id": "rec_1", "with": "u2"}), "with"),
        ("calendar.delete", json!({"event_id": 5}), "event_id"),
        ("calendar.accept_invite", json!({"id": "rec_1"}), "id"),
    ];
    for (name, input, field) in cases {
        let error = error(&records, name, input.clone()).await;
        assert_eq!(error["code"], "INVALID_ACTION_INPUT", "{name} {input} {error}");
        assert_eq!(error["field"].as_str().unwrap_or_default(), field, "{name} {input} {error}");
    }
    assert_eq!(records.calls(), Vec::<&str>::new());
}

#[tokio::test]
async fn an_update_changes_what_it_names_and_nothing_else() {
    let records = InMemory::new("u1");
    let id =
        create(&records, "sync", "2026-04-21T10:00:00+08:00", "2026-04-21T11:00:00+08:00").await;
    let input =
        json!({"event_id": id, "location": "Room 3", "end_at": "2026-04-21T12:00:00+08:00"});
    let updated = data(&records, "calendar.update", input).await;
    assert_eq!(updated["outcome"], "updated");
    assert_eq!(updated["changed"], json!(["end_at", "location"]));
    assert_eq!(updated["title"], "sync");
    assert_eq!(updated["location"], "Room 3");
    assert_eq!(updated["start_at"], "2026-04-21T10:00:00+08:00");
    assert_eq!(updated["end_at"], "2026-04-21T12:00:00+08:00");
    assert_eq!(updated["version"], 2);
    let cleared =
        data(&records, "calendar.update", json!({"event_id": id, "location": null})).await;
    assert_eq!(cleared.get("location"), None);
    let zoned =
        data(&records, "calendar.update", json!({"event_id": id, "timezone": "Europe/Berlin"}))
            .await;
    assert_eq!(zoned["start_at"], "2026-04-21T04:00:00+02:00");
    let input = json!({"event_id": id, "start_at": "2026-04-21T13:00:00+08:00"});
    assert_eq!(error(&records, "calendar.update", input).await["field"], "end_at");
}

#[tokio::test]
async fn an_update_of_an_old_version_is_a_conflict() {
    let records = InMemory::new("u1");
    let id = create(&records, "sync", "2026-04-21T10:00:00Z", "2026-04-21T11:00:00Z").await;
    data(&records, "calendar.update", json!({"event_id": id, "title": "a"})).await;
    let stale = json!({"event_id": id, "title": "b", "if_version": 1});
    let refused = error(&records, "calendar.update", stale).await;
    assert_eq!(refused["code"], "CONFLICT");
    assert_eq!(refused["version"], 2);
    let stale = json!({"event_id": id, "if_version": 1});
    assert_eq!(error(&records, "calendar.delete", stale).await["code"], "CONFLICT");
}

#[tokio::test]
async fn an_update_after_a_concurrent_change_is_applied_to_the_present_event() {
    let records = InMemory::new("u1");
    let id = create(&records, "sync", "2026-04-21T10:00:00Z", "2026-04-21T11:00:00Z").await;
    records.race(1);
    let updated = data(&records, "calendar.update", json!({"event_id": id, "title": "new"})).await;
    assert_eq!((&updated["title"], &updated["location"]), (&json!("new"), &json!("moved")));
    records.race(100);
    let endless = error(&records, "calendar.update", json!({"event_id": id, "title": "x"})).await;
    assert_eq!(endless["code"], "CONFLICT");
}

#[tokio::test]
async fn an_event_is_shared_accepted_and_rejected() {
    let ann = InMemory::new("ann");
    let id = create(&ann, "sync", "2026-04-21T10:00:00Z", "2026-04-21T11:00:00Z").await;
    let shared =
        data(&ann, "calendar.share", json!({"event_id": id, "with": ["ben", "cleo", "ben"]})).await;
    let pending = json!([{"actor_id": "ben", "status": "pending"}, {"actor_id": "cleo", "status": "pending"}]);
    assert_eq!(shared["outcome"], "shared");
    assert_eq!(shared["count"], 2);
    assert_eq!(shared["invited"], pending);
    assert_eq!(shared["attendees"], pending);

    let ben = ann.seen_by("ben");
    let seen = data(&ben, "calendar.read", json!({"mode": "event", "event_id": id})).await;
    assert_eq!(seen["invitation"], "pending");
    assert_eq!(seen["owner"], "ann");
    let day = json!({"mode": "day", "date": "2026-04-21", "timezone": "UTC"});
    let listed = data(&ben, "calendar.read", day.clone()).await;
    assert_eq!(listed["items"][0]["invitation"], "pending");
    let accepted = data(&ben, "calendar.accept_invite", json!({"event_id": id})).await;
    assert_eq!(
        (&accepted["outcome"], &accepted["status"]),
        (&json!("accepted"), &json!("accepted"))
    );
    assert_eq!(accepted["id"], json!(id));
    assert_eq!(titles(&data(&ben, "calendar.read", day.clone()).await), ["sync"]);

    let cleo = ann.seen_by("cleo");
    let rejected = data(&cleo, "calendar.reject_invite", json!({"event_id": id})).await;
    assert_eq!(rejected["status"], "rejected");
    assert_eq!(titles(&data(&cleo, "calendar.read", day).await), Vec::<&str>::new());

    let read = data(&ann, "calendar.read", json!({"mode": "event", "event_id": id})).await;
    assert_eq!(
        read["attendees"],
        json!([{"actor_id": "ben", "status": "accepted"}, {"actor_id": "cleo", "status": "rejected"}])
    );
}

#[tokio::test]
async fn only_the_owner_changes_deletes_and_shares() {
    let ann = InMemory::new("ann");
    let id = create(&ann, "sync", "2026-04-21T10:00:00Z", "2026-04-21T11:00:00Z").await;
    data(&ann, "calendar.share", json!({"event_id": id, "with": ["ben"]})).await;
    let ben = ann.seen_by("ben");
    for (name, input) in [
        ("calendar.update", json!({"event_id": id, "title": "mine"})),
        ("calendar.delete", json!({"event_id": id})),
        ("calendar.share", json!({"event_id": id, "with": ["dan"]})),
    ] {
        assert_eq!(error(&ben, name, input).await["code"], "FORBIDDEN", "{name}");
    }
    let own = error(&ann, "calendar.accept_invite", json!({"event_id": id})).await;
    assert_eq!(own["code"], "FORBIDDEN");
}

#[tokio::test]
async fn an_event_of_another_actor_does_not_exist() {
    let ann = InMemory::new("ann");
    let id = create(&ann, "sync", "2026-04-21T10:00:00Z", "2026-04-21T11:00:00Z").await;
    let eve = ann.seen_by("eve");
    for (name, input) in [
        ("calendar.read", json!({"mode": "event", "event_id": id})),
        ("calendar.update", json!({"event_id": id, "title": "mine"})),
        ("calendar.delete", json!({"event_id": id})),
        ("calendar.share", json!({"event_id": id, "with": ["eve"]})),
        ("calendar.accept_invite", json!({"event_id": id})),
    ] {
        let error = error(&eve, name, input).await;
        assert_eq!(error["code"], "NOT_FOUND", "{name}");
        assert_eq!(error["event_id"], json!(id));
    }
}

#[tokio::test]
async fn a_deleted_event_is_returned_and_gone() {
    let records = InMemory::new("u1");
    let id = create(&records, "sync", "2026-04-21T10:00:00Z", "2026-04-21T11:00:00Z").await;
    let deleted = data(&records, "calendar.delete", json!({"event_id": id})).await;
    assert_eq!((&deleted["outcome"], &deleted["title"]), (&json!("deleted"), &json!("sync")));
    let again = error(&records, "calendar.delete", json!({"event_id": id})).await;
    assert_eq!(again["code"], "NOT_FOUND");
}
