//! What a user reads for each mistake.

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
fn every_mistake_of_a_file_is_told() {
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
fn a_secret_in_the_file_is_refused_and_not_shown() {
    let text = r#"[tokens.web]
role = "sender"
token = "sk-hunter2""#;
    assert_snapshot!(mistakes(text), @r#"
    error: `tokens.web.token` is a secret and cannot stand in the file
      --> greenroom.toml:3:9
       |
     3 | token = …
       |         ^
    hint: write `{ env = "NAME" }` or `{ file = "PATH" }`
    "#);
}

#[test]
fn a_header_that_tells_who_is_asking_is_a_secret_for_tools_and_models_alike() {
    let text = r#"[tools.issues]
url = "https://example.com/mcp"
headers = { X-Team = "blue", Authorization = "Bearer sk-hunter2" }
[models.m]
provider = "openai"
model = "x"
headers = { X-Title = "mine", X-Api-Key = "sk-hunter2", X-Way = "Basic aHVudGVyMg==" }"#;
    assert_snapshot!(mistakes(text), @r#"
    error: `tools.issues.headers.Authorization` is a secret and cannot stand in the file
      --> greenroom.toml:3:46
       |
     3 | headers = { X-Team = "blue", Authorization = … }
       |                                              ^
    hint: write `{ env = "NAME" }` or `{ file = "PATH" }`

    error: `models.m.headers.X-Api-Key` is a secret and cannot stand in the file
      --> greenroom.toml:7:43
       |
     7 | headers = { X-Title = "mine", X-Api-Key = …, X-Way = … }
       |                                           ^
    hint: write `{ env = "NAME" }` or `{ file = "PATH" }`

    error: `models.m.headers.X-Way` is a secret and cannot stand in the file
      --> greenroom.toml:7:65
       |
     7 | headers = { X-Title = "mine", X-Api-Key = …, X-Way = … }
       |                                                      ^
    hint: write `{ env = "NAME" }` or `{ file = "PATH" }`
    "#);
}

#[test]
fn headers_that_the_host_writes_itself_cannot_be_set() {
    let text = r#"[tools.issues]
url = "https://example.com/mcp"
headers = { Host = "example.org", content-length = "3" }
[models.m]
provider = "openai"
model = "x"
headers = { Transfer-Encoding = "chunked", Connection = "close" }"#;
    let told = mistakes(text);
    for name in [
        "tools.issues.headers.Host",
        "tools.issues.headers.content-length",
        "models.m.headers.Transfer-Encoding",
        "models.m.headers.Connection",
    ] {
        assert!(told.contains(&format!("error: `{name}` cannot be set")), "{told}");
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

#[test]
fn a_runner_needs_a_command_or_a_token() {
    let text = r#"[runners.r]
dir = "x""#;
    assert_snapshot!(mistakes(text), @r#"
    error: `runners.r` has neither `command` nor `token`
      --> greenroom.toml:1:1
       |
     1 | [runners.r]
       | ^^^^^^^^^^^
    hint: add `command` to have it started, or `token` to let it connect over WebSocket
    "#);
}

#[test]
fn a_runner_id_has_three_parts() {
    let text = r#"[agents.a]
runner = "acme/triage""#;
    assert_snapshot!(mistakes(text), @r#"
    error: `acme/triage` is not a runner id
      --> greenroom.toml:2:10
       |
     2 | runner = "acme/triage"
       |          ^^^^^^^^^^^^^
    hint: write `plugin:author/name/runner`; `greenroom runner list` shows those that exist
    "#);
}

#[test]
fn a_surface_that_does_not_exist_is_pointed_at() {
    let text = r#"[agents.a]
runner = "plugin:a/b/c"
delivery = "helpdsk"

[surfaces.helpdesk]
kind = "webhook"
url = "https://example.com""#;
    assert_snapshot!(mistakes(text), @r#"
    error: there is no surface `helpdsk`
      --> greenroom.toml:3:12
       |
     3 | delivery = "helpdsk"
       |            ^^^^^^^^^
    hint: did you mean `helpdesk`?
    "#);
}

#[test]
fn an_agent_that_does_not_exist_is_pointed_at() {
    let text = r#"[tokens.t]
role = "sender"
agents = ["echo", "nobody"]
token = { env = "T" }"#;
    assert_snapshot!(mistakes(text), @r#"
    error: there is no agent `nobody`
      --> greenroom.toml:3:19
       |
     3 | agents = ["echo", "nobody"]
       |                   ^^^^^^^^
    hint: configured: `assistant`, `echo`
    "#);
}

#[test]
fn what_comes_later_is_said_to_come_later() {
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
fn a_langbot_plugin_needs_its_folder_and_a_python() {
    let text = r#"[runners.a]
wire = "langbot"
command = ["python3"]

[runners.b]
wire = "langbot"
dir = "nowhere"

[runners.c]
wire = "langbot"
dir = "nowhere"
token = 5"#;
    assert_snapshot!(mistakes(text), @r#"
    error: `runners.a` speaks the wire `langbot` and has no `dir`
      --> greenroom.toml:1:1
       |
     1 | [runners.a]
       | ^^^^^^^^^^^
    hint: write the folder of the plugin, the one with its `manifest.yaml`, as `dir`

    error: `runners.b` has no `command`, and there is no Python in its folder
      --> greenroom.toml:5:1
       |
     5 | [runners.b]
       | ^^^^^^^^^^^
    hint: `greenroom runner add DIR` makes one, or write the interpreter as `command`

    error: `runners.c` speaks the wire `langbot` and has a `token`
       --> greenroom.toml:12:9
        |
     12 | token = 5
        |         ^
    hint: the host starts a LangBot plugin itself: give its folder as `dir`
    "#);
}

#[test]
fn actions_and_those_who_may_answer_are_named_as_they_are() {
    let text = r#"[approvals]
answer = ["admin", "token:desk", "everyone"]
expires_s = 0

[surfaces.hook]
kind = "webhook"
url = "https://example.com/hook"
actions = ["message.send", "message.sent"]

[agents.a]
runner = "plugin:a/b/c"
queue = "steered""#;
    assert_snapshot!(mistakes(text), @r#"
    error: there is no token `desk`
      --> greenroom.toml:2:20
       |
     2 | answer = ["admin", "token:desk", "everyone"]
       |                    ^^^^^^^^^^^^
    hint: add `[tokens.desk]`

    error: `everyone` cannot answer
      --> greenroom.toml:2:34
       |
     2 | answer = ["admin", "token:desk", "everyone"]
       |                                  ^^^^^^^^^^
    hint: write `admin`, or `token:NAME` for one of `[tokens]`

    error: `approvals.expires_s` must be between 1 and 604800
      --> greenroom.toml:3:13
       |
     3 | expires_s = 0
       |             ^
    hint: leave it out to have the default

    error: `surfaces.hook.actions` cannot be `message.sent`
      --> greenroom.toml:8:28
       |
     8 | actions = ["message.send", "message.sent"]
       |                            ^^^^^^^^^^^^^^
    hint: did you mean `message.send`?

    error: `agents.a.queue` cannot be `steered`
       --> greenroom.toml:12:9
        |
     12 | queue = "steered"
        |         ^^^^^^^^^
    hint: did you mean `steer`?
    "#);
}

#[test]
fn a_bucket_comes_with_its_keys_and_a_folder_without() {
    let told = mistakes("[artifacts]\nurl = \"s3://bytes\"\n");
    assert!(told.contains("`artifacts` has no `access_key_id`"), "{told}");
    assert!(told.contains("`artifacts` has no `secret_access_key`"), "{told}");
    let told = mistakes("[artifacts]\nurl = \"s3://bytes\"\naccess_key_id = \"open\"\n");
    assert!(told.contains("`artifacts.access_key_id`") && !told.contains("`open`"), "{told}");
    let told = mistakes("[artifacts]\nurl = \"file:x\"\nregion = \"eu\"\n");
    assert!(told.contains("`artifacts.region` is for a bucket"), "{told}");
    let told = mistakes("[artifacts]\nurl = \"gs://x\"\n");
    assert!(told.contains("`gs://x` is not a place for artifacts"), "{told}");
}

#[test]
fn retention_is_told_in_whole_days() {
    let told = mistakes("[retention]\naudit_days = -1\nevent_days = 7\nledger_days = 36501\n");
    assert!(told.contains("`retention.audit_days` must be between 0 and 36500"), "{told}");
    assert!(told.contains("unknown key `event_days` in `retention`"), "{told}");
    assert!(told.contains("hint: did you mean `events_days`?"), "{told}");
    assert!(told.contains("`retention.ledger_days` must be between 0 and 36500"), "{told}");
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
fn two_entries_cannot_share_an_identity() {
    let text = r#"[runners.a]
command = "a"
plugin = "x/y"

[runners.b]
command = "b"
plugin = "x/y"

[tokens.s]
role = "admin"
token = { env = "T" }

[tokens.t]
role = "reader"
agents = ["echo"]
token = { env = "T" }

[tokens.u]
role = "reader"
token = { env = "T" }"#;
    assert_snapshot!(mistakes(text), @r#"
    error: `runners.b` is pinned to the same plugin as `runners.a`
      --> greenroom.toml:7:1
       |
     7 | plugin = "x/y"
       | ^^^^^^
    hint: two processes cannot offer the same runners

    error: only a `sender` can be limited to agents
       --> greenroom.toml:15:10
        |
     15 | agents = ["echo"]
        |          ^^^^^^^^
    hint: remove `agents`, or make it a `sender`

    error: `tokens.u` is the same secret as `tokens.s`
       --> greenroom.toml:20:1
        |
     20 | token = { env = "T" }
        | ^^^^^
    hint: a token says who someone is, so each needs its own
    "#);
}

#[test]
fn the_caret_stands_below_wide_characters() {
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

#[test]
fn a_sandboxed_runner_gets_no_folder_around_the_configuration() {
    let text = r#"[runners.a]
command = "run"
dir = "."

[runners.b]
command = "run"
dir = "b"
paths = ["shared", "/srv"]

[runners.c]
command = "run"
dir = "/"
sandbox = "off"

[runners.d]
command = "run""#;
    assert_snapshot!(mistakes(text), @r#"
    error: `runners.a.dir` contains the configuration, which a runner must not change
      --> greenroom.toml:3:7
       |
     3 | dir = "."
       |       ^^^
    hint: give the runner a folder of its own, e.g. `dir = "a"`

    error: `runners.b.paths` contains the configuration, which a runner must not change
      --> greenroom.toml:8:20
       |
     8 | paths = ["shared", "/srv"]
       |                    ^^^^^^
    hint: give the runner a folder of its own, e.g. `dir = "b"`
    "#);
}

#[test]
fn an_agent_may_only_be_granted_what_is_configured() {
    let text = r#"[agents.a]
runner = "plugin:a/b/c"
[agents.a.grant]
models = ["small"]
tools = ["calendar.*", "search"]
knowledge = ["handbook"]"#;
    assert_snapshot!(mistakes(text), @r#"
    error: there is no model `small`
      --> greenroom.toml:4:11
       |
     4 | models = ["small"]
       |           ^^^^^^^
    hint: configured: `default`

    error: there is no tool `calendar.*`
      --> greenroom.toml:5:10
       |
     5 | tools = ["calendar.*", "search"]
       |          ^^^^^^^^^^^^
    hint: did you mean `modules = ["calendar.*"]`? methods of the project CLI are granted there

    error: there is no tool `search`
      --> greenroom.toml:5:24
       |
     5 | tools = ["calendar.*", "search"]
       |                        ^^^^^^^^
    hint: add `[tools.search]`

    error: there is no knowledge base `handbook`
      --> greenroom.toml:6:14
       |
     6 | knowledge = ["handbook"]
       |              ^^^^^^^^^^
    hint: no knowledge base is configured
    "#);
}
