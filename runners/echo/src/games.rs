//! Modes that violate the protocol, to test a host.
//!
//! Invariant: each mode violates one rule and follows the others.

use crate::options::{CrashAt, Options};
use greenroom_sdk::protocol::AgentRunResult;
use greenroom_sdk::{Object, RunCtx, RunFailure, RunResult};
use serde_json::{Value, json};
use std::time::Duration;

/// The exit code of a requested crash.
const CRASH_EXIT_CODE: i32 = 3;

/// Ignores cancellation.
pub(crate) async fn stubborn(ctx: &RunCtx, options: &Options) -> Result<(), RunFailure> {
    let mut answer = String::new();
    for number in 1..=options.n {
        let piece = format!("{number} ");
        let chunk = json!({ "chunk": { "role": "assistant", "content": piece } });
        ctx.unchecked().result(&result(ctx, "message.delta", chunk)).await?;
        answer.push_str(&piece);
        tokio::time::sleep(Duration::from_millis(options.delay_ms)).await;
    }
    let message = json!({ "message": { "role": "assistant", "content": answer } });
    ctx.unchecked().result(&result(ctx, "message.completed", message)).await?;
    ctx.unchecked().result(&result(ctx, "run.completed", json!({}))).await?;
    ctx.unchecked().without_terminal();
    Ok(())
}

/// Crashes the whole process.
pub(crate) async fn crash(ctx: &RunCtx, options: &Options) -> Result<(), RunFailure> {
    if options.at == CrashAt::Middle {
        ctx.delta("about to crash").await?;
        ctx.flush().await;
    }
    std::process::exit(CRASH_EXIT_CODE)
}

/// Never replies; with `block` it also blocks the process's only thread.
pub(crate) async fn hang(ctx: &RunCtx, options: &Options) -> Result<(), RunFailure> {
    if options.block {
        loop {
            std::thread::park();
        }
    }
    ctx.unless_cancelled(std::future::pending()).await
}

pub(crate) async fn no_terminal(ctx: &RunCtx, text: &str) -> Result<(), RunFailure> {
    ctx.message(text).await?;
    ctx.unchecked().without_terminal();
    Ok(())
}

pub(crate) async fn unknown(ctx: &RunCtx, text: &str) -> Result<(), RunFailure> {
    let data = Object::from_iter([("text".to_owned(), text.into())]);
    ctx.emit(RunResult::other("echo.unheard_of", data)).await?;
    ctx.message(text).await
}

/// The runner's own sequence numbers: 1, 1 again, 2, then 5; `one two three ` should be visible.
pub(crate) async fn sequence(ctx: &RunCtx) -> Result<(), RunFailure> {
    for (sequence, content) in [(1, "one "), (1, "one "), (2, "two "), (5, "three ")] {
        let chunk = json!({ "chunk": { "role": "assistant", "content": content } });
        let numbered =
            AgentRunResult { sequence: Some(sequence), ..result(ctx, "message.delta", chunk) };
        ctx.unchecked().result(&numbered).await?;
    }
    let completed = AgentRunResult {
        sequence: Some(6),
        ..result(ctx, "run.completed", json!({ "finish_reason": "stop" }))
    };
    ctx.unchecked().without_terminal();
    ctx.unchecked().result(&completed).await
}

/// Sends a result for another run first.
pub(crate) async fn wrong_run(
    ctx: &RunCtx,
    options: &Options,
    text: &str,
) -> Result<(), RunFailure> {
    let message = json!({ "message": { "role": "assistant", "content": "not yours" } });
    let foreign = AgentRunResult {
        run_id: options.run_id.clone(),
        ..result(ctx, "message.completed", message)
    };
    ctx.unchecked().result(&foreign).await?;
    ctx.message(text).await
}

/// Sends results after its terminal result, including a second one.
pub(crate) async fn after_terminal(ctx: &RunCtx, text: &str) -> Result<(), RunFailure> {
    ctx.message(text).await?;
    ctx.emit(RunResult::completed("stop")).await?;
    let message = json!({ "message": { "role": "assistant", "content": "too late" } });
    ctx.unchecked().result(&result(ctx, "message.completed", message)).await?;
    let failed = json!({ "code": "echo.too_late", "message": "too late" });
    ctx.unchecked().result(&result(ctx, "run.failed", failed)).await
}

/// Sends a line that is neither JSON nor UTF-8, then the reply.
pub(crate) async fn garbage(ctx: &RunCtx, text: &str) -> Result<(), RunFailure> {
    ctx.unchecked().line(b"this is \xff\xfe not JSON").await?;
    ctx.message(text).await
}

fn result(ctx: &RunCtx, kind: &str, data: Value) -> AgentRunResult {
    let Value::Object(data) = data else { unreachable!("data is written as an object above") };
    AgentRunResult {
        run_id: ctx.run_id.clone(),
        kind: kind.to_owned(),
        data,
        sequence: None,
        timestamp: None,
        created_at: None,
        usage: None,
        runner_sequence: None,
        extra: Object::new(),
    }
}
