//! What granted knowledge bases say about the question.

use crate::config::Config;
use greenroom_sdk::{ModelMessage, RunCtx, RunFailure, Value};

pub(crate) struct Found {
    pub(crate) message: ModelMessage,
    pub(crate) citations: Vec<Value>,
}

pub(crate) async fn gather(_ctx: &RunCtx, _config: &Config) -> Result<Option<Found>, RunFailure> {
    Ok(None)
}

/// The citations that the answer refers to, or all when it refers to none.
pub(crate) fn cited(_answer: &str, citations: &[Value]) -> Vec<Value> {
    citations.to_vec()
}
