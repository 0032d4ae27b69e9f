//! A model without network: rules in a file determine its responses.
//!
//! Invariant: the same request gets the same response with the same ids, unless a rule uses `times` or the
//! template `{{today}}`.

pub(crate) mod day;
mod facts;
mod file;
mod pieces;
mod plan;
mod readable;
mod rule;
mod sample;
mod spoken;
mod template;
#[cfg(test)]
mod tests;
mod vectors;

pub use file::ScriptError;
pub use plan::{Fault, PlanStep};
pub use vectors::{embed, request_tokens, rerank, tokens};

use crate::{ModelError, ModelRequest};
use futures_util::stream::{self, Stream};
use greenroom_protocol::api::models::ModelStreamItem;
use rule::Rule;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

/// The built-in model, in the same format as user scripts.
const BUILT_IN: &str = include_str!("scripted/built_in.toml");

/// Rules, tried in order.
#[derive(Debug)]
pub struct Script {
    /// The built-in rules are parsed on first use: most hosts never use them.
    rules: OnceLock<Vec<Rule>>,
}

impl Script {
    /// The model of a host without a key: it introduces itself and demonstrates a few features.
    pub fn built_in() -> Self {
        Self { rules: OnceLock::new() }
    }

    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        Ok(Self { rules: file::load(path)?.into() })
    }

    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        Ok(Self { rules: file::parse(text)?.into() })
    }

    /// The planned response to a request. Only rules with `times` keep state.
    pub fn plan(&self, request: &ModelRequest, now: SystemTime) -> Vec<PlanStep> {
        plan::plan(self.rules(), request, now)
    }

    fn rules(&self) -> &[Rule] {
        self.rules.get_or_init(|| {
            file::parse(BUILT_IN)
                .expect("the built-in script is part of the program, and a test reads it")
        })
    }
}

/// The response as a stream of items, then one finish or one error.
///
/// A script that stays silent fails after `idle_timeout`, like a provider.
pub fn stream(
    script: Arc<Script>,
    request: ModelRequest,
    idle_timeout: Duration,
) -> impl Stream<Item = Result<ModelStreamItem, ModelError>> + Send + 'static {
    let plan = script.plan(&request, SystemTime::now()).into_iter();
    stream::unfold(plan, move |mut plan| async move {
        loop {
            match plan.next()? {
                PlanStep::Item(item) => return Some((Ok(item), plan)),
                PlanStep::Wait(time) if time > idle_timeout => {
                    tokio::time::sleep(idle_timeout).await;
                    return Some((
                        Err(ModelError::IdleTimeout(idle_timeout)),
                        Vec::new().into_iter(),
                    ));
                }
                PlanStep::Wait(time) => tokio::time::sleep(time).await,
                PlanStep::Fault(fault) => {
                    if matches!(fault, Fault::Silence) {
                        tokio::time::sleep(idle_timeout).await;
                    }
                    return Some((Err(fault.error(idle_timeout)), Vec::new().into_iter()));
                }
            }
        }
    })
}
