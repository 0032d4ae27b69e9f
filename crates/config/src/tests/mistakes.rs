//! What a user reads for each mistake in how a file is written.

use super::mistakes;
use insta::assert_snapshot;

#[test]
fn an_unknown_key_comes_with_a_suggestion() {
    let text = r#"[server]
listen = "127.0.0.1:0"
lisen = "x""#;
    assert_snapshot!(mistakes(text), @r#"
    error: unknown key `lisen` in `server`
      --> greenroom.toml:3:1
       |
     3 | lisen = …
       | ^^^^^
    hint: did you mean `listen`?
    "#);
}

#[test]
fn an_unknown_section_comes_with_a_suggestion() {
    let text = r#"[agent.triage]
runner = "plugin:a/b/c""#;
    assert_snapshot!(mistakes(text), @r#"
    error: unknown section `agent`
      --> greenroom.toml:1:2
       |
     1 | [agent.triage]
       |  ^^^^^
    hint: did you mean `agents`?
    "#);
}

#[test]
fn an_unknown_key_without_a_neighbour_lists_what_is_known() {
    let text = r#"[store]
pool = 3"#;
    assert_snapshot!(mistakes(text), @r#"
    error: unknown key `pool` in `store`
      --> greenroom.toml:2:1
       |
     2 | pool = …
       | ^^^^
    hint: known here: `sync`, `url`
    "#);
}

#[test]
fn every_mistake_of_a_file_is_reported() {
    let text = r#"[server]
listen = 8700

[store]
sync = "sometimes"

[limits]
page_size = 0"#;
    assert_snapshot!(mistakes(text), @r#"
    error: `server.listen` must be a string, not a number
      --> greenroom.toml:2:10
       |
     2 | listen = 8700
       |          ^^^^
    hint: write it in quotes

    error: `store.sync` cannot be `sometimes`
      --> greenroom.toml:5:8
       |
     5 | sync = "sometimes"
       |        ^^^^^^^^^^^
    hint: one of: `full`, `normal`

    error: `limits.page_size` must be between 1 and 1000
      --> greenroom.toml:8:13
       |
     8 | page_size = 0
       |             ^
    hint: leave it out to have the default
    "#);
}

#[test]
fn a_section_of_a_later_version_is_refused_as_such() {
    let text = r#"[knowledge.small]
dir = "docs""#;
    assert_snapshot!(mistakes(text), @r#"
    error: `knowledge` is not supported by this version
      --> greenroom.toml:1:2
       |
     1 | [knowledge.small]
       |  ^^^^^^^^^
    hint: remove the section
    "#);
}

#[test]
fn a_bucket_comes_with_its_keys_and_a_folder_without() {
    let text = mistakes("[artifacts]\nurl = \"s3://bytes\"\n");
    assert!(text.contains("`artifacts` has no `access_key_id`"), "{text}");
    assert!(text.contains("`artifacts` has no `secret_access_key`"), "{text}");
    let text = mistakes("[artifacts]\nurl = \"s3://bytes\"\naccess_key_id = \"open\"\n");
    assert!(text.contains("`artifacts.access_key_id`") && !text.contains("`open`"), "{text}");
    let text = mistakes("[artifacts]\nurl = \"file:x\"\nregion = \"eu\"\n");
    assert!(text.contains("`artifacts.region` is for a bucket"), "{text}");
    let text = mistakes("[artifacts]\nurl = \"gs://x\"\n");
    assert!(text.contains("`gs://x` is not a location for artifacts"), "{text}");
}

#[test]
fn retention_is_in_whole_days() {
    let text = mistakes("[retention]\naudit_days = -1\nevent_days = 7\nledger_days = 36501\n");
    assert!(text.contains("`retention.audit_days` must be between 0 and 36500"), "{text}");
    assert!(text.contains("unknown key `event_days` in `retention`"), "{text}");
    assert!(text.contains("hint: did you mean `events_days`?"), "{text}");
    assert!(text.contains("`retention.ledger_days` must be between 0 and 36500"), "{text}");
}

#[test]
fn a_broken_line_is_pointed_at() {
    let text = r#"[server]
listen = "127.0.0.1:8700

[tokens.t]
token = "sk-hunter2"#;
    assert_snapshot!(mistakes(text), @r#"
    error: invalid basic string, expected `"`
      --> greenroom.toml:2:25
       |
     2 | listen = "127.0.0.1:8700
       |                         ^
    hint: `greenroom.example.toml` shows how each key is written

    error: invalid basic string, expected `"`
      --> greenroom.toml:5:20
       |
     5 | token = …
       |          ^
    hint: `greenroom.example.toml` shows how each key is written
    "#);
}

#[test]
fn a_name_has_letters_digits_and_dashes() {
    let text = r#"[agents."my agent"]
runner = "plugin:a/b/c""#;
    assert_snapshot!(mistakes(text), @r#"
    error: `my agent` is not a name for `agents`
      --> greenroom.toml:1:9
       |
     1 | [agents."my agent"]
       |         ^^^^^^^^^^
    hint: names have 1 to 64 of the characters A-Z a-z 0-9 _ -
    "#);
}

#[test]
fn a_missing_key_points_at_its_table() {
    let text = r#"# comment
[surfaces.s]
kind = "webhook""#;
    assert_snapshot!(mistakes(text), @r#"
    error: `surfaces.s` has no `url`
      --> greenroom.toml:2:1
       |
     2 | [surfaces.s]
       | ^^^^^^^^^^^^
    hint: add `url = …`
    "#);
}

#[test]
fn the_caret_is_below_wide_characters() {
    let text = r#"[agents.a]
runner = "plugin:a/b/c"
scope = { bot = "客服", actr = "x" }"#;
    assert_snapshot!(mistakes(text), @r#"
    error: unknown key `actr` in `agents.a.scope`
      --> greenroom.toml:3:23
       |
     3 | scope = { bot = "客服", actr = … }
       |                         ^^^^
    hint: did you mean `actor`?
    "#);
}
