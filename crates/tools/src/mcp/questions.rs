//! Questions of a server to the user (elicitation), and the calls that they belong to.
//!
//! Invariant: a question reaches only the run whose call led to it; where that is not certain, it is refused. A call
//! asks a bounded number of questions, and while one is open its time stands still.

use super::trouble::short;
use futures_util::future::BoxFuture;
use greenroom_protocol::Object;
use reqwest::Url;
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio::time::{Duration, Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// Questions of one call.
const QUESTIONS_MAX: u32 = 20;
/// Longest message and address of a question.
const MESSAGE_CHARS_MAX: usize = 4000;
const URL_BYTES_MAX: usize = 4096;
/// Largest form.
const FORM_BYTES_MAX: usize = 32 * 1024;

/// What a server asks.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    pub server: String,
    pub message: String,
    pub asks: Asks,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Asks {
    /// Values that match this schema.
    Form(Value),
    /// To open this address.
    Url(String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Accepted(Object),
    Declined,
    /// Not answered.
    Cancelled,
}

/// Puts a question to the user, and waits for the answer.
pub type OnQuestion = Arc<dyn Fn(Question) -> BoxFuture<'static, Answer> + Send + Sync>;

/// Who answers the questions of a call.
#[derive(Clone)]
pub struct Ask {
    pub run_id: String,
    pub ask: OnQuestion,
}

/// The calls in progress of one connection that may ask.
#[derive(Clone, Default)]
pub(super) struct Askers(Arc<Mutex<Vec<Arc<Asker>>>>);

/// One call that may ask.
pub(super) struct Asker {
    server: String,
    ask: Ask,
    clock: Clock,
    asked: AtomicU32,
    over: CancellationToken,
}

/// A call that may ask, until this is dropped.
pub(super) struct Entered {
    askers: Askers,
    pub(super) asker: Arc<Asker>,
}

impl Askers {
    pub(super) fn enter(&self, server: &str, ask: Ask, clock: Clock) -> Entered {
        let (asked, over) = (AtomicU32::new(0), CancellationToken::new());
        let asker = Arc::new(Asker { server: server.to_owned(), ask, clock, asked, over });
        self.lock().push(Arc::clone(&asker));
        Entered { askers: self.clone(), asker }
    }

    /// The call that a question belongs to: requests of servers do not name it.
    pub(super) fn find(&self) -> Result<Arc<Asker>, ErrorData> {
        let calls = self.lock();
        let refuse = |why: &str| ErrorData::invalid_request(why.to_owned(), None);
        let first = calls.first().ok_or_else(|| {
            refuse("no call of yours is in progress that a user could be asked about")
        })?;
        match calls.iter().all(|call| call.ask.run_id == first.ask.run_id) {
            true => Ok(Arc::clone(first)),
            false => Err(refuse(
                "calls for several users are in progress: it is not known whom to ask, call again",
            )),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Asker>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.asker.over.cancel();
        self.askers.lock().retain(|asker| !Arc::ptr_eq(asker, &self.asker));
    }
}

impl Asker {
    /// Asks the user; an error is for the server.
    pub(super) async fn ask(&self, asked: ElicitRequestParams) -> Result<ElicitResult, ErrorData> {
        let question = question(&self.server, asked)?;
        if self.asked.fetch_add(1, Ordering::Relaxed) >= QUESTIONS_MAX {
            let message = format!("one call asks at most {QUESTIONS_MAX} questions");
            return Err(ErrorData::invalid_request(message, None));
        }
        let is_form = matches!(question.asks, Asks::Form(_));
        let _paused = self.clock.pause();
        let answer = tokio::select! {
            answer = (self.ask.ask)(question) => answer,
            () = self.over.cancelled() => Answer::Cancelled,
        };
        Ok(match answer {
            Answer::Accepted(values) if is_form => {
                ElicitResult::new(ElicitationAction::Accept).with_content(Value::Object(values))
            }
            Answer::Accepted(_) => ElicitResult::new(ElicitationAction::Accept),
            Answer::Declined => ElicitResult::new(ElicitationAction::Decline),
            Answer::Cancelled => ElicitResult::new(ElicitationAction::Cancel),
        })
    }
}

/// Reads a question; what a user could not be shown is refused.
fn question(server: &str, asked: ElicitRequestParams) -> Result<Question, ErrorData> {
    let refuse = |why: String| ErrorData::invalid_params(why, None);
    let (message, asks) = match asked {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            let form = serde_json::to_value(requested_schema).unwrap_or_else(|_| json!({}));
            if form.to_string().len() > FORM_BYTES_MAX {
                return Err(refuse(format!("a form has at most {FORM_BYTES_MAX} bytes")));
            }
            (message, Asks::Form(form))
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            let parsed = Url::parse(&url).ok().filter(|_| url.len() <= URL_BYTES_MAX);
            let is_web = parsed.is_some_and(|url| matches!(url.scheme(), "http" | "https"));
            if !is_web || url.contains(|c: char| c.is_control() || c.is_whitespace()) {
                return Err(refuse("`url` is not a web address that can be shown".to_owned()));
            }
            (message, Asks::Url(url))
        }
        _ => return Err(refuse("this mode of elicitation is not known".to_owned())),
    };
    let is_shown = |c: &char| !c.is_control() || *c == '\n';
    let message: String = message.chars().filter(is_shown).take(MESSAGE_CHARS_MAX).collect();
    Ok(Question { server: short(server), message, asks })
}

/// The time of a call: progress ends silence, and an open question stops everything.
#[derive(Clone)]
pub(super) struct Clock(Arc<watch::Sender<Times>>);

#[derive(Debug, Clone, Copy)]
struct Times {
    progress_at: Instant,
    /// Open questions.
    open: u32,
    stopped_at: Instant,
    /// How long questions were open.
    stopped: Duration,
}

/// A clock that stands still, until this is dropped.
pub(super) struct Paused(Clock);

impl Clock {
    pub(super) fn start() -> Self {
        let now = Instant::now();
        let times = Times { progress_at: now, open: 0, stopped_at: now, stopped: Duration::ZERO };
        Self(Arc::new(watch::Sender::new(times)))
    }

    pub(super) fn progress(&self) {
        self.0.send_modify(|times| times.progress_at = Instant::now());
    }

    fn pause(&self) -> Paused {
        self.0.send_modify(|times| {
            if times.open == 0 {
                times.stopped_at = Instant::now();
            }
            times.open += 1;
        });
        Paused(self.clone())
    }

    /// Returns after that long without progress.
    pub(super) async fn silence(&self, timeout: Duration) {
        self.reach(|times| times.progress_at + timeout).await;
    }

    /// Returns at that time, later by the time for which questions were open.
    pub(super) async fn end(&self, deadline: Instant) {
        self.reach(|times| deadline + times.stopped).await;
    }

    async fn reach(&self, at: impl Fn(&Times) -> Instant) {
        let mut times = self.0.subscribe();
        loop {
            let now = *times.borrow_and_update();
            let passed = async {
                match now.open {
                    0 => sleep_until(at(&now)).await,
                    _ => std::future::pending().await,
                }
            };
            tokio::select! {
                () = passed => return,
                // The sender is in `self`.
                changed = times.changed() => if changed.is_err() { return },
            }
        }
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        self.0.0.send_modify(|times| {
            times.open -= 1;
            if times.open == 0 {
                let now = Instant::now();
                times.stopped += now - times.stopped_at;
                times.progress_at = now;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(run_id: &str) -> Ask {
        let ask: OnQuestion = Arc::new(|_| Box::pin(async { Answer::Declined }));
        Ask { run_id: run_id.to_owned(), ask }
    }

    fn form(message: &str) -> ElicitRequestParams {
        let params = json!({"mode": "form", "message": message,
            "requestedSchema": {"type": "object", "properties": {}}});
        serde_json::from_value(params).unwrap()
    }

    #[test]
    fn a_question_belongs_to_the_only_run_that_has_a_call_in_progress() {
        let askers = Askers::default();
        assert!(askers.find().is_err());
        let first = askers.enter("s", ask("run_1"), Clock::start());
        let same = askers.enter("s", ask("run_1"), Clock::start());
        assert!(askers.find().is_ok());
        let other = askers.enter("s", ask("run_2"), Clock::start());
        assert!(askers.find().is_err());
        drop((first, same));
        assert_eq!(askers.find().unwrap().ask.run_id, "run_2");
        drop(other);
        assert!(askers.find().is_err());
    }

    #[tokio::test]
    async fn a_flood_of_questions_is_refused() {
        let entered = Askers::default().enter("s", ask("run_1"), Clock::start());
        for _ in 0..QUESTIONS_MAX {
            let answer = entered.asker.ask(form("?")).await.unwrap();
            assert_eq!(answer.action, ElicitationAction::Decline);
        }
        assert!(entered.asker.ask(form("?")).await.is_err());
    }

    #[test]
    fn a_question_that_cannot_be_shown_is_refused() {
        let url = |url: &str| {
            let params = json!({"mode": "url", "message": "m", "url": url, "elicitationId": "1"});
            question("s", serde_json::from_value(params).unwrap())
        };
        assert!(url("https://example.com/consent?x=1").is_ok());
        for bad in ["javascript:alert(1)", "file:///etc/passwd", "https://a b/", "x", ""] {
            assert!(url(bad).is_err(), "{bad}");
        }
        let shown = question("s", form("pay\u{1b}[2J\u{0}\nnow")).unwrap();
        assert_eq!(shown.message, "pay[2J\nnow");
    }

    #[tokio::test]
    async fn time_stands_still_while_a_question_is_open() {
        let clock = Clock::start();
        let deadline = Instant::now() + Duration::from_millis(200);
        let paused = clock.pause();
        let left = Duration::from_millis(600);
        let ended = clock.end(deadline);
        assert!(tokio::time::timeout(left, ended).await.is_err(), "the deadline passed");
        let silence = clock.silence(Duration::from_millis(100));
        assert!(tokio::time::timeout(left, silence).await.is_err(), "the silence passed");
        drop(paused);
        tokio::join!(clock.end(deadline), clock.silence(Duration::from_millis(100)));
        assert!(Instant::now() >= deadline + 2 * left, "an open question did not count");
    }
}
