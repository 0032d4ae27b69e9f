//! Items of every kind, complete and incomplete, as messages.

use super::*;
use greenroom_sdk::json;

fn item(seq: i64, role: &str, run: &str, text: &str, metadata: Value) -> TranscriptItem {
    let item = json!({"item_id": format!("i{seq}"), "conversation_id": "c1", "seq": seq, "role": role,
        "run_id": run, "text": text, "metadata": metadata, "created_at": "2026-01-01T00:00:00.000Z"});
    serde_json::from_value(item).unwrap()
}

fn user(seq: i64, run: &str, text: &str) -> TranscriptItem {
    item(seq, "user", run, text, json!({}))
}

fn says(seq: i64, run: &str, text: &str) -> TranscriptItem {
    item(seq, "assistant", run, text, json!({}))
}

fn tool(seq: i64, run: &str, id: &str) -> TranscriptItem {
    let output = json!({"tool_call_args": {"of": id}});
    let metadata = json!({"tool_call_id": id, "tool_name": "look", "tool_agent_output": output});
    item(seq, "tool", run, &format!("result of {id}"), metadata)
}

fn ends(seq: i64, run: &str, text: &str, rounds: Value) -> TranscriptItem {
    item(seq, "assistant", run, text, json!({"rounds": rounds}))
}

/// Each message in a word: `u:text`, `a:text[calls]`, `t:id`.
fn read(items: Vec<TranscriptItem>) -> Vec<Vec<String>> {
    let event = |item: &TranscriptItem| {
        ModelMessage::text(Role::User, item.text.clone().unwrap_or_default())
    };
    let word = |message: &ModelMessage| {
        let text = message.content.as_ref().map(MessageContent::text).unwrap_or_default();
        let calls: Vec<&str> = message.tool_calls.iter().map(|call| call.id.as_str()).collect();
        match message.role {
            Role::User => format!("u:{text}"),
            Role::Tool => {
                let id = message.tool_call_id.clone().unwrap_or_default();
                assert!(text.starts_with("result of"));
                format!("t:{id}")
            }
            _ if calls.is_empty() => format!("a:{text}"),
            _ => format!("a:{text}[{}]", calls.join(" ")),
        }
    };
    let exchanges = exchanges(items, &event, &|_| Vec::new());
    exchanges.iter().map(|one| one.messages.iter().map(word).collect()).collect()
}

#[test]
fn a_run_is_restored_as_its_model_saw_it() {
    let items = vec![
        user(1, "r1", "hi"),
        says(2, "r1", "Let me see."),
        // Concurrent; the second finished first.
        tool(3, "r1", "b"),
        tool(4, "r1", "a"),
        tool(5, "r1", "c"),
        ends(6, "r1", "Done.", json!([["a", "b"], ["c"]])),
        user(7, "r2", "thanks"),
    ];
    let expected = [
        vec!["u:hi", "a:Let me see.[a b]", "t:a", "t:b", "a:[c]", "t:c", "a:Done."],
        vec!["u:thanks", "a:(This was not answered.)"],
    ];
    assert_eq!(read(items), expected);
}

#[test]
fn without_rounds_every_call_is_its_own_round() {
    let items = vec![
        user(1, "r1", "hi"),
        says(2, "r1", "Let me see."),
        tool(3, "r1", "a"),
        tool(4, "r1", "b"),
        user(5, "r2", "go on"),
        says(6, "r2", "Yes."),
    ];
    let unanswered = "a:(This was not answered.)";
    let expected = [
        vec!["u:hi", "a:Let me see.[a]", "t:a", "a:[b]", "t:b", unanswered],
        vec!["u:go on", "a:Yes."],
    ];
    assert_eq!(read(items), expected);
}

#[test]
fn a_call_has_one_result_and_incomplete_items_are_omitted() {
    let nameless = item(3, "tool", "r1", "result of nobody", json!({"tool_call_id": "x"}));
    let items = vec![
        says(0, "r0", "the end of something that is not here"),
        tool(1, "r0", "lost"),
        user(2, "r1", "hi"),
        nameless,
        tool(4, "r1", "a"),
        tool(5, "r1", "a"),
        item(6, "system", "r1", "a note", json!({})),
        ends(7, "r1", "Done.", json!([["a", "gone"]])),
    ];
    assert_eq!(read(items), [vec!["u:hi", "a:[a]", "t:a", "a:Done."]]);
}

#[test]
fn concurrent_runs_are_listed_one_after_the_other() {
    let items = vec![
        user(1, "r1", "one"),
        user(2, "r2", "two"),
        tool(3, "r2", "b"),
        tool(4, "r1", "a"),
        says(5, "r2", "zwei"),
        says(6, "r1", "eins"),
    ];
    let expected =
        [vec!["u:one", "a:[a]", "t:a", "a:eins"], vec!["u:two", "a:[b]", "t:b", "a:zwei"]];
    assert_eq!(read(items), expected);
}

#[test]
fn a_message_that_joined_a_run_never_separates_a_call_from_its_result() {
    let items = vec![
        user(1, "r1", "one"),
        tool(2, "r1", "a"),
        user(3, "r1", "and this"),
        tool(4, "r1", "b"),
        ends(5, "r1", "both", json!([["a", "b"]])),
    ];
    let expected = [vec!["u:one", "a:[a b]", "t:a", "t:b", "u:and this", "a:both"]];
    assert_eq!(read(items), expected);
}

#[test]
fn a_message_that_joined_a_run_is_where_its_model_saw_it() {
    let mut joined = user(3, "r1", "and this");
    joined.event_id = Some("e2".to_owned());
    let metadata = json!({"rounds": [["a"], ["b"]], "steered": {"e2": 1}});
    let items = vec![
        user(1, "r1", "one"),
        says(2, "r1", "Let me see."),
        joined,
        tool(4, "r1", "a"),
        says(5, "r1", "Aha."),
        tool(6, "r1", "b"),
        item(7, "assistant", "r1", "both", metadata),
    ];
    let expected = ["u:one", "a:Let me see.[a]", "t:a", "u:and this", "a:Aha.[b]", "t:b", "a:both"];
    assert_eq!(read(items), [expected]);
}

#[test]
fn a_message_during_an_answer_follows_it() {
    let joined = |seq, text: &str, event: &str| TranscriptItem {
        event_id: Some(event.to_owned()),
        ..user(seq, "r1", text)
    };
    let first = json!({"rounds": [["a"], []], "steered": {"e2": 2}});
    let second = json!({"rounds": [["a"], [], ["b"]], "steered": {"e2": 2, "e3": 2}});
    let items = vec![
        user(1, "r1", "one"),
        tool(2, "r1", "a"),
        joined(3, "two", "e2"),
        item(4, "assistant", "r1", "to one", first),
        joined(5, "three", "e3"),
        says(6, "r1", "Let me see."),
        tool(7, "r1", "b"),
        item(8, "assistant", "r1", "to both", second),
    ];
    let begin = ["u:one", "a:[a]", "t:a", "a:to one", "u:two"];
    let end = ["u:three", "a:Let me see.[b]", "t:b", "a:to both"];
    let whole = [[begin.as_slice(), &end].concat()];
    assert_eq!(read(items.clone()), whole);
    // Pages list calls of the run before messages that joined it.
    let mut paged = items.clone();
    let call = paged.remove(6);
    paged.insert(2, call);
    assert_eq!(read(paged), whole);
    // It ended before the second answer.
    assert_eq!(
        read(items[..4].to_vec()),
        [[begin.as_slice(), &["a:(This was not answered.)"]].concat()]
    );
}

#[test]
fn duplicate_ids_of_later_runs_are_made_unique() {
    let items =
        vec![user(1, "r1", "one"), tool(2, "r1", "a"), user(3, "r2", "two"), tool(4, "r2", "a")];
    let unanswered = "a:(This was not answered.)";
    let expected =
        [vec!["u:one", "a:[a]", "t:a", unanswered], vec!["u:two", "a:[a-2]", "t:a-2", unanswered]];
    assert_eq!(read(items), expected);
}

#[test]
fn reasoning_is_restored_and_calls_without_a_result_are_not() {
    let mut said = says(2, "r1", "Hm.");
    said.segments = vec![
        json!({"type": "reasoning", "text": "thinking", "data": {"wire": "anthropic"}}),
        json!({"type": "text", "text": "Hm."}),
        json!({"type": "tool_call", "tool_call": {"id": "dangling", "name": "look", "args": {}}}),
    ];
    let event = |_: &TranscriptItem| ModelMessage::text(Role::User, "hi");
    let exchanges = exchanges(vec![user(1, "r1", "hi"), said], &event, &|_| Vec::new());
    let segments = exchanges[0].messages[1].segments.as_ref().unwrap();
    let kinds: Vec<&Value> = segments.iter().map(|one| &one["type"]).collect();
    assert_eq!(kinds, ["reasoning", "text"]);
}

#[test]
fn a_round_of_thousands_of_calls_is_restored() {
    let ids: Vec<String> = (0..20_000).map(|n| format!("c{n}")).collect();
    let mut items = vec![user(1, "r1", "go")];
    items.extend(ids.iter().enumerate().map(|(n, id)| tool(n as i64 + 2, "r1", id)));
    items.push(ends(30_000, "r1", "done", json!([ids])));
    let messages = read(items);
    // The event, the calls in one message, their results, the answer.
    assert_eq!(messages[0].len(), 20_003);
}

/// A call of a tool of the client, without its result.
fn pending(seq: i64, run: &str, id: &str) -> TranscriptItem {
    let output = json!({"tool_call_args": {"of": id}, "status": "pending"});
    let metadata = json!({"tool_call_id": id, "tool_name": "open", "tool_agent_output": output});
    item(seq, "tool", run, "", metadata)
}

#[test]
fn the_result_of_a_client_belongs_to_the_call_before_it() {
    let event = |item: &TranscriptItem| {
        ModelMessage::text(Role::User, item.text.clone().unwrap_or_default())
    };
    let results = |item: &TranscriptItem| match item.text.as_deref() {
        Some("result") => vec![json!({"tool_call_id": "a", "content": "it is open"})],
        _ => Vec::new(),
    };
    let items = |second: &str| {
        vec![user(1, "r1", "go"), tool(2, "r1", "b"), pending(3, "r1", "a"), user(4, "r2", second)]
    };
    let roles = |exchange: &Exchange| {
        exchange.messages.iter().map(|message| message.role).collect::<Vec<_>>()
    };
    let joined = exchanges(items("result"), &event, &results);
    assert_eq!(joined.len(), 1);
    let (user, assistant, tool) = (Role::User, Role::Assistant, Role::Tool);
    assert_eq!(roles(&joined[0]), [user, assistant, tool, assistant, tool, assistant]);
    let text = joined[0].messages[4].content.as_ref().map(MessageContent::text);
    assert_eq!(text.as_deref(), Some("it is open"));
    // Without it the call is closed, so that a provider accepts the thread.
    let apart = exchanges(items("never mind"), &event, &results);
    assert_eq!(apart.len(), 2);
    assert_eq!(roles(&apart[0]), [user, assistant, tool, assistant, tool, assistant]);
    assert!(apart[0].messages[4].content.as_ref().unwrap().text().contains("NO_RESULT"));
}
