//! The configuration: `greenroom.toml` read into plain, checked structures (CONTRACT §5).
//!
//! Invariant: a `Config` is complete and its references resolve. Reading reports every mistake of a file at once,
//! and reaches outside the file only through `Surroundings`. Each key has its default here and nowhere else.

mod agent;
mod approvals;
mod artifacts;
mod base_path;
mod checks;
mod destination;
pub mod env;
mod grant;
mod limits;
mod model;
mod network;
mod plain_file;
mod problem;
mod reader;
mod restart;
mod retention;
mod runner;
mod secret;
mod server;
mod surface;
mod telemetry;
#[cfg(test)]
mod tests;
mod token;
mod tool;
mod value;

pub use agent::{Agent, Budget, Micro, Scope};
pub use approvals::{Answerer, Approvals};
pub use artifacts::{Artifacts, Bucket};
pub use base_path::BasePath;
pub use destination::{Destination, DestinationHost, NetworkAccess, NotADestination};
pub use grant::{Approval, GrantPolicy, GrantedFile, Reach, Threads};
pub use limits::{Change, Limit, Limits, REPLACED};
pub use model::{Model, ModelKind, Price, SCRIPTED};
pub use network::{Network, NotANetwork, is_private};
pub use plain_file::{open_file, open_plain, read_head, read_plain};
pub use problem::{Invalid, Problem, columns_of, is_wide};
pub use reader::clean;
pub use retention::Retention;
pub use runner::{Acp, Launch, Process, Runner, Sandbox, Setting, Wire, is_langbot_plugin};
pub use secret::Secret;
pub use server::{Server, Store, StoreUrl, Sync, Tls};
pub use surface::{Surface, Webhook};
pub use telemetry::Telemetry;
pub use token::{Actors, Conversations, Role, Token};
pub use tool::{McpReach, McpServer, OAuth, OAuthGrant, ToolSource};

use reader::{Context, Reader};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// Largest configuration file.
pub const FILE_BYTES_MAX: usize = 4 << 20;
/// Largest secret.
pub const SECRET_BYTES_MAX: usize = 64 << 10;
/// Agents that exist without being configured; a configured agent of the same name replaces them.
pub const BUILT_IN_AGENTS: [&str; 2] = ["assistant", "echo"];
/// Sections of the contract that a later version reads.
const LATER_SECTIONS: [&str; 2] = ["knowledge", "schedules"];
/// The model that exists if none is configured: that of the first provider whose key is set.
pub const DEFAULT_MODEL: &str = "default";

/// Everything a file can set. `Config::default()` applies without a file.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Config {
    pub server: Server,
    pub store: Store,
    pub artifacts: Artifacts,
    pub limits: Limits,
    pub retention: Retention,
    /// In the order of the file: the first is the default.
    pub models: Vec<Model>,
    pub tools: BTreeMap<String, ToolSource>,
    /// `[tool_search]`: the model that makes vectors of tools.
    pub search_model: Option<String>,
    /// What the models of all agents may cost a day, in millionths of a dollar.
    pub budget_day: Option<Micro>,
    pub runners: BTreeMap<String, Runner>,
    pub agents: BTreeMap<String, Agent>,
    pub surfaces: BTreeMap<String, Surface>,
    pub tokens: BTreeMap<String, Token>,
    pub approvals: Approvals,
    pub telemetry: Option<Telemetry>,
    /// Every value above that came from the environment or a file; redacted from all output.
    pub secrets: Vec<Secret>,
}

/// Names that a file may use and that other parts of the program define.
pub struct Known {
    pub providers: &'static [&'static str],
    /// Actions of surfaces, such as `message.send`.
    pub actions: &'static [&'static str],
    /// Methods of the project CLI.
    pub methods: Vec<String>,
    /// Whether a path of the HTTP server begins with this name.
    pub is_route: fn(&str) -> bool,
}

/// What reading a configuration may access outside the file.
pub struct Surroundings<'a> {
    /// The folder of the file; relative paths start here.
    pub dir: &'a Path,
    pub env: &'a dyn Fn(&str) -> Option<String>,
    pub read: &'a dyn Fn(&Path) -> io::Result<String>,
    pub known: &'a Known,
}

/// A configuration and the text it came from, so that later checks can point into it.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    pub config: Config,
    path: PathBuf,
    text: String,
}

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("cannot read `{}`", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

/// The file to read: the given one, that of `GREENROOM_CONFIG`, or `greenroom.toml` if it exists.
pub fn find_file(named: Option<&Path>) -> Option<PathBuf> {
    let from_env = || env::get(env::CONFIG).map(PathBuf::from);
    let usual = || Some(PathBuf::from("greenroom.toml")).filter(|path| path.exists());
    named.map(Path::to_owned).or_else(from_env).or_else(usual)
}

/// Reads a file; secrets come from this process's environment and from files.
pub fn load(path: &Path, known: &Known) -> Result<Loaded, LoadError> {
    let unreadable = |source| LoadError::Unreadable { path: path.to_owned(), source };
    load_text(path, &read_limited(path, FILE_BYTES_MAX).map_err(unreadable)?, known)
}

/// Reads a text that is to be written to a file.
pub fn load_text(path: &Path, text: &str, known: &Known) -> Result<Loaded, LoadError> {
    let unreadable = |source| LoadError::Unreadable { path: path.to_owned(), source };
    let read = |path: &Path| read_limited(path, SECRET_BYTES_MAX);
    let absolute = std::path::absolute(path).map_err(unreadable)?;
    let dir = absolute.parent().unwrap_or(&absolute);
    Ok(parse(path, text, &Surroundings { dir, env: &env::get, read: &read, known })?)
}

/// The valid parts of a file with mistakes, for commands that only inspect.
pub fn load_lenient(path: &Path, known: &Known) -> Option<Config> {
    let text = read_limited(path, FILE_BYTES_MAX).ok()?;
    let read = |path: &Path| read_limited(path, SECRET_BYTES_MAX);
    let absolute = std::path::absolute(path).ok()?;
    let dir = absolute.parent().unwrap_or(&absolute);
    let around = Surroundings { dir, env: &env::get, read: &read, known };
    read_all(path, &text, &around).ok().map(|(config, _)| config)
}

/// Reads the text of the file at `path`.
pub fn parse(path: &Path, text: &str, around: &Surroundings<'_>) -> Result<Loaded, Invalid> {
    match read_all(path, text, around)? {
        (config, None) => Ok(Loaded { config, path: path.to_owned(), text: text.to_owned() }),
        (_, Some(invalid)) => Err(invalid),
    }
}

/// The configuration in a text, and its mistakes.
fn read_all(
    path: &Path,
    text: &str,
    around: &Surroundings<'_>,
) -> Result<(Config, Option<Invalid>), Invalid> {
    let (root, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(malformed(path, text, &errors));
    }
    let root = root.get_ref();
    let mut agents = reader::names(root, "agents");
    agents.extend(BUILT_IN_AGENTS.map(str::to_owned));
    let mut models = reader::names(root, "models");
    if models.is_empty() {
        models.push(DEFAULT_MODEL.to_owned());
    }
    let cx = Context {
        dir: around.dir,
        file: around.dir.join(path.file_name().unwrap_or_default()),
        surroundings: around,
        agents,
        surfaces: reader::names(root, "surfaces"),
        tokens: reader::names(root, "tokens"),
        models,
        tools: reader::names(root, "tools"),
        runners: reader::names(root, "runners"),
        knowledge: reader::names(root, "knowledge"),
        problems: RefCell::default(),
        hidden: RefCell::default(),
        secrets: RefCell::default(),
    };
    let config = Config::read(Reader::root(&cx, root));
    let config = Config { secrets: cx.secrets.take(), ..config };
    checks::check(&cx, &config, root);
    let problems = cx.problems.take();
    let invalid =
        (!problems.is_empty()).then(|| Invalid::new(path, text, problems, cx.hidden.take()));
    Ok((config, invalid))
}

impl Config {
    fn read(mut root: Reader<'_>) -> Self {
        for section in LATER_SECTIONS {
            if let Some(value) = root.get(section) {
                value.fail::<()>(
                    format!("`{section}` is not supported by this version"),
                    "remove the section",
                );
            }
        }
        let mut table = |section| root.get(section).and_then(|value| value.table());
        let config = Self {
            server: table("server").map(Server::read).unwrap_or_default(),
            store: table("store").map(Store::read).unwrap_or_default(),
            artifacts: table("artifacts").map(Artifacts::read).unwrap_or_default(),
            limits: table("limits").map(Limits::read).unwrap_or_default(),
            approvals: table("approvals").map(Approvals::read).unwrap_or_default(),
            retention: table("retention").map(Retention::read).unwrap_or_default(),
            telemetry: table("telemetry").and_then(Telemetry::read),
            budget_day: table("budget").and_then(budget),
            search_model: table("tool_search").and_then(tool_search),
            models: models(&mut root),
            tools: root.named("tools", ToolSource::read),
            runners: root.named("runners", Runner::read),
            agents: root.named("agents", Agent::read),
            surfaces: root.named("surfaces", Surface::read),
            tokens: root.named("tokens", Token::read),
            secrets: Vec::new(),
        };
        root.finish();
        config
    }

    pub fn model(&self, name: &str) -> Option<&Model> {
        self.models.iter().find(|model| model.name == name)
    }
}

fn models(root: &mut Reader<'_>) -> Vec<Model> {
    let read: Vec<(String, Model)> = root.named("models", Model::read);
    read.into_iter().map(|(name, model)| Model { name, ..model }).collect()
}

/// `[budget]`: what all agents may cost together.
fn budget(mut reader: Reader<'_>) -> Option<Micro> {
    let day = reader.get("day_usd").and_then(|value| value.amount());
    reader.finish();
    day.map(micro)
}

/// `[tool_search]`: a model by name; its kind is checked once all models are read.
fn tool_search(mut reader: Reader<'_>) -> Option<String> {
    let known = reader.cx.models.clone();
    let model = reader.require("model").and_then(|value| value.reference("model", &known));
    reader.finish();
    model
}

fn micro(dollars: f64) -> Micro {
    (dollars * 1_000_000.0).round() as i64
}

impl Loaded {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The line of a key, e.g. of `["runners", "triage", "command"]`, for messages about it.
    pub fn line_of(&self, key: &[&str]) -> Option<usize> {
        let root = DeTable::parse(&self.text).ok()?;
        Some(problem::position(&self.text, find(root.get_ref(), key)?.start).0)
    }

    /// A mistake that a later check found, such as two agents that tie, reported like one of the file.
    pub fn invalid_at(&self, key: &[&str], message: String, hint: Option<String>) -> Invalid {
        self.invalid(vec![self.problem_at(key, message, hint)])
    }

    pub fn problem_at(&self, key: &[&str], message: String, hint: Option<String>) -> Problem {
        let root = DeTable::parse(&self.text).ok();
        let span = root.and_then(|root| find(root.get_ref(), key)).unwrap_or(0..0);
        Problem { span, message, hint }
    }

    pub fn invalid(&self, problems: Vec<Problem>) -> Invalid {
        Invalid::new(&self.path, &self.text, problems, Vec::new())
    }
}

/// Where a key is written: its name, or the header of its table.
fn find(root: &DeTable<'_>, key: &[&str]) -> Option<Range<usize>> {
    let (last, parents) = key.split_last()?;
    let mut table = root;
    for parent in parents {
        let DeValue::Table(inner) = table.get(*parent)?.get_ref() else { return None };
        table = inner;
    }
    table.get_key_value(*last).map(|(key, _)| key.span())
}

fn read_limited(path: &Path, bytes_max: usize) -> io::Result<String> {
    // A pipe would be waited for, a device never ends.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(bytes_max as u64 + 1).read_to_string(&mut text)?;
    match text.len() <= bytes_max {
        true => Ok(text),
        false => Err(io::Error::other(format!("it has more than {bytes_max} bytes"))),
    }
}

/// Mistakes of the format itself.
fn malformed(path: &Path, text: &str, errors: &[toml::de::Error]) -> Invalid {
    let hint = "`greenroom.example.toml` shows how each key is written";
    let problem = |error: &toml::de::Error| {
        let span = error.span().unwrap_or(0..0);
        Problem { span, message: error.message().to_owned(), hint: Some(hint.to_owned()) }
    };
    let problems: Vec<Problem> = errors.iter().map(problem).collect();
    let hidden = problems.iter().filter_map(|p| likely_secret(text, p.span.start)).collect();
    Invalid::new(path, text, problems, hidden)
}

/// The value in a line that could not be parsed, if its key sounds like that of a secret.
fn likely_secret(text: &str, offset: usize) -> Option<Range<usize>> {
    let from = text.get(..offset)?.rfind('\n').map_or(0, |at| at + 1);
    let to = text[from..].find('\n').map_or(text.len(), |at| from + at);
    let equals = from + text[from..to].find('=')?;
    let key = text[from..equals].to_lowercase();
    let sounds = ["token", "secret", "password", "key"].iter().any(|word| key.contains(word));
    let value = equals + 1 + text[equals + 1..to].find(|c: char| !c.is_whitespace())?;
    sounds.then_some(value..to)
}
