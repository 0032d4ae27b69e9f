//! Actions that nobody is asked about, and people who may not answer.

use super::*;
use crate::stage::TOKEN;

#[tokio::test(flavor = "multi_thread")]
async fn actions_out_of_reach_are_refused_and_nobody_is_asked() {
    let receiver = Receiver::start().await;
    let stage = open(&receiver, "").await;
    let text = json!({"text": "hi"});
    let cases = [
        (
            json!({"action": "message.edit", "target": {"message_id": "m"}, "payload": text}),
            "unauthorized",
            json!("not_granted"),
        ),
        (json!({"action": "member.ban", "payload": text}), "unauthorized", json!("not_granted")),
        (
            json!({"action": "message.delete", "target": {"message_id": "m"}}),
            "invalid_argument",
            json!("unsupported"),
        ),
        (
            json!({"action": "message.send", "target": {"conversation_id": "d"}, "payload": text}),
            "not_found",
            Value::Null,
        ),
        (
            json!({"action": "message.send", "target": {"surface": "other"}, "payload": text}),
            "not_found",
            Value::Null,
        ),
        (
            json!({"action": "message.send", "target": {"url": "http://x"}, "payload": text}),
            "invalid_argument",
            json!("invalid"),
        ),
        (json!({"action": "message.send"}), "invalid_argument", json!("invalid")),
        (json!({"action": 7}), "invalid_argument", Value::Null),
    ];
    let steps = cases.iter().enumerate().map(|(number, (params, ..))| {
        json!(["call", "platform.request_action", params, format!("told-{number}")])
    });
    let steps: Vec<Value> = steps.chain([json!(["end"])]).collect();
    let run_id = start(&stage, "c", json!(steps)).await;
    assert_eq!(outcome(&stage.api.ended_run(&run_id).await), (Completed, ""));
    for (number, (params, code, reason)) in cases.iter().enumerate() {
        let error = stage.told(&format!("told-{number}")).await["error"]["data"].clone();
        assert_eq!(
            (&error["code"], &error["details"]["reason"]),
            (&json!(code), reason),
            "{params}"
        );
    }
    let api = json!({"event_type": "message.received", "agent": "asking", "conversation_id": "c2",
        "actor": {"actor_type": "user", "actor_id": "u1"}, "delivery": {"surface": "api"},
        "input": {"text": json!([["call", "platform.request_action", asks("hi"), "api"], ["end"]])
            .to_string()}});
    stage.api.ended_run(&stage.send(&api).await).await;
    let error = &stage.told("api").await["error"]["data"];
    assert_eq!(
        error["details"]["reason"], "unsupported",
        "nothing is sent to whoever reads the API"
    );
    assert_eq!(stage.api.get("/v1/approvals").await["items"], json!([]));
    assert_eq!(receiver.received(), []);
}

#[tokio::test(flavor = "multi_thread")]
async fn those_answer_who_are_said_to() {
    let receiver = Receiver::start().await;
    let more = "[approvals]\nanswer = [\"token:desk\"]\n\
        [tokens.desk]\nrole = \"sender\"\ntoken = { file = \"token\" }";
    let stage = open(&receiver, more).await;
    let (_, approval) = start_asking(&stage).await;
    assert_eq!(answer(&stage, &approval, "allow").await.0, 403, "the admin is not named");
    let host = std::fs::read_to_string(stage.host.data().join("host.json")).unwrap();
    let host: Value = serde_json::from_str(&host).unwrap();
    let address = host["url"].as_str().unwrap().strip_prefix("http://").unwrap().parse().unwrap();
    let id = approval["approval_id"].as_str().unwrap();
    let body = json!({"decision": "allow", "nonce": approval["nonce"]}).to_string();
    let request = Request::post(format!("/v1/approvals/{id}"), body)
        .header("authorization", format!("Bearer {TOKEN}"));
    let answered = greenroom_testkit::http::send(address, &request).await.unwrap();
    assert_eq!(answered.status, 200);
    assert_eq!(shown(&stage, &approval).await["answered_by"], "token:desk");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_arguments_of_a_tool_call_can_be_replaced() {
    let receiver = Receiver::start().await;
    let stage = open(&receiver, "").await;
    start_asking(&stage).await;
    let later = json!([["result", "action.requested", asks("later")], ["end"]]);
    let later = start(&stage, "d", later).await;
    stage.api.ended_run(&later).await;
    // One of a run that waits, and one of a run that is over.
    for approval in pending(&stage, 2).await {
        let body = json!({"decision": "allow", "nonce": approval["nonce"], "args": {"text": "x"}});
        let (status, refused) = answer_with(&stage, &approval, &body).await;
        let message = "`args`: only the arguments of a tool call can be edited";
        assert_eq!((status, &refused["error"]["message"]), (400, &json!(message)));
        assert_eq!(answer(&stage, &approval, "deny").await.0, 200);
    }
    assert_eq!(actions(&receiver), [Value::Null; 0]);
}
