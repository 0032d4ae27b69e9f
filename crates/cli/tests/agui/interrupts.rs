//! Approvals as interrupts, and their answers.

use crate::reader::{Reader, find, kinds, request, steps, talk, text, with_token};
use crate::stage::{PATIENCE, Stage, TOKEN};
use greenroom_protocol::RunStatus;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};

const CLERK: &str = r#"
[agents.clerk]
runner = "plugin:test/puppet/main"
events = []
deadline_s = 60
grant = { modules = ["calendar.*"] }
"#;

/// Says something, asks to delete an event, says something else.
fn asking(thread: &str, run: &str) -> Value {
    let parameters =
        json!({"module": "calendar", "method": "delete", "input": {"event_id": "none"}});
    let call = json!({"tool_name": "project_cli", "parameters": parameters, "tool_call_id": "c1"});
    let asked = json!({"tool_call_id": "c1", "tool_name": "project_cli", "parameters": parameters});
    let done = json!({"tool_call_id": "c1", "tool_name": "project_cli", "result": null});
    steps(
        thread,
        run,
        json!([
            ["say", "before"],
            ["result", "tool.call.started", asked],
            ["call", "tools.call", call, "told"],
            ["result", "tool.call.completed", done],
            ["say", "behind"],
            ["end"]
        ]),
    )
}

fn resume(thread: &str, run: &str, interrupt: &Value, entry: Value) -> Value {
    let mut input = steps(thread, run, json!([]));
    input["messages"] = json!([]);
    input["resume"] = json!([entry]);
    input["resume"][0]["interruptId"] = interrupt["id"].clone();
    input
}

/// The interrupt that a stream ended with.
fn interrupt(events: &[Value]) -> &Value {
    let interrupts = &find(events, "RUN_FINISHED")["outcome"]["interrupts"];
    assert_eq!(interrupts.as_array().unwrap().len(), 1, "{interrupts}");
    &interrupts[0]
}

#[tokio::test]
async fn a_run_that_asks_is_interrupted_and_goes_on_with_the_answer() {
    let stage = Stage::open(CLERK).await;
    for (thread, entry, code) in [
        ("yes", json!({"status": "resolved", "payload": {"approved": true}}), "NOT_FOUND"),
        ("no", json!({"status": "resolved", "payload": {"approved": false}}), "DENIED"),
        ("never mind", json!({"status": "cancelled"}), "DENIED"),
    ] {
        let first = format!("{thread} 1");
        let events = talk(&stage, "clerk", &asking(thread, &first)).await;
        assert_eq!(
            kinds(&events)[4..],
            [
                "TOOL_CALL_START",
                "TOOL_CALL_ARGS",
                "TOOL_CALL_END",
                "MESSAGES_SNAPSHOT",
                "RUN_FINISHED"
            ]
        );
        let asked = interrupt(&events);
        assert_eq!((&asked["reason"], &asked["toolCallId"]), (&json!("tool_call"), &json!("c1")));
        assert_eq!(asked["metadata"]["payload"]["method"], "delete");
        assert!(asked["expiresAt"].is_string() && asked["responseSchema"].is_object());
        let again = format!("{thread} 2");
        let answer = resume(thread, &again, asked, entry);
        // However often the answer comes, it is the same answer.
        for _ in 0..2 {
            let events = talk(&stage, "clerk", &answer).await;
            assert_eq!(events[0]["runId"], again);
            let result = find(&events, "TOOL_CALL_RESULT");
            assert_eq!(result["toolCallId"], "c1");
            let error = &result["metadata"]["tool_agent_output"]["error"];
            assert_eq!(error["code"], code, "{thread}: {result}");
            assert!(!kinds(&events).contains(&"TOOL_CALL_START"));
            assert_eq!(text(&events), "behind");
            assert_eq!(find(&events, "RUN_FINISHED")["outcome"], json!({"type": "success"}));
        }
        // The first stream again tells all of it.
        let whole = talk(&stage, "clerk", &asking(thread, &first)).await;
        assert_eq!(text(&whole), "beforebehind");
    }
    assert_eq!(stage.api.runs().await.len(), 3);
}

#[tokio::test]
async fn a_thread_that_waits_takes_nothing_but_answers() {
    let stage = Stage::open(CLERK).await;
    let events = talk(&stage, "clerk", &asking("t", "r1")).await;
    let asked = interrupt(&events).clone();
    let other = talk(&stage, "clerk", &steps("t", "r2", json!([["end"]]))).await;
    assert_eq!(
        (other[0]["type"].as_str(), other[0]["code"].as_str()),
        (Some("RUN_ERROR"), Some("interrupt_pending"))
    );
    assert_eq!(other.len(), 1);
    for (entry, code) in [
        (json!({"status": "resolved"}), "invalid_argument"),
        (
            json!({"status": "resolved", "payload": {"approved": true, "editedArgs": {}}}),
            "invalid_argument",
        ),
    ] {
        let refused = talk(&stage, "clerk", &resume("t", "r3", &asked, entry)).await;
        assert_eq!(refused[0]["code"], code);
    }
    let entry = json!({"status": "resolved", "payload": {"approved": true}});
    for (thread, id) in
        [("elsewhere", asked["id"].clone()), ("t", json!("apr_none.1")), ("t", json!("x"))]
    {
        let refused =
            talk(&stage, "clerk", &resume(thread, "r3", &json!({"id": id}), entry.clone())).await;
        assert_eq!(refused[0]["code"], "not_found");
    }
    // It was answered elsewhere meanwhile: another answer comes too late.
    talk(&stage, "clerk", &resume("t", "r4", &asked, json!({"status": "cancelled"}))).await;
    let late = talk(&stage, "clerk", &resume("t", "r5", &asked, entry)).await;
    assert_eq!(late[0]["code"], "interrupt_settled");
    assert_eq!(stage.api.runs().await.len(), 1);
}

#[tokio::test]
async fn who_may_not_answer_waits_until_somebody_does() {
    let token = "[tokens.web]\nrole = \"sender\"\ntoken = { file = \"token\" }\n";
    let stage = Stage::open(&format!("{CLERK}{token}")).await;
    let asked = with_token(request("clerk", &asking("t", "r1")), TOKEN);
    let mut reader = Reader::open(&stage, asked).await;
    reader.until("TOOL_CALL_END").await;
    let approval = wait_for("a question", PATIENCE, async || {
        let page = stage.api.get("/v1/approvals?status=pending").await;
        page["items"].as_array().unwrap().first().cloned()
    })
    .await;
    let id = approval["approval_id"].as_str().unwrap();
    let decision = json!({"decision": "deny", "nonce": approval["nonce"]}).to_string();
    let request = greenroom_testkit::http::Request::post(format!("/v1/approvals/{id}"), decision);
    assert_eq!(stage.api.json(request).await.unwrap().0, 200);
    let rest = reader.rest().await;
    assert_eq!(text(&rest), "behind");
    assert_eq!(find(&rest, "RUN_FINISHED")["outcome"], json!({"type": "success"}));
    assert_eq!(stage.api.runs().await[0].status, RunStatus::Completed);
}

#[tokio::test]
async fn an_approval_may_edit_the_arguments_within_schema_and_grant() {
    let stage = Stage::open(CLERK).await;
    let first = talk(&stage, "clerk", &asking("t", "r1")).await;
    let asked = interrupt(&first).clone();
    assert_eq!(asked["responseSchema"]["properties"]["editedArgs"], json!({"type": "object"}));
    let edited = |args: Value| json!({"status": "resolved", "payload": {"approved": true, "editedArgs": args}});
    let delete = |input: Value| json!({"module": "calendar", "method": "delete", "input": input});
    // What the schema or the grant does not allow decides nothing.
    for (number, wrong) in [
        json!({"module": "calendar"}),
        delete(json!({"event_id": 7})),
        json!({"module": "memory", "method": "list", "input": {}}),
    ]
    .into_iter()
    .enumerate()
    {
        let run = format!("wrong-{number}");
        let refused = talk(&stage, "clerk", &resume("t", &run, &asked, edited(wrong))).await;
        assert_eq!(kinds(&refused), ["RUN_ERROR"], "{refused:?}");
        assert_eq!(refused[0]["code"], "invalid_argument");
        assert!(refused[0]["message"].as_str().unwrap().starts_with("`editedArgs`"), "{refused:?}");
    }
    let args = delete(json!({"event_id": "another"}));
    let events = talk(&stage, "clerk", &resume("t", "r2", &asked, edited(args.clone()))).await;
    let output = &find(&events, "TOOL_CALL_RESULT")["metadata"]["tool_agent_output"];
    assert_eq!(output["tool_call_args"], args);
    assert_eq!(output["error"]["code"], "NOT_FOUND");
    // The log says what was asked for and what was allowed instead.
    let log = stage.api.events().await;
    let allowed = log.iter().find(|event| event["event_type"] == "approval.allowed").unwrap();
    let body = &allowed["event"];
    assert_eq!((&body["edited"], &body["payload"]), (&json!(true), &args));
    assert_eq!(body["target"]["asked_payload"], delete(json!({"event_id": "none"})));
    // The same answer again is safe, another one is not.
    let again = talk(&stage, "clerk", &resume("t", "r3", &asked, edited(args))).await;
    assert_eq!(find(&again, "RUN_FINISHED")["outcome"], json!({"type": "success"}));
    let other = edited(delete(json!({"event_id": "a third"})));
    let other = talk(&stage, "clerk", &resume("t", "r4", &asked, other)).await;
    assert_eq!(other[0]["code"], "interrupt_settled");
}
