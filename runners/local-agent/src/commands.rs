//! Slash commands.

use crate::config::Config;
use greenroom_sdk::{RunCtx, RunFailure};

pub(crate) async fn run(_ctx: &RunCtx, _config: &Config) -> Result<bool, RunFailure> {
    Ok(false)
}

pub(crate) fn is_cancel(text: &str) -> bool {
    text.trim() == "/cancel"
}
