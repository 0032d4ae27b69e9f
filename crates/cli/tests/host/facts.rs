//! What must be true of the stored facts and of what readers saw, whatever happened to the host.
//!
//! Invariant: the rules are DESIGN §§2–3 written down; nothing here is taken from what the host does.

use crate::senders::{Log, Sent};
use greenroom_protocol::result::kind;
use greenroom_protocol::{AgentRunResult, RunStatus, RunView, TranscriptItem, TranscriptRole};
use greenroom_testkit::api::{Api, Failure};
use greenroom_testkit::fold::Fold;
use greenroom_testkit::reader::{Reading, SeenResults};
use std::collections::{BTreeMap, BTreeSet, HashMap};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Queue {
    Serial,
    Parallel,
    Replace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnInterrupt {
    Fail,
    Retry,
}

/// What is known of an agent's runs beforehand.
#[derive(Debug, Clone)]
pub(crate) struct Agent {
    pub name: &'static str,
    pub queue: Queue,
    pub on_interrupt: OnInterrupt,
    /// The whole answer of an undisturbed run.
    pub answer: String,
}

/// A run and its stored results.
pub(crate) struct Story {
    pub run: RunView,
    pub results: Vec<AgentRunResult>,
    pub fold: Fold,
}

/// Reads everything back and checks it. Gives the runs for checks of one's own.
pub(crate) async fn check(
    api: &Api,
    agents: &[Agent],
    log: &Log,
    seen: &SeenResults,
) -> BTreeMap<String, Story> {
    check_repeats(api, log).await;
    let mut stories = BTreeMap::new();
    for run in api.runs().await {
        let results = api.results(&run.run_id).await;
        let fold = Fold::of(&results);
        let agent = agents.iter().find(|agent| agent.name == run.agent).unwrap();
        results.iter().for_each(|result| seen.note(result));
        let run_id = run.run_id.clone();
        let story = Story { run, results, fold };
        check_run(agent, &story);
        assert!(stories.insert(run_id.clone(), story).is_none(), "{run_id} is listed twice");
    }
    check_events(api, log, &stories).await;
    for reading in &log.readings {
        check_reading(reading, &stories[&reading.run_id]);
    }
    let conversations: BTreeSet<&str> =
        log.sent.iter().map(|sent| sent.conversation.as_str()).collect();
    for conversation in conversations {
        let items = api.history(conversation).await;
        let sent: Vec<&Sent> =
            log.sent.iter().filter(|sent| sent.conversation == conversation).collect();
        check_transcript(&items, &sent, log, &stories);
        let runs = in_event_order(&items, &stories);
        if let Some(first) = runs.first() {
            let agent = agents.iter().find(|agent| agent.name == first.run.agent).unwrap();
            check_order(agent.queue, &items, &runs);
        }
    }
    stories
}

/// The same event again gives the first answer; under its key nothing else is taken.
async fn check_repeats(api: &Api, log: &Log) {
    let with_id = |sent: &&Sent| sent.event["event_id"].is_string();
    for sent in log.sent.iter().filter(with_id) {
        let (status, answer) = api.post_event(&sent.event).await.unwrap();
        assert_eq!((status, answer.run_id), (200, sent.run_id.clone()), "{}", sent.event);
    }
    let mut other = log.sent.iter().find(with_id).unwrap().event.clone();
    other["input"]["text"] = "something else".into();
    let refused = api.post_event(&other).await;
    let is_conflict = matches!(&refused, Err(Failure::Refused { status: 409, body })
        if body["error"]["code"] == "invalid_argument");
    assert!(is_conflict, "{refused:?}");
}

/// One run: numbers rise, one terminal, and the end that its interruptions allow.
fn check_run(agent: &Agent, story: &Story) {
    let Story { run, results, fold } = story;
    let told = format!("{run:#?}\n{results:#?}");
    let numbers: Vec<i64> = results.iter().map(|result| result.sequence.unwrap()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "numbers rise: {told}");
    assert_eq!(numbers.last(), Some(&run.last_sequence), "{told}");
    let terminals: Vec<usize> =
        (0..results.len()).filter(|at| is_terminal(&results[*at])).collect();
    assert_eq!(terminals, [results.len() - 1], "one terminal, at the end: {told}");
    let announced: Vec<i64> = (2..=run.attempt).collect();
    assert_eq!(fold.restarts, announced, "every new attempt is announced once: {told}");
    assert!(run.attempt <= 3 && run.finished_at.is_some(), "{told}");
    if agent.on_interrupt == OnInterrupt::Fail {
        assert_eq!(run.attempt, 1, "{told}");
    }
    let terminal = fold.terminal.as_ref().unwrap();
    let error = run.error.as_ref().map(|error| (error.code.as_str(), error.retryable));
    if let Some(error) = &run.error {
        let said = serde_json::to_value(error).unwrap();
        assert_eq!(serde_json::Value::Object(terminal.data.clone()), said, "{told}");
    }
    match run.status {
        RunStatus::Completed => {
            assert_eq!((terminal.kind.as_str(), error), (kind::RUN_COMPLETED, None), "{told}");
            assert_eq!(fold.messages, [agent.answer.as_str()], "{told}");
        }
        RunStatus::Failed => {
            let interrupted = Some(("host.interrupted", true));
            assert_eq!((terminal.kind.as_str(), error), (kind::RUN_FAILED, interrupted), "{told}");
            let has_answered = results.iter().any(is_runners_message);
            let may_fail = agent.on_interrupt == OnInterrupt::Fail || run.attempt == 3;
            assert!(may_fail || has_answered, "it should have been tried again: {told}");
        }
        RunStatus::Cancelled => {
            let cancelled = Some(("cancelled", false));
            assert_eq!((terminal.kind.as_str(), error), (kind::RUN_FAILED, cancelled), "{told}");
            assert_eq!(agent.queue, Queue::Replace, "nobody cancelled it: {told}");
        }
        RunStatus::Timeout | RunStatus::Queued | RunStatus::Running => panic!("not over: {told}"),
    }
    assert!(fold.messages.len() <= 1, "{told}");
    assert!(fold.messages.iter().all(|text| agent.answer.starts_with(text.as_str())), "{told}");
}

fn is_terminal(result: &AgentRunResult) -> bool {
    matches!(result.kind.as_str(), kind::RUN_COMPLETED | kind::RUN_FAILED)
}

/// A complete message that the runner itself sent, after which nothing is tried again.
fn is_runners_message(result: &AgentRunResult) -> bool {
    result.kind == kind::MESSAGE_COMPLETED
        && result.data["message"]["metadata"]["interrupted"] != true
}

/// Every acknowledged event is in the log once with its one run, and nothing else is.
async fn check_events(api: &Api, log: &Log, stories: &BTreeMap<String, Story>) {
    let events = api.events().await;
    let mut runs_by_event: HashMap<&str, Option<&str>> = HashMap::new();
    let mut texts = BTreeSet::new();
    for event in events.iter().filter(|event| event["source"] == "api") {
        let event_id = event["event_id"].as_str().unwrap();
        let twice = runs_by_event.insert(event_id, event["run_id"].as_str());
        assert_eq!(twice, None, "{event_id} is there twice");
        let text = event["event"]["input"]["text"].as_str().unwrap();
        assert!(texts.insert(text), "`{text}` is there twice");
    }
    for sent in &log.sent {
        let stored = runs_by_event.remove(sent.event_id.as_str());
        assert_eq!(stored, Some(sent.run_id.as_deref()), "{sent:?}");
        texts.remove(sent.text.as_str());
        if let Some(run_id) = &sent.run_id {
            assert_eq!(stories[run_id].run.event_id, sent.event_id);
        }
    }
    for text in texts {
        assert!(log.doubtful.iter().any(|doubtful| doubtful == text), "nobody sent `{text}`");
    }
    let mut by_event: HashMap<&str, usize> = HashMap::new();
    for story in stories.values() {
        *by_event.entry(&story.run.event_id).or_default() += 1;
    }
    by_event.retain(|_, count| *count > 1);
    assert!(by_event.is_empty(), "events with several runs: {by_event:?}");
}

/// A reader ends where the store does, and what it saw beyond the store were provisional deltas.
fn check_reading(reading: &Reading, story: &Story) {
    assert_eq!(reading.fold, story.fold, "{:#?}\n{:#?}", reading.results, story.results);
    let stored: BTreeSet<Option<i64>> =
        story.results.iter().map(|result| result.sequence).collect();
    for seen in &reading.results {
        let provisional = seen.kind == kind::MESSAGE_DELTA;
        assert!(provisional || stored.contains(&seen.sequence), "not stored: {seen:?}");
    }
}

/// Every event once, every run's text once, nothing else.
fn check_transcript(
    items: &[TranscriptItem],
    sent: &[&Sent],
    log: &Log,
    stories: &BTreeMap<String, Story>,
) {
    let ids: BTreeSet<&str> = items.iter().map(|item| item.item_id.as_str()).collect();
    assert_eq!(ids.len(), items.len(), "an item is there twice");
    let numbers: Vec<i64> = items.iter().map(|item| item.seq).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    let incoming =
        |item: &&TranscriptItem| matches!(item.role, TranscriptRole::User | TranscriptRole::Event);
    let mut incoming: Vec<(&str, &str)> = items
        .iter()
        .filter(incoming)
        .map(|item| (item.event_id.as_deref().unwrap(), item.text.as_deref().unwrap()))
        .filter(|(_, text)| !log.doubtful.iter().any(|doubtful| doubtful == text))
        .collect();
    incoming.sort_unstable();
    let mut expected: Vec<(&str, &str)> =
        sent.iter().map(|sent| (sent.event_id.as_str(), sent.text.as_str())).collect();
    expected.sort_unstable();
    assert_eq!(incoming, expected);
    let mut answers: HashMap<&str, Vec<&str>> = HashMap::new();
    for item in items.iter().filter(|item| item.role == TranscriptRole::Assistant) {
        let texts = answers.entry(item.run_id.as_deref().unwrap()).or_default();
        texts.push(item.text.as_deref().unwrap());
    }
    for item in items.iter().filter(|item| item.role == TranscriptRole::User) {
        let run_id = item.run_id.as_deref().unwrap();
        let answer = answers.remove(run_id).unwrap_or_default();
        assert_eq!(answer, stories[run_id].fold.messages, "{run_id}");
    }
    assert!(answers.is_empty(), "answers to nothing: {answers:?}");
}

fn in_event_order<'a>(
    items: &[TranscriptItem],
    stories: &'a BTreeMap<String, Story>,
) -> Vec<&'a Story> {
    let user = items.iter().filter(|item| item.role == TranscriptRole::User);
    user.map(|item| &stories[item.run_id.as_deref().unwrap()]).collect()
}

fn check_order(queue: Queue, items: &[TranscriptItem], runs: &[&Story]) {
    if queue == Queue::Parallel {
        return;
    }
    for pair in runs.windows(2) {
        let [earlier, later] = pair else { unreachable!("windows of two") };
        // Never started, because a newer event took its place.
        let Some(started_at) = &later.run.started_at else { continue };
        let finished_at = earlier.run.finished_at.as_ref().unwrap();
        assert!(finished_at <= started_at, "{:#?}\n{:#?}", earlier.run, later.run);
    }
    if queue == Queue::Replace {
        let last = runs.last().unwrap();
        assert_ne!(last.run.status, RunStatus::Cancelled, "nothing came after it: {:#?}", last.run);
    }
    let answers = items.iter().filter(|item| item.role == TranscriptRole::Assistant);
    let answered: Vec<&str> = answers.map(|item| item.run_id.as_deref().unwrap()).collect();
    let mut in_order = runs.iter().map(|story| story.run.run_id.as_str());
    let kept = answered.iter().all(|run_id| in_order.any(|next| next == *run_id));
    assert!(kept, "answers stand in the order of their events: {answered:?}");
}
