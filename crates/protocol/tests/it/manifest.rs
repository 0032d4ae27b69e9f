//! Discovery: versions, warnings and errors of manifests.

use greenroom_protocol::{
    AgentRunnerManifest, I18nObject, InvalidManifest, ManifestWarning, RunnerId, is_compatible,
};

#[test]
fn the_major_version_alone_decides() {
    for version in ["1", "1.0", "1.9", "1.2.3"] {
        assert!(is_compatible(version), "{version}");
    }
    for version in ["", "0", "2", "10", "11.1", "01", "v1", " 1", "1.", "1..2", "1.x", "-1", "1,0"]
    {
        assert!(!is_compatible(version), "{version}");
    }
}

#[test]
fn another_major_version_is_told_apart_from_a_broken_manifest() {
    let newer = r#"{"protocol_version":"2.0","identifier":{"of":"another shape"}}"#;
    let refused = AgentRunnerManifest::parse(newer).expect_err("version 2 is not offered");
    assert!(matches!(&refused, InvalidManifest::Version { version } if version == "2.0"));
    assert_eq!(
        refused.to_string(),
        "protocol version `2.0` is not supported, this host speaks `1`"
    );
    let broken = AgentRunnerManifest::parse(r#"{"name":"x"}"#).expect_err("there is no id");
    assert!(matches!(broken, InvalidManifest::Shape { .. }));
}

#[test]
fn the_name_must_fit_the_id() {
    let json = r#"{"id":"plugin:acme/helper/default","name":"other","label":"x"}"#;
    let refused = AgentRunnerManifest::parse(json).expect_err("the names differ");
    assert_eq!(
        refused.to_string(),
        "`name` is `other`, but the id `plugin:acme/helper/default` ends in `default`"
    );
}

#[test]
fn older_fields_and_unknown_permissions_are_warned_about() {
    let json = r#"{"id":"plugin:acme/helper/default","name":"default","label":"x",
        "context":{"ownership":"hybrid","bootstrap":"recent_tail","max_inline_events":3,
                   "max_inline_bytes":9,"owns_compaction":false},
        "permissions":{"skills":["read"],"models":["invoke"]}}"#;
    let manifest = AgentRunnerManifest::parse(json).expect("older manifests load");
    let older = |field: &str| ManifestWarning::OlderField { field: field.to_owned() };
    assert_eq!(
        manifest.warnings(),
        [
            older("context.bootstrap"),
            older("context.max_inline_bytes"),
            older("context.max_inline_events"),
            older("context.ownership"),
            ManifestWarning::UnknownPermission { field: "permissions.skills".to_owned() },
        ]
    );
    assert!(!manifest.context.owns_compaction);
}

#[test]
fn a_current_manifest_has_no_warnings() {
    let json = r#"{"id":"plugin:acme/helper/default","name":"default","label":"x"}"#;
    assert_eq!(AgentRunnerManifest::parse(json).expect("it is valid").warnings(), []);
}

#[test]
fn a_runner_id_knows_its_plugin_and_its_runner() {
    let id = RunnerId::parse("plugin:acme/my.helper-2/default").expect("it is well formed");
    assert_eq!(id.plugin(), "acme/my.helper-2");
    assert_eq!(id.runner(), "default");
    assert_eq!(RunnerId::new("acme", "my.helper-2", "default"), Ok(id));
}

#[test]
fn a_text_falls_back_to_english_and_then_to_any_language() {
    let texts: I18nObject =
        serde_json::from_str(r#"{"en_US":"Helper","zh_Hans":"助手","ja_JP":null}"#).expect("texts");
    assert_eq!(texts.text("zh_Hans"), "助手");
    assert_eq!(texts.text("ja_JP"), "Helper");
    let chinese: I18nObject = serde_json::from_str(r#"{"zh_Hans":"助手"}"#).expect("texts");
    assert_eq!(chinese.text("en_US"), "助手");
}
