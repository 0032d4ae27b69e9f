//! An event as a message for the model.

use greenroom_sdk::{ModelMessage, Role, RunCtx, SteeringItem};

pub(crate) fn message(ctx: &RunCtx) -> ModelMessage {
    crate::history::input(ctx)
}

pub(crate) fn steered(item: &SteeringItem) -> ModelMessage {
    ModelMessage::text(Role::User, item.input.text.clone().unwrap_or_default())
}
