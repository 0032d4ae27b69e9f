//! The checks, in the order in which they are made.
//!
//! Invariant: a check that cannot be made because an earlier one failed is reported as skipped.

use super::Plan;
use super::peer::{Peer, Silence};
use super::report::{Report, Verdict};
use super::run::{Outcome, Then, Trial, try_runs};
use greenroom_protocol::wire::{InitializeResult, METHOD_NOT_FOUND};
use greenroom_protocol::{AgentRunnerManifest, RunnerId};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const AFTER_DISCOVERY: [&str; 9] = [
    "run",
    "two runs at once",
    "cancel",
    "late cancel",
    "unknown method",
    "unknown notification",
    "broken line",
    "shutdown",
    "end of input",
];

pub(super) async fn all(plan: &Plan) -> Report {
    let mut report = Report::new(&plan.command);
    let mut peer = match Peer::start(&plan.command) {
        Ok(peer) => peer,
        Err(error) => {
            report.add(
                "start",
                Verdict::Fail,
                format!("cannot start `{}`: {error}", plan.command[0]),
            );
            return report;
        }
    };
    let manifest = discover(&mut peer, plan, &mut report).await;
    match &manifest {
        Some(manifest) => behaviour(&mut peer, plan, manifest, &mut report).await,
        None => AFTER_DISCOVERY.iter().for_each(|name| report.add(name, Verdict::Skip, "")),
    }
    report.stderr = peer.log().await;
    report
}

async fn discover(
    peer: &mut Peer,
    plan: &Plan,
    report: &mut Report,
) -> Option<AgentRunnerManifest> {
    let plugin = match introduce(peer, plan).await {
        Ok(introduced) => {
            let plugin = introduced.plugin.path();
            let version = introduced.plugin.version;
            report.add("initialize", Verdict::Ok, format!("{plugin} {version}"));
            plugin
        }
        Err(why) => {
            report.add("initialize", Verdict::Fail, why);
            report.add("list_agent_runners", Verdict::Skip, "");
            return None;
        }
    };
    let answer = peer.call("list_agent_runners", json!({}), plan.timeout).await;
    let listed = answer.map_err(|silence| silence.to_string()).and_then(result);
    let manifests = match listed.and_then(|listed| manifests(&listed, &plugin)) {
        Ok(manifests) => manifests,
        Err(why) => {
            report.add("list_agent_runners", Verdict::Fail, why);
            return None;
        }
    };
    let ids: Vec<&str> = manifests.iter().map(|manifest| manifest.id.as_str()).collect();
    report.add("list_agent_runners", Verdict::Ok, ids.join(", "));
    let wanted =
        |manifest: &AgentRunnerManifest| plan.runner.as_ref().is_none_or(|n| *n == manifest.name);
    let found = manifests.iter().find(|manifest| wanted(manifest)).cloned();
    if found.is_none() {
        let name = plan.runner.as_deref().unwrap_or_default();
        report.add("runner", Verdict::Fail, format!("there is no runner `{name}`"));
    }
    found
}

async fn introduce(peer: &mut Peer, plan: &Plan) -> Result<InitializeResult, String> {
    let host = json!({ "name": "greenroom", "version": env!("CARGO_PKG_VERSION") });
    let params = json!({ "protocol_version": "1", "host": host });
    let answer = peer.call("initialize", params, plan.timeout).await.map_err(|s| s.to_string())?;
    let introduced: InitializeResult = serde_json::from_value(result(answer)?)
        .map_err(|error| format!("the answer is not as it should be: {error}"))?;
    if introduced.protocol_version != "1" {
        return Err(format!("speaks protocol version `{}`, not `1`", introduced.protocol_version));
    }
    let plugin = &introduced.plugin;
    match RunnerId::new(&plugin.author, &plugin.name, "x") {
        Ok(_) => Ok(introduced),
        Err(_) => Err(format!("`{}` is not a plugin of the form `author/name`", plugin.path())),
    }
}

/// Every manifest must be right: the host would hide a wrong one.
fn manifests(listed: &Value, plugin: &str) -> Result<Vec<AgentRunnerManifest>, String> {
    let runners = listed["runners"].as_array().ok_or("`runners` is not a list")?;
    let mut manifests = Vec::new();
    let mut ids = BTreeSet::new();
    for (index, runner) in runners.iter().enumerate() {
        let manifest: AgentRunnerManifest = serde_json::from_value(runner.clone())
            .map_err(|error| format!("manifest {}: {error}", index + 1))?;
        if manifest.id.plugin() != plugin || manifest.id.runner() != manifest.name {
            let expected = format!("plugin:{plugin}/{}", manifest.name);
            return Err(format!(
                "manifest {}: the id is `{}`, not `{expected}`",
                index + 1,
                manifest.id
            ));
        }
        if !ids.insert(manifest.id.clone()) {
            return Err(format!("`{}` is listed twice", manifest.id));
        }
        manifests.push(manifest);
    }
    match manifests.is_empty() {
        true => Err("it offers no runner".to_owned()),
        false => Ok(manifests),
    }
}

async fn behaviour(
    peer: &mut Peer,
    plan: &Plan,
    manifest: &AgentRunnerManifest,
    report: &mut Report,
) {
    let trial = |run_ids, then| Trial { plan, manifest, run_ids, then };
    let outcome = try_runs(peer, trial(&["run-1"], Then::Wait)).await;
    let has_delta = outcome.seen.values().any(|seen| seen.deltas > 0);
    match judge(&outcome) {
        (Verdict::Ok, detail) if manifest.capabilities.streaming && !has_delta => {
            report.add(
                "run",
                Verdict::Warn,
                format!("{detail}; declares `streaming` but sent no delta"),
            );
        }
        (verdict, detail) => report.add("run", verdict, detail),
    }
    let (verdict, detail) = judge(&try_runs(peer, trial(&["run-2", "run-3"], Then::Wait)).await);
    report.add("two runs at once", verdict, detail);
    let (verdict, detail) = judge(&try_runs(peer, trial(&["run-4"], Then::Cancel)).await);
    report.add("cancel", verdict, detail);

    let late = peer.notify("run.cancel", json!({ "run_id": "run-1", "reason": "test" })).await;
    report.add_alive("late cancel", late, peer, plan).await;
    report.add_unknown_method(peer, plan).await;
    let unknown = peer.notify("no.such.notification", json!({})).await;
    report.add_alive("unknown notification", unknown, peer, plan).await;
    let broken = peer.send_line("{ this is not JSON").await;
    if !report.add_alive("broken line", broken, peer, plan).await {
        // A host never sends one, so this is advice; what follows needs a process that is alive.
        if let Some(check) = report.checks.last_mut() {
            check.verdict = Verdict::Warn;
        }
    }
    ending(plan, report).await;
}

/// The verdict on one or more runs.
fn judge(outcome: &Outcome) -> (Verdict, String) {
    let seen = &outcome.seen;
    let mut faults: Vec<String> = seen.values().flat_map(|seen| seen.faults.clone()).collect();
    faults.extend(outcome.silence.as_ref().map(|silence| {
        let open = seen.values().filter(|seen| seen.terminal.is_none()).count();
        format!("{silence} ({open} of {} runs without a terminal)", seen.len())
    }));
    if !faults.is_empty() {
        faults.truncate(3);
        return (Verdict::Fail, faults.join("; "));
    }
    let told = seen.values().map(|seen| {
        let terminal = seen.terminal.as_deref().unwrap_or_default();
        format!("deltas: {}, messages: {}, {terminal}", seen.deltas, seen.messages)
    });
    let told = told.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join("; ");
    let oddities: Vec<String> =
        seen.values().flat_map(|seen| seen.oddities.clone()).take(3).collect();
    match oddities.is_empty() {
        true => (Verdict::Ok, told),
        false => (Verdict::Warn, format!("{told}; {}", oddities.join("; "))),
    }
}

impl Report {
    /// Whether the process still answers after something that should not disturb it.
    async fn add_alive(
        &mut self,
        name: &'static str,
        sent: Result<(), Silence>,
        peer: &mut Peer,
        plan: &Plan,
    ) -> bool {
        let alive = match sent {
            Ok(()) => peer.call("list_agent_runners", json!({}), plan.timeout).await,
            Err(silence) => Err(silence),
        };
        match alive {
            Ok(_) => self.add(name, Verdict::Ok, ""),
            Err(silence) => self.add(name, Verdict::Fail, silence.to_string()),
        }
        self.checks.last().is_some_and(|check| check.verdict == Verdict::Ok)
    }

    async fn add_unknown_method(&mut self, peer: &mut Peer, plan: &Plan) {
        let name = "unknown method";
        match peer.call("no.such.method", json!({}), plan.timeout).await {
            Ok(answer) if answer["error"]["code"] == METHOD_NOT_FOUND => {
                self.add(name, Verdict::Ok, "")
            }
            Ok(answer) if answer.get("error").is_some() => {
                let detail = format!(
                    "answered with code {}, not {METHOD_NOT_FOUND}",
                    answer["error"]["code"]
                );
                self.add(name, Verdict::Warn, detail);
            }
            Ok(_) => self.add(name, Verdict::Fail, "answered as if it existed"),
            Err(silence) => self.add(name, Verdict::Fail, silence.to_string()),
        }
    }
}

/// How it ends, each time with a process of its own.
async fn ending(plan: &Plan, report: &mut Report) {
    match fresh(plan).await {
        Ok(mut peer) => {
            let answer = peer.call("shutdown", json!({}), plan.timeout).await;
            let status = peer.ended(plan.timeout).await;
            match (answer, status) {
                (Ok(answer), Some(status))
                    if answer.get("result").is_some() && status.success() =>
                {
                    report.add("shutdown", Verdict::Ok, "");
                }
                (Ok(_), Some(status)) => {
                    report.add("shutdown", Verdict::Warn, format!("ended with {status}"))
                }
                (Ok(_), None) => report.add("shutdown", Verdict::Fail, "the process goes on"),
                (Err(silence), _) => report.add("shutdown", Verdict::Fail, silence.to_string()),
            }
        }
        Err(why) => report.add("shutdown", Verdict::Fail, why),
    }
    match fresh(plan).await {
        Ok(mut peer) => {
            peer.close_input();
            match peer.ended(plan.timeout).await {
                Some(_) => report.add("end of input", Verdict::Ok, ""),
                None => {
                    report.add("end of input", Verdict::Warn, "the process goes on without a host")
                }
            }
        }
        Err(why) => report.add("end of input", Verdict::Fail, why),
    }
}

async fn fresh(plan: &Plan) -> Result<Peer, String> {
    let mut peer = Peer::start(&plan.command).map_err(|error| error.to_string())?;
    introduce(&mut peer, plan).await?;
    Ok(peer)
}

fn result(answer: Value) -> Result<Value, String> {
    match (answer.get("result"), answer.get("error")) {
        (Some(result), None) => Ok(result.clone()),
        (_, Some(error)) => Err(format!("answered with the error {error}")),
        (None, None) => Err("the response has neither `result` nor `error`".to_owned()),
    }
}
