//! The checks, in the order in which they are made.
//!
//! Invariant: one check's failure does not spoil the next: that one gets a new process.

use super::Plan;
use super::discovery::{discover, fresh};
use super::peer::{Peer, Silence};
use super::report::{Report, Verdict};
use super::run::{Outcome, Then, Trial, try_runs};
use greenroom_protocol::AgentRunnerManifest;
use greenroom_protocol::result::kind;
use greenroom_protocol::wire::METHOD_NOT_FOUND;
use serde_json::json;
use std::collections::BTreeSet;

#[derive(Clone, Copy)]
enum Step {
    Run,
    TwoRuns,
    Cancel,
    LateCancel,
    UnknownMethod,
    UnknownNotification,
    BrokenLine,
}

const STEPS: [(&str, Step); 7] = [
    ("run", Step::Run),
    ("two runs at once", Step::TwoRuns),
    ("cancel", Step::Cancel),
    ("late cancel", Step::LateCancel),
    ("unknown method", Step::UnknownMethod),
    ("unknown notification", Step::UnknownNotification),
    ("broken line", Step::BrokenLine),
];
const ENDINGS: [&str; 2] = ["shutdown", "end of input"];

type Judgement = (Verdict, String);

pub async fn all(plan: &Plan) -> Report {
    let mut report = Report::new(&plan.command);
    let mut peer = match Peer::start(&plan.command) {
        Ok(peer) => peer,
        Err(error) => {
            let detail = format!("cannot start `{}`: {error}", plan.command[0]);
            report.add("start", Verdict::Fail, detail);
            return report;
        }
    };
    match discover(&mut peer, plan, &mut report).await {
        Some(found) => behaviour(&mut peer, plan, found.manifest.as_ref(), &mut report).await,
        None => {
            let names = STEPS.iter().map(|(name, _)| *name).chain(ENDINGS);
            names.for_each(|name| report.add(name, Verdict::Skip, ""));
        }
    }
    if report.stderr.is_empty() {
        report.stderr = peer.log().await;
    }
    report
}

async fn behaviour(
    peer: &mut Peer,
    plan: &Plan,
    manifest: Option<&AgentRunnerManifest>,
    report: &mut Report,
) {
    for (name, step) in STEPS {
        let Some((verdict, detail)) = step.take(peer, plan, manifest).await else {
            report.add(name, Verdict::Skip, "there is no runner");
            continue;
        };
        report.add(name, verdict, detail);
        if verdict != Verdict::Ok {
            report.stderr = peer.log().await;
            match fresh(plan).await {
                Ok(another) => *peer = another,
                Err(why) => return report.add("start again", Verdict::Fail, why),
            }
        }
    }
    let (verdict, detail) = shutdown(plan).await;
    report.add(ENDINGS[0], verdict, detail);
    let (verdict, detail) = end_of_input(plan).await;
    report.add(ENDINGS[1], verdict, detail);
}

impl Step {
    /// Nothing where the step takes a runner and there is none.
    async fn take(
        self,
        peer: &mut Peer,
        plan: &Plan,
        manifest: Option<&AgentRunnerManifest>,
    ) -> Option<Judgement> {
        let trial =
            |run_ids, then| manifest.map(|manifest| Trial { plan, manifest, run_ids, then });
        Some(match self {
            Step::Run => {
                let outcome = try_runs(peer, trial(&["run-1"], Then::Wait)?).await;
                judge_streaming(&outcome, manifest?)
            }
            Step::TwoRuns => {
                judge_ended(&try_runs(peer, trial(&["run-2", "run-3"], Then::Wait)?).await)
            }
            Step::Cancel => judge(&try_runs(peer, trial(&["run-4"], Then::Cancel)?).await),
            Step::LateCancel => {
                let params = json!({ "run_id": "run-1", "reason": "test" });
                let sent = peer.notify("run.cancel", params).await;
                still_answers(peer, plan, sent).await
            }
            Step::UnknownMethod => unknown_method(peer, plan).await,
            Step::UnknownNotification => {
                let sent = peer.notify("no.such.notification", json!({})).await;
                still_answers(peer, plan, sent).await
            }
            Step::BrokenLine => {
                let sent = peer.send_line("{ this is not JSON").await;
                match still_answers(peer, plan, sent).await {
                    // No host sends one, so this is advice.
                    (Verdict::Fail, detail) => (Verdict::Warn, detail),
                    judgement => judgement,
                }
            }
        })
    }
}

fn judge_streaming(outcome: &Outcome, manifest: &AgentRunnerManifest) -> Judgement {
    let has_delta = outcome.seen.values().any(|seen| seen.deltas > 0);
    let terminals = outcome.seen.values().filter_map(|seen| seen.terminal.as_deref());
    let has_failed = terminals.clone().any(|terminal| terminal.starts_with(kind::RUN_FAILED));
    match judge_ended(outcome) {
        (Verdict::Ok, detail) if manifest.capabilities.streaming && !has_delta && !has_failed => {
            (Verdict::Warn, format!("{detail}; declares `streaming` but sent no delta"))
        }
        judgement => judgement,
    }
}

/// The verdict on runs that nobody cancels: one that was refused a call has not shown that it works.
fn judge_ended(outcome: &Outcome) -> Judgement {
    let is_refused = outcome.seen.values().any(|seen| seen.is_refused);
    match judge(outcome) {
        (Verdict::Ok | Verdict::Warn, detail) if is_refused => {
            let why = "the run was refused: it needs a grant, and this test grants nothing";
            (Verdict::Fail, format!("{detail}; {why}; try it on a host with `greenroom send`"))
        }
        judgement => judgement,
    }
}

/// The verdict on one or more runs.
fn judge(outcome: &Outcome) -> Judgement {
    let seen = &outcome.seen;
    let mut faults: Vec<String> = seen.values().flat_map(|seen| seen.faults.clone()).collect();
    faults.extend(outcome.silence.as_ref().map(|silence| {
        let open = seen.values().filter(|seen| seen.terminal.is_none()).count();
        format!("{silence} ({open} of {} runs without a terminal)", seen.len())
    }));
    let mut known = BTreeSet::new();
    faults.retain(|fault| known.insert(fault.clone()));
    if !faults.is_empty() {
        faults.truncate(3);
        return (Verdict::Fail, faults.join("; "));
    }
    let summary = seen.values().map(|seen| {
        let terminal = seen.terminal.as_deref().unwrap_or_default();
        format!("deltas: {}, messages: {}, {terminal}", seen.deltas, seen.messages)
    });
    let summary = summary.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join("; ");
    let oddities: Vec<String> =
        seen.values().flat_map(|seen| seen.oddities.clone()).take(3).collect();
    match oddities.is_empty() {
        true => (Verdict::Ok, summary),
        false => (Verdict::Warn, format!("{summary}; {}", oddities.join("; "))),
    }
}

/// Whether the process still answers after something that should not disturb it.
async fn still_answers(peer: &mut Peer, plan: &Plan, sent: Result<(), Silence>) -> Judgement {
    let answer = match sent {
        Ok(()) => peer.call("list_agent_runners", json!({}), plan.timeout).await,
        Err(silence) => Err(silence),
    };
    match answer {
        Ok(_) => (Verdict::Ok, String::new()),
        Err(silence) => (Verdict::Fail, silence.to_string()),
    }
}

async fn unknown_method(peer: &mut Peer, plan: &Plan) -> Judgement {
    match peer.call("no.such.method", json!({}), plan.timeout).await {
        Ok(answer) if answer["error"]["code"] == METHOD_NOT_FOUND => (Verdict::Ok, String::new()),
        Ok(answer) if answer.get("error").is_some() => {
            let code = &answer["error"]["code"];
            (Verdict::Warn, format!("answered with code {code}, not {METHOD_NOT_FOUND}"))
        }
        Ok(_) => (Verdict::Fail, "answered as if it existed".to_owned()),
        Err(silence) => (Verdict::Fail, silence.to_string()),
    }
}

async fn shutdown(plan: &Plan) -> Judgement {
    let mut peer = match fresh(plan).await {
        Ok(peer) => peer,
        Err(why) => return (Verdict::Fail, why),
    };
    let answer = match peer.call("shutdown", json!({}), plan.timeout).await {
        Ok(answer) => answer,
        Err(silence) => return (Verdict::Fail, silence.to_string()),
    };
    match peer.ended(plan.timeout).await {
        None => (Verdict::Fail, "the process goes on".to_owned()),
        Some(_) if answer.get("result").is_none() => {
            (Verdict::Warn, "answered without a result".to_owned())
        }
        Some(status) if !status.success() => (Verdict::Warn, format!("ended with {status}")),
        Some(_) => (Verdict::Ok, String::new()),
    }
}

async fn end_of_input(plan: &Plan) -> Judgement {
    let mut peer = match fresh(plan).await {
        Ok(peer) => peer,
        Err(why) => return (Verdict::Fail, why),
    };
    peer.close_input();
    match peer.ended(plan.timeout).await {
        Some(_) => (Verdict::Ok, String::new()),
        None => (Verdict::Warn, "the process goes on without a host".to_owned()),
    }
}
