//! The programs of methods: how each is started, and its sandbox.
//!
//! Invariant: a built-in method reaches only the host, any other what its manifest allows; the reported sandbox
//! was tested, not assumed.

use super::{Invocation, Toolbox};
use crate::manifest::{ModuleMethod, Target};
use crate::project_cli;
use greenroom_config::NetworkAccess;
use greenroom_runtime::{ChildSpec, Confinement, Network};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

/// A module of the project CLI, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModuleHealth {
    /// `project_cli` for all built-in modules.
    pub module: String,
    pub methods: usize,
    /// The sandboxes of its programs, without duplicates.
    pub isolation: Vec<String>,
    pub warnings: Vec<String>,
    /// Why a program could not be prepared.
    pub last_error: Option<String>,
}

impl Toolbox {
    /// Every module with its sandbox. Tested on first use, then cached.
    pub async fn modules(&self) -> &[ModuleHealth] {
        self.tried.get_or_init(|| self.test_modules()).await
    }

    async fn test_modules(&self) -> Vec<ModuleHealth> {
        let built_in = Module {
            name: project_cli::TOOL_NAME.to_owned(),
            methods: project_cli::specs().len(),
            programs: vec![self.spec(None)],
        };
        let own = self.modules.manifests().map(|manifest| {
            let mut programs: Vec<ChildSpec> = Vec::new();
            for method in manifest.methods.values() {
                let spec = self.spec(Some(method));
                if !programs.contains(&spec) {
                    programs.push(spec);
                }
            }
            let methods = manifest.methods.len();
            Module { name: manifest.module.clone(), methods, programs }
        });
        let mut all = Vec::new();
        for module in std::iter::once(built_in).chain(own) {
            all.push(self.test_module(module).await);
        }
        all
    }

    async fn test_module(&self, module: Module) -> ModuleHealth {
        let (mut isolation, mut warnings) = (BTreeSet::new(), BTreeSet::new());
        let mut last_error = None;
        for spec in &module.programs {
            match self.runtime.children().probe(spec).await {
                Ok(Confinement { domain, warnings: more }) => {
                    isolation.insert(domain.isolation());
                    warnings.extend(domain.missing.into_iter().chain(more));
                }
                Err(error) => last_error = Some(error.to_string()),
            }
        }
        ModuleHealth {
            module: module.name,
            methods: module.methods,
            isolation: isolation.into_iter().collect(),
            warnings: warnings.into_iter().collect(),
            last_error,
        }
    }

    pub(super) fn program(&self, target: Target<'_>, call: &Invocation<'_>) -> ChildSpec {
        let spec = match target {
            Target::BuiltIn(_) => self.spec(None),
            Target::Own(method) => self.spec(Some(method)),
        };
        let mut env = self.environment(call);
        if let Some(credential) = call.credential.filter(|_| !target.takes_stdin()) {
            env.insert("GREENROOM_CREDENTIAL".to_owned(), credential.to_owned());
        }
        ChildSpec { env, ..spec }
    }

    /// The program of a manifest's method, or that of all built-in ones.
    fn spec(&self, method: Option<&ModuleMethod>) -> ChildSpec {
        let cli = &self.settings.cli;
        match method {
            None => ChildSpec {
                name: project_cli::TOOL_NAME.to_owned(),
                command: cli.command.clone(),
                processes: 1,
                memory_mb: 256,
                network: self.network(&NetworkAccess::None),
                ..ChildSpec::default()
            },
            Some(ModuleMethod { module, command, dir, network, paths, .. }) => ChildSpec {
                name: module.clone(),
                command: command.clone(),
                dir: dir.clone(),
                paths: paths.clone(),
                hidden: self.hidden_from(paths),
                network: self.network(network),
                ..ChildSpec::default()
            },
        }
    }

    /// The configuration and secret files, but for what the manifest gives to the method.
    fn hidden_from(&self, paths: &[PathBuf]) -> Vec<PathBuf> {
        self.settings.hidden.iter().filter(|file| !paths.contains(file)).cloned().collect()
    }

    /// What a method may reach besides the host.
    fn network(&self, access: &NetworkAccess) -> Network {
        Network::of(access, self.settings.cli.address)
    }

    /// The environment of a method: the address of the host, and the methods that the run may use.
    fn environment(&self, call: &Invocation<'_>) -> BTreeMap<String, String> {
        let methods: Vec<&str> = call.methods.iter().map(String::as_str).collect();
        BTreeMap::from([
            ("GREENROOM_URL".to_owned(), self.settings.cli.url.clone()),
            ("GREENROOM_METHODS".to_owned(), methods.join(",")),
        ])
    }
}

/// A module with the distinct programs of its methods.
struct Module {
    name: String,
    methods: usize,
    programs: Vec<ChildSpec>,
}
