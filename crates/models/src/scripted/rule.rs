//! One rule: when it applies, and what is answered then.
//!
//! Invariant: matching has no effect but the count of a rule with `times`.

use super::facts::{Facts, Lang};
use super::template::Template;
use greenroom_protocol::{Object, Role};
use regex_lite::{Captures, Regex};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Rule {
    pub when: When,
    pub steps: Vec<Step>,
    /// How often it may still be taken; without it, always.
    pub left: Option<AtomicU32>,
}

/// Everything that is given must hold.
#[derive(Debug, Default)]
pub(super) struct When {
    pub text: Vec<String>,
    pub regex: Option<Regex>,
    pub lang: Option<Lang>,
    pub turn: Option<u32>,
    pub round: Option<u32>,
    pub role: Option<Role>,
    pub system: Vec<String>,
    pub context: Vec<String>,
    pub offers: Vec<String>,
    pub tool_result: Option<bool>,
    pub result_of: Vec<String>,
    pub result_text: Vec<String>,
    pub wants_json: Option<bool>,
}

#[derive(Debug)]
pub(super) enum Step {
    Text {
        text: Template,
        pace: Pace,
    },
    Reasoning {
        text: Template,
        pace: Pace,
        signature: Option<String>,
    },
    Call {
        name: String,
        id: Option<String>,
        args: Args,
        pace: Pace,
    },
    /// JSON that fits the schema that was asked for.
    Sample,
    Wait(Duration),
    Media(Object),
    /// None: the model does not tell its usage.
    Usage(Option<Object>),
    Finish(String),
    Error {
        status: u16,
        message: Template,
        retry_after: Option<Duration>,
    },
    Cut,
    Silence,
    Garbage(String),
}

#[derive(Debug)]
pub(super) enum Args {
    Json(serde_json::Value),
    /// Sent as it is, valid or not.
    Raw(Template),
}

/// How a text is cut up and how fast it comes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pace {
    /// Characters of a piece; words without it.
    pub piece: Option<usize>,
    /// Before every piece but the first.
    pub wait: Duration,
}

impl Rule {
    /// The groups of its expression if it applies and may be taken.
    pub(super) fn takes<'t>(&self, facts: &'t Facts<'_>) -> Option<Option<Captures<'t>>> {
        let captures = self.when.matches(facts)?;
        let free = self.left.as_ref().is_none_or(|left| {
            left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok()
        });
        free.then_some(captures)
    }
}

impl When {
    fn matches<'t>(&self, facts: &'t Facts<'_>) -> Option<Option<Captures<'t>>> {
        let Facts { text, system, results, .. } = facts;
        let result = || results.iter().rev();
        let holds = any(&self.text, |word| contains(text, word))
            && any(&self.system, |word| contains(system, word))
            && any(&self.context, |word| facts.mentions(word))
            && self.offers.iter().all(|name| facts.offered.contains(&name.as_str()))
            && any(&self.result_of, |name| result().any(|result| result.name == name))
            && any(&self.result_text, |word| result().any(|result| contains(&result.text, word)))
            && self.tool_result.is_none_or(|wanted| wanted != results.is_empty())
            && self.lang.is_none_or(|lang| lang == facts.lang())
            && self.turn.is_none_or(|turn| turn == facts.turn)
            && self.round.is_none_or(|round| round == facts.round)
            && self.role.is_none_or(|role| Some(role) == facts.last_role)
            && self.wants_json.is_none_or(|wanted| wanted == facts.wanted.is_some());
        match (holds, &self.regex) {
            (false, _) => None,
            (true, None) => Some(None),
            (true, Some(regex)) => regex.captures(&facts.text).map(Some),
        }
    }
}

/// One of several, or nothing asked.
fn any(wanted: &[String], holds: impl Fn(&String) -> bool) -> bool {
    wanted.is_empty() || wanted.iter().any(holds)
}

/// Without regard to case.
pub(super) fn contains(text: &str, word: &str) -> bool {
    text.to_lowercase().contains(&word.to_lowercase())
}
