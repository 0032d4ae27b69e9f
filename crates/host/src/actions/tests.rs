use super::*;
use greenroom_surfaces::action::MESSAGE_DELETE;

fn identity() -> Identity {
    Identity {
        workspace_id: "default".to_owned(),
        run_id: "run-1".to_owned(),
        event_id: "evt-1".to_owned(),
        agent: "helper".to_owned(),
        conversation_id: Some("c1".to_owned()),
        surface: Some("hook".to_owned()),
        capabilities: Some(Capabilities {
            files: true,
            streaming: false,
            text_max: Some(TextMax::Characters(5)),
            actions: [MESSAGE_SEND, MESSAGE_EDIT, MESSAGE_REACT].map(str::to_owned).into(),
        }),
        ..Identity::default()
    }
}

fn decide(action: &str, target: Value, payload: Value) -> Result<Planned, Refused> {
    let granted = BTreeMap::from(
        [
            (MESSAGE_SEND, Approval::Always),
            (MESSAGE_EDIT, Approval::Ask),
            (MESSAGE_REACT, Approval::Always),
            (MESSAGE_DELETE, Approval::Always),
            ("member.ban", Approval::Never),
        ]
        .map(|(action, approval)| (action.to_owned(), approval)),
    );
    let object = |value: Value| value.as_object().cloned().unwrap();
    let (target, payload) = (object(target), object(payload));
    let request = RequestActionParams { action: action.to_owned(), target, payload };
    plan(request, 7, &granted, &identity())
}

#[test]
fn a_planned_action_is_a_delivery_to_the_runs_own_surface_and_conversation() {
    let planned = decide(MESSAGE_SEND, json!({}), json!({"text": "hi"})).unwrap();
    assert_eq!(planned.approval, Approval::Always);
    assert_eq!(planned.delivery.surface, "hook");
    assert_eq!(planned.delivery.target, r#"["default","hook","c1"]"#);
    let body: Value = serde_json::from_str(&planned.delivery.payload).unwrap();
    assert_eq!(
        body,
        json!({"type": "message.send", "target": {"surface": "hook", "conversation_id": "c1"},
            "payload": {"text": "hi"}, "run_id": "run-1", "event_id": "evt-1", "agent": "helper",
            "conversation_id": "c1", "sequence": 7})
    );
}

#[test]
fn the_same_question_is_never_asked_with_the_same_nonce() {
    let planned = decide(MESSAGE_EDIT, json!({"message_id": "m"}), json!({"text": "hi"})).unwrap();
    assert_eq!(planned.approval, Approval::Ask);
    let ask = || planned.question(ApprovalKind::Call, &identity(), 9);
    let (one, other) = (ask(), ask());
    assert!(one.nonce != other.nonce && one.approval_id != other.approval_id);
    assert_eq!(one.delivery, Some(planned.delivery.clone()));
}

#[test]
fn an_action_that_is_not_granted_or_not_supported_is_refused() {
    let text = || json!({"text": "hi"});
    let not_granted = |action: &str| Err(Refused::NotGranted(action.to_owned()));
    assert_eq!(decide("member.kick", json!({}), text()), not_granted("member.kick"));
    assert_eq!(decide("member.ban", json!({}), text()), not_granted("member.ban"));
    let unsupported = Err(Refused::Unsupported(MESSAGE_DELETE.to_owned()));
    assert_eq!(decide(MESSAGE_DELETE, json!({"message_id": "m"}), json!({})), unsupported);
}

#[test]
fn a_target_names_only_the_runs_own_surface_and_conversation() {
    let send = |target: Value| decide(MESSAGE_SEND, target, json!({"text": "hi"}));
    let own = json!({"surface": "hook", "conversation_id": "c1", "thread_id": null});
    assert!(send(own).is_ok());
    assert_eq!(send(json!({"surface": "other"})), Err(Refused::NotFound("surface")));
    assert_eq!(send(json!({"conversation_id": "c2"})), Err(Refused::NotFound("conversation")));
    assert_eq!(send(json!({"conversation_id": ["c1"]})), Err(Refused::NotFound("conversation")));
    assert_eq!(send(json!({"thread_id": "t"})), Err(Refused::NotFound("thread")));
    for odd in [json!({"url": "http://elsewhere"}), json!({"message_id": 7})] {
        assert!(matches!(send(odd), Err(Refused::Invalid(_))));
    }
}

#[test]
fn an_action_has_what_it_requires() {
    let at = || json!({"message_id": "m"});
    assert!(decide(MESSAGE_REACT, at(), json!({"reaction": "👍"})).is_ok());
    for (action, target, payload) in [
        (MESSAGE_SEND, json!({}), json!({})),
        (MESSAGE_EDIT, json!({}), json!({"text": "x"})),
        (MESSAGE_EDIT, at(), json!({})),
        (MESSAGE_REACT, at(), json!({})),
        (MESSAGE_REACT, json!({}), json!({"reaction": "👍"})),
    ] {
        assert!(matches!(decide(action, target, payload), Err(Refused::Invalid(_))), "{action}");
    }
    let long = decide(MESSAGE_SEND, json!({}), json!({"text": "一二三四五六"}));
    assert_eq!(long, Err(Refused::TooLong(TextMax::Characters(5))));
}

#[test]
fn a_payload_has_a_size_limit() {
    let payload = json!({"blocks": "x".repeat(PAYLOAD_BYTES_MAX)});
    let refused = decide(MESSAGE_SEND, json!({}), payload).unwrap_err();
    assert_eq!(refused.to_error().code, ErrorCode::PayloadTooLarge);
}
