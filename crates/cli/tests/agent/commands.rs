//! Slash commands (cases 21 and 22): the same tools, checks and records as for the model, and no model.

use crate::scene::{Scene, Setting};
use crate::stage::{PATIENCE, event, outcome, runners};
use crate::steering::{decide, question};
use greenroom_protocol::{RunStatus, RunView, TranscriptRole};
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};

/// The plugin `scribe`, whose tools give back what they were given.
fn scribe() -> String {
    let program = runners().join("drawer.py");
    format!(
        "[runners.scribe]\ncommand = [\"python3\", \"{}\"]\ndir = \"scribe\"\n",
        program.display()
    )
}

const GRANT: &str = "tools = [\"scribe.*\", \"forge.*\"], \
    modules = [\"calendar.*\", \"contacts.read\"], risk = { write = \"always\" }";

/// Also a script that calls the tool, for comparison.
const SCRIPT: &str = r#"
[[rule]]
when = { text = "note it", tool_result = false }
answer = [{ call = "scribe_note", args = { text = "two  blanks" }, id = "c1" }]
[[rule]]
answer = "You said: {{text}}"
"#;

pub(crate) async fn desk() -> Scene {
    let more = scribe();
    let files = [("scribe/wire.log", "")];
    let setting =
        Setting { script: SCRIPT, grant: GRANT, more: &more, files: &files, ..Setting::default() };
    let scene = setting.open().await;
    scene.stage.api.ready_runner("scribe").await;
    scene.stage.api.ready_runner("forge").await;
    scene
}

/// What the tool was called with, as the results of the run tell it.
async fn parameters(scene: &Scene, run: &RunView) -> Value {
    let results = scene.stage.api.results(&run.run_id).await;
    let results = results.iter().map(|result| serde_json::to_value(result).unwrap());
    let started: Vec<Value> = results.filter(|one| one["type"] == "tool.call.started").collect();
    assert_eq!(started.len(), 1, "{started:?}");
    started[0]["data"]["parameters"].clone()
}

pub(crate) async fn last_answer(scene: &Scene, conversation: &str) -> String {
    scene.stage.api.answers(conversation).await.pop().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_way_to_write_a_command_is_the_same_call_and_asks_no_model() {
    let scene = desk().await;
    let expected = json!({"text": "say \"two  blanks\"", "count": 2});
    for (number, line) in [
        r#"/scribe.note text="say \"two  blanks\"" count=2"#,
        r#"/scribe.note count=2 text='say "two  blanks"'"#,
        r#"/scribe.note {"text": "say \"two  blanks\"", "count": 2}"#,
        r#"/note count=2 say "two  blanks""#,
        r#"/Scribe.Note "say \"two  blanks\"" count=2"#,
    ]
    .into_iter()
    .enumerate()
    {
        let conversation = format!("c{number}");
        let run = scene.say(&conversation, line).await;
        assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{line}");
        assert_eq!(parameters(&scene, &run).await, expected, "{line}");
        let answer = last_answer(&scene, &conversation).await;
        assert_eq!(answer, "noted:\n  count: 2\n  text: say \"two  blanks\"", "{line}");
    }
    assert_eq!(scene.requests(), Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_read_as_the_schema_says() {
    let scene = desk().await;
    let line = "/note  keep   these blanks count=3 ratio=0.5 pinned=yes level=HIGH tags=a,b tags=\"c d\" \
                sizes=[1, 2] at.line=7 at.file=x.rs owner=null";
    let run = scene.say("c1", line).await;
    let expected = json!({"text": "keep   these blanks", "count": 3, "ratio": 0.5, "pinned": true,
        "level": "high", "tags": ["a", "b", "c d"], "sizes": [1, 2],
        "at": {"line": 7, "file": "x.rs"}, "owner": null});
    assert_eq!(parameters(&scene, &run).await, expected);
    let run = scene.say("c2", "/note 提醒我  开会 level=low").await;
    assert_eq!(parameters(&scene, &run).await, json!({"text": "提醒我  开会", "level": "low"}));
    assert_eq!(scene.requests(), Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_leaves_the_records_of_a_call_of_the_model_with_the_authority_of_the_user() {
    let scene = desk().await;
    let mut told = Vec::new();
    for (conversation, text) in [("c1", "note it"), ("c2", "/note \"two  blanks\"")] {
        let run = scene.say(conversation, text).await;
        assert_eq!(outcome(&run), (RunStatus::Completed, ""));
        let target = format!("/v1/audit?run_id={}&method=tools.call", run.run_id);
        let mut audit = scene.stage.api.get(&target).await["items"].take();
        assert_eq!(audit.as_array().unwrap().len(), 1, "{audit}");
        for key in ["run_id", "bytes_in", "bytes_out", "duration_us", "at"] {
            audit[0].as_object_mut().unwrap().remove(key);
        }
        let items = scene.history(conversation).await;
        let item = items.iter().find(|item| item.role == TranscriptRole::Tool).unwrap();
        let mut output = item.metadata["tool_agent_output"].clone();
        output.as_object_mut().unwrap().remove("tool_call_id");
        let events = scene.stage.api.events().await.into_iter();
        let is_start = |event: &Value| event["event_type"] == "tool.call.started";
        let begun = events.filter(is_start).find(|event| event.to_string().contains(&run.run_id));
        let logged = begun.unwrap().to_string();
        told.push((audit[0].take(), output, item.metadata.get("authority").cloned(), logged));
    }
    let (mut by_model, by_user) = (told[0].clone(), told[1].clone());
    assert_eq!(by_user.0["authority"], "user");
    assert_eq!(by_user.2, Some(json!("user")));
    assert!(by_user.3.contains(r#""authority":"user""#), "{}", by_user.3);
    assert!(by_model.3.contains(r#""authority":"agent""#), "{}", by_model.3);
    assert_eq!((by_model.0["authority"].take(), by_model.2), (json!("agent"), None));
    by_model.0["authority"] = "user".into();
    assert_eq!((by_model.0, by_model.1), (by_user.0, by_user.1));
    assert_eq!(scene.requests().len(), 2, "only the other run has asked the model");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_fails_answers_with_the_error_and_how_to_call_it() {
    let scene = desk().await;
    for (number, (line, expected)) in [
        ("/note count=many text=x", "`/scribe.note` failed: "),
        ("/note txt=hello", "`/scribe.note` failed: "),
        ("/note {\"text\": }", "text that starts with `{` must be one JSON object"),
        ("/note count=1 count=2 x", "`count` is given twice"),
        ("/forge.add 1 2", "`/forge.add` failed: no argument accepts the text `1 2`"),
        ("/forge.fail", "`/forge.fail` failed: the pen is empty (NO_INK)"),
        ("/forge.refuse", "`/forge.refuse` failed: "),
        ("/read", "`/read` is ambiguous: /calendar.read, /contacts.read"),
        ("/note count=很多 text=x", "`/scribe.note` 失败："),
        ("/note text=\"two  blanks", "`/scribe.note` failed: a quote is not closed: `text=\"two"),
        ("/note “两个 空格", "`/scribe.note` 失败：引号没有闭合：`“两个 空格`"),
    ]
    .into_iter()
    .enumerate()
    {
        let conversation = format!("c{number}");
        let run = scene.say(&conversation, line).await;
        assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{line}");
        let answer = last_answer(&scene, &conversation).await;
        assert!(answer.contains(expected), "{line}\n{answer}");
        let items = scene.history(&conversation).await;
        assert_eq!(items.last().unwrap().metadata["command"]["status"], "failure", "{line}");
    }
    let answer = last_answer(&scene, "c0").await;
    assert!(answer.contains("count"), "the field is named: {answer}");
    assert!(answer.contains("Usage:\n/scribe.note text=<text> [at=<json>]"), "{answer}");
    assert!(answer.contains("  level=low|high (optional)"), "{answer}");
    assert_eq!(scene.requests(), Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn methods_of_the_project_cli_are_commands() {
    let scene = desk().await;
    let create = "/calendar.create \"Lunch  with Ann\" start_at=2026-04-21T12:00:00+08:00 \
                  end_at=2026-04-21T13:00:00+08:00";
    let run = scene.say("c1", create).await;
    let expected = json!({"module": "calendar", "method": "create", "input": {
        "title": "Lunch  with Ann", "start_at": "2026-04-21T12:00:00+08:00",
        "end_at": "2026-04-21T13:00:00+08:00"}});
    assert_eq!(parameters(&scene, &run).await, expected);
    let answer = last_answer(&scene, "c1").await;
    let created =
        "Created “Lunch  with Ann”, Tue 2026-04-21 12:00–13:00 (UTC+08:00). Its id is `rec_";
    assert!(answer.starts_with(created), "{answer}");
    let day = "/calendar.read day date=2026-04-21 timezone=Asia/Shanghai";
    let answer = scene.answer("c1", day).await;
    let listed = "- Lunch  with Ann, Tue 2026-04-21 12:00–13:00 (UTC+08:00) [rec_";
    assert!(answer.starts_with(listed), "{answer}");
    let same = r#"/project_cli {"module": "contacts", "method": "read", "input": {"limit": 3}}"#;
    let run = scene.say("c2", "/contacts.read limit=3").await;
    let short = parameters(&scene, &run).await;
    let run = scene.say("c2", same).await;
    assert_eq!(parameters(&scene, &run).await, short);
    let answer = scene.answer("c3", "/calendar.read 什么时候").await;
    assert!(answer.starts_with("`/calendar.read` 失败："), "{answer}");
    assert!(answer.contains("mode=day|range|event"), "{answer}");
    let target = format!("/v1/audit?run_id={}&method=tools.call", run.run_id);
    // Records of reads are stored a little later.
    let record = wait_for("the audit record", PATIENCE, async || {
        let audit = scene.stage.api.get(&target).await;
        audit["items"].get(0).cloned()
    });
    let record = record.await;
    assert_eq!((&record["scope"], &record["authority"]), (&json!("contacts.read"), &json!("user")));
    assert_eq!(scene.requests(), Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn help_lists_what_is_available_to_this_actor_and_nothing_else() {
    let more = format!(
        "{}[agents.guest]\nrunner = \"plugin:greenroom/local-agent/default\"\nevents = []\n\
         grant = {{ models = [\"main\"], tools = [\"scribe.peek\"] }}\n",
        scribe()
    );
    let files = [("scribe/wire.log", "")];
    let scene =
        Setting { grant: GRANT, more: &more, files: &files, ..Setting::default() }.open().await;
    scene.stage.api.ready_runner("scribe").await;
    scene.stage.api.ready_runner("forge").await;
    let help = scene.answer("c1", "/help").await;
    for line in [
        "/help [NAME] — list commands and tools, or show how to call one",
        "/reset — start the conversation over",
        "/calendar.read mode=day|range|event [date=<text>]",
        "/forge.add a=<number> b=<number> — Adds two numbers",
        "/scribe.note text=<text> [at=<json>] [count=<number>]",
        " — Notes a text.",
    ] {
        assert!(help.contains(line), "{line}\n{help}");
    }
    assert!(!help.contains("memory.read"), "not granted: {help}");
    assert!(!help.contains("/project_cli"), "its methods stand for it: {help}");
    let one = scene.answer("c1", "/help note").await;
    assert!(one.starts_with("/scribe.note text=<text>"), "{one}");
    assert!(one.contains("  text=<text> — What to note"), "{one}");
    let tools = scene.answer("c1", "/tools two numbers").await;
    assert_eq!(tools, "Tools:\n/forge.add a=<number> b=<number> — Adds two numbers");
    let tools = scene.answer("c1", "/tools 删除").await;
    let delete = "/calendar.delete event_id=<文本> [if_version=<数字>] — 删除日历中的日程";
    assert_eq!(tools, format!("工具：\n{delete}"));
    let tools = scene.answer("c1", "/tools remove an event").await;
    assert!(tools.ends_with(" — Remove an event"), "{tools}");
    let chinese = scene.answer("c1", "/help 日历").await;
    assert!(
        chinese.contains("没有这个工具") && chinese.contains("/reset — 重新开始会话"),
        "{chinese}"
    );
    let by_name = scene.answer("c2", "/帮助").await;
    assert!(by_name.starts_with("命令：") && by_name.contains("/取消"), "{by_name}");

    let guest = json!({"event_type": "message.received", "agent": "guest", "conversation_id": "g1",
        "actor": {"actor_type": "user", "actor_id": "u2"}, "input": {"text": "/help"}});
    let run_id = scene.stage.send(&guest).await;
    scene.stage.api.ended_run(&run_id).await;
    let help = last_answer(&scene, "g1").await;
    assert!(help.contains("/scribe.peek — Looks without touching"), "{help}");
    assert!(!help.contains("note") && !help.contains("calendar"), "{help}");
    assert_eq!(scene.requests(), Vec::<Value>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_names_nothing_is_ordinary_text_for_the_model() {
    let scene = Setting::default().open().await;
    for (said, asked) in [
        ("/etc/hosts, what is that?", "/etc/hosts, what is that?"),
        ("/frobnicate now", "/frobnicate now"),
        // Not granted, so as good as unknown.
        ("/calendar.read day", "/calendar.read day"),
        ("//help me", "/help me"),
        ("see /help", "see /help"),
        ("/ help", "/ help"),
    ] {
        assert_eq!(scene.answer("c1", said).await, format!("You said: {asked}"));
    }
    let users = |messages: &Vec<Value>| {
        let said = messages.iter().filter(|message| message["role"] == "user");
        said.map(|message| message["content"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let last = users(scene.asked().last().unwrap());
    assert_eq!(last[3], "/help me", "history tells it as it was asked: {last:?}");

    let off = Setting { config: "{ commands = false }", ..Setting::default() }.open().await;
    assert_eq!(off.answer("c1", "/help").await, "You said: /help");
    assert_eq!(off.answer("c1", "//help").await, "You said: //help");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_begins_anew_for_the_model_and_helps_are_none_of_its_matter() {
    let scene = Setting::default().open().await;
    scene.answer("c1", "my name is Ann").await;
    scene.answer("c1", "/help").await;
    scene.answer("c1", "who am I?").await;
    let said = scene.asked().pop().unwrap();
    let text = json!(said).to_string();
    assert!(text.contains("my name is Ann"), "{text}");
    assert!(!text.contains("/help") && !text.contains("Commands:"), "{text}");

    let answer = scene.answer("c1", "/reset").await;
    assert!(answer.starts_with("The conversation starts over"), "{answer}");
    scene.answer("c1", "and now?").await;
    let said = scene.asked().pop().unwrap();
    let text = json!(said).to_string();
    assert!(!text.contains("Ann") && !text.contains("reset") && !text.contains("anew"), "{text}");
    assert_eq!(said.len(), 2, "the prompt and the question: {text}");
    // Another conversation knows nothing of it.
    assert_eq!(scene.requests().len(), 3);
    let items = scene.history("c1").await;
    assert_eq!(items.iter().filter(|item| item.role == TranscriptRole::User).count(), 5);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_chooses_its_model() {
    let more =
        "[models.second]\nprovider = \"scripted\"\nmodel = \"s\"\nscript = \"second.toml\"\n";
    let files = [("second.toml", "[[rule]]\nanswer = \"second: {{text}}\"\n")];
    let setting =
        Setting { models: &["main", "second"], more, files: &files, ..Setting::default() };
    let scene = setting.open().await;
    let shown = scene.answer("c1", "/model").await;
    assert!(shown.contains("- main (in use)\n- second\n"), "{shown}");
    let set = scene.answer("c1", "/model second").await;
    assert_eq!(set, "This conversation now uses `second`");
    assert_eq!(scene.answer("c1", "hi").await, "second: hi");
    assert_eq!(scene.answer("c2", "hi").await, "You said: hi");
    let none = scene.answer("c1", "/model third").await;
    assert_eq!(none, "Unknown model. Available models: main, second");
    scene.answer("c1", "/model default").await;
    assert_eq!(scene.answer("c1", "hi").await, "You said: hi");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quote_that_is_not_closed_calls_nothing() {
    let scene = desk().await;
    let run = scene.say("c1", "/note text=\"two  blanks count=2").await;
    let results = scene.stage.api.results(&run.run_id).await;
    assert!(!results.iter().any(|result| result.kind.starts_with("tool.")), "{results:?}");
    assert!(last_answer(&scene, "c1").await.contains("Usage:"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_was_denied_says_so_and_not_how_to_call_it() {
    let more = scribe();
    let files = [("scribe/wire.log", "")];
    let grant = "tools = [\"scribe.*\"], risk = { write = \"ask\" }";
    let scene = Setting { grant, more: &more, files: &files, ..Setting::default() }.open().await;
    scene.stage.api.ready_runner("scribe").await;
    let run_id = scene.stage.send(&event("agent", "c1", "/note hello")).await;
    let asked = question(&scene).await;
    decide(&scene, &asked, "deny").await;
    let run = scene.stage.api.ended_run(&run_id).await;
    assert_eq!(outcome(&run), (RunStatus::Completed, ""));
    let answer = last_answer(&scene, "c1").await;
    assert!(answer.starts_with("`/scribe.note` failed: "), "{answer}");
    assert!(!answer.contains("Usage"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_width_slash_begins_a_command_and_the_conversation_sets_the_language() {
    let scene = Setting::default().open().await;
    let help = scene.answer("c1", "／help").await;
    assert!(help.contains("/reset — start the conversation over"), "{help}");
    scene.answer("c1", "你好").await;
    for command in ["/help", "／help"] {
        let help = scene.answer("c1", command).await;
        assert!(help.contains("/reset — 重新开始会话"), "{help}");
    }
    assert!(scene.answer("c1", "/model").await.starts_with("本会话可用的模型"));
    scene.answer("c1", "hello").await;
    assert!(scene.answer("c1", "/model").await.starts_with("Models of this conversation"));
    assert_eq!(scene.requests().len(), 2, "commands ask no model");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancel_with_nothing_to_cancel_says_so() {
    let scene = Setting { agent: "queue = \"steer\"", ..Setting::default() }.open().await;
    assert_eq!(scene.answer("c1", "/cancel").await, "Nothing is running.");
    let scene = Setting::default().open().await;
    let told = scene.answer("c1", "/cancel").await;
    assert!(told.starts_with("Nothing is running: this agent handles messages one at a time"));
    assert!(told.contains("`greenroom runs cancel RUN`"), "{told}");
    assert_eq!(scene.requests(), Vec::<Value>::new());
}
