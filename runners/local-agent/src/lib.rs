//! The reference runner: an agent that uses the host for models, tools and history.
//!
//! Invariant: it uses the public SDK only. Every tool call of the model gets exactly one result, which directly follows
//! it.

mod agent;
mod client;
mod commands;
mod compaction;
mod config;
mod context;
mod event;
mod history;
mod knowledge;
mod limits;
mod manifest;
mod media;
mod model;
mod prompted;
mod reading;
mod record;
mod results;
mod retrieval;
mod steering;
mod stream;
mod texts;
mod tokens;
mod tools;
mod turn;

use greenroom_sdk::{Manifest, Object, Plugin, RunCtx, RunFailure, Runner};
use std::process::ExitCode;

/// The plugin with its one runner, `default`.
pub fn plugin() -> Plugin {
    Plugin::new("greenroom", "local-agent").version(env!("CARGO_PKG_VERSION")).runner(LocalAgent)
}

/// Serves the plugin until its host ends the connection.
pub fn main() -> ExitCode {
    greenroom_sdk::serve(plugin())
}

/// Checks a config; the error describes every problem.
pub fn check_config(config: &Object) -> Result<(), String> {
    config::Config::parse(config, texts::Texts::English).map(drop)
}

struct LocalAgent;

impl Runner for LocalAgent {
    fn manifest(&self) -> Manifest {
        manifest::manifest()
    }

    async fn run(&self, ctx: RunCtx) -> Result<(), RunFailure> {
        agent::run(&ctx).await
    }
}
