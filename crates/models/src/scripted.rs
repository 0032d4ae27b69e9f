//! A model without network: rules in a file say what it answers.
//!
//! Invariant: the same request gets the same answer, with the same ids. The two exceptions are asked for in the
//! rules themselves: `times`, and the template `{{today}}`.

pub(crate) mod day;
mod facts;
mod file;
mod pieces;
mod plan;
mod rule;
mod sample;
mod spoken;
mod telling;
mod template;
#[cfg(test)]
mod tests;
mod vectors;

pub use file::ScriptError;
pub use plan::{Beat, Fault};
pub use vectors::{embed, request_tokens, rerank, tokens};

use crate::{ModelError, ModelRequest};
use futures_util::stream::{self, Stream};
use greenroom_protocol::api::models::ModelStreamItem;
use rule::Rule;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

/// What the built-in model says, in the format that everyone else's scripts have.
const BUILT_IN: &str = include_str!("scripted/built_in.toml");

/// Rules, tried from the first to the last.
#[derive(Debug)]
pub struct Script {
    /// The built-in ones are read when they are first asked for: most hosts never do.
    rules: OnceLock<Vec<Rule>>,
}

impl Script {
    /// The model of a host that has no key: it says what it is, and shows a few things.
    pub fn built_in() -> Self {
        Self { rules: OnceLock::new() }
    }

    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        Ok(Self { rules: file::load(path)?.into() })
    }

    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        Ok(Self { rules: file::parse(text)?.into() })
    }

    /// What is answered to a request, step by step. Only rules with `times` remember that they were asked.
    pub fn plan(&self, request: &ModelRequest, now: SystemTime) -> Vec<Beat> {
        plan::plan(self.rules(), request, now)
    }

    fn rules(&self) -> &[Rule] {
        self.rules.get_or_init(|| {
            file::parse(BUILT_IN)
                .expect("the built-in script is part of the program, and a test reads it")
        })
    }
}

/// The answer as every provider gives it: items, then one finish or one error.
///
/// A script that falls silent is given up after `idle_timeout`, as a silent provider would be.
pub fn stream(
    script: Arc<Script>,
    request: ModelRequest,
    idle_timeout: Duration,
) -> impl Stream<Item = Result<ModelStreamItem, ModelError>> + Send + 'static {
    let beats = script.plan(&request, SystemTime::now()).into_iter();
    stream::unfold(beats, move |mut beats| async move {
        loop {
            match beats.next()? {
                Beat::Item(item) => return Some((Ok(item), beats)),
                Beat::Wait(time) if time > idle_timeout => {
                    tokio::time::sleep(idle_timeout).await;
                    return Some((Err(ModelError::Silent(idle_timeout)), Vec::new().into_iter()));
                }
                Beat::Wait(time) => tokio::time::sleep(time).await,
                Beat::Fault(fault) => {
                    if matches!(fault, Fault::Silence) {
                        tokio::time::sleep(idle_timeout).await;
                    }
                    return Some((Err(fault.error(idle_timeout)), Vec::new().into_iter()));
                }
            }
        }
    })
}
