//! All configured tools, from all sources.
//!
//! Invariant: a name belongs to one source; a conflict is an error that names both. A tool with an unusable
//! schema is not offered.

mod noted;
mod programs;
mod servers;
mod settled;

pub use programs::ModuleHealth;

use crate::child::{MethodCall, run_method};
use crate::manifest::{Manifest, ManifestError, Modules};
use crate::mcp::{CALL_MAX, McpServer, McpSettings, OnProgress, OnQuestion, OnSecrets};
use crate::plugins;
use crate::project_cli::{self, MethodSet};
use crate::schema::{Schema, leave_out_nulls};
use crate::search::{ToolIndex, Vectors};
use crate::skills::{self, SkillError, Skills};
use crate::subject;
use crate::{Risk, Source, Tool, ToolFailure, ToolOutput};
use greenroom_protocol::Object;
use greenroom_protocol::api::platform::ApprovalSubject;
use greenroom_protocol::records::RecordView;
use greenroom_runtime::{Runtime, ToolCaller};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The settings of tools.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolSettings {
    pub mcp: Vec<McpSettings>,
    /// Manifests of user-defined modules.
    pub modules: Vec<PathBuf>,
    /// Hidden from their methods, unless the manifest lists the very path.
    pub hidden: Vec<PathBuf>,
    /// Folders of skills.
    pub skills: Vec<PathBuf>,
    pub cli: CliProgram,
}

/// How a built-in method is run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CliProgram {
    /// The program and its arguments before module and method.
    pub command: Vec<String>,
    /// The address of the host for it, and the port.
    pub url: String,
    pub address: Option<SocketAddr>,
}

/// Why the settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ToolsError {
    #[error("a module cannot be used")]
    Modules(#[from] ManifestError),
    #[error("the skills cannot be used")]
    Skills(#[from] SkillError),
    #[error("`tools.{server}`: {reason}")]
    Server { server: String, reason: String },
}

/// A tool with its compiled schema.
#[derive(Debug)]
pub struct Entry {
    pub tool: Tool,
    /// A schema of our own is compiled on first use: most hosts never need it.
    schema: OnceLock<Schema>,
}

impl Entry {
    fn new(tool: Tool) -> Option<Self> {
        if matches!(tool.source, Source::ProjectCli | Source::Skills) {
            return Some(Self { tool, schema: OnceLock::new() });
        }
        match Schema::compile(&tool.input_schema) {
            Ok(schema) => Some(Self { tool, schema: schema.into() }),
            Err(error) => {
                tracing::warn!(tool = tool.name, %error, "tool has an unusable schema and is not offered");
                None
            }
        }
    }

    fn schema(&self) -> &Schema {
        self.schema.get_or_init(|| {
            Schema::compile(&self.tool.input_schema).expect("our own schemas are valid")
        })
    }

    pub fn is_project_cli(&self) -> bool {
        self.tool.source == Source::ProjectCli
    }
}

/// What is known of a call before it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admitted {
    /// Its worst effect.
    pub risk: Risk,
    /// Its longest time. A server that reports progress may take longer than its tools declare.
    pub timeout: Duration,
}

/// One call that was admitted.
pub struct Invocation<'a> {
    pub entry: &'a Entry,
    pub args: &'a Object,
    pub tool_call_id: &'a str,
    pub run_id: &'a str,
    pub caller: ToolCaller,
    /// The methods of the project CLI and the skills that the run may use.
    pub methods: &'a BTreeSet<String>,
    pub skills: &'a BTreeSet<String>,
    /// The credential of a project CLI method for the host.
    pub credential: Option<&'a str>,
    pub deadline: Instant,
    pub cancel: CancellationToken,
    /// Receives progress, where the source reports it.
    pub progress: Option<OnProgress>,
    /// Puts questions of the source to the user.
    pub ask: Option<OnQuestion>,
}

/// All tools.
pub struct Toolbox {
    settings: ToolSettings,
    servers: Vec<Arc<McpServer>>,
    skills: Skills,
    modules: Modules,
    runtime: Runtime,
    /// The sandbox of module programs, once determined.
    tried: OnceCell<Vec<ModuleHealth>>,
    /// The last catalogue, and the lists it was made from.
    known: Mutex<Arc<Catalogue>>,
}

#[derive(Debug, Default)]
struct Catalogue {
    /// Version numbers of all sources that change.
    lists: Vec<u64>,
    entries: BTreeMap<String, Arc<Entry>>,
    index: ToolIndex,
}

impl Toolbox {
    /// Starts the sources; servers of `before` with the same settings are kept.
    pub fn start(
        settings: ToolSettings,
        runtime: Runtime,
        before: Option<&Toolbox>,
        on_secrets: Option<OnSecrets>,
    ) -> Result<Self, ToolsError> {
        let (modules, skills) = check(&settings)?;
        let mut servers = Vec::new();
        for server in &settings.mcp {
            let same = before.and_then(|before| before.server_with(server));
            let start = || McpServer::start(server.clone(), runtime.children(), on_secrets.clone());
            servers.push(same.unwrap_or_else(start));
        }
        let (tried, known) = (OnceCell::new(), Mutex::default());
        let toolbox = Self { settings, servers, skills, modules, runtime, tried, known };
        toolbox.catalogue();
        Ok(toolbox)
    }

    fn server_with(&self, settings: &McpSettings) -> Option<Arc<McpServer>> {
        let place = self.settings.mcp.iter().position(|known| known == settings)?;
        self.servers.get(place).cloned()
    }

    pub fn servers(&self) -> &[Arc<McpServer>] {
        &self.servers
    }

    /// The version numbers of all sources: `names` changes only with them.
    pub fn lists(&self) -> Vec<u64> {
        self.catalogue().lists.clone()
    }

    pub fn names(&self) -> Vec<String> {
        self.catalogue().entries.keys().cloned().collect()
    }

    /// Every method of the project CLI, `module.method` each.
    pub fn methods(&self) -> Vec<String> {
        self.modules.all().map(|(name, _, _)| name).collect()
    }

    /// The risk of each of these methods, by name.
    pub fn risks(&self, methods: &BTreeSet<String>) -> BTreeMap<String, Risk> {
        let known = self.modules.all().filter(|(name, ..)| methods.contains(name));
        known.map(|(name, _, risk)| (name, risk)).collect()
    }

    /// Description and input of each of these methods.
    pub fn contracts(&self, methods: &BTreeSet<String>) -> Object {
        self.modules.contracts(&MethodSet::new(methods.iter().cloned()))
    }

    /// All tools.
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        self.catalogue().entries.values().cloned().collect()
    }

    pub fn entry(&self, name: &str) -> Option<Arc<Entry>> {
        self.catalogue().entries.get(name).cloned()
    }

    /// The best tools for a query among those allowed, best first.
    pub fn search(&self, query: &str, top_k: usize, allowed: &BTreeSet<String>) -> Vec<Arc<Entry>> {
        let catalogue = self.catalogue();
        let found = catalogue.index.search(query, top_k, |name| allowed.contains(name));
        found.iter().filter_map(|name| catalogue.entries.get(name).cloned()).collect()
    }

    /// The same with vectors of the query and of the tools.
    pub fn search_near(
        &self,
        query: &str,
        vectors: &Vectors,
        top_k: usize,
        allowed: &BTreeSet<String>,
    ) -> Vec<Arc<Entry>> {
        let catalogue = self.catalogue();
        let index = &catalogue.index;
        let found = index.search_near(query, vectors, top_k, |name| allowed.contains(name));
        found.iter().filter_map(|name| catalogue.entries.get(name).cloned()).collect()
    }

    /// The arguments of a call as its tool gets them: without `null` for what is optional.
    pub fn prepared(&self, entry: &Entry, mut args: Object) -> Object {
        if matches!(entry.tool.source, Source::Mcp(_) | Source::Plugin(_)) {
            leave_out_nulls(&entry.tool.input_schema, &mut args);
        }
        args
    }

    /// Whether a call can be made: its arguments are valid, and its project CLI method is allowed.
    pub fn admit(
        &self,
        entry: &Entry,
        args: &Object,
        methods: &BTreeSet<String>,
    ) -> Result<Admitted, ToolFailure> {
        entry.schema().check(&Value::Object(args.clone()))?;
        let Tool { risk, timeout, ref source, .. } = entry.tool;
        match source {
            Source::ProjectCli => {
                let call = project_cli::Call::read(args)?;
                let allowed = MethodSet::new(methods.iter().cloned());
                let target = self.modules.resolve(&call, &allowed)?;
                Ok(Admitted { risk: target.risk(), timeout: target.timeout() })
            }
            // Its timeout limits silence: a call that reports progress may take as long as its run.
            Source::Mcp(_) => Ok(Admitted { risk, timeout: CALL_MAX }),
            Source::Skills | Source::Plugin(_) => Ok(Admitted { risk, timeout }),
        }
    }

    /// The records that a call names: their module and ids.
    pub fn named_records(
        &self,
        entry: &Entry,
        args: &Object,
    ) -> Option<(project_cli::Module, Vec<String>)> {
        let call = project_cli::Call::read(args).ok().filter(|_| entry.is_project_cli())?;
        project_cli::named_records(&call)
    }

    /// What a call is about, for an approval; `found` are the records it names, if they were looked up.
    pub fn subject(
        &self,
        entry: &Entry,
        args: &Object,
        found: Option<&BTreeMap<String, RecordView>>,
    ) -> Option<ApprovalSubject> {
        let call = project_cli::Call::read(args).ok().filter(|_| entry.is_project_cli());
        let subject = match (&call, found) {
            (Some(call), Some(found)) => project_cli::subject(call, found),
            (Some(call), None) => {
                let own = self.modules.find(&call.module, &call.method);
                subject::of_inputs(&call.input, own.and_then(|own| own.show.as_deref()))
            }
            (None, _) => subject::of_inputs(args, None),
        };
        subject::bounded(subject)
    }

    /// Carries out a call. There is always one output.
    pub async fn invoke(&self, call: Invocation<'_>) -> ToolOutput {
        let cancel = call.cancel.clone();
        let work = async {
            match &call.entry.tool.source {
                Source::ProjectCli => self.run_method(&call).await,
                Source::Skills => self.read_skill(&call),
                Source::Mcp(name) => self.call_server(name, &call).await,
                Source::Plugin(name) => plugins::call(&self.runtime, name, &call).await,
            }
        };
        match &call.entry.tool.source {
            // These end by themselves and notify the other side.
            Source::Mcp(_) | Source::Plugin(_) => work.await,
            Source::ProjectCli | Source::Skills => tokio::select! {
                output = work => output,
                () = cancel.cancelled() => ToolOutput::failure(ToolFailure::new(
                    "CANCELLED",
                    "the call was cancelled",
                )),
            },
        }
    }

    async fn run_method(&self, call: &Invocation<'_>) -> ToolOutput {
        let allowed = MethodSet::new(call.methods.iter().map(String::as_str));
        let asked = project_cli::Call::read(call.args);
        let target = asked.as_ref().map_err(Clone::clone).and_then(|asked| {
            let target = self.modules.resolve(asked, &allowed)?;
            Ok((asked, Value::Object(asked.input.clone()), target))
        });
        let (asked, input, target) = match target {
            Ok(target) => target,
            Err(failure) => return ToolOutput::failure(failure),
        };
        let method = MethodCall {
            deadline: call.deadline,
            first_line: target.takes_stdin().then(|| call.credential.unwrap_or_default()),
            program: self.program(target, call),
            module: &asked.module,
            method: &asked.method,
            input: &input,
        };
        run_method(&self.runtime.children(), method).await
    }

    /// The current catalogue; rebuilt when a source has changed.
    fn catalogue(&self) -> Arc<Catalogue> {
        let servers = self.servers.iter().map(|server| server.list_number());
        let plugins = *self.runtime.tools_changes().borrow();
        let lists: Vec<u64> = servers.chain([plugins]).collect();
        let mut known = self.known();
        if known.lists != lists || known.entries.is_empty() {
            *known = Arc::new(self.gather(lists));
        }
        Arc::clone(&known)
    }

    fn gather(&self, lists: Vec<u64>) -> Catalogue {
        let mut tools = vec![project_cli::tool(), skills::tool()];
        tools.extend(self.servers.iter().flat_map(|server| server.tools()));
        tools.extend(plugins::tools(&self.runtime));
        let mut entries: BTreeMap<String, Arc<Entry>> = BTreeMap::new();
        for entry in tools.into_iter().filter_map(Entry::new) {
            // Names begin with their source's, which is unique; of duplicates within a server the first counts.
            entries.entry(entry.tool.name.clone()).or_insert_with(|| Arc::new(entry));
        }
        let index = ToolIndex::new(entries.values().map(|entry| &entry.tool));
        Catalogue { lists, entries, index }
    }

    fn known(&self) -> MutexGuard<'_, Arc<Catalogue>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops all servers at once.
    pub async fn stop(&self) {
        futures_util::future::join_all(self.servers.iter().map(|server| server.stop())).await;
    }
}

/// Checks the settings without starting anything.
pub fn check(settings: &ToolSettings) -> Result<(Modules, Skills), ToolsError> {
    for server in &settings.mcp {
        let wrong = |reason| ToolsError::Server { server: server.name.clone(), reason };
        server.check().map_err(wrong)?;
    }
    let manifests = settings.modules.iter().map(|path| Manifest::load(path));
    let manifests = manifests.collect::<Result<Vec<Manifest>, ManifestError>>()?;
    Ok((Modules::new(manifests)?, Skills::load(&settings.skills)?))
}

impl std::fmt::Debug for Toolbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Toolbox").field("tools", &self.names()).finish_non_exhaustive()
    }
}
