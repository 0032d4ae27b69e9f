//! One session: a harness process with one conversation in it.
//!
//! Invariant: a session that is used has answered `session/new` or `session/load`; when the value is dropped, its
//! processes are ended.

use crate::config::{Config, Keys};
use crate::gateway::{Gateway, lead_out};
use crate::process::{Launch, Process, Started};
use crate::profile::{Profile, Quoting, Values};
use crate::projection::Pointers;
use crate::prompt::Takes;
use crate::settings::Wall;
use crate::texts::Texts;
use crate::wire::{Connection, WireError};
use crate::workspace::Place;
use greenroom_sdk::{RunCtx, RunFailure, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::BufReader;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::DropGuard;
use tokio_util::task::TaskTracker;

/// How long a harness may take to start, or to load a session.
const START_TIMEOUT: Duration = Duration::from_secs(120);
const PROTOCOL_VERSION: u64 = 1;
/// The variable with the folder of the files about the run.
const CONTEXT: &str = "GREENROOM_CONTEXT";
/// The key where the harness has none and its server wants none.
const NO_KEY: &str = "none";

pub(crate) struct Session {
    pub(crate) process: Process,
    pub(crate) connection: Arc<Connection>,
    pub(crate) id: String,
    pub(crate) takes: Takes,
    pub(crate) place: Place,
    pub(crate) gateway: Option<Gateway>,
    /// The config that it was started with.
    pub(crate) config: Config,
    /// Models that it was started with.
    pub(crate) model: Option<String>,
    /// What leads out of its network, until it ends.
    _ways: DropGuard,
    /// The hash of the skills that it was started with.
    pub(crate) skills: String,
    skills_folder: Option<String>,
    _room: OwnedSemaphorePermit,
}

/// Where a session comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    New,
    Loaded,
    /// New, because the earlier one cannot be loaded.
    Replaced,
}

/// What a session is started with.
pub(crate) struct Start<'a> {
    pub(crate) ctx: &'a RunCtx,
    pub(crate) profile: &'a Profile,
    pub(crate) command: &'a [String],
    pub(crate) config: &'a Config,
    pub(crate) place: Place,
    pub(crate) wall: Option<&'a Wall>,
    pub(crate) skills: String,
    pub(crate) gateway: Option<Gateway>,
    pub(crate) texts: Texts,
    pub(crate) room: OwnedSemaphorePermit,
    pub(crate) tasks: &'a TaskTracker,
}

/// A harness that has answered, with a session.
struct Opened {
    process: Process,
    connection: Arc<Connection>,
    id: String,
    origin: Origin,
    takes: Takes,
    /// What leads out of its network.
    ways: DropGuard,
}

impl Session {
    pub(crate) async fn open(start: Start<'_>) -> Result<(Self, Origin), RunFailure> {
        let model = model(&start);
        let values = values(&start, model.as_deref());
        write_files(&start, &values).map_err(|why| cannot_start(&start, &why))?;
        let opened = match try_open(&start, &values, true).await? {
            Some(opened) => Some(opened),
            // In a new process: some never answer again after a session that they could not load.
            None => try_open(&start, &values, false).await?,
        };
        let opened = opened.ok_or_else(|| cannot_start(&start, "it opens no session"))?;
        let session = Self {
            process: opened.process,
            connection: opened.connection,
            id: opened.id,
            takes: opened.takes,
            place: start.place,
            gateway: start.gateway,
            config: start.config.clone(),
            model,
            _ways: opened.ways,
            skills: start.skills,
            skills_folder: start.profile.skills.clone(),
            _room: start.room,
        };
        Ok((session, opened.origin))
    }

    /// Whether it can take another message of an agent with this config.
    pub(crate) fn fits(&mut self, config: &Config, model: Option<&str>) -> bool {
        self.config == *config
            && self.model.as_deref() == model
            && !self.connection.is_closed()
            && self.process.ended().is_none()
    }

    pub(crate) async fn stop(self) {
        self.process.stop().await;
        crate::projection::remove(&self.place, self.skills_folder.as_deref());
    }
}

fn cannot_start(start: &Start<'_>, why: &str) -> RunFailure {
    let text = start.texts.cannot_start(&start.profile.title, why);
    RunFailure::new("harness.start_failed", text).retryable()
}

/// Starts the harness and enters a session; none if the earlier one cannot be loaded.
async fn try_open(
    start: &Start<'_>,
    values: &Values,
    may_load: bool,
) -> Result<Option<Opened>, RunFailure> {
    let env = environment(start.profile, values);
    let launch = Launch {
        command: start.command,
        place: &start.place,
        env: &env,
        wall: start.wall,
        gateway: start.gateway.as_ref().map(Gateway::address),
    };
    let started = Process::start(&launch, start.tasks).await;
    let started = started.map_err(|why| cannot_start(start, &why))?;
    let Started { mut process, streams: (output, input), ways } = started;
    let ways = lead_out(ways, start.gateway.as_ref(), start.tasks);
    let ways = ways.map_err(|error| cannot_start(start, &error.to_string()))?;
    let connection = Connection::open(BufReader::new(output), input, start.tasks);
    let opening = async {
        let initialized = initialize(&connection, start.profile).await?;
        let entered = enter(&connection, &initialized, start, may_load).await?;
        Ok(entered.map(|(id, origin)| (id, origin, Takes::read(&initialized))))
    };
    let opened = start.ctx.unless_cancelled(tokio::time::timeout(START_TIMEOUT, opening));
    let opened: Result<Result<_, WireError>, _> = opened.await?;
    match opened {
        Ok(Ok(Some((id, origin, takes)))) => {
            Ok(Some(Opened { process, connection, id, origin, takes, ways }))
        }
        Ok(Ok(None)) => {
            process.stop().await;
            Ok(None)
        }
        Ok(Err(error)) => Err(cannot_start(start, &describe(&error, &mut process))),
        Err(_) => {
            let why = format!("it did not answer within {} s", START_TIMEOUT.as_secs());
            Err(cannot_start(start, &why))
        }
    }
}

/// The model's name: the configured one, else the first that the run was granted.
pub(crate) fn chosen_model(ctx: &RunCtx, config: &Config) -> Option<String> {
    let granted = ctx.resources.models.first().map(|model| model.model_id.clone());
    match config.keys {
        Keys::Own => config.model.clone(),
        Keys::Gateway => config.model.clone().or(granted),
    }
}

fn model(start: &Start<'_>) -> Option<String> {
    chosen_model(start.ctx, start.config)
}

/// The values of the profile's variables.
fn values(start: &Start<'_>, model: Option<&str>) -> Values {
    let path = |path: &std::path::Path| path.to_string_lossy().into_owned();
    let mut values =
        BTreeMap::from([("home", path(&start.place.home)), ("work", path(&start.place.work))]);
    values.insert("context", path(&start.place.work.join(start.place.own_path())));
    values.extend(model.map(|model| ("model", model.to_owned())));
    match (&start.gateway, &start.config.base_url) {
        (Some(gateway), _) if start.config.keys == Keys::Gateway => {
            values.insert("base_url", gateway.base_url());
            values.insert("key", gateway.secret().to_owned());
        }
        (_, Some(url)) => {
            values.insert("base_url", url.trim_end_matches('/').to_owned());
            let own = start.profile.key_variable.as_deref().and_then(own_key);
            values.insert("key", own.unwrap_or_else(|| NO_KEY.to_owned()));
        }
        (_, None) => {}
    }
    Values(values)
}

/// The key that the operator gave the runner in its environment.
#[expect(
    clippy::disallowed_methods,
    reason = "the harness's key is in the environment of the runner, for harnesses that want it in a file"
)]
fn own_key(variable: &str) -> Option<String> {
    std::env::var(variable).ok().filter(|key| !key.is_empty())
}

fn environment(profile: &Profile, values: &Values) -> BTreeMap<String, String> {
    let filled = profile
        .env
        .iter()
        .filter_map(|(name, text)| Some((name.clone(), values.fill(text, Quoting::Plain)?)));
    let value = |name: &str| values.0.get(name).cloned().unwrap_or_default();
    let own = [("HOME".to_owned(), value("home")), (CONTEXT.to_owned(), value("context"))];
    filled.chain(own).collect()
}

fn write_files(start: &Start<'_>, values: &Values) -> Result<(), String> {
    let home = start.place.home_folder().map_err(|error| error.to_string())?;
    for file in &start.profile.files {
        let Some(text) = values.fill(&file.text, Quoting::InString) else { continue };
        home.write(&file.path, text.as_bytes())
            .map_err(|error| format!("cannot write `{}`: {error}", file.path))?;
    }
    Ok(())
}

async fn initialize(connection: &Connection, profile: &Profile) -> Result<Value, WireError> {
    let params = json!({
        "protocolVersion": PROTOCOL_VERSION,
        // The harness reads and writes with its own tools, inside the sandbox.
        "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "terminal": false},
        "clientInfo": {"name": "greenroom", "title": "Greenroom", "version": env!("CARGO_PKG_VERSION")},
    });
    let initialized = connection.request("initialize", params).await?;
    if initialized["protocolVersion"].as_u64() != Some(PROTOCOL_VERSION) {
        let version = &initialized["protocolVersion"];
        let message =
            format!("it speaks version {version} of the protocol, not {PROTOCOL_VERSION}");
        return Err(WireError::Refused { code: 0, message, data: Value::Null });
    }
    if let Some(method) = &profile.auth_method {
        connection.request("authenticate", json!({"methodId": method})).await?;
    }
    Ok(initialized)
}

/// Loads the earlier session, or begins one; none if it cannot be loaded.
async fn enter(
    connection: &Connection,
    initialized: &Value,
    start: &Start<'_>,
    may_load: bool,
) -> Result<Option<(String, Origin)>, WireError> {
    let can = &initialized["agentCapabilities"];
    let servers: Vec<Value> = match &start.gateway {
        Some(gateway) if can["mcpCapabilities"]["http"] == true => vec![gateway.mcp_server()],
        _ => Vec::new(),
    };
    let work = start.place.work.to_string_lossy().into_owned();
    let params = json!({"cwd": work, "mcpServers": servers});
    let earlier = Pointers::read(&start.ctx.state.conversation);
    let earlier = earlier.session_id.filter(|_| earlier.working_directory.as_ref() == Some(&work));
    let may_load = may_load && !start.place.is_new;
    let origin = match earlier.is_some() {
        true => Origin::Replaced,
        false => Origin::New,
    };
    if let Some(id) = earlier.filter(|_| may_load) {
        return match load(connection, can, &params, &id).await {
            Ok(state) => {
                set_mode(connection, &id, &state, start).await;
                Ok(Some((id, Origin::Loaded)))
            }
            Err(WireError::Closed) => Err(WireError::Closed),
            Err(error) => {
                eprintln!("cannot load the session `{id}`: {error}");
                Ok(None)
            }
        };
    }
    let created = connection.request("session/new", params).await?;
    let Some(id) = created["sessionId"].as_str().map(str::to_owned) else {
        let message = "its answer to `session/new` has no `sessionId`".to_owned();
        return Err(WireError::Refused { code: 0, message, data: Value::Null });
    };
    set_mode(connection, &id, &created, start).await;
    Ok(Some((id, origin)))
}

async fn load(
    connection: &Connection,
    can: &Value,
    params: &Value,
    id: &str,
) -> Result<Value, WireError> {
    let mut params = params.clone();
    params["sessionId"] = id.into();
    let can_resume = can["sessionCapabilities"]["resume"].is_object();
    match can["loadSession"].as_bool() {
        Some(true) => connection.request("session/load", params).await,
        _ if can_resume => connection.request("session/resume", params).await,
        _ => {
            let message = "this harness cannot load sessions".to_owned();
            Err(WireError::Refused { code: 0, message, data: Value::Null })
        }
    }
}

/// Chooses the mode of the agent, else the one in which the harness asks.
async fn set_mode(connection: &Connection, id: &str, state: &Value, start: &Start<'_>) {
    let Some(wanted) = start.config.mode.as_ref().or(start.profile.mode.as_ref()) else { return };
    let modes = &state["modes"];
    if modes["currentModeId"] == wanted.as_str() {
        return;
    }
    let known = modes["availableModes"].as_array().into_iter().flatten();
    let names: Vec<&str> = known.filter_map(|mode| mode["id"].as_str()).collect();
    if !names.is_empty() && !names.contains(&wanted.as_str()) {
        eprintln!("the harness has no mode `{wanted}`, only {}", names.join(", "));
        return;
    }
    let params = json!({"sessionId": id, "modeId": wanted});
    if let Err(error) = connection.request("session/set_mode", params).await {
        eprintln!("the harness does not take the mode `{wanted}`: {error}");
    }
}

/// An error of the start, with what the process says.
pub(crate) fn describe(error: &WireError, process: &mut Process) -> String {
    let mut text = error.to_string();
    if let WireError::Refused { data, .. } = error
        && !data.is_null()
    {
        let details = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
        text = format!("{text}: {}", details.chars().take(500).collect::<String>());
    }
    if let Some(how) = process.ended() {
        text = format!("{text}; {how}");
    }
    match process.log() {
        log if log.is_empty() => text,
        log => format!("{text}\n{log}"),
    }
}
