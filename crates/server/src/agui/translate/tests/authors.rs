//! Texts of several messages at once, and of sub-agents.

use super::*;

fn piece(to: &mut Translator, sequence: i64, id: &str, text: &str) -> Vec<Value> {
    let chunk = json!({"role": "assistant", "content": text, "message_id": id});
    take(to, sequence, "message.delta", json!({"chunk": chunk}))
}

fn by(subagent: &str, text: &str) -> Value {
    json!({"chunk": {"role": "assistant", "content": text}, "subagent_id": subagent})
}

fn done(to: &mut Translator, sequence: i64, id: &str, text: &str) -> Vec<Value> {
    let message = json!({"role": "assistant", "content": text, "message_id": id});
    take(to, sequence, "message.completed", json!({"message": message}))
}

fn subagent(to: &mut Translator, sequence: i64, kind: &str) {
    let kind = format!("subagent.{kind}");
    take(to, sequence, &kind, json!({"subagent_id": "s", "name": "s"}));
}

#[test]
fn messages_that_come_at_the_same_time_are_completed_each_for_itself() {
    let mut to = translator(Profile::One, json!([]));
    piece(&mut to, 1, "a", "one");
    assert_eq!(
        piece(&mut to, 2, "b", "two"),
        [end("run_1.1"), start("run_1.2"), content("run_1.2", "two")]
    );
    assert_eq!(done(&mut to, 3, "a", "one"), [Value::Null; 0]);
    assert_eq!(
        piece(&mut to, 4, "b", " more"),
        [content("run_1.2", " more")],
        "the other message goes on"
    );
    assert_eq!(
        done(&mut to, 5, "b", "two more words"),
        [content("run_1.2", " words"), end("run_1.2")]
    );
    // A replacement concerns its own message.
    piece(&mut to, 6, "c", "kept");
    piece(&mut to, 7, "d", "wrong");
    let chunk =
        json!({"role": "assistant", "content": "right", "message_id": "d", "replace": true});
    let left =
        json!([text("run_1.1", "one"), text("run_1.2", "two more words"), text("run_1.6", "kept")]);
    assert_eq!(
        take(&mut to, 8, "message.delta", json!({"chunk": chunk})),
        [end("run_1.7"), snapshot(left), start("run_1.8"), content("run_1.8", "right")]
    );
}

#[test]
fn an_id_that_comes_late_is_that_of_the_text_before() {
    let mut to = translator(Profile::One, json!([]));
    say(&mut to, 1, "a");
    assert_eq!(piece(&mut to, 2, "m", "b"), [content("run_1.1", "b")]);
    assert_eq!(say(&mut to, 3, "c"), [content("run_1.1", "c")]);
    assert_eq!(done(&mut to, 4, "m", "abc"), [end("run_1.1")]);
}

#[test]
fn text_is_of_the_open_sub_agent_that_it_names() {
    let mut to = translator(Profile::One, json!([]));
    let delta = |to: &mut Translator, sequence: i64| {
        take(to, sequence, "message.delta", by("s", "x"))[0]["subagentRunId"].clone()
    };
    assert_eq!(delta(&mut to, 1), Value::Null, "it was not started");
    complete(&mut to, 2, "x");
    subagent(&mut to, 3, "started");
    say(&mut to, 4, "mine");
    assert_eq!(take(&mut to, 5, "message.delta", by("s", "its"))[0], end("run_1.4"));
    assert_eq!(
        say(&mut to, 6, "mine"),
        [end("run_1.5"), start("run_1.6"), content("run_1.6", "mine")]
    );
    let own = json!({"id": "run_1.5", "role": "assistant", "content": "its", "subagentRunId": "s"});
    let Event::MessagesSnapshot { messages, .. } = to.messages.snapshot() else { panic!() };
    assert_eq!(messages[2], own);
    subagent(&mut to, 7, "finished");
    assert_eq!(delta(&mut to, 8), Value::Null, "it is over");
}

#[test]
fn a_snapshot_leaves_reasoning_and_activities_with_the_client() {
    let before = json!([{"id": "u", "role": "user", "content": "hi"},
        {"id": "run_0.1", "role": "reasoning", "content": "hm"},
        {"id": "run_0.activity.a", "role": "activity", "activityType": "x", "content": {}}]);
    let mut to = translator(Profile::One, before.clone());
    say(&mut to, 1, "a secr");
    // With one of them in it, a client would drop all that it does not name.
    assert_eq!(
        complete(&mut to, 2, "hidden"),
        [end("run_1.1"), snapshot(json!([before[0], text("run_1.1", "hidden")]))]
    );
}
