//! Events as earlier versions stored them.

use super::*;
use crate::binding::Reason;

#[test]
fn an_event_of_the_first_version_is_read_with_every_field() {
    let text = r#"{"trigger":"api","bound":{"reason":"only_match"},"event":{"event_type":"ticket.opened",
        "event_id":"e1","source":"helpdesk","event_time":1794889180,"bot_id":"b1","workspace_id":"w1",
        "conversation_id":"c1","thread_id":"t1",
        "actor":{"actor_type":"user","actor_id":"ann","actor_name":null,"metadata":{}},
        "subject":{"subject_type":"ticket","subject_id":"T-7","data":{"priority":"high"}},
        "input":{"text":null,"contents":[],"attachments":[],"message_chain":null},
        "delivery":{"surface":"hook"},"data":{"severity":3},"agent":"player","metadata":{"origin":"helpdesk"}}}"#;
    let envelope: Envelope = serde_json::from_str(text).unwrap();
    assert_eq!(envelope.trigger, TriggerSource::Api);
    assert_eq!(envelope.bound.unwrap().reason, Reason::OnlyMatch);
    let event = envelope.event;
    assert_eq!((event.event_type.as_str(), event.source.as_str()), ("ticket.opened", "helpdesk"));
    assert_eq!(event.subject.unwrap().data["priority"], "high");
    assert_eq!(
        (event.delivery.unwrap().surface.as_str(), &event.data["severity"]),
        ("hook", &3.into())
    );
    assert_eq!((event.agent.as_deref(), event.thread_id.as_deref()), (Some("player"), Some("t1")));
}

#[test]
fn an_event_that_nobody_took_is_read_without_what_it_lacks() {
    let text = r#"{"trigger":"api","event":{"event_type":"weather.changed"},"a_field_of_old":1}"#;
    let envelope: Envelope = serde_json::from_str(text).unwrap();
    assert!(envelope.bound.is_none() && envelope.raw_ref.is_none() && envelope.adapter.is_none());
    assert_eq!(envelope.event.source, "api");
}
