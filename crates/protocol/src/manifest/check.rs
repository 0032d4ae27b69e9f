//! Parses a manifest: errors and warnings.
//!
//! Invariant: the version is checked first, so that a manifest of another major version is distinguished from an
//! invalid one, whatever its shape.

use crate::{AgentRunnerManifest, RunnerId, is_compatible, object};
use serde::Deserialize;

/// Why a manifest is invalid. Only this manifest is skipped, not the others of its plugin.
#[derive(Debug, thiserror::Error)]
pub enum InvalidManifest {
    #[error("protocol version `{version}` is not supported, this host speaks `1`")]
    Version { version: String },
    #[error("the manifest does not follow the protocol: {reason}")]
    Shape { reason: serde_json::Error },
    #[error("`name` is `{name}`, but the id `{id}` ends in `{}`", id.runner())]
    Name { id: RunnerId, name: String },
}

/// A valid manifest that may not do what its author expects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestWarning {
    #[error("`{field}` belongs to an older protocol and has no effect")]
    OlderField { field: String },
    #[error("`{field}` is an unknown permission and grants nothing")]
    UnknownPermission { field: String },
}

impl AgentRunnerManifest {
    /// Parses one manifest of a `list_agent_runners` result.
    pub fn parse(json: &str) -> Result<Self, InvalidManifest> {
        let shape = |reason| InvalidManifest::Shape { reason };
        #[derive(Deserialize)]
        struct Version {
            protocol_version: Option<String>,
        }
        let version: Version = object::from_str(json).map_err(shape)?;
        if let Some(version) = version.protocol_version.filter(|version| !is_compatible(version)) {
            return Err(InvalidManifest::Version { version: version.chars().take(80).collect() });
        }
        let manifest: Self = serde_json::from_str(json).map_err(shape)?;
        if manifest.id.runner() != manifest.name {
            let name = manifest.name.chars().take(80).collect();
            return Err(InvalidManifest::Name { id: manifest.id, name });
        }
        Ok(manifest)
    }

    /// Fields of older protocols and unknown permissions, in a stable order.
    pub fn warnings(&self) -> Vec<ManifestWarning> {
        let is_older = |field: &&String| {
            matches!(field.as_str(), "ownership" | "bootstrap") || field.starts_with("max_inline_")
        };
        let in_context = self.context.extra.keys().filter(is_older).map(|f| format!("context.{f}"));
        let at_top = self.extra.keys().filter(is_older).cloned();
        let older = in_context.chain(at_top).map(|field| ManifestWarning::OlderField { field });
        let unknown = self.permissions.extra.keys().map(|field| {
            ManifestWarning::UnknownPermission { field: format!("permissions.{field}") }
        });
        older.chain(unknown).collect()
    }
}
