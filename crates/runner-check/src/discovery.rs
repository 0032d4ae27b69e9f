//! The first words with a process: who it is, which runners and which tools it offers.

use super::Plan;
use super::peer::Peer;
use super::report::{Report, Verdict};
use super::tools;
use greenroom_protocol::wire::{InitializeResult, METHOD_NOT_FOUND};
use greenroom_protocol::{AgentRunnerManifest, RunnerId};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// What there is to check.
pub(super) struct Discovered {
    /// Absent where the process offers tools alone.
    pub manifest: Option<AgentRunnerManifest>,
}

/// Introduces itself, lists runners and tools, and gives the runner to check.
pub(super) async fn discover(
    peer: &mut Peer,
    plan: &Plan,
    report: &mut Report,
) -> Option<Discovered> {
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
            report.add("list_tools", Verdict::Skip, "");
            return None;
        }
    };
    let manifests = match list_runners(peer, plan, &plugin).await {
        Ok(manifests) => manifests,
        Err(why) => {
            report.add("list_agent_runners", Verdict::Fail, why);
            report.add("list_tools", Verdict::Skip, "");
            return None;
        }
    };
    let tools = tools::list(peer, plan).await;
    let ids: Vec<&str> = manifests.iter().map(|manifest| manifest.id.as_str()).collect();
    match (ids.as_slice(), tools.count) {
        ([], 0) => report.add("list_agent_runners", Verdict::Fail, "it offers no runner"),
        ([], _) => report.add("list_agent_runners", Verdict::Ok, "none"),
        (ids, _) => report.add("list_agent_runners", Verdict::Ok, ids.join(", ")),
    }
    report.add("list_tools", tools.verdict, tools.detail);
    if tools.verdict == Verdict::Fail
        && let Ok(another) = fresh(plan).await
    {
        *peer = another;
    }
    if ids.is_empty() && plan.runner.is_none() {
        return (tools.count > 0).then_some(Discovered { manifest: None });
    }
    let wanted =
        |manifest: &AgentRunnerManifest| plan.runner.as_ref().is_none_or(|n| *n == manifest.name);
    let found = manifests.iter().find(|manifest| wanted(manifest)).cloned();
    if found.is_none() {
        let name = plan.runner.as_deref().unwrap_or_default();
        report.add("runner", Verdict::Fail, format!("there is no runner `{name}`"));
    }
    found.map(|manifest| Discovered { manifest: Some(manifest) })
}

/// The manifests; none where the process does not know the method, as it may offer tools alone.
async fn list_runners(
    peer: &mut Peer,
    plan: &Plan,
    plugin: &str,
) -> Result<Vec<AgentRunnerManifest>, String> {
    let answer = peer.call("list_agent_runners", json!({}), plan.timeout).await;
    let answer = answer.map_err(|silence| silence.to_string())?;
    if answer["error"]["code"] == METHOD_NOT_FOUND {
        return Ok(Vec::new());
    }
    manifests(&result(answer)?, plugin)
}

async fn introduce(peer: &mut Peer, plan: &Plan) -> Result<InitializeResult, String> {
    let host = json!({ "name": "greenroom", "version": env!("CARGO_PKG_VERSION") });
    let params = json!({ "protocol_version": "1", "host": host });
    let answer = peer.call("initialize", params, plan.timeout).await.map_err(|s| s.to_string())?;
    let introduced: InitializeResult = serde_json::from_value(result(answer)?)
        .map_err(|error| format!("the answer is not valid: {error}"))?;
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
    Ok(manifests)
}

/// A new process that has introduced itself.
pub(super) async fn fresh(plan: &Plan) -> Result<Peer, String> {
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
