//! Messages that arrive during a run.
//!
//! Invariant: messages taken from the host are kept until a turn of the model ends; `/cancel` ends the run at once,
//! whatever the model or a tool is doing, and is not shown to the model.

use crate::commands;
use crate::config::Config;
use crate::texts::Texts;
use futures_util::future::{Either, select};
use greenroom_sdk::{AgentAPIError, RunCtx, RunFailure, SteeringItem};
use std::pin::pin;
use std::time::Duration;

/// Poll interval, and the interval after `LATER` polls.
const EVERY: Duration = Duration::from_secs(1);
const EVERY_LATER: Duration = Duration::from_secs(5);
const LATER: u32 = 60;

pub(crate) struct Steering<'a> {
    ctx: &'a RunCtx,
    config: &'a Config,
    texts: Texts,
    waiting: Vec<SteeringItem>,
}

impl<'a> Steering<'a> {
    pub(crate) fn new(ctx: &'a RunCtx, config: &'a Config, texts: Texts) -> Self {
        Self { ctx, config, texts, waiting: Vec::new() }
    }

    /// The messages since the last call, in order.
    pub(crate) async fn take(&mut self) -> Result<Vec<SteeringItem>, RunFailure> {
        if self.is_offered() && self.poll().await? {
            return Err(self.cancelled());
        }
        Ok(std::mem::take(&mut self.waiting))
    }

    /// The future's output, or the failure `cancelled` as soon as the user cancels the run.
    pub(crate) async fn watch<T>(
        &mut self,
        future: impl Future<Output = T>,
    ) -> Result<T, RunFailure> {
        let mut future = pin!(future);
        if !self.is_offered() {
            return Ok(future.await);
        }
        let mut looks = 0_u32;
        loop {
            let pause = if looks < LATER { EVERY } else { EVERY_LATER };
            if let Either::Left((output, _)) =
                select(future.as_mut(), pin!(tokio::time::sleep(pause))).await
            {
                return Ok(output);
            }
            // A started poll is awaited: the host returns a message only once.
            let (output, looked) = match select(future.as_mut(), pin!(self.poll())).await {
                Either::Left((output, poll)) => (Some(output), poll.await),
                Either::Right((looked, _)) => (None, looked),
            };
            // A failed poll is repeated.
            if looked.unwrap_or_default() {
                return Err(self.cancelled());
            }
            if let Some(output) = output {
                return Ok(output);
            }
            looks = looks.saturating_add(1);
        }
    }

    fn is_offered(&self) -> bool {
        self.ctx.context.available_apis.steering_pull
    }

    /// Polls for messages; true if the run is cancelled.
    async fn poll(&mut self) -> Result<bool, AgentAPIError> {
        let mut is_cancelled = false;
        for item in self.ctx.steering().pull().await? {
            let text = item.input.text.as_deref().unwrap_or_default();
            if !commands::is_cancel(text, self.config) {
                self.waiting.push(item);
                continue;
            }
            is_cancelled = true;
            if Texts::for_text(text) == Texts::Chinese {
                self.texts = Texts::Chinese;
            }
        }
        Ok(is_cancelled)
    }

    fn cancelled(&self) -> RunFailure {
        RunFailure { message: self.texts.cancelled(), ..RunFailure::cancelled() }
    }
}
