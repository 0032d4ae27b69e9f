//! What slash commands answer: sentences, in the language of the conversation.

use crate::commands::{desk, last_answer};
use crate::stage::event;
use crate::steering::{decide, question};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_names_the_event_when_it_is_asked_about_and_when_it_is_done() {
    let scene = desk().await;
    let create = "title=dinner start_at=2026-04-21T19:00:00+08:00 end_at=2026-04-21T20:00:00+08:00";
    for (conversation, said, expected) in [
        ("en", "hello", "Deleted “dinner”, Tue 2026-04-21 19:00–20:00 (UTC+08:00)."),
        ("zh", "你好", "已删除“dinner”，2026-04-21 周二 19:00–20:00（UTC+08:00）。"),
    ] {
        scene.answer(conversation, said).await;
        let made = scene.answer(conversation, &format!("/calendar.create {create}")).await;
        let id = made.split('`').nth(1).unwrap().to_owned();
        let delete = format!("/calendar.delete event_id={id}");
        let run_id = scene.stage.send(&event("agent", conversation, &delete)).await;
        let asked = question(&scene).await;
        let subject = json!({"records": [{"id": id, "title": "dinner",
            "start_at": "2026-04-21T19:00:00+08:00", "end_at": "2026-04-21T20:00:00+08:00"}]});
        assert_eq!(asked["subject"], subject, "{asked}");
        assert!(asked["target"].get("subject").is_none(), "{asked}");
        decide(&scene, &asked, "allow").await;
        scene.stage.api.ended_run(&run_id).await;
        assert_eq!(last_answer(&scene, conversation).await, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn after_chinese_messages_help_about_a_tool_is_in_chinese() {
    let scene = desk().await;
    scene.answer("c1", "你好").await;
    let one = scene.answer("c1", "/help calendar.delete").await;
    assert!(one.contains("删除日历中的日程"), "{one}");
    for command in ["/tools", "/tools calendar", "/帮助 calendar.delete"] {
        let told = scene.answer("c1", command).await;
        assert!(told.contains("删除日历中的日程") && !told.contains("Remove an event"), "{told}");
    }
}
