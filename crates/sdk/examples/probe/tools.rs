//! The probe's tools: one for each outcome of a call.

use greenroom_sdk::{NoInput, Plugin, Tool, ToolCtx, ToolError, ToolOutput, ToolRisk};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, Ordering};

/// Calls of `wait` that were dropped.
static DROPPED: AtomicU32 = AtomicU32::new(0);

#[derive(Deserialize, JsonSchema)]
struct Sum {
    /// The first number.
    a: i64,
    b: i64,
    #[serde(default)]
    detail: Detail,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Detail {
    #[default]
    Short,
    Long,
}

#[derive(Serialize, JsonSchema)]
struct Total {
    total: i64,
    call: String,
    run: Option<String>,
}

async fn add(sum: Sum, ctx: ToolCtx) -> Result<Total, ToolError> {
    let total = sum.a.checked_add(sum.b).ok_or_else(|| ToolError::new("overflow", "too much"))?;
    assert!(ctx.remaining().is_some_and(|left| !left.is_zero()), "the host said how long");
    let run = ctx.run_id.filter(|_| matches!(sum.detail, Detail::Long));
    Ok(Total { total, call: ctx.tool_call_id, run })
}

async fn parse(_: NoInput, _: ToolCtx) -> Result<u32, ToolError> {
    Ok("many".parse::<u32>()?)
}

async fn fall(_: NoInput, _: ToolCtx) -> Result<(), ToolError> {
    panic!("as asked")
}

async fn wait(_: NoInput, _: ToolCtx) -> Result<(), ToolError> {
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
    }
    let _counted = Counted;
    std::future::pending().await
}

async fn dropped(_: NoInput, _: ToolCtx) -> Result<ToolOutput, ToolError> {
    let count = DROPPED.load(Ordering::Relaxed);
    Ok(ToolOutput::new(count).content(format!("{count} dropped")))
}

async fn big(_: NoInput, _: ToolCtx) -> Result<String, ToolError> {
    Ok("x".repeat(9 * 1024 * 1024))
}

pub(crate) fn offer(plugin: Plugin) -> Plugin {
    let adds = Tool::new("math.add", add).description("Adds two numbers").risk(ToolRisk::Read);
    plugin
        .tool(adds.timeout_s(5).output::<Total>())
        .tool(Tool::new("parse", parse))
        .tool(Tool::new("fall", fall))
        .tool(Tool::new("wait", wait))
        .tool(Tool::new("dropped", dropped))
        .tool(Tool::new("big", big))
}
