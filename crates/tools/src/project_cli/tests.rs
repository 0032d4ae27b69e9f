//! Methods through the router, on records in memory; expectations are written from seed 004.

mod calendar;
mod contacts_and_memory;
mod fuzz;

use super::in_memory::InMemory;
use super::*;

/// The answer of a method, with every method allowed.
async fn call(records: &InMemory, name: &str, input: Value) -> Value {
    let (module, method) = name.split_once('.').unwrap();
    route(module, method, &input, &MethodSet::all(), records).await.to_value()
}

async fn data(records: &InMemory, name: &str, input: Value) -> Value {
    let mut answer = call(records, name, input).await;
    assert_eq!(answer["ok"], true, "{answer}");
    answer["data"].take()
}

async fn error(records: &InMemory, name: &str, input: Value) -> Value {
    let mut answer = call(records, name, input).await;
    assert_eq!(answer["ok"], false, "{answer}");
    answer["error"].take()
}

#[test]
fn the_table_holds_exactly_the_methods_of_the_seed() {
    let names: Vec<String> = specs().iter().map(MethodSpec::name).collect();
    assert_eq!(
        names,
        [
            "calendar.read",
            "calendar.create",
            "calendar.update",
            "calendar.delete",
            "calendar.share",
            "calendar.accept_invite",
            "calendar.reject_invite",
            "contacts.read",
            "memory.read",
            "memory.update",
        ]
    );
}

#[tokio::test]
async fn the_host_refuses_what_the_router_refuses_with_the_same_message_and_accesses_nothing() {
    let records = InMemory::new("u1");
    let at = |hour: &str| format!("2026-04-21T{hour}:00:00+08:00");
    for (name, input) in [
        ("calendar.read", json!({"mode": "week"})),
        ("calendar.read", json!({"mode": "range", "start_at": at("12"), "end_at": at("10")})),
        ("calendar.create", json!({"title": "x", "start_at": at("12"), "end_at": at("12")})),
        ("calendar.update", json!({"event_id": "e"})),
        ("calendar.update", json!({"event_id": "e", "start_at": at("12"), "end_at": at("10")})),
        ("calendar.delete", json!({})),
        ("calendar.share", json!({"event_id": "e", "with": []})),
        ("calendar.accept_invite", json!({"event_id": 7})),
        ("contacts.read", json!({"limit": 0})),
        ("memory.read", json!({"keys": ["a"], "query": "b"})),
        ("memory.update", json!({"set": {"a": null}})),
    ] {
        let (module, method) = name.split_once('.').unwrap();
        let refused = check(find(module, method).unwrap(), input.as_object().unwrap());
        let refused = json!(refused.unwrap_err());
        assert_eq!(refused["code"], "INVALID_ACTION_INPUT", "{name}");
        assert_eq!(refused, error(&records, name, input).await, "{name}");
    }
    for (name, input) in [
        ("calendar.create", json!({"title": "x", "start_at": at("10"), "end_at": at("12")})),
        ("calendar.delete", json!({"event_id": "none"})),
        ("contacts.read", json!({"cursor": "none"})),
        ("memory.update", json!({"set": {"a": 1}, "delete": ["b"]})),
    ] {
        let (module, method) = name.split_once('.').unwrap();
        let checked = check(find(module, method).unwrap(), input.as_object().unwrap());
        assert_eq!(checked, Ok(()), "{name}");
    }
    assert_eq!(data(&records, "memory.read", json!({})).await["count"], 0);
}

#[tokio::test]
async fn a_contract_names_exactly_the_fields_of_its_method() {
    let records = InMemory::new("u1");
    for spec in specs() {
        let input = match spec.action {
            Action::CalendarRead => continue,
            _ => json!({"no_such_field": 1}),
        };
        let error = error(&records, &spec.name(), input).await;
        assert_eq!(error["field"], "no_such_field");
        let message = error["message"].as_str().unwrap();
        let (_, expected) = message.split_once("expected").unwrap();
        let mut taken: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
        taken.sort_unstable();
        let contract = spec.contract();
        let mut named: Vec<&str> =
            contract.as_object().unwrap().keys().map(String::as_str).collect();
        named.sort_unstable();
        assert_eq!(named, taken, "{}", spec.name());
    }
}

#[tokio::test]
async fn an_invalid_input_is_answered_with_the_contract() {
    let records = InMemory::new("u1");
    let error = error(&records, "calendar.read", json!({"mode": "month"})).await;
    assert_eq!(error["code"], "INVALID_ACTION_INPUT");
    assert_eq!(
        error["message"],
        "calendar.read input does not match method schema: `mode` is not one of day, range, event"
    );
    assert_eq!(error["module"], "calendar");
    assert_eq!(error["method"], "read");
    assert_eq!(error["field"], "mode");
    assert_eq!(error["input_schema"]["mode"], "string enum(day|range|event)");
    assert_eq!(records.calls(), Vec::<&str>::new());
}

#[tokio::test]
async fn a_method_outside_the_allowed_set_is_refused() {
    let records = InMemory::new("u1");
    let allowed = MethodSet::from_list("calendar.read, memory.*");
    let input = json!({"event_id": "evt_1"});
    let refused = route("calendar", "delete", &input, &allowed, &records).await.to_value();
    assert_eq!(
        refused,
        json!({"ok": false, "error": {
            "code": "METHOD_NOT_ALLOWED",
            "message": "`calendar.delete` may not be used here",
            "module": "calendar",
            "method": "delete",
            "close_matches": [],
            "allowed_methods": ["calendar.read", "memory.read", "memory.update"],
        }})
    );
    assert_eq!(records.calls(), Vec::<&str>::new());
    assert!(route("memory", "read", &json!({}), &allowed, &records).await.is_ok());
    let none = MethodSet::from_list("");
    assert!(!route("memory", "read", &json!({}), &none, &records).await.is_ok());
}

#[tokio::test]
async fn an_unknown_method_lists_similar_allowed_ones() {
    let records = InMemory::new("u1");
    let error = error(&records, "calender.raed", json!({})).await;
    assert_eq!(error["code"], "METHOD_NOT_ALLOWED");
    assert_eq!(
        error["message"],
        "there is no method `calender.raed`; did you mean `calendar.read`?"
    );
    assert_eq!(error["close_matches"][0], "calendar.read");
    let secret = MethodSet::from_list("memory.read");
    let refused = route("calendar", "raed", &json!({}), &secret, &records).await.to_value();
    assert_eq!(refused["error"]["close_matches"], json!([]));
    for (module, method) in
        [("", ""), ("calendar", ""), ("calendar", "*"), ("*", "*"), ("calendar.read", "")]
    {
        let answer = route(module, method, &json!({}), &MethodSet::all(), &records).await;
        assert_eq!(answer.to_value()["error"]["code"], "METHOD_NOT_ALLOWED");
    }
}

#[test]
fn the_tool_accepts_three_layers_and_nothing_else() {
    let args = json!({"module": "calendar", "method": "read", "input": {"mode": "day"}});
    let call = Call::read(args.as_object().unwrap()).unwrap();
    assert_eq!((call.module.as_str(), call.method.as_str()), ("calendar", "read"));
    let wrong = [
        (json!({"module": "calendar", "method": "read"}), "input"),
        (json!({"module": "calendar", "method": "read", "input": "{}"}), "input"),
        (json!({"module": 1, "method": "read", "input": {}}), "module"),
        (json!({"module": "m", "method": "read", "input": {}, "token": "t"}), "token"),
        (json!({"command": "calendar", "subcommand": "read", "args": {}}), "args"),
    ];
    for (args, field) in wrong {
        let failure = Call::read(args.as_object().unwrap()).unwrap_err();
        assert_eq!(failure.code, "INVALID_ARGUMENT");
        assert_eq!(failure.details["field"], field);
        assert_eq!(failure.details["input_schema"], tool().input_schema);
    }
}

#[test]
fn a_child_cannot_impersonate_another_method() {
    let read = |text: &str| CliResult::read("weather", "now", text.as_bytes()).unwrap().to_value();
    assert_eq!(
        read(r#"{"ok":true,"module":"calendar","method":"delete","data":{"t":21}}"#),
        json!({"ok": true, "module": "weather", "method": "now", "data": {"t": 21}})
    );
    assert_eq!(
        read(r#"{"t":21}"#),
        json!({"ok": true, "module": "weather", "method": "now", "data": {"t": 21}})
    );
    assert_eq!(
        read(r#"{"ok":false,"error":{"code":"NO_STATION","message":"none near","hint":"x"}}"#),
        json!({"ok": false, "error": {"code": "NO_STATION", "message": "none near", "hint": "x", "module": "weather", "method": "now"}})
    );
    assert_eq!(
        read(r#"{"ok":false,"error":"broken"}"#)["error"],
        json!({"code": "METHOD_FAILED", "message": "broken", "module": "weather", "method": "now"})
    );
    assert!(CliResult::read("weather", "now", b"Traceback (most recent call last):").is_err());
}

#[test]
fn the_result_keeps_module_method_and_data() {
    let done = CliResult::Done {
        module: "calendar".to_owned(),
        method: "read".to_owned(),
        data: json!({"id": "evt_123", "title": "Project sync"}),
    };
    let output = done.into_output();
    assert_eq!(output.status, crate::Status::Success);
    assert_eq!(
        output.result,
        json!({"module": "calendar", "method": "read", "data": {"id": "evt_123", "title": "Project sync"}})
    );
}
