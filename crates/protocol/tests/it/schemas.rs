//! `docs/schema/` matches the types.

use greenroom_protocol::{RunStatus, schema};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const HINT: &str = "run `cargo run -p greenroom-protocol --example write_schemas` and commit";

#[test]
fn docs_schema_has_not_drifted_from_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    let mut expected = BTreeSet::new();
    for (name, schema) in schema::all() {
        let file = format!("{name}.json");
        let text = fs::read_to_string(folder.join(&file)).unwrap_or_default();
        let kept: Value = serde_json::from_str(&text).unwrap_or_default();
        assert!(&kept == schema.as_value(), "docs/schema/{file} has drifted: {HINT}");
        expected.insert(file);
    }
    let kept: BTreeSet<String> = fs::read_dir(folder)
        .expect("docs/schema exists")
        .map(|entry| entry.expect("docs/schema can be listed").file_name())
        .map(|name| name.into_string().expect("file names are UTF-8"))
        .filter(|name| name.ends_with(".json"))
        .collect();
    assert_eq!(kept, expected, "docs/schema has files that no type stands behind: {HINT}");
}

#[test]
fn the_list_of_statuses_is_complete_and_in_the_order_of_the_declaration() {
    let schema = schemars::schema_for!(RunStatus);
    assert_eq!(schema.get("enum"), Some(&json!(RunStatus::ALL)));
    for (index, status) in RunStatus::ALL.into_iter().enumerate() {
        assert_eq!((status as usize, json!(status)), (index, json!(status.as_str())));
    }
}
