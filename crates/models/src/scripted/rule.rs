//! A rule: its conditions and its response.
//!
//! Invariant: matching has no effect except on the counter of a rule with `times`.

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
    /// How many more times it may match; `None` for unlimited.
    pub remaining: Option<AtomicU32>,
}

/// All given conditions must hold.
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
    /// JSON that fits the requested schema.
    Sample,
    Wait(Duration),
    Media(Object),
    /// `None`: no usage is reported.
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
    /// Sent as is, valid or not.
    Raw(Template),
}

/// Piece size and speed of streamed text.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Pace {
    /// Characters per piece; default: words.
    pub piece: Option<usize>,
    /// Delay before every piece but the first.
    pub wait: Duration,
}

impl Rule {
    /// The regex captures if it matches and has matches remaining.
    pub(super) fn try_match<'t>(&self, facts: &'t Facts<'_>) -> Option<Option<Captures<'t>>> {
        let captures = self.when.matches(facts)?;
        let available = self.remaining.as_ref().is_none_or(|remaining| {
            remaining
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |remaining| {
                    remaining.checked_sub(1)
                })
                .is_ok()
        });
        available.then_some(captures)
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
            && self.wants_json.is_none_or(|wanted| wanted == facts.requested_schema.is_some());
        match (holds, &self.regex) {
            (false, _) => None,
            (true, None) => Some(None),
            (true, Some(regex)) => regex.captures(&facts.text).map(Some),
        }
    }
}

/// Whether any of the values holds; true if there are none.
fn any(wanted: &[String], holds: impl Fn(&String) -> bool) -> bool {
    wanted.is_empty() || wanted.iter().any(holds)
}

/// Ignores case.
pub(super) fn contains(text: &str, word: &str) -> bool {
    text.to_lowercase().contains(&word.to_lowercase())
}
