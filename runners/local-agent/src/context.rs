//! The working context of one run.

use crate::config::Config;
use crate::model::Models;
use crate::{event, history};
use greenroom_sdk::{ModelMessage, Role, RunCtx, RunFailure};

pub(crate) struct Context {
    messages: Vec<ModelMessage>,
}

impl Context {
    pub(crate) async fn assemble(
        ctx: &RunCtx,
        config: &Config,
        _models: &mut Models<'_>,
        extra: Vec<ModelMessage>,
    ) -> Result<Self, RunFailure> {
        let mut messages = vec![ModelMessage::text(Role::System, config.prompt.clone())];
        messages.extend(history::before(ctx, config.history_items).await?);
        messages.extend(extra);
        messages.push(event::message(ctx));
        Ok(Self { messages })
    }

    pub(crate) fn push(&mut self, message: ModelMessage) {
        self.messages.push(message);
    }

    pub(crate) async fn request(
        &mut self,
        _ctx: &RunCtx,
        _models: &mut Models<'_>,
    ) -> Result<Vec<ModelMessage>, RunFailure> {
        Ok(self.messages.clone())
    }
}
