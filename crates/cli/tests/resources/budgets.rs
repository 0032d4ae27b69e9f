//! Budgets: a call that would pass one is not made, whatever happened to the calls before it.
//!
//! A call of `priced` takes 1000 tokens in and 500 out: 1000 × 2 + 500 × 8 millionths, 0.006 dollars. Before it
//! is made, it is reckoned with its text and the 500 tokens that it may put out: a little over 0.004 dollars.

use crate::models::{Server, agent, host, refusal, result, run, says, step};
use crate::stage::{PATIENCE, Stage, event, outcome};
use greenroom_protocol::{ModelCalls, RunStatus, RunView};
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};

const SCRIPT: &str = r#"
[[rule]]
when.text = "secretive"
answer = [{ text = "x" }, { usage = false }]
[[rule]]
when.text = "mum"
answer = [{ text = "THREE THOUSAND", piece = 1000 }, { usage = false }]
[[rule]]
when.text = "absurd"
answer = [{ text = "x" }, { usage = { input_tokens = 9223372036854775807, output_tokens = 9223372036854775807 } }]
[[rule]]
when.text = "endless"
answer = [{ text = "THREE HUNDRED", piece = 1000 }, { silence = true }]
[[rule]]
answer = [{ text = "fine" }, { usage = { input_tokens = 1000, output_tokens = 500 } }]
"#;

const PRICED: &str = r#"
[models.priced]
provider = "scripted"
script = "demo.toml"
price = { input = 2, output = 8 }
max_output_tokens = 500
[models.free]
provider = "scripted"
script = "demo.toml"
[models.unlimited]
provider = "scripted"
script = "demo.toml"
price = { input = 2, output = 8 }
[models.gold]
provider = "scripted"
script = "demo.toml"
price = { input = 1_000_000, output = 1_000_000 }
max_output_tokens = 0
"#;

fn spender(name: &str, budget: &str) -> String {
    agent(name, &["priced", "free", "unlimited", "gold"], budget)
}

async fn opened(agents: &str) -> Stage {
    let script = SCRIPT
        .replace("THREE HUNDRED", &"x".repeat(300))
        .replace("THREE THOUSAND", &"x".repeat(3000));
    host(&[("demo.toml", &script)], &format!("{PRICED}\n{agents}")).await
}

/// One call of a model by an agent.
async fn ask(stage: &Stage, agent: &str, name: &str, text: &str) -> RunView {
    run(stage, agent, name, vec![step("models.invoke", says("priced", text), name)]).await
}

fn took(calls: i64, unpriced: i64, tokens: Option<i64>, cost_usd: Option<f64>) -> ModelCalls {
    ModelCalls { calls, unpriced, tokens, cost_usd }
}

const EXCEEDED: (RunStatus, &str) = (RunStatus::Failed, "budget_exceeded");
const COMPLETED: (RunStatus, &str) = (RunStatus::Completed, "");

async fn restarted(stage: &mut Stage) {
    stage.host.kill();
    stage.host.start_again().await;
    stage.api = stage.host.api();
}

#[tokio::test]
async fn the_call_that_would_pass_the_budget_of_a_run_is_not_made_and_ends_the_run() {
    let server = Server::start(SCRIPT);
    let more = "price = { input = 2, output = 8 }\nmax_output_tokens = 500";
    let config = server.model("priced", "openai", more)
        + &agent("asker", &["priced"], "budget = { run_usd = 0.01 }");
    let stage = host(&[("key", "k")], &config).await;
    let steps =
        ["one", "two", "three"].map(|name| step("models.stream", says("priced", name), name));
    let ended = run(&stage, "asker", "c1", steps.to_vec()).await;
    assert_eq!(outcome(&ended), EXCEEDED);
    let error = ended.error.as_ref().unwrap();
    let text =
        "the budget does not allow this call: this run has spent 0.006000 of 0.010000 dollars, and";
    assert!(error.message.starts_with(text), "{ended:?}");
    assert!(!error.retryable);
    result(&stage, "one").await;
    let told = refusal(&stage, "two").await;
    assert_eq!(
        (&told["code"], &told["details"]["reason"]),
        (&json!("runtime_error"), &json!("budget_exceeded"))
    );
    assert_eq!(server.requests("").len(), 1);
    assert_eq!(ended.model_calls, Some(took(1, 0, Some(1500), Some(0.006))));
    // Another run has a budget of its own.
    let again = ask(&stage, "asker", "again", "one").await;
    assert_eq!(outcome(&again), COMPLETED);
}

#[tokio::test]
async fn what_a_caller_allows_for_the_answer_is_reckoned_with() {
    let stage = opened(&spender("asker", "budget = { run_usd = 0.003 }")).await;
    let mut small = says("priced", "x");
    small["extra_args"] = json!({"max_tokens": 100});
    let played = run(&stage, "asker", "c1", vec![step("models.invoke", small, "small")]).await;
    assert_eq!(outcome(&played), COMPLETED);
    assert_eq!(outcome(&ask(&stage, "asker", "large", "x").await), EXCEEDED);
}

#[tokio::test]
async fn a_picture_is_not_reckoned_as_text() {
    let stage = opened(&spender("asker", "budget = { run_usd = 0.02 }")).await;
    let picture =
        json!({"type": "image", "mime_type": "image/png", "data_base64": "A".repeat(400_000)});
    let params =
        json!({"model_id": "priced", "messages": [{"role": "user", "content": [picture]}]});
    let played = run(&stage, "asker", "c1", vec![step("models.invoke", params, "seen")]).await;
    assert_eq!(outcome(&played), COMPLETED, "{played:?}");
}

#[tokio::test]
async fn the_budget_of_a_day_holds_over_runs_and_over_restarts() {
    let agents = spender("asker", "budget = { day_usd = 0.013 }") + &spender("other", "");
    let mut stage = opened(&agents).await;
    for name in ["one", "two"] {
        let played = ask(&stage, "asker", name, "x").await;
        assert_eq!(outcome(&played), COMPLETED, "{name}");
        assert_eq!(played.model_calls, Some(took(1, 0, Some(1500), Some(0.006))));
    }
    for name in ["three", "four"] {
        let ended = ask(&stage, "asker", name, "x").await;
        assert_eq!(outcome(&ended), EXCEEDED);
        let text = "the budget does not allow this call: this agent today has spent 0.012000 of 0.013000 dollars, and";
        assert!(ended.error.as_ref().unwrap().message.starts_with(text), "{ended:?}");
        assert_eq!(ended.model_calls, Some(took(0, 0, Some(0), Some(0.0))));
        restarted(&mut stage).await;
    }
    // It is the agent's, not everyone's.
    assert_eq!(outcome(&ask(&stage, "other", "five", "x").await), COMPLETED);
}

#[tokio::test]
async fn the_budget_of_the_host_is_for_all_agents_together() {
    let agents = spender("asker", "") + &spender("other", "") + "[budget]\nday_usd = 0.013\n";
    let stage = opened(&agents).await;
    assert_eq!(outcome(&ask(&stage, "asker", "one", "x").await), COMPLETED);
    assert_eq!(outcome(&ask(&stage, "other", "two", "x").await), COMPLETED);
    for (agent, name) in [("asker", "three"), ("other", "four")] {
        let ended = ask(&stage, agent, name, "x").await;
        assert_eq!(outcome(&ended), EXCEEDED);
        let text = "the budget does not allow this call: this host today has spent 0.012000 of 0.013000 dollars, and";
        assert!(ended.error.as_ref().unwrap().message.starts_with(text), "{ended:?}");
    }
}

#[tokio::test]
async fn a_call_that_was_given_up_counts_with_what_had_come_of_it() {
    // 300 characters were heard, some 100 tokens: 0.0008 dollars, and a little for the question.
    let mut stage = opened(&spender("asker", "budget = { day_usd = 0.0049 }")).await;
    let steps = json!([step("models.stream", says("priced", "endless"), "cut"), ["hang"]]);
    let run_id = stage.send(&event("asker", "c1", &steps.to_string())).await;
    wait_for("the first words", PATIENCE, async || {
        stage.wire_log().iter().any(|line| line == "item text_delta").then_some(())
    })
    .await;
    stage.cancel(&run_id).await;
    let calls = wait_for("the call's record", PATIENCE, async || {
        stage.api.run(&run_id).await.model_calls.filter(|calls| calls.calls > 0)
    })
    .await;
    assert_eq!((calls.calls, calls.unpriced), (1, 0));
    let cost = calls.cost_usd.unwrap();
    assert!((0.0008..0.001).contains(&cost), "{cost}");
    for name in ["one", "two"] {
        assert_eq!(outcome(&ask(&stage, "asker", name, "x").await), EXCEEDED, "{name}");
        restarted(&mut stage).await;
    }
}

/// Starts a call that does not end, and takes the host's power away in the middle of it.
async fn killed_in_a_call(stage: &mut Stage, model: &str) -> String {
    let steps = json!([step("models.stream", says(model, "endless"), "cut"), ["end"]]);
    let run_id = stage.send(&event("asker", "c1", &steps.to_string())).await;
    wait_for("the first words", PATIENCE, async || {
        stage.wire_log().iter().any(|line| line == "item text_delta").then_some(())
    })
    .await;
    restarted(stage).await;
    run_id
}

#[tokio::test]
async fn a_call_under_way_when_the_host_is_killed_is_charged_with_what_was_reserved() {
    // Twice a little over 0.004 dollars is too much. Where nobody limits the output, 4096 tokens are assumed of
    // the call that was cut off: 0.0328 dollars.
    for (model, budget) in [("priced", "0.0081"), ("unlimited", "0.0325")] {
        let mut stage =
            opened(&spender("asker", &format!("budget = {{ day_usd = {budget} }}"))).await;
        let run_id = killed_in_a_call(&mut stage, model).await;
        let run = stage.api.ended_run(&run_id).await;
        assert_eq!(outcome(&run), (RunStatus::Failed, "host.interrupted"));
        assert_eq!(run.model_calls, Some(took(1, 1, None, None)), "{model}");
        for name in ["one", "two"] {
            assert_eq!(outcome(&ask(&stage, "asker", name, "x").await), EXCEEDED, "{model}");
            // It is charged once.
            restarted(&mut stage).await;
        }
        let shown = stage.api.run(&run_id).await;
        assert_eq!(shown.model_calls, Some(took(1, 1, None, None)), "{model}");
    }
}

#[tokio::test]
async fn a_call_that_was_cut_off_counts_for_the_next_attempt() {
    let more = "on_interrupt = \"retry\"\nbudget = { run_usd = 0.0081 }";
    let mut stage = opened(&spender("asker", more)).await;
    let run_id = killed_in_a_call(&mut stage, "priced").await;
    let ended = stage.api.ended_run(&run_id).await;
    assert_eq!((outcome(&ended), ended.attempt), (EXCEEDED, 2));
    assert_eq!(ended.model_calls, Some(took(1, 1, None, None)));
}

#[tokio::test]
async fn an_answer_whose_usage_nobody_tells_is_charged_with_what_can_be_guessed() {
    // 3000 characters are taken as 1000 tokens: 0.008 dollars.
    let mut stage = opened(&spender("asker", "budget = { day_usd = 0.0118 }")).await;
    let mum = ask(&stage, "asker", "mum", "mum").await;
    assert_eq!(outcome(&mum), COMPLETED);
    assert_eq!(mum.model_calls, Some(took(1, 1, None, None)));
    for name in ["one", "two"] {
        assert_eq!(outcome(&ask(&stage, "asker", name, "x").await), EXCEEDED, "{name}");
        restarted(&mut stage).await;
    }
}

#[tokio::test]
async fn an_absurd_usage_is_bounded_and_spoils_no_sum() {
    let agents = spender("asker", "budget = { day_usd = 3_000_000 }") + &spender("other", "");
    let mut stage = opened(&agents).await;
    // A thousand million tokens each way at most.
    let dear = ask(&stage, "other", "dear", "absurd").await;
    assert_eq!(outcome(&dear), COMPLETED);
    let tokens = 1_000_000_000;
    assert_eq!(dear.model_calls, Some(took(1, 0, Some(tokens), Some(10_000.0))));
    // And a million dollars at most.
    for name in ["one", "two", "three"] {
        let steps = vec![step("models.invoke", says("gold", "absurd"), name)];
        let gold = run(&stage, "asker", name, steps).await;
        assert_eq!(outcome(&gold), COMPLETED);
        assert_eq!(gold.model_calls, Some(took(1, 0, Some(tokens), Some(1_000_000.0))));
    }
    for name in ["four", "five"] {
        let ended = ask(&stage, "asker", name, "x").await;
        assert_eq!(outcome(&ended), EXCEEDED);
        let text = "has spent 3000000.000000 of 3000000.000000 dollars, and";
        assert!(ended.error.as_ref().unwrap().message.contains(text), "{ended:?}");
        assert_eq!(outcome(&ask(&stage, "other", name, "x").await), COMPLETED);
        restarted(&mut stage).await;
    }
}

#[tokio::test]
async fn what_an_attempt_has_spent_counts_for_the_next() {
    let more = "on_interrupt = \"retry\"\nbudget = { run_usd = 0.01 }";
    let mut stage = opened(&spender("asker", more)).await;
    let steps = json!([
        step("models.invoke", says("priced", "x"), "one"),
        ["mark", "waits"],
        ["gate", "go"],
        ["end"]
    ]);
    let run_id = stage.send(&event("asker", "c1", &steps.to_string())).await;
    stage.marked("waits").await;
    restarted(&mut stage).await;
    stage.pass("go");
    let ended = stage.api.ended_run(&run_id).await;
    assert_eq!((outcome(&ended), ended.attempt), (EXCEEDED, 2));
    assert_eq!(ended.model_calls, Some(took(1, 0, Some(1500), Some(0.006))));
}

#[tokio::test]
async fn what_is_not_known_costs_nothing_known() {
    let stage = opened(&spender("asker", "budget = { run_usd = 0.0075 }")).await;
    let secretive = ask(&stage, "asker", "secretive", "secretive").await;
    assert_eq!(outcome(&secretive), COMPLETED);
    assert_eq!(secretive.model_calls, Some(took(1, 1, None, None)));
    // A model without a price has tokens and no cost.
    let free = vec![step("models.invoke", says("free", "x"), "free")];
    let free = run(&stage, "asker", "c2", free).await;
    assert_eq!(free.model_calls, Some(took(1, 1, Some(1500), None)));
    let both = vec![
        step("models.invoke", says("free", "x"), "b1"),
        step("models.invoke", says("priced", "x"), "b2"),
    ];
    let both = run(&stage, "asker", "c3", both).await;
    assert_eq!(both.model_calls, Some(took(2, 1, Some(3000), Some(0.006))));
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the program under test is started here")]
async fn users_see_what_a_run_has_cost() {
    let stage = opened(&spender("asker", "")).await;
    let played = ask(&stage, "asker", "one", "x").await;
    let shown = stage.api.get(&format!("/v1/runs/{}", played.run_id)).await;
    let expected = json!({"calls": 1, "unpriced": 0, "tokens": 1500, "cost_usd": 0.006});
    assert_eq!((&shown["model_calls"], &shown["usage"]), (&expected, &Value::Null));
    let data = stage.host.data();
    let output = std::process::Command::new(crate::PROGRAM)
        .args(["runs", "show", &played.run_id, "--data"])
        .arg(data)
        .env_remove("GREENROOM_URL")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("models        1 call, 1500 tokens, $0.006\n"), "{text}");
    let document = stage.api.get("/openapi.json").await;
    let described = &document["components"]["schemas"]["RunView"]["properties"]["model_calls"];
    assert!(described.is_object(), "{described}");
}
