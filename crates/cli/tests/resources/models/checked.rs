//! What `greenroom check` says of models that cannot work.

use std::process::{Command, Stdio};

/// What is said of a configuration, on standard error.
#[expect(clippy::disallowed_methods, reason = "the program under test is started here")]
fn mistakes(config: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("greenroom.toml"), config).unwrap();
    std::fs::write(dir.path().join("bad.toml"), "[[rule]]\nanswr = \"x\"\n").unwrap();
    let output = Command::new(crate::PROGRAM)
        .args(["check", "--config", "greenroom.toml"])
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .env("A_KEY", "sk-a-key-that-nobody-may-read")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!text.contains("sk-a-key"));
    text.replace(&format!("{}/", dir.path().display()), "")
}

#[test]
fn a_private_address_has_to_be_allowed() {
    let text = r#"[models.inside]
provider = "openai"
model = "m"
base_url = "http://169.254.169.254/v1"
api_key = { env = "A_KEY" }"#;
    insta::assert_snapshot!(mistakes(text), @r#"
    error: the model `inside` cannot be reached: the address is private
      --> greenroom.toml:4:1
       |
     4 | base_url = "http://169.254.169.254/v1"
       | ^^^^^^^^
    hint: add `allow_private = true` to `[models.inside]` if the address is intended
    "#);
}

#[test]
fn a_provider_without_an_address_of_its_own_needs_one() {
    let text = r#"[models.own]
provider = "openai-compatible"
model = "m""#;
    insta::assert_snapshot!(mistakes(text), @r#"
    error: the model `own` needs a `base_url`
      --> greenroom.toml:1:9
       |
     1 | [models.own]
       |         ^^^
    "#);
}

#[test]
fn a_mistake_in_a_script_is_told_with_its_place() {
    let text = r#"[models.demo]
provider = "scripted"
script = "bad.toml""#;
    insta::assert_snapshot!(mistakes(text), @r#"
    error: `bad.toml`, line 2: unknown field `answr`, expected one of `name`, `when`, `times`, `answer`
      --> greenroom.toml:3:1
       |
     3 | script = "bad.toml"
       | ^^^^^^
    "#);
}

#[test]
fn a_script_that_is_not_there_is_told() {
    let text = r#"[models.demo]
provider = "scripted"
script = "none.toml""#;
    insta::assert_snapshot!(mistakes(text), @r#"
    error: cannot read the script `none.toml`: No such file or directory (os error 2)
      --> greenroom.toml:3:1
       |
     3 | script = "none.toml"
       | ^^^^^^
    "#);
}

#[test]
fn the_model_of_the_tool_search_is_one_that_makes_vectors() {
    let text = r#"[models.vectors]
provider = "scripted"
kind = "embedding"
[tool_search]
model = "vektors""#;
    insta::assert_snapshot!(mistakes(text), @r#"
    error: there is no model `vektors`
      --> greenroom.toml:5:9
       |
     5 | model = "vektors"
       |         ^^^^^^^^^
    hint: did you mean `vectors`?
    "#);
    let text = text.replace("kind = \"embedding\"\n", "").replace("vektors", "vectors");
    insta::assert_snapshot!(mistakes(&text), @r#"
    error: `tool_search.model` takes a model of kind `embedding`, and `vectors` is of kind `chat`
      --> greenroom.toml:4:1
       |
     4 | model = "vectors"
       | ^^^^^
    hint: if it makes vectors, add `kind = "embedding"` to `[models.vectors]`
    "#);
}
