//! Our UI, as the unmodified A2UI library reads it: its JSON schemas and its message processor.

use greenroom_tools::ui::{Language, Options, compile, hints};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SPECIFICATION: &str = "https://a2ui.org/specification/v0_9";

fn event(id: &str) -> Value {
    json!({
        "id": id,
        "title": "Project sync",
        "start_at": "2026-04-21T10:00:00+08:00",
        "end_at": "2026-04-21T11:30:00+08:00",
        "location": "Room 3",
        "notes": "Bring *numbers* <b>and</b> [links](javascript:alert(1))",
        "owner": "ann",
        "attendees": [{"actor_id": "ben", "status": "pending"}, {"actor_id": "李雷", "status": "accepted"}],
        "version": 3,
    })
}

fn event_with(fields: &[(&str, &str)]) -> Value {
    let mut event = event("evt_1");
    for (key, value) in fields {
        event[*key] = (*value).into();
    }
    event
}

/// Answers of every method with a UI, with the buttons they must have.
fn answers() -> Vec<(&'static str, Value, Vec<&'static str>)> {
    let contact = json!({"id": "con_1", "name": "Zoe", "email": "zoe@example.com"});
    let list = |items: Value| json!({"mode": "day", "date": "2026-04-21", "timezone": "UTC", "items": items, "has_more": false});
    vec![
        (
            "calendar.read",
            list(json!([event("evt_1"), event("evt_2")])),
            vec!["calendar.read", "calendar.read"],
        ),
        ("calendar.read", list(json!([])), vec![]),
        ("calendar.read", event("evt_1"), vec!["calendar.delete"]),
        (
            "calendar.read",
            event_with(&[("invitation", "pending")]),
            vec!["calendar.accept_invite", "calendar.reject_invite"],
        ),
        ("calendar.create", event_with(&[("outcome", "created")]), vec!["calendar.delete"]),
        ("calendar.update", event_with(&[("outcome", "updated")]), vec!["calendar.delete"]),
        ("calendar.delete", event_with(&[("outcome", "deleted")]), vec![]),
        ("calendar.share", event_with(&[("outcome", "shared")]), vec!["calendar.delete"]),
        (
            "calendar.accept_invite",
            event_with(&[("outcome", "accepted"), ("invitation", "accepted")]),
            vec!["calendar.reject_invite"],
        ),
        (
            "calendar.reject_invite",
            event_with(&[("outcome", "rejected"), ("invitation", "rejected")]),
            vec!["calendar.accept_invite"],
        ),
        ("contacts.read", json!({"items": [contact], "has_more": true}), vec![]),
        ("contacts.read", json!({"items": [], "has_more": false}), vec![]),
        ("contacts.read", contact, vec![]),
        (
            "memory.update",
            json!({"outcome": "partial", "set": [{"key": "likes", "value": ["tea"]}], "deleted": ["pin"]}),
            vec![],
        ),
        ("memory.update", json!({"outcome": "updated", "set": [], "deleted": []}), vec![]),
    ]
}

fn ui(method: &str, data: &Value, language: Language) -> Value {
    let (module, name) = method.split_once('.').unwrap();
    let result = json!({"module": module, "method": name, "data": data});
    let hints = hints("call_1", &result).unwrap();
    compile(&hints, &Options { language, ..Options::default() }).unwrap()
}

fn everything() -> Vec<(Value, Vec<&'static str>)> {
    let mut all = Vec::new();
    for (method, data, buttons) in answers() {
        for language in [Language::English, Language::Chinese] {
            all.push((ui(method, &data, language), buttons.clone()));
        }
    }
    all
}

/// The folder of the library, installed on first use.
fn installed() -> PathBuf {
    // Beside the build, so that it is kept between runs and outside the clone.
    let built = Path::new(env!("CARGO_BIN_EXE_tools-fixture"));
    let folder = built.ancestors().nth(2).unwrap().join("outside/a2ui");
    fs::create_dir_all(&folder).unwrap();
    // One test installs, the others wait for it.
    let lock = File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/a2ui");
    fs::copy(ours.join("peer.mjs"), folder.join("peer.mjs")).unwrap();
    let wanted = fs::read(ours.join("package.json")).unwrap();
    if fs::read(folder.join("installed.json")).ok().as_ref() != Some(&wanted) {
        fs::write(folder.join("package.json"), &wanted).unwrap();
        #[expect(clippy::disallowed_methods, reason = "the test installs what it is run against")]
        let status = Command::new("npm")
            .args(["install", "--silent", "--no-audit", "--no-fund", "--no-package-lock"])
            .arg("--ignore-scripts")
            .current_dir(&folder)
            .status();
        assert!(status.unwrap().success(), "npm cannot install the A2UI library");
        fs::write(folder.join("installed.json"), &wanted).unwrap();
    }
    folder
}

#[test]
fn the_library_s_own_schemas_accept_every_operation() {
    let schemas = installed().join("node_modules/@a2ui/web_core/src/v0_9/schemas");
    let read = |path: &str| -> Value {
        serde_json::from_slice(&fs::read(schemas.join(path)).unwrap()).unwrap()
    };
    let message = read("server_to_client.json");
    let catalogue = read("catalogs/basic/catalog.json");
    // Messages refer to the catalogue in use as `catalog.json`.
    let mut in_use = catalogue.clone();
    in_use["$id"] = format!("{SPECIFICATION}/catalog.json").into();
    let registry = jsonschema::Registry::new()
        .add(format!("{SPECIFICATION}/common_types.json"), read("common_types.json"))
        .and_then(|registry| registry.add(format!("{SPECIFICATION}/catalog.json"), in_use))
        .and_then(|registry| registry.prepare())
        .unwrap();
    let options = jsonschema::options();
    let validator = options.with_registry(&registry).offline().build(&message).unwrap();
    for (ui, _) in everything() {
        for operation in ui["operations"].as_array().unwrap() {
            let wrong: Vec<String> =
                validator.iter_errors(operation).map(|e| e.to_string()).collect();
            assert_eq!(wrong, Vec::<String>::new(), "{operation:#}");
        }
    }
    let strange = json!({"version": "v0.9", "updateComponents": {"surfaceId": "s", "components": [
        {"id": "root", "component": "Iframe"},
    ]}});
    assert!(!validator.is_valid(&strange), "the schema accepts anything");
}

#[test]
fn the_library_shows_every_text_and_its_buttons_request_methods() {
    let folder = installed();
    let (shown, buttons): (Vec<Value>, Vec<Vec<&str>>) = everything().into_iter().unzip();
    #[expect(clippy::disallowed_methods, reason = "the library runs in a process of its own")]
    let mut node = Command::new("node")
        .arg("peer.mjs")
        .current_dir(&folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    node.stdin.take().unwrap().write_all(json!(shown).to_string().as_bytes()).unwrap();
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success());
    let seen: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(seen.len(), shown.len());
    for ((seen, ui), buttons) in seen.iter().zip(&shown).zip(buttons) {
        assert_eq!(seen["unresolved"], json!([]), "{ui:#}");
        assert_eq!(seen["errors"], json!([]), "{ui:#}");
        let asked: Vec<&str> = seen["actions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|a| a["name"].as_str().unwrap())
            .collect();
        assert_eq!(asked, buttons, "{ui:#}");
        let texts = seen["texts"].as_array().unwrap();
        assert!(texts.iter().all(Value::is_string), "{texts:?}");
    }
    let day = &seen[0];
    assert_eq!(
        day["texts"],
        json!([
            "Events",
            "2026-04-21",
            "UTC",
            "Project sync",
            "2026-04-21 10:00 – 11:30 (UTC+08:00)",
            "Room 3",
            "Details",
            "Project sync",
            "2026-04-21 10:00 – 11:30 (UTC+08:00)",
            "Room 3",
            "Details",
        ])
    );
    assert_eq!(day["actions"][1]["context"], json!({"mode": "event", "event_id": "evt_2"}));
}
