//! Echo: the smallest real runner. It repeats the message, and violates the protocol on request.
//!
//! Invariant: it misbehaves only if the agent's config allows it; a sender alone cannot cause it.

mod answer;
mod calls;
mod games;
mod manifest;
mod options;

use greenroom_sdk::{Manifest, Plugin, RunCtx, RunFailure, Runner};
use options::{Mode, Request};
use std::process::ExitCode;
use std::time::Duration;

/// `greenroom/echo` with its one runner, `default`.
pub fn plugin() -> Plugin {
    Plugin::new("greenroom", "echo")
        .version(env!("CARGO_PKG_VERSION"))
        // Otherwise the SDK would end the stubborn mode.
        .cancel_grace(Duration::MAX)
        .threads(1)
        .runner(Echo)
}

/// Serves the plugin until its host ends the connection.
pub fn main() -> ExitCode {
    greenroom_sdk::serve(plugin())
}

struct Echo;

impl Runner for Echo {
    fn manifest(&self) -> Manifest {
        manifest::manifest()
    }

    async fn run(&self, ctx: RunCtx) -> Result<(), RunFailure> {
        let Request { mode, options, text } = Request::of(&ctx)?;
        match mode {
            Mode::Echo => answer::echo(&ctx, &options, &text).await,
            Mode::Stream => answer::stream(&ctx, &options).await,
            Mode::Count => answer::count(&ctx, &options).await,
            Mode::Slow => answer::slow(&ctx, &options, &text).await,
            Mode::State => answer::state(&ctx, &options, &text).await,
            Mode::Huge => answer::huge(&ctx, &options).await,
            Mode::Calls => calls::calls(&ctx, &options).await,
            Mode::Fail => Err(options.failure()),
            Mode::Stubborn => games::stubborn(&ctx, &options).await,
            Mode::Crash => games::crash(&ctx, &options).await,
            Mode::Panic => panic!("{}", options.message),
            Mode::Hang => games::hang(&ctx, &options).await,
            Mode::NoTerminal => games::no_terminal(&ctx, &text).await,
            Mode::Unknown => games::unknown(&ctx, &text).await,
            Mode::Sequence => games::sequence(&ctx).await,
            Mode::WrongRun => games::wrong_run(&ctx, &options, &text).await,
            Mode::AfterTerminal => games::after_terminal(&ctx, &text).await,
            Mode::Garbage => games::garbage(&ctx, &text).await,
        }
    }
}
