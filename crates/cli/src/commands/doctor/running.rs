//! Checks of a running host.

use super::finding;
use crate::client::{Client, Error, HostArgs, Page};
use crate::granted::{self, NotReady, Offered, OfferedRunner};
use greenroom_config::Config;
use greenroom_protocol::Object;
use serde_json::Value;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

pub(super) struct Running {
    client: Client,
    /// The configuration file it uses.
    pub config: Option<PathBuf>,
    /// The address it listens on.
    pub address: Option<SocketAddr>,
}

impl Running {
    /// The host of a data folder, if it answers.
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
                let address = file["address"].as_str().and_then(|text| text.parse().ok());
                (finding("host", true, &found), Some(Self { client, config, address }))
            }
            Err(error) => {
                (finding("host", false, &format!("{url} does not answer: {error}")), None)
            }
        }
    }

    /// Its database, models, surfaces, runners and tools, and references of agents that do not exist.
    pub(super) async fn findings(&self, config: Option<&Config>) -> Vec<Value> {
        let mut offered = Offered::default();
        let mut findings = self.looked_at().await;
        findings.push(super::deliveries::look(&self.client).await);
        match self.client.get::<Page<Object>>(&["v1", "runners"], &[]).await {
            Ok(page) => {
                offered.sources.extend(page.items.iter().filter_map(ready_name));
                offered.runners.extend(page.items.iter().flat_map(ready_runners));
                offered.not_ready.extend(page.items.iter().filter_map(not_ready));
                findings.extend(page.items.iter().flat_map(runner));
            }
            Err(error) => findings.push(finding("runners", false, &error.to_string())),
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
        let notes = granted::undecided(config, &offered).into_iter();
        let notes = notes.chain(granted::without_models(config, &offered));
        let notes = notes.chain(granted::incomplete(config, &offered));
        findings.extend(notes.map(|text| {
            let mut found = finding("agents", true, &text);
            found["state"] = "note".into();
            found
        }));
        findings
    }

    /// Checks that the host runs now: database, models and surfaces.
    async fn looked_at(&self) -> Vec<Value> {
        let looked: Result<Page<Object>, Error> = self.client.get(&["v1", "checks"], &[]).await;
        let checked = |check: &Object| {
            let word = |key: &str| check.get(key).and_then(Value::as_str).unwrap_or_default();
            let what = format!("{} {}", word("kind"), word("name"));
            finding(what.trim_end(), check.get("ok") == Some(&true.into()), word("message"))
        };
        match looked {
            Ok(page) => page.items.iter().map(checked).collect(),
            Err(error) => vec![finding("checks", false, &error.to_string())],
        }
    }
}

/// A runner that is not ready.
fn not_ready(runner: &Object) -> Option<NotReady> {
    let word = |key: &str| runner.get(key).and_then(Value::as_str);
    (word("status") != Some("ready")).then(|| NotReady {
        name: word("name").unwrap_or_default().to_owned(),
        plugin: word("plugin").map(str::to_owned),
        has_failed: word("last_error").is_some(),
    })
}

/// The name of a ready source.
fn ready_name(source: &Object) -> Option<String> {
    let word = |key: &str| source.get(key).and_then(Value::as_str);
    word("name").filter(|_| word("status") == Some("ready")).map(str::to_owned)
}

/// The offer of a ready runner.
fn ready_runners(runner: &Object) -> Vec<OfferedRunner> {
    let is_ready = ready_name(runner).is_some();
    let offered = runner.get("runners").and_then(Value::as_array).into_iter().flatten();
    let offered = offered.filter(|_| is_ready);
    let manifests = offered.filter_map(|manifest| serde_json::from_value(manifest.clone()).ok());
    manifests.map(|manifest| OfferedRunner::new(&manifest)).collect()
}

fn tool_server(server: &Object) -> Vec<Value> {
    let word = |key: &str| server.get(key).and_then(Value::as_str);
    let what = format!("tools {}", word("name").unwrap_or_default());
    let status = word("status").unwrap_or_default();
    let tools = server.get("tools").and_then(Value::as_u64).unwrap_or(0);
    // Restarting after a failure counts as failed.
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
        // Not known yet.
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
        false => word("last_error").map(|error| format!("{}: {error}", next_start(runner))),
    };
    let found = finding(&what, ready, &format!("{status}{}", more.unwrap_or_default()));
    // Ignored parts of its offer, which may be intended.
    let notes = warnings(runner, &what).map(|mut found| {
        found["ok"] = true.into();
        found["state"] = "note".into();
        found
    });
    std::iter::once(found).chain(notes).collect()
}

/// When a failed runner restarts.
fn next_start(runner: &Object) -> String {
    let wait = runner.get("retry_in_ms").and_then(Value::as_u64);
    wait.map_or(String::new(), |ms| format!(", next start in {} s", ms.div_ceil(1000)))
}

fn warnings<'a>(of: &'a Object, what: &'a str) -> impl Iterator<Item = Value> + 'a {
    let warnings = of.get("warnings").and_then(Value::as_array).into_iter().flatten();
    warnings.filter_map(Value::as_str).map(move |text| finding(what, false, text))
}
