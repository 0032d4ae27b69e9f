//! What a running host says about itself.

use super::finding;
use crate::client::{Client, Error, HostArgs, Page};
use crate::config::Config;
use crate::granted::{self, Offered, OfferedRunner};
use greenroom_protocol::Object;
use serde_json::Value;
use std::path::{Path, PathBuf};

pub(super) struct Running {
    client: Client,
    /// The configuration file it uses.
    pub config: Option<PathBuf>,
}

impl Running {
    /// Whether a host answers for that folder.
    pub(super) async fn find(data: &Path) -> (Value, Option<Self>) {
        let text = std::fs::read_to_string(data.join("host.json")).unwrap_or_default();
        let file: Value = serde_json::from_str(&text).unwrap_or_default();
        let Some(url) = file["url"].as_str() else {
            return (finding("host", true, "not running"), None);
        };
        let client = match Client::new(&HostArgs { data: Some(data.to_owned()) }) {
            Ok(client) => client,
            Err(failure) => return (finding("host", false, &failure.to_string()), None),
        };
        let health: Result<Value, Error> = client.get(&["healthz"], &[]).await;
        match health {
            Ok(_) => {
                let found = format!("{url}, pid {}", file["pid"]);
                let config = file["config"].as_str().map(PathBuf::from);
                (finding("host", true, &found), Some(Self { client, config }))
            }
            Err(error) => {
                (finding("host", false, &format!("{url} does not answer: {error}")), None)
            }
        }
    }

    /// Its store, its runners, where its models and tools come from, and what grants name that is not there.
    pub(super) async fn findings(&self, config: Option<&Config>) -> Vec<Value> {
        let ready: Result<Value, Error> = self.client.get(&["readyz"], &[]).await;
        let mut offered = Offered::default();
        let mut findings = vec![match ready {
            Ok(_) => finding("store", true, "the host reads it"),
            Err(error) => finding("store", false, &error.to_string()),
        }];
        match self.client.get::<Page<Object>>(&["v1", "runners"], &[]).await {
            Ok(page) => {
                offered.sources.extend(page.items.iter().filter_map(ready_name));
                offered.runners.extend(page.items.iter().flat_map(ready_runners));
                findings.extend(page.items.iter().flat_map(runner));
            }
            Err(error) => findings.push(finding("runners", false, &error.to_string())),
        }
        match self.client.get::<Page<Object>>(&["v1", "models"], &[]).await {
            Ok(page) => findings.extend(page.items.iter().map(model)),
            Err(error) => findings.push(finding("models", false, &error.to_string())),
        }
        match self.client.get::<Page<Object>>(&["v1", "tool-servers"], &[]).await {
            Ok(page) => {
                offered.sources.extend(page.items.iter().filter_map(ready_name));
                findings.extend(page.items.iter().flat_map(tool_server));
            }
            Err(error) => findings.push(finding("tools", false, &error.to_string())),
        }
        match self.client.get::<Page<Object>>(&["v1", "tools"], &[]).await {
            Ok(page) => {
                let name = |tool: &Object| Some(tool.get("tool_name")?.as_str()?.to_owned());
                offered.tools.extend(page.items.iter().filter_map(name));
            }
            Err(error) => findings.push(finding("tools", false, &error.to_string())),
        }
        let Some(config) = config else { return findings };
        let missing = granted::missing(config, &offered);
        findings.extend(missing.iter().map(|text| finding("agents", false, text)));
        findings.extend(granted::without_models(config, &offered).iter().map(|text| {
            let mut found = finding("agents", true, text);
            found["state"] = "note".into();
            found
        }));
        findings
    }
}

/// The name of a source that is ready, and so has told what it offers.
fn ready_name(source: &Object) -> Option<String> {
    let word = |key: &str| source.get(key).and_then(Value::as_str);
    word("name").filter(|_| word("status") == Some("ready")).map(str::to_owned)
}

/// What a runner offers that is ready.
fn ready_runners(runner: &Object) -> Vec<OfferedRunner> {
    let is_ready = ready_name(runner).is_some();
    let offered = runner.get("runners").and_then(Value::as_array).into_iter().flatten();
    let offered = offered.filter(|_| is_ready);
    let manifests = offered.filter_map(|manifest| serde_json::from_value(manifest.clone()).ok());
    manifests.map(|manifest| OfferedRunner::new(&manifest)).collect()
}

/// A model is what is configured of it: whether its provider answers is known with the first call.
fn model(model: &Object) -> Value {
    let word = |key: &str| model.get(key).and_then(Value::as_str).unwrap_or_default();
    let what = format!("model {}", word("name"));
    let found = match word("provider") {
        "scripted" => "scripted: fixed rules, no network".to_owned(),
        provider => format!("{} of {provider}", word("model")),
    };
    finding(&what, true, &found)
}

fn tool_server(server: &Object) -> Vec<Value> {
    let word = |key: &str| server.get(key).and_then(Value::as_str);
    let what = format!("tools {}", word("name").unwrap_or_default());
    let status = word("status").unwrap_or_default();
    let tools = server.get("tools").and_then(Value::as_u64).unwrap_or(0);
    // One that starts after it has failed is as good as one that has failed.
    let starts = status == "starting" && word("last_error").is_none();
    let is_well = status == "ready" || starts;
    let isolation = word("isolation").map(|isolation| format!(", sandbox: {isolation}"));
    let things = if word("kind") == Some("module") { "methods" } else { "tools" };
    let more = match is_well {
        true => format!(", {tools} {things}{}", isolation.unwrap_or_default()),
        false => word("last_error").map(|error| format!(": {error}")).unwrap_or_default(),
    };
    let mut found = finding(&what, is_well, &format!("{status}{more}"));
    if starts {
        // Neither well nor ill: it is not known yet.
        found["state"] = status.into();
    }
    std::iter::once(found).chain(warnings(server, &what)).collect()
}

fn runner(runner: &Object) -> Vec<Value> {
    let word = |key: &str| runner.get(key).and_then(Value::as_str);
    let what = format!("runner {}", word("name").unwrap_or_default());
    let status = word("status").unwrap_or_default();
    let ready = status == "ready" && word("last_error").is_none();
    let more = match ready {
        true => word("isolation").map(|isolation| format!(", sandbox: {isolation}")),
        false => word("last_error").map(|error| format!(": {error}")),
    };
    let found = finding(&what, ready, &format!("{status}{}", more.unwrap_or_default()));
    // What is left out of what it offers, which may be on purpose.
    let notes = warnings(runner, &what).map(|mut found| {
        found["ok"] = true.into();
        found["state"] = "note".into();
        found
    });
    std::iter::once(found).chain(notes).collect()
}

fn warnings<'a>(of: &'a Object, what: &'a str) -> impl Iterator<Item = Value> + 'a {
    let warnings = of.get("warnings").and_then(Value::as_array).into_iter().flatten();
    warnings.filter_map(Value::as_str).map(move |text| finding(what, false, text))
}
