//! Texts of all kinds come back as they were, or are refused clearly.

use super::support::*;
use greenroom_store::commands::{AcceptEvent, ApplyResults};
use greenroom_store::types::StateWrite;
use greenroom_store::{StoreError, reads};

pub(crate) async fn any_character_comes_back(ground: Ground) {
    let store = ground.open();
    let text = "你好 🦀 e\u{301} \u{202e}rtl \u{1}\u{7f} 'quoted\" \\ ?1 $1 {serial} TEXT";
    let mut sent = event(text, "a");
    sent.item = Some(item("i", "user", text));
    let first = accept(&store, sent).await;
    assert_eq!(first.conversation_id.as_deref(), Some(text));
    assert_eq!(transcript(&store, text).await, [format!("1 user {text}")]);
    let chunk = Some(delta_chunk(1, &[text, "\0", text]));
    apply(&store, ApplyResults { chunk, ..results(&first) }).await;
    let found = store.read(|tx| reads::results::page(tx, "run-a", 1, 1)).await.unwrap();
    let expected = r#"{"chunk":{"role":"assistant","content":"\u0000"}}"#;
    assert_eq!(found[0].data.get(), expected, "JSON escapes it, so results keep U+0000");
}

pub(crate) async fn u0000_is_replaced_in_prose_and_refused_in_names(ground: Ground) {
    let store = ground.open();
    let mut sent = event("c", "a");
    sent.item = Some(item("i", "user", "a\0b"));
    let first = accept(&store, sent).await;
    assert_eq!(transcript(&store, "c").await, ["1 user a\u{fffd}b"]);
    let diagnostics = vec![super::applied::diagnostic("x\0")];
    apply(&store, ApplyResults { diagnostics, ..results(&first) }).await;
    let found = store.read(|tx| reads::runs::diagnostics(tx, "run-a", 9)).await.unwrap();
    assert_eq!(found, [super::applied::diagnostic("x\u{fffd}")]);
    let before = rows(&store).await;
    let refused = [
        AcceptEvent { event_id: "e\0".to_owned(), ..event("c", "b") },
        AcceptEvent { source: "\0".to_owned(), ..event("c", "b") },
        event("c\0", "b"),
    ];
    for command in refused {
        let error = store.commit(command).await.unwrap_err();
        assert!(matches!(&error, StoreError::Refused(why) if why.contains("U+0000")), "{error}");
    }
    let write = StateWrite {
        owner: "o".to_owned(),
        name: "n\0".to_owned(),
        value: None,
        owner_bytes_max: None,
    };
    let apply = ApplyResults { state: vec![write], ..results(&first) };
    assert!(matches!(store.commit(apply).await.unwrap_err(), StoreError::Refused(_)));
    assert_eq!(rows(&store).await, before);
}

pub(crate) async fn very_long_texts_come_back(ground: Ground) {
    let store = ground.open();
    let text = "长".repeat(3_000_000);
    let mut sent = event("c", "a");
    sent.item = Some(item("i", "user", &text));
    sent.body = format!("\"{text}\"");
    let first = accept(&store, sent).await;
    let chunk = Some(delta_chunk(1, &[&text]));
    apply(&store, ApplyResults { chunk, ..results(&first) }).await;
    let lines = transcript(&store, "c").await;
    assert!(lines == [format!("1 user {text}")]);
    let found = store.read(|tx| reads::events::by_id(tx, W, "a")).await.unwrap();
    assert!(found[0].body.as_deref() == Some(&format!("\"{text}\"")));
}
