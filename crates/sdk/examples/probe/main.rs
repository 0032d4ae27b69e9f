//! A runner that does what its config requests under `do`: for the tests of the SDK.

mod ask;
mod tools;

use greenroom_sdk::{Manifest, Plugin, RunCtx, RunFailure, RunResult, Runner, StateScope};
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::Duration;

struct Probe;

impl Runner for Probe {
    fn manifest(&self) -> Manifest {
        Manifest::new("default").label("Probe")
    }

    async fn run(&self, ctx: RunCtx) -> Result<(), RunFailure> {
        match ctx.config("do").and_then(Value::as_str).unwrap_or("greet") {
            "greet" => greet(&ctx).await,
            "stream" => stream(&ctx).await,
            "every_result" => every_result(&ctx).await,
            "wait" => ctx.sleep(Duration::from_secs(3600)).await,
            "never_look" => std::future::pending().await,
            "panic" => panic!("as asked"),
            "fail" => Err(RunFailure::new("probe.failed", "as asked").retryable()),
            "print" => print(&ctx).await,
            "state" => state(&ctx).await,
            "call" => Ok(ctx.call("models.invoke", json!({ "model_id": "m" })).await?),
            "ask" => ask::ask(&ctx).await,
            other => Err(RunFailure::error(format!("`{other}` is not known"))),
        }
    }
}

async fn greet(ctx: &RunCtx) -> Result<(), RunFailure> {
    ctx.delta("Hello, ").await?;
    ctx.delta(ctx.text()).await?;
    ctx.message(format!("Hello, {}", ctx.text())).await
}

async fn stream(ctx: &RunCtx) -> Result<(), RunFailure> {
    let results = ["a", "b"].map(|text| Ok(RunResult::delta(text)));
    ctx.emit_all(futures_util::stream::iter(results)).await
}

async fn every_result(ctx: &RunCtx) -> Result<(), RunFailure> {
    ctx.emit(RunResult::delta("d")).await?;
    ctx.emit(RunResult::message("m")).await?;
    ctx.emit(RunResult::tool_started("c1", "search", json!({ "q": "x" }))).await?;
    ctx.emit(RunResult::tool_completed("c1", "search", json!(["y"]))).await?;
    ctx.emit(RunResult::artifact("a.txt", "text/plain", b"hi")).await?;
    ctx.emit(RunResult::state(StateScope::Actor, "k", 7)).await?;
    let target = [("id".to_owned(), json!("t"))].into_iter().collect();
    ctx.emit(RunResult::action("message.send", target, Default::default())).await?;
    ctx.set_usage([("total_tokens".to_owned(), json!(3))].into_iter().collect());
    Ok(())
}

#[expect(clippy::print_stdout, reason = "shows that printing does not disturb the wire")]
async fn print(ctx: &RunCtx) -> Result<(), RunFailure> {
    println!("this is not for the host");
    ctx.message("printed").await
}

async fn state(ctx: &RunCtx) -> Result<(), RunFailure> {
    let before = ctx.state().get(StateScope::Conversation, "count").await?;
    let count = before.value.as_i64().unwrap_or(0) + 1;
    let version = ctx.state().set(StateScope::Conversation, "count", count).await?;
    let keys = ctx.state().list(StateScope::Conversation, "co").await?.items.len();
    let deleted = ctx.state().delete(StateScope::Conversation, "count").await?;
    ctx.message(format!("count {count}, version {version}, {keys} key, deleted {deleted}")).await
}

fn main() -> ExitCode {
    let plugin = Plugin::new("test", "probe").version("1.2.3").runner(Probe);
    let plugin = tools::offer(plugin);
    greenroom_sdk::serve(plugin.cancel_grace(Duration::from_millis(50)))
}
