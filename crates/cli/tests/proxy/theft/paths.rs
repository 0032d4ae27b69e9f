//! Names that look like ways to somewhere: storage keys, artifact names, links in the artifact folder, and bytes
//! that are not what they are said to be.

use super::{ALPHA, agents, refused};
use crate::facts::{MARK, seed};
use crate::stage::{ALL, Stage, agent, event};
use greenroom_protocol::ErrorCode::{InvalidArgument, RuntimeError};
use serde_json::json;
use std::path::{Path, PathBuf};

/// Not taken, by any of the methods that take a key.
const PATHS: [&str; 12] = [
    "../x",
    "..",
    ".",
    "/etc/passwd",
    "a/../../x",
    "a//b",
    "a/",
    "a\u{0}b",
    "a\\b",
    "..\\x",
    "a\nb",
    "",
];

#[tokio::test(flavor = "multi_thread")]
async fn storage_keys_that_are_paths_are_refused() {
    let mut stage = Stage::open(&["alpha"], "", &agents()).await;
    let alpha = stage.connect("alpha").await;
    let run = stage.start(&alpha, &event("full", "c")).await;
    let long = "k".repeat(513);
    for key in PATHS.iter().copied().chain([long.as_str()]) {
        for method in ["storage.get", "storage.set", "storage.delete"] {
            let params = json!({"area": "plugin", "key": key, "value": ""});
            let reply = alpha.call_for(&run.id, method, params).await;
            assert_eq!(refused(&reply), InvalidArgument, "{method} {key:?}");
        }
    }
    let listed = alpha.call_for(&run.id, "storage.list", json!({"area": "plugin"})).await.unwrap();
    assert_eq!(listed["items"], json!([]));
    // Found by the fuzzer: U+0000 went on to the store, which has no such texts.
    for (method, params) in [
        ("storage.list", json!({"area": "plugin", "prefix": "\u{0}"})),
        ("state.list", json!({"scope": "actor", "prefix": "\u{0}"})),
        ("history.page", json!({"conversation_id": "\u{0}"})),
        ("history.search", json!({"query": "q", "filters": {"thread_id": "\u{0}"}})),
        ("history.search", json!({"query": "q", "filters": {"actor_id": "\u{0}"}})),
        ("history.search", json!({"query": "q", "filters": {"event_types": ["\u{0}"]}})),
        ("events.page", json!({"conversation_id": "\u{0}"})),
    ] {
        let reply = alpha.call_for(&run.id, method, params.clone()).await;
        assert_eq!(refused(&reply), InvalidArgument, "{method} {params}");
    }
    stage.assert_sound();
}

/// Keys are compared byte by byte: what looks alike is not alike.
#[tokio::test(flavor = "multi_thread")]
async fn storage_keys_that_look_alike_are_different_keys() {
    let mut stage = Stage::open(&["alpha"], "", &agents()).await;
    let alpha = stage.connect("alpha").await;
    let run = stage.start(&alpha, &event("full", "c")).await;
    // Latin and Cyrillic a, composed and decomposed é, full-width dots and slash, a wildcard, case, blanks.
    let keys = [
        "admin",
        "\u{430}dmin",
        "caf\u{e9}",
        "cafe\u{301}",
        "\u{ff0e}\u{ff0e}\u{ff0f}x",
        "\u{2024}\u{2024}\u{2215}x",
        "%",
        "_",
        "*",
        "Admin",
        "admin ",
        "%2e%2e%2fx",
        "\u{202e}nimda",
    ];
    for (number, key) in keys.iter().enumerate() {
        let value = ["AA==", "AQ==", "Ag=="][number % 3];
        let params = json!({"area": "plugin", "key": key, "value": value});
        alpha.call_for(&run.id, "storage.set", params).await.unwrap();
    }
    for (number, key) in keys.iter().enumerate() {
        let params = json!({"area": "plugin", "key": key});
        let found = alpha.call_for(&run.id, "storage.get", params).await.unwrap();
        assert_eq!(found["data_base64"], ["AA==", "AQ==", "Ag=="][number % 3], "{key:?}");
        let params = json!({"area": "plugin", "prefix": key});
        let listed = alpha.call_for(&run.id, "storage.list", params).await.unwrap();
        let listed = listed["items"].as_array().unwrap().iter();
        let mut listed: Vec<&str> = listed.map(|item| item["key"].as_str().unwrap()).collect();
        let mut expected: Vec<&str> =
            keys.iter().copied().filter(|other| other.starts_with(key)).collect();
        listed.sort_unstable();
        expected.sort_unstable();
        assert_eq!(listed, expected, "{key:?}");
    }
    stage.assert_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn artifact_names_that_are_paths_are_refused() {
    let mut stage = Stage::open(&["alpha"], "", &agents()).await;
    let alpha = stage.connect("alpha").await;
    let run = stage.start(&alpha, &event("full", "c")).await;
    let long = "n".repeat(256);
    for name in PATHS.iter().copied().chain([long.as_str(), "a/b", "C:\\x", "x\u{7f}"]) {
        let params = json!({"name": name, "content_base64": "eA=="});
        let reply = alpha.call_for(&run.id, "artifacts.create", params).await;
        assert_eq!(refused(&reply), InvalidArgument, "{name:?}");
    }
    assert_eq!(objects(&stage.host.data().join("artifacts")), [] as [PathBuf; 0]);
    stage.assert_sound();
}

#[tokio::test(flavor = "multi_thread")]
async fn bytes_that_disagree_with_their_type_are_refused() {
    let mut stage = Stage::open(&["alpha"], "", &agents()).await;
    let alpha = stage.connect("alpha").await;
    let run = stage.start(&alpha, &event("full", "c")).await;
    // "hello", the beginning of a PNG, `<script>`, and text with a NUL in it.
    let (hello, png, script, nul) =
        ("aGVsbG8=", "iVBORw0KGgoAAAANSUhEUg==", "PHNjcmlwdD4=", "YQBi");
    let lies = [
        ("image/png", hello),
        ("image/jpeg", png),
        ("text/plain", png),
        ("application/pdf", script),
        ("image/gif", script),
        ("text/plain", nul),
        ("application/json", nul),
        ("application/zip", hello),
        ("not a type", hello),
    ];
    for (mime_type, content) in lies {
        let params = json!({"mime_type": mime_type, "content_base64": content});
        let reply = alpha.call_for(&run.id, "artifacts.create", params).await;
        assert_eq!(refused(&reply), InvalidArgument, "{mime_type} {content}");
    }
    assert_eq!(objects(&stage.host.data().join("artifacts")), [] as [PathBuf; 0]);
    for (mime_type, content) in [("image/png", png), ("text/plain", hello), ("text/html", script)] {
        let params = json!({"mime_type": mime_type, "content_base64": content});
        let made = alpha.call_for(&run.id, "artifacts.create", params).await.unwrap();
        assert_eq!(made["mime_type"], mime_type);
    }
    stage.assert_sound();
}

/// Somebody who can write into the artifact folder still does not make the host read what is elsewhere.
#[tokio::test(flavor = "multi_thread")]
async fn links_in_the_artifact_folder_are_not_followed() {
    let mut stage = Stage::open(&["alpha"], "", &agent("full", ALPHA, "", ALL)).await;
    let alpha = stage.connect("alpha").await;
    let seeds = seed(&stage, &alpha, &event("full", "c")).await;
    let run = stage.start(&alpha, &event("full", "c")).await;
    let kept = objects(&stage.host.data().join("artifacts"));
    let [object] = kept.as_slice() else { panic!("one artifact, one object: {kept:?}") };
    let secret = stage.host.folder().join("secret");
    std::fs::write(&secret, "keepsafe!").unwrap();
    std::fs::remove_file(object).unwrap();
    std::os::unix::fs::symlink(&secret, object).unwrap();
    for method in ["artifacts.read_range", "artifacts.open_stream"] {
        let params = json!({"artifact_id": seeds.artifact});
        let reply = alpha.call_for(&run.id, method, params).await;
        assert_eq!(refused(&reply), RuntimeError, "{method}");
    }
    // The same content again is not written through the link either.
    let params = json!({"name": "again.txt", "content_base64": "eHlsb3Bob25l"});
    // Whether it is taken is for the host to say; where it goes is not.
    let _ = alpha.call_for(&run.id, "artifacts.create", params).await;
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "keepsafe!");
    assert_eq!(MARK.len(), "keepsafe!".len(), "the link leads to as many bytes as were kept");
    stage.assert_sound();
}

/// The files of a folder that hold bytes of artifacts.
fn objects(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_object = |path: &PathBuf| path.file_name().unwrap().len() == 64;
    let found = entries.flat_map(|entry| match entry.path() {
        path if path.is_dir() => objects(&path),
        path => vec![path].into_iter().filter(is_object).collect(),
    });
    found.collect()
}
