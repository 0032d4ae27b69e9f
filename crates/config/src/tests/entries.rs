//! Mistakes in runners, agents, surfaces and tokens.

use super::mistakes;
use insta::assert_snapshot;

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
fn unknown_actions_answerers_and_queues_are_reported() {
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
    hint: a token identifies its owner, so each needs its own
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
