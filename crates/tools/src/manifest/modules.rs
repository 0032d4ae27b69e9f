//! All methods of the project CLI: built-in ones and those of manifests.
//!
//! Invariant: a name means one method; a call is resolved only if it is allowed and its input is valid, so that
//! no approval is requested for a call that could only fail.

use super::{Handover, Manifest, ManifestError, ModuleMethod};
use crate::project_cli::{self, Call, MethodSet, MethodSpec};
use crate::{Risk, ToolFailure};
use greenroom_protocol::Object;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// The modules of manifests.
#[derive(Debug, Clone, Default)]
pub struct Modules {
    by_name: BTreeMap<String, Manifest>,
}

/// The method that a call runs.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    BuiltIn(&'static MethodSpec),
    Own(&'a ModuleMethod),
}

impl Target<'_> {
    /// Whether its program gets the credential of a call on standard input.
    pub fn takes_stdin(&self) -> bool {
        matches!(self, Target::Own(method) if method.handover == Handover::Stdin)
    }

    pub fn risk(&self) -> Risk {
        match self {
            Target::BuiltIn(spec) => spec.risk,
            Target::Own(method) => method.risk,
        }
    }

    pub fn timeout(&self) -> Duration {
        match self {
            Target::BuiltIn(_) => project_cli::TIMEOUT,
            Target::Own(method) => method.timeout,
        }
    }
}

impl Modules {
    pub fn new(manifests: Vec<Manifest>) -> Result<Self, ManifestError> {
        let mut by_name: BTreeMap<String, Manifest> = BTreeMap::new();
        for manifest in manifests {
            if let Some(first) = by_name.get(&manifest.module) {
                return Err(ManifestError::Clash {
                    module: manifest.module,
                    first: first.path.clone(),
                    second: manifest.path,
                });
            }
            by_name.insert(manifest.module.clone(), manifest);
        }
        Ok(Self { by_name })
    }

    pub fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.by_name.values()
    }

    pub fn find(&self, module: &str, method: &str) -> Option<&ModuleMethod> {
        self.by_name.get(module)?.methods.get(method)
    }

    /// Every method with its description and risk, built-in ones first.
    pub fn all(&self) -> impl Iterator<Item = (String, &str, Risk)> {
        let built_in = project_cli::specs().iter().map(|spec| (spec.name(), spec.about, spec.risk));
        let own = self.by_name.values().flat_map(|manifest| manifest.methods.values());
        built_in.chain(own.map(|method| (method.name(), method.description.as_str(), method.risk)))
    }

    /// For each method of a set, by name: its description, risk and input schema, as errors show them
    /// (seed 004 §8).
    pub fn contracts(&self, allowed: &MethodSet) -> Object {
        let contract = |about: &str, risk: Risk, takes: Value| json!({"description": about, "risk": risk.as_str(), "input_schema": takes});
        let built_in = project_cli::specs().iter().map(|spec| {
            let mut contract = contract(spec.about, spec.risk, spec.contract());
            contract["descriptions"] = json!({"zh_Hans": spec.about_zh});
            (spec.name(), contract)
        });
        let own = self.by_name.values().flat_map(|manifest| manifest.methods.values());
        let own = own.map(|method| {
            let takes = method.input.source().clone();
            (method.name(), contract(&method.description, method.risk, takes))
        });
        built_in.chain(own).filter(|(name, _)| allowed.contains(name)).collect()
    }

    /// The first check of a call, by the host: whether it is allowed, and which method it runs.
    pub fn resolve(&self, call: &Call, allowed: &MethodSet) -> Result<Target<'_>, ToolFailure> {
        let Call { module, method, input } = call;
        let is_allowed = allowed.contains(&format!("{module}.{method}"));
        let built_in = project_cli::find(module, method).map(Target::BuiltIn);
        let target = built_in.or_else(|| self.find(module, method).map(Target::Own));
        let Some(target) = target.filter(|_| is_allowed) else {
            let usable = self.all().map(|(name, ..)| name).filter(|name| allowed.contains(name));
            let exists = target.is_some();
            return Err(project_cli::not_allowed(module, method, exists, usable.collect()));
        };
        match target {
            Target::BuiltIn(spec) => project_cli::check(spec, input)?,
            Target::Own(own) => own.check(&Value::Object(input.clone()))?,
        }
        Ok(target)
    }
}

impl ModuleMethod {
    /// `module.method`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.module, self.method)
    }

    /// Refuses an invalid input, as the built-in methods do (seed 004 §8).
    pub fn check(&self, input: &Value) -> Result<(), ToolFailure> {
        let mistakes = self.input.mistakes(input);
        let Some(first) = mistakes.first() else { return Ok(()) };
        let messages: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        let message =
            format!("{} input does not match method schema: {}", self.name(), messages.join("; "));
        Err(ToolFailure::new("INVALID_ACTION_INPUT", message)
            .detail("module", self.module.clone())
            .detail("method", self.method.clone())
            .detail("field", first.field.clone())
            .detail("input_schema", self.input.source().clone()))
    }
}
