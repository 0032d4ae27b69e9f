//! Questions of a plugin with fields and buttons: shown by every reader, answered once, and returned to the plugin.

use crate::PROGRAM;
use crate::stage::{PATIENCE, Stage, agent, config, copy, event, greenroom, plugins_folder};
use greenroom_protocol::RunStatus;
use greenroom_testkit::api::Failure;
use greenroom_testkit::host::TestHost;
use greenroom_testkit::http::Request;
use greenroom_testkit::receiver::Receiver;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};

fn agents() -> String {
    agent("asks", "forms", "asks", "") + &agent("silent", "forms", "silent", "")
}

async fn stage() -> Stage {
    Stage::open(&["forms"], &agents()).await
}

/// What a request is answered with, whatever its status.
async fn reply(stage: &Stage, request: Request) -> (u16, Value) {
    match stage.api.json(request).await {
        Ok(answered) => answered,
        Err(Failure::Refused { status, body }) => (status, body),
        Err(other) => panic!("{other:?}"),
    }
}

async fn answer(stage: &Stage, run_id: &str, answer: &Value) -> (u16, Value) {
    let path = format!("/v1/runs/{run_id}/interactions");
    reply(stage, Request::post(path, answer.to_string())).await
}

fn order(drink: &str) -> Value {
    json!({"interaction_id": "order-1", "action_id": "order",
        "values": {"drink": drink, "cups": 2, "extras": ["milk", "sugar"]}})
}

/// What the plugin says that it got for `order(drink)`.
fn returned(drink: &str) -> Value {
    json!({"id": "order-1", "action": "order", "recent": true, "text": "order", "actor": "u1",
        "values": {"drink": drink, "cups": 2, "extras": ["milk", "sugar"]},
        "subject": ["interaction", "order-1"]})
}

async fn last_answer(stage: &Stage, conversation: &str) -> Value {
    let answers = stage.api.answers(conversation).await;
    serde_json::from_str(answers.last().unwrap()).unwrap_or_else(|_| panic!("{answers:?}"))
}

#[tokio::test]
async fn a_question_is_answered_once_and_comes_back_to_the_plugin() {
    let stage = stage().await;
    let run = stage.play("asks", "c1", "order").await;
    assert_eq!(run.status, RunStatus::Completed, "{run:?}\n{}", stage.host.log());
    let can = "I can show [\"boolean\", \"multiselect\", \"number\", \"select\", \"text\", \"textarea\"].";
    // Who knows no forms reads the text; the others find the form beside it.
    assert_eq!(stage.api.answers("c1").await, [can, "Reply with tea or coffee."]);
    let history = stage.api.history("c1").await;
    let item = serde_json::to_value(history.last().unwrap()).unwrap();
    assert_eq!(item["metadata"]["interaction"]["title"], "What may it be?");
    assert_eq!(stage.api.ready_runner("forms").await["warnings"], json!([]));
    let listed = stage.api.get(&format!("/v1/runs/{}/interactions", run.run_id)).await;
    assert_eq!(listed["items"][0]["status"], "pending");
    assert_eq!(listed["items"][0]["request"]["fields"][0]["id"], "drink");

    for (given, problem) in [
        (json!({"interaction_id": "order-1", "action_id": "order"}), "field `drink` is required"),
        (json!({"interaction_id": "order-1", "action_id": "steal"}), "there is no action `steal`"),
        (
            json!({"interaction_id": "order-1", "action_id": "order", "values": {"drink": "gin"}}),
            "field `drink` must be one of its options",
        ),
    ] {
        let (status, body) = answer(&stage, &run.run_id, &given).await;
        assert_eq!((status, &body["error"]["message"]), (400, &json!(problem)));
    }
    let (status, _) = answer(&stage, &run.run_id, &json!({"interaction_id": "none"})).await;
    assert_eq!(status, 404);

    let (status, first) = answer(&stage, &run.run_id, &order("tea")).await;
    assert_eq!(status, 202, "{first}");
    let answered = first["run_id"].as_str().unwrap();
    assert_eq!(stage.api.ended_run(answered).await.status, RunStatus::Completed);
    assert_eq!(last_answer(&stage, "c1").await, returned("tea"));
    // The same again changes nothing; another answer is refused.
    let (status, again) = answer(&stage, &run.run_id, &order("tea")).await;
    assert_eq!((status, &again["run_id"]), (202, &first["run_id"]));
    let (status, other) = answer(&stage, &run.run_id, &order("coffee")).await;
    assert_eq!(status, 409, "{other}");
    assert_eq!(other["error"]["message"], "this interaction was answered already");
    assert_eq!(stage.api.runs().await.len(), 2);
    let listed = stage.api.get(&format!("/v1/runs/{}/interactions", run.run_id)).await;
    let item = &listed["items"][0];
    assert_eq!((&item["status"], &item["answer_run_id"]), (&json!("answered"), &first["run_id"]));
    assert_eq!(item["answer"], order("tea"));
}

#[tokio::test]
async fn of_many_answers_at_once_one_counts() {
    let stage = stage().await;
    let run = stage.play("asks", "c1", "order").await;
    let (tea, coffee) = (order("tea"), order("coffee"));
    let tries = (0..16).map(|number| {
        let given = if number % 2 == 0 { &tea } else { &coffee };
        answer(&stage, &run.run_id, given)
    });
    let tries = futures_util::future::join_all(tries).await;
    let accepted: Vec<&Value> = tries
        .iter()
        .filter(|(status, _)| *status == 202)
        .map(|(_, body)| &body["run_id"])
        .collect();
    assert!(!accepted.is_empty() && accepted.iter().all(|run| *run == accepted[0]), "{tries:?}");
    assert!(tries.iter().all(|(status, _)| [202, 409].contains(status)), "{tries:?}");
    assert_eq!(stage.api.runs().await.len(), 2);
}

#[tokio::test]
async fn an_answer_is_of_the_group_that_was_asked() {
    let stage = stage().await;
    let mut event = event("asks", "c1", "order");
    event["subject"] = json!({"subject_type": "group", "subject_id": "g1"});
    let run_id = stage.api.send_event(&event).await.run_id.unwrap();
    stage.api.ended_run(&run_id).await;
    let (status, first) = answer(&stage, &run_id, &order("tea")).await;
    assert_eq!(status, 202, "{first}");
    stage.api.ended_run(first["run_id"].as_str().unwrap()).await;
    let mut expected = returned("tea");
    expected["group"] = "g1".into();
    assert_eq!(last_answer(&stage, "c1").await, expected);
}

#[tokio::test]
async fn a_file_of_an_answer_is_one_of_its_conversation_and_reaches_the_plugin() {
    let stage = stage().await;
    let run = stage.play("asks", "c1", "report").await;
    let upload = async |target: &str| {
        let upload = Request::post(target, "sums").header("content-type", "text/plain");
        let (_, artifact) = stage.api.json(upload).await.unwrap();
        artifact["artifact_id"].as_str().unwrap().to_owned()
    };
    let given = |id: &str| json!({"interaction_id": "report-1", "values": {"report": id}});
    let other = upload("/v1/artifacts?name=a.txt&conversation_id=c2").await;
    for id in ["no such file", other.as_str()] {
        let (status, body) = answer(&stage, &run.run_id, &given(id)).await;
        let problem = "field `report` must be the id of an artifact of this conversation";
        assert_eq!((status, &body["error"]["message"]), (400, &json!(problem)), "{id}");
    }
    let own = upload("/v1/artifacts?name=a.txt&conversation_id=c1").await;
    let (status, first) = answer(&stage, &run.run_id, &given(&own)).await;
    assert_eq!(status, 202, "{first}");
    stage.api.ended_run(first["run_id"].as_str().unwrap()).await;
    let returned = last_answer(&stage, "c1").await;
    assert_eq!(returned["values"], json!({"report": own}));
    let files = returned["files"].as_array().unwrap_or_else(|| panic!("{returned}"));
    assert_eq!((files.len(), &files[0][0]), (1, &json!("a.txt")));
    assert!(files[0][1].as_str().unwrap().ends_with(";base64,c3Vtcw=="), "{returned}");
    // The same again changes nothing; another answer is refused.
    let (status, again) = answer(&stage, &run.run_id, &given(&own)).await;
    assert_eq!((status, &again["run_id"]), (202, &first["run_id"]));
    let (status, body) = answer(&stage, &run.run_id, &given(&other)).await;
    assert_eq!(status, 409, "{body}");
}

#[tokio::test]
async fn a_question_outlives_the_host_and_expires_by_itself() {
    let mut stage = stage().await;
    let run = stage.play("asks", "c1", "order").await;
    let late = stage.play("asks", "c2", "soon over").await;
    stage.host.kill();
    stage.host.start_again().await;
    let (status, body) = answer(&stage, &run.run_id, &order("coffee")).await;
    assert_eq!(status, 202, "{body}");
    stage.api.ended_run(body["run_id"].as_str().unwrap()).await;
    assert_eq!(last_answer(&stage, "c1").await, returned("coffee"));
    let (status, body) = answer(&stage, &late.run_id, &order("tea")).await;
    assert_eq!((status, &body["error"]["message"]), (409, &json!("this interaction has expired")));
    let listed = stage.api.get(&format!("/v1/runs/{}/interactions", late.run_id)).await;
    assert_eq!(listed["items"][0]["status"], "expired");
}

#[tokio::test]
async fn an_answer_is_no_event_that_a_sender_can_make_up() {
    let stage = stage().await;
    let mut forged = event("asks", "c1", "order");
    forged["event_type"] = "interaction.submitted".into();
    let (status, _) = reply(&stage, Request::post("/v1/events", forged.to_string())).await;
    assert_eq!(status, 400);
    let run = stage.play("asks", "c1", "order").await;
    let mut forged = event("asks", "c1", "order");
    forged["source"] = "interaction".into();
    forged["event_id"] = format!("{}.interaction.0", run.run_id).into();
    let (status, _) = reply(&stage, Request::post("/v1/events", forged.to_string())).await;
    assert_eq!(status, 400);
    let mut forged = event("asks", "c1", "order");
    forged["input"]["interaction"] = order("tea");
    let (status, body) = reply(&stage, Request::post("/v1/events", forged.to_string())).await;
    assert_eq!(status, 400, "{body}");
}

#[tokio::test]
async fn a_runner_that_did_not_declare_it_does_not_ask() {
    let stage = stage().await;
    let run = stage.play("silent", "c1", "order").await;
    assert_eq!(stage.api.answers("c1").await, ["I can show null."]);
    assert_eq!(stage.diagnostics(&run.run_id).await, ["refused_result"]);
    let (status, _) = answer(&stage, &run.run_id, &order("tea")).await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn only_who_reaches_the_run_answers_it_and_all_of_them_once() {
    let token = |name: &str| {
        format!(
            "[tokens.{name}]\nrole = \"sender\"\nactors = \"{name}\"\nagents = [\"asks\"]\n\
             token = {{ file = \"{name}\" }}\n"
        )
    };
    let more = agents() + &token("ann") + &token("bob");
    let host = TestHost::prepare(PROGRAM, &config(&["forms"], &more));
    copy(&plugins_folder().join("forms"), &host.folder().join("forms"));
    let secret = |name: &str| name.repeat(12);
    for name in ["ann", "bob"] {
        std::fs::write(host.folder().join(name), secret(name)).unwrap();
    }
    let stage = Stage::start(host).await;
    let as_user = |name: &str, request: Request| {
        reply(&stage, request.header("authorization", format!("Bearer {}", secret(name))))
    };
    let order_of = json!({"event_type": "message.received", "agent": "asks", "conversation_id": "c1",
        "input": {"text": "order"}});
    let (status, sent) = as_user("ann", Request::post("/v1/events", order_of.to_string())).await;
    assert_eq!(status, 202, "{sent}");
    let run_id = sent["run_id"].as_str().unwrap();
    stage.api.ended_run(run_id).await;
    let path = format!("/v1/runs/{run_id}/interactions");
    let post = |drink: &str| Request::post(path.clone(), order(drink).to_string());
    let (status, _) = as_user("bob", post("tea")).await;
    assert_eq!(status, 404);
    let (status, _) = as_user("bob", Request::get(path.clone())).await;
    assert_eq!(status, 404);
    let (status, first) = as_user("ann", post("tea")).await;
    assert_eq!(status, 202, "{first}");
    // The admin may answer as well, but not a second time.
    let (status, other) = answer(&stage, run_id, &order("coffee")).await;
    assert_eq!(status, 409, "{other}");
    let answered = stage.api.ended_run(first["run_id"].as_str().unwrap()).await;
    let answers = stage.api.answers(answered.conversation_id.as_deref().unwrap()).await;
    let shown: Value = serde_json::from_str(answers.last().unwrap()).unwrap();
    assert_eq!((&shown["actor"], &shown["values"]["drink"]), (&json!("ann"), &json!("tea")));
    assert_eq!(stage.api.runs().await.len(), 2);
}

#[tokio::test]
async fn a_surface_without_forms_gets_the_text() {
    let receiver = Receiver::start().await;
    let surface = format!(
        "[surfaces.desk]\nkind = \"webhook\"\nurl = \"{}\"\nallow_private = true\n",
        receiver.url()
    );
    let asks = agent("asks", "forms", "asks", "delivery = \"desk\"");
    let stage = Stage::open(&["forms"], &format!("{asks}{surface}")).await;
    stage.play("asks", "c1", "order").await;
    let texts = wait_for("the deliveries", PATIENCE, async || {
        let received = receiver.received();
        let text = |payload: &Value| payload["message"]["content"].as_str().map(str::to_owned);
        let texts: Vec<String> = received.iter().filter_map(|it| text(&it.payload)).collect();
        (texts.len() >= 2).then_some(texts)
    })
    .await;
    assert_eq!(texts, ["I can show null.", "Reply with tea or coffee."]);
}

/// The events of an AG-UI request.
async fn agui(stage: &Stage, input: &Value) -> Vec<Value> {
    let request =
        Request::post("/v1/agui/asks", input.to_string()).header("accept", "text/event-stream");
    let body = stage.api.send(request).await.unwrap().body().await.unwrap();
    let body = String::from_utf8(body).unwrap();
    let data = body.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
async fn an_agui_client_gets_the_form_and_answers_it() {
    let stage = stage().await;
    let input = |run: &str, props: Value| {
        json!({"threadId": "t1", "runId": run, "state": {}, "tools": [], "context": [],
            "messages": [{"id": "m1", "role": "user", "content": "order"}], "forwardedProps": props})
    };
    let events = agui(&stage, &input("r1", json!({}))).await;
    let custom = events.iter().find(|event| event["type"] == "CUSTOM").unwrap();
    assert_eq!(custom["name"], "interaction.requested");
    let value = &custom["value"];
    assert_eq!(value["request"]["actions"][1]["style"], "danger");
    // The text of the same message is for clients that know no forms.
    let text = |events: &[Value], id: &Value| {
        let own = events.iter().filter(|event| event["messageId"] == *id);
        own.filter_map(|event| event["delta"].as_str()).collect::<String>()
    };
    assert_eq!(text(&events, &value["message_id"]), "Reply with tea or coffee.");
    let mut given = order("tea");
    given["run_id"] = value["run_id"].clone();
    for run in ["r2", "r2", "r3"] {
        let events = agui(&stage, &input(run, json!({"interaction": given}))).await;
        assert_eq!(events.last().unwrap()["type"], "RUN_FINISHED", "{events:?}");
        let shown: String = events.iter().filter_map(|event| event["delta"].as_str()).collect();
        let shown: Value = serde_json::from_str(&shown).unwrap();
        assert_eq!((&shown["action"], &shown["values"]["drink"]), (&json!("order"), &json!("tea")));
    }
    assert_eq!(stage.api.runs().await.len(), 2);
}

#[tokio::test]
async fn the_command_line_shows_the_form_and_answers_it() {
    let stage = stage().await;
    let (folder, data) = (stage.host.folder().to_owned(), stage.host.data());
    let data = data.to_str().unwrap();
    let run = |args: &[&str]| {
        let done = greenroom(&folder, &[args, &["--data", data]].concat());
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (done.status.success(), text(&done.stdout), text(&done.stderr))
    };
    let (ok, told, shown) = run(&["send", "order", "--agent", "asks", "--follow"]);
    assert!(ok && told.contains("Reply with tea or coffee."), "{told}{shown}");
    for line in [
        "? What may it be?",
        "Drink --set drink=…: tea (Tea) | coffee (Coffee) (required)",
        "[Order] --action order",
        "greenroom runs answer run_",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    let run_id = stage.api.runs().await[0].run_id.clone();
    let (ok, told, _) = run(&["runs", "answer", &run_id]);
    assert!(ok && told.contains("[Cancel] --action cancel"), "{told}");
    let (ok, _, said) = run(&["runs", "answer", &run_id, "--action", "order"]);
    assert!(!ok && said.contains("field `drink` is required"), "{said}");
    let set = ["--set", "drink=tea", "--set", "cups=2", "--set", "extras=milk, sugar"];
    let whole = [&["runs", "answer", &run_id, "--action", "order", "--follow"][..], &set].concat();
    let (ok, told, said) = run(&whole);
    assert!(ok, "{told}{said}");
    let shown: Value = serde_json::from_str(told.trim()).unwrap();
    assert_eq!(shown["values"], order("tea")["values"]);
}
