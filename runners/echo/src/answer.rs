//! Modes that follow the protocol: they reply, however slow or large the reply.
//!
//! Invariant: the concatenated deltas of a reply are its `message.completed`.

use crate::options::{HugeForm, Options, Style};
use greenroom_sdk::{RunCtx, RunFailure, RunResult};
use std::time::Duration;

const DELTA_BYTES: usize = 1024;
const MEGABYTE: usize = 1024 * 1024;

pub(crate) async fn echo(ctx: &RunCtx, options: &Options, text: &str) -> Result<(), RunFailure> {
    let answer = match options.style {
        Style::Plain => text.to_owned(),
        Style::Assistant => friendly(ctx, text),
    };
    for word in answer.split_inclusive(' ') {
        ctx.delta(word).await?;
        pause(ctx, options).await?;
    }
    ctx.message(answer).await
}

fn friendly(ctx: &RunCtx, text: &str) -> String {
    let chinese = ctx.runtime.locale.as_deref().is_some_and(|locale| locale.starts_with("zh"));
    if chinese {
        format!("你说:{text}\n\n还没有配置智能体,所以我只能复述。")
    } else {
        format!("You said: {text}\n\nNo agent is configured yet, so I can only repeat your words.")
    }
}

pub(crate) async fn stream(ctx: &RunCtx, options: &Options) -> Result<(), RunFailure> {
    pieces(ctx, options, |number| format!("piece {number} ")).await
}

pub(crate) async fn count(ctx: &RunCtx, options: &Options) -> Result<(), RunFailure> {
    pieces(ctx, options, |number| format!("{number} ")).await
}

async fn pieces(
    ctx: &RunCtx,
    options: &Options,
    piece: impl Fn(u64) -> String,
) -> Result<(), RunFailure> {
    let mut answer = String::new();
    for number in 1..=options.n {
        let piece = piece(number);
        ctx.delta(&piece).await?;
        answer.push_str(&piece);
        pause(ctx, options).await?;
    }
    ctx.message(answer).await
}

pub(crate) async fn slow(ctx: &RunCtx, options: &Options, text: &str) -> Result<(), RunFailure> {
    pause(ctx, options).await?;
    ctx.delta(text).await?;
    ctx.message(text).await
}

pub(crate) async fn state(ctx: &RunCtx, options: &Options, text: &str) -> Result<(), RunFailure> {
    ctx.emit(RunResult::state(options.scope, &options.key, text)).await?;
    ctx.message(format!("`{}` is now `{text}`", options.key)).await
}

pub(crate) async fn huge(ctx: &RunCtx, options: &Options) -> Result<(), RunFailure> {
    match options.form {
        HugeForm::Completed => ctx.message("x".repeat(options.megabytes * MEGABYTE)).await,
        HugeForm::Deltas => {
            let delta = "x".repeat(DELTA_BYTES);
            for _ in 0..options.megabytes * MEGABYTE / DELTA_BYTES {
                ctx.delta(&delta).await?;
            }
            Ok(())
        }
    }
}

async fn pause(ctx: &RunCtx, options: &Options) -> Result<(), RunFailure> {
    if options.delay_ms == 0 {
        return Ok(());
    }
    ctx.sleep(Duration::from_millis(options.delay_ms)).await
}
