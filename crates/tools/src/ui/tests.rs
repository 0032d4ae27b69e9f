use super::*;
use serde_json::{Value, json};

fn result(method: &str, data: Value) -> Value {
    let (module, method) = method.split_once('.').unwrap();
    json!({"module": module, "method": method, "data": data})
}

fn event() -> Value {
    json!({
        "id": "evt_123",
        "title": "Project sync",
        "start_at": "2026-04-21T10:00:00+08:00",
        "end_at": "2026-04-21T11:30:00+08:00",
        "location": "Room 3",
        "owner": "ann",
        "attendees": [{"actor_id": "ben", "status": "pending"}],
        "version": 1,
    })
}

fn with(mut value: Value, key: &str, field: Value) -> Value {
    value[key] = field;
    value
}

fn ui(method: &str, data: Value, language: Language) -> Value {
    let hints = hints("call_1", &result(method, data)).unwrap();
    compile(&hints, &Options { language, ..Options::default() }).unwrap()
}

fn components(ui: &Value) -> Vec<Value> {
    ui["operations"][1]["updateComponents"]["components"].as_array().unwrap().clone()
}

fn component(ui: &Value, id: &str) -> Option<Value> {
    components(ui).into_iter().find(|component| component["id"] == id)
}

/// Every method of seed 004 §7 with an answer.
pub(super) fn answers() -> Vec<(&'static str, Value)> {
    let list = json!({"mode": "day", "date": "2026-04-21", "timezone": "Asia/Shanghai", "items": [event()], "count": 1, "has_more": false});
    vec![
        ("calendar.read", list),
        ("calendar.create", with(event(), "outcome", json!("created"))),
        ("calendar.update", with(event(), "outcome", json!("updated"))),
        ("calendar.delete", with(event(), "outcome", json!("deleted"))),
        ("calendar.share", with(event(), "outcome", json!("shared"))),
        (
            "calendar.accept_invite",
            with(with(event(), "outcome", json!("accepted")), "invitation", json!("accepted")),
        ),
        (
            "calendar.reject_invite",
            with(with(event(), "outcome", json!("rejected")), "invitation", json!("rejected")),
        ),
        (
            "contacts.read",
            json!({"items": [{"id": "con_1", "name": "Zoe", "email": "z@example.com"}], "count": 1, "has_more": true}),
        ),
        (
            "memory.update",
            json!({"outcome": "updated", "count": 2, "set": [{"key": "likes", "value": ["tea"], "version": 1}], "deleted": ["pin"], "missing": []}),
        ),
    ]
}

#[test]
fn the_nine_methods_of_the_seed_have_a_user_interface_and_no_other_has() {
    for (method, data) in answers() {
        for language in [Language::English, Language::Chinese] {
            let ui = ui(method, data.clone(), language);
            assert_eq!(ui["format"], "a2ui");
            assert_eq!(ui["version"], "v0.9");
            validate(&ui).unwrap();
        }
    }
    let read = result("memory.read", json!({"items": [], "count": 0}));
    assert_eq!(hints("call_1", &read), None);
    assert_eq!(hints("call_1", &result("weather.now", json!({"items": []}))), None);
    assert_eq!(hints("call_1", &json!(["no", "result"])), None);
    assert_eq!(hints("call_1", &result("calendar.read", json!("text"))), None);
}

#[test]
fn an_event_is_shown_with_its_data_apart_from_its_components() {
    let hints =
        hints("call_1", &result("calendar.create", with(event(), "outcome", json!("created"))))
            .unwrap();
    assert_eq!(
        hints,
        json!({
            "version": 1,
            "surface_id": "tool-call_1",
            "method": "calendar.create",
            "template": "event",
            "data": {
                "id": "evt_123",
                "title": "Project sync",
                "when": "2026-04-21 10:00 – 11:30 (UTC+08:00)",
                "location": "Room 3",
                "notes": "",
                "outcome": "created",
                "invitation": "",
                "attendees": [{"name": "ben", "status": "pending"}],
            },
        })
    );
    let ui = compile(&hints, &Options::default()).unwrap();
    assert_eq!(
        ui["operations"][0],
        json!({"version": "v0.9", "createSurface": {"surfaceId": "tool-call_1", "catalogId": CATALOGUE_ID}})
    );
    assert_eq!(
        component(&ui, "root"),
        Some(json!({"id": "root", "component": "Card", "child": "body"}))
    );
    assert_eq!(
        component(&ui, "title-text"),
        Some(
            json!({"id": "title-text", "component": "Text", "text": {"path": "/title"}, "variant": "h4"})
        )
    );
    assert_eq!(component(&ui, "outcome").unwrap()["text"], "Event created");
    assert_eq!(component(&ui, "notes"), None);
    let data = &ui["operations"][2]["updateDataModel"];
    assert_eq!(data["path"], "/");
    assert_eq!(data["value"]["title"], "Project sync");
    assert_eq!(data["value"]["attendees"], json!([{"name": "ben", "status": "Pending"}]));
    let words = components(&ui).iter().map(Value::to_string).collect::<String>();
    assert!(!words.contains("Project sync") && !words.contains("Room 3"), "{words}");
}

#[test]
fn an_invitation_can_be_answered_where_it_is_shown() {
    let invited = with(event(), "invitation", json!("pending"));
    let shown = ui("calendar.read", invited, Language::Chinese);
    assert_eq!(component(&shown, "outcome").unwrap()["text"], "你收到了邀请");
    assert_eq!(
        component(&shown, "accept").unwrap()["action"],
        json!({"event": {"name": "calendar.accept_invite", "context": {"event_id": "evt_123"}}})
    );
    assert_eq!(
        component(&shown, "decline").unwrap()["action"],
        json!({"event": {"name": "calendar.reject_invite", "context": {"event_id": "evt_123"}}})
    );
    assert_eq!(component(&shown, "accept-label").unwrap()["text"], "接受");
    let deleted =
        ui("calendar.delete", with(event(), "outcome", json!("deleted")), Language::English);
    assert_eq!(component(&deleted, "actions"), None);
}

#[test]
fn a_list_shows_its_items_by_template_or_says_that_there_are_none() {
    let (_, list) = answers().swap_remove(0);
    let shown = ui("calendar.read", list.clone(), Language::English);
    assert_eq!(
        component(&shown, "items").unwrap()["children"],
        json!({"componentId": "item", "path": "/items"})
    );
    assert_eq!(shown["operations"][2]["updateDataModel"]["value"]["when"], "2026-04-21");
    let empty = ui("calendar.read", with(list.clone(), "items", json!([])), Language::English);
    assert_eq!(component(&empty, "none").unwrap()["text"], "No events");
    let many: Vec<Value> = (0..60).map(|_| event()).collect();
    let long = ui("calendar.read", with(list, "items", json!(many)), Language::English);
    let items = &long["operations"][2]["updateDataModel"]["value"]["items"];
    assert_eq!(items.as_array().unwrap().len(), 50);
    assert!(component(&long, "more").is_some());
}

#[test]
fn times_are_shown_as_short_as_possible() {
    let when = |start: &str, end: &str| {
        let event = json!({"id": "e", "title": "t", "start_at": start, "end_at": end});
        let hints = hints("c", &result("calendar.create", event)).unwrap();
        hints["data"]["when"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        when("2026-04-21T10:00:00+00:00", "2026-04-21T11:00:00+00:00"),
        "2026-04-21 10:00 – 11:00 (UTC)"
    );
    assert_eq!(
        when("2026-04-21T23:00:00Z", "2026-04-22T01:00:00Z"),
        "2026-04-21 23:00 – 2026-04-22 01:00 (UTC)"
    );
    assert_eq!(
        when("2026-03-29T01:00:00.5+01:00", "2026-03-29T04:00:00+02:00"),
        "2026-03-29 01:00 (UTC+01:00) – 04:00 (UTC+02:00)"
    );
    assert_eq!(when("soon", "later"), "");
}

#[test]
fn the_same_hints_give_the_same_operations_and_the_client_chooses_the_catalogue() {
    let hints = hints("call_1", &result("calendar.create", event())).unwrap();
    assert_eq!(compile(&hints, &Options::default()), compile(&hints, &Options::default()));
    let other = "https://a2ui.org/specification/v0_9/catalogs/basic/catalog.json";
    let ui =
        compile(&hints, &Options { catalogue_id: other.to_owned(), ..Options::default() }).unwrap();
    assert_eq!(ui["operations"][0]["createSurface"]["catalogId"], other);
    assert_eq!(compile(&json!({"template": "event"}), &Options::default()), None);
    assert_eq!(compile(&with(hints, "template", json!("shell")), &Options::default()), None);
}

#[test]
fn the_catalogue_refuses_what_renderers_ignore() {
    let good = ui("calendar.create", event(), Language::English);
    let path = "/operations/1/updateComponents/components";
    let changed = |change: &dyn Fn(&mut Vec<Value>)| {
        let mut ui = good.clone();
        change(ui.pointer_mut(path).unwrap().as_array_mut().unwrap());
        validate(&ui).unwrap_err().to_string()
    };
    type Change<'a> = &'a dyn Fn(&mut Vec<Value>);
    let cases: [(Change<'_>, &str); 8] = [
        (
            &|list| list[0]["component"] = json!("Iframe"),
            "is a `Iframe`, which is not in the catalogue",
        ),
        (&|list| list[0]["onClick"] = json!("x"), "has an unknown property `onClick`"),
        (&|list| list.push(json!({"id": "x", "component": "Text"})), "lacks `text`"),
        (
            &|list| list.push(json!({"id": "x", "component": "Icon", "name": "skull"})),
            "has a wrong `name`",
        ),
        (
            &|list| list.push(json!({"id": "x", "component": "Text", "text": {"call": "openUrl"}})),
            "has a wrong `text`",
        ),
        (&|list| list.retain(|one| one["id"] != "title-text"), "is named as a child but not there"),
        (&|list| list.retain(|one| one["id"] != "root"), "there is no component `root`"),
        (
            &|list| {
                list.iter_mut()
                    .filter(|one| one["id"] == "title")
                    .for_each(|one| one["children"] = json!(["body"]))
            },
            "is its own child",
        ),
    ];
    for (change, expected) in cases {
        let error = changed(change);
        assert!(error.ends_with(expected), "{error}\n{expected}");
    }
    let mut twice = good.clone();
    let operations = twice["operations"].as_array_mut().unwrap();
    operations.push(operations[0].clone());
    assert!(validate(&twice).is_err());
    assert!(validate(&with(good, "version", json!("v1.0"))).is_err());
}

#[test]
fn languages_are_known_by_their_tags() {
    for (tag, language) in [
        ("zh-CN", Language::Chinese),
        ("ZH_hant", Language::Chinese),
        ("en", Language::English),
        ("", Language::English),
    ] {
        assert_eq!(Language::from_tag(tag), language);
    }
}
