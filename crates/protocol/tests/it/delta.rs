//! The borrowed delta parses like the owned one.

use greenroom_protocol::payload::{DeltaRef, MessageDelta, Payload};
use greenroom_protocol::result::kind;
use proptest::prelude::*;
use std::borrow::Cow;

#[test]
fn plain_text_is_borrowed_and_escapes_are_resolved() {
    let data = r#"{"chunk":{"role":"assistant","content":"你好","message_id":"m1"}}"#;
    let delta = DeltaRef::parse(data).expect("it is valid");
    assert!(matches!(delta.content, Cow::Borrowed("你好")));
    assert!(matches!(delta.message_id, Some(Cow::Borrowed("m1"))));
    assert!(!delta.has_more);
    let escaped = DeltaRef::parse(r#"{"chunk":{"content":"a\n\u4f60"}}"#).expect("it is valid");
    assert_eq!(escaped.content, "a\n你");
}

#[test]
fn additional_fields_are_reported_at_both_levels() {
    for (data, has_more) in [
        (r#"{"chunk":{"content":"a"}}"#, false),
        (r#"{"chunk":{"content":"a","message_id":null}}"#, false),
        (r#"{"chunk":{"content":"a","tokens":[1,{"b":2}]}}"#, true),
        (r#"{"x":1,"chunk":{"content":"a"}}"#, true),
    ] {
        assert_eq!(DeltaRef::parse(data).expect("it is valid").has_more, has_more, "{data}");
    }
}

#[test]
fn the_borrowed_delta_rejects_what_the_owned_one_rejects() {
    for data in [
        "",
        "{}",
        "[]",
        "null",
        r#"{"chunk":null}"#,
        r#"{"chunk":{}}"#,
        r#"{"chunk":{"content":null}}"#,
        r#"{"chunk":{"content":1}}"#,
        r#"{"chunk":{"content":"a","role":"robot"}}"#,
        r#"{"chunk":{"content":"a","role":null}}"#,
        r#"{"chunk":{"content":"a","message_id":3}}"#,
        r#"{"chunk":{"content":"a","content":"b"}}"#,
        r#"{"chunk":{"content":"a"},"chunk":{"content":"b"}}"#,
        r#"{"chunk":{"content":"\ud800"}}"#,
        r#"{"chunk":{"content":"a"}} x"#,
        r#"{"chunk":["assistant","a"]}"#,
        r#"[{"content":"a"}]"#,
    ] {
        assert!(DeltaRef::parse(data).is_err(), "{data}");
        assert!(Payload::parse(kind::MESSAGE_DELTA, Some(data)).is_err(), "{data}");
    }
}

proptest! {
    #[test]
    fn both_parse_the_same(content in any::<String>(), id in any::<Option<String>>(), role in 0..5usize) {
        let role = ["system", "user", "assistant", "tool", "robot"][role];
        let data = serde_json::json!({"chunk": {"role": role, "content": content, "message_id": id}});
        let data = data.to_string();
        let owned: Option<MessageDelta> = serde_json::from_str(&data).ok();
        let borrowed = DeltaRef::parse(&data).ok();
        prop_assert_eq!(owned.is_some(), borrowed.is_some());
        if let (Some(owned), Some(borrowed)) = (owned, borrowed) {
            prop_assert_eq!(owned.chunk.role, borrowed.role);
            prop_assert_eq!(&owned.chunk.content, &borrowed.content);
            prop_assert_eq!(owned.chunk.message_id.as_deref(), borrowed.message_id.as_deref());
            prop_assert!(!borrowed.has_more);
        }
    }
}
