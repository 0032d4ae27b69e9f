//! What a user reads for each mistake with a secret; never the secret.

use super::mistakes;
use insta::assert_snapshot;

#[test]
fn a_secret_in_the_file_is_refused_and_not_shown() {
    let text = r#"[tokens.web]
role = "sender"
token = "sk-hunter2""#;
    assert_snapshot!(mistakes(text), @r#"
    error: `tokens.web.token` is a secret and cannot be written in the file
      --> greenroom.toml:3:9
       |
     3 | token = …
       |         ^
    hint: write `{ env = "NAME" }` or `{ file = "PATH" }`
    "#);
}

#[test]
fn a_header_with_a_credential_is_a_secret_for_tools_and_models() {
    let text = r#"[tools.issues]
url = "https://example.com/mcp"
headers = { X-Team = "blue", Authorization = "Bearer sk-hunter2" }
[models.m]
provider = "openai"
model = "x"
headers = { X-Title = "mine", X-Api-Key = "sk-hunter2", X-Way = "Basic aHVudGVyMg==" }"#;
    assert_snapshot!(mistakes(text), @r#"
    error: `tools.issues.headers.Authorization` is a secret and cannot be written in the file
      --> greenroom.toml:3:46
       |
     3 | headers = { X-Team = "blue", Authorization = … }
       |                                              ^
    hint: write `{ env = "NAME" }` or `{ file = "PATH" }`

    error: `models.m.headers.X-Api-Key` is a secret and cannot be written in the file
      --> greenroom.toml:7:43
       |
     7 | headers = { X-Title = "mine", X-Api-Key = …, X-Way = … }
       |                                           ^
    hint: write `{ env = "NAME" }` or `{ file = "PATH" }`

    error: `models.m.headers.X-Way` is a secret and cannot be written in the file
      --> greenroom.toml:7:65
       |
     7 | headers = { X-Title = "mine", X-Api-Key = …, X-Way = … }
       |                                                      ^
    hint: write `{ env = "NAME" }` or `{ file = "PATH" }`
    "#);
}

#[test]
fn headers_that_the_host_sets_cannot_be_configured() {
    let text = r#"[tools.issues]
url = "https://example.com/mcp"
headers = { Host = "example.org", content-length = "3" }
[models.m]
provider = "openai"
model = "x"
headers = { Transfer-Encoding = "chunked", Connection = "close" }"#;
    let text = mistakes(text);
    for name in [
        "tools.issues.headers.Host",
        "tools.issues.headers.content-length",
        "models.m.headers.Transfer-Encoding",
        "models.m.headers.Connection",
    ] {
        assert!(text.contains(&format!("error: `{name}` cannot be set")), "{text}");
    }
}

#[test]
fn a_misspelt_secret_is_not_shown() {
    let text = r#"[surfaces.s]
kind = "webhook"
url = "https://example.com"
secrett = "sk-hunter2""#;
    assert_snapshot!(mistakes(text), @r#"
    error: unknown key `secrett` in `surfaces.s`
      --> greenroom.toml:4:1
       |
     4 | secrett = …
       | ^^^^^^^
    hint: did you mean `secret`?
    "#);
}

#[test]
fn a_variable_that_is_not_set_is_pointed_at() {
    let text = r#"[runners.r]
token = { env = "MISSING_TOKEN" }"#;
    assert_snapshot!(mistakes(text), @r#"
    error: the environment variable `MISSING_TOKEN` is not set
      --> greenroom.toml:2:17
       |
     2 | token = { env = "MISSING_TOKEN" }
       |                 ^^^^^^^^^^^^^^^
    hint: set it before the host starts, or change `runners.r.token.env`
    "#);
}

#[test]
fn a_file_that_cannot_be_read_is_pointed_at() {
    let text = r#"[runners.r]
token = { file = "missing" }"#;
    assert_snapshot!(mistakes(text), @r#"
    error: cannot read `/srv/greenroom/missing`: no such file
      --> greenroom.toml:2:18
       |
     2 | token = { file = "missing" }
       |                  ^^^^^^^^^
    hint: a relative path starts at the folder of the configuration
    "#);
}

#[test]
fn an_empty_secret_is_refused() {
    let text = r#"[runners.r]
token = { env = "EMPTY" }"#;
    assert_snapshot!(mistakes(text), @r#"
    error: the secret `runners.r.token` is empty
      --> greenroom.toml:2:9
       |
     2 | token = { env = "EMPTY" }
       |         ^^^^^^^^^^^^^^^^^
    hint: an empty secret protects nothing
    "#);
}
