//! Checks of what the host depends on: its database, models and surfaces, and grants that runs lacked.
//!
//! Invariant: a check costs no money and changes nothing; each has a timeout and all run concurrently; messages
//! hold no key or password.

use crate::host::Host;
use futures_util::future::join_all;
use greenroom_models::{Model, Probe};
use greenroom_surfaces::Surface;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Timeout of the check of one model or surface.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// `database`, `model`, `surface` or `grant`.
    pub kind: &'static str,
    pub name: String,
    pub ok: bool,
    pub message: String,
}

impl Host {
    /// Checks everything outside the process, and lists missing grants.
    pub async fn checks(&self) -> Vec<Check> {
        let resources = self.resources();
        let all: Vec<Arc<Model>> =
            resources.models.names().filter_map(|name| resources.models.get(name)).collect();
        let settings = self.settings();
        let (database, models, surfaces) =
            tokio::join!(self.database(), models(&all), surfaces(&settings.surfaces));
        let refused = self.shared.ungranted.list().into_iter().map(|message| Check {
            kind: "grant",
            name: String::new(),
            ok: false,
            message,
        });
        let pages = self.store().last_check().map(|message| Check {
            kind: "database",
            name: "pages".to_owned(),
            ok: true,
            message,
        });
        let checks =
            std::iter::once(database).chain(pages).chain(models).chain(surfaces).chain(refused);
        checks.map(|check| self.clean(check)).collect()
    }

    async fn database(&self) -> Check {
        let store = self.store();
        let looked = match store.check().await {
            Ok(()) => store.describe().await,
            Err(error) => Err(error),
        };
        let (ok, message) = match looked {
            Ok(message) => (true, message),
            Err(error) => (false, format!("{}: {error}", store.name())),
        };
        Check { kind: "database", name: String::new(), ok, message }
    }

    /// Messages of providers and receivers may hold secrets.
    fn clean(&self, check: Check) -> Check {
        Check { message: self.redactor().quote(&check.message), ..check }
    }
}

/// Whether each model's provider answers, and accepts the key where that can be checked without cost.
pub async fn models(models: &[Arc<Model>]) -> Vec<Check> {
    join_all(models.iter().map(|model| async move {
        let settings = model.settings();
        let (ok, status) = match model.probe(CHECK_TIMEOUT).await {
            Ok(Probe::Scripted) => (true, "scripted: fixed rules, no network".to_owned()),
            Ok(Probe::Available) => (true, "answers".to_owned()),
            Ok(Probe::Unlisted) if settings.provider_name == "ollama" => {
                (false, format!("is not installed; `ollama pull {}` gets it", settings.model))
            }
            Ok(Probe::Unlisted) => {
                (true, "answers, but is not in the provider's list of models".to_owned())
            }
            Ok(Probe::KeyUnchecked) => {
                (true, "the provider answers; the key is checked with the first call".to_owned())
            }
            Err(error) => (false, error.to_string()),
        };
        let message = match model.address() {
            Some(address) => {
                format!("`{}` of {} at {address}: {status}", settings.model, settings.provider_name)
            }
            None => status,
        };
        Check { kind: "model", name: settings.name.clone(), ok, message }
    }))
    .await
}

/// Whether each surface can be connected to; nothing is sent.
pub async fn surfaces(surfaces: &BTreeMap<String, Surface>) -> Vec<Check> {
    join_all(surfaces.iter().map(|(name, surface)| async move {
        let checked = surface.check(name, CHECK_TIMEOUT).await;
        let ok = checked.is_ok();
        let message = checked.unwrap_or_else(|problem| problem);
        Check { kind: "surface", name: name.clone(), ok, message }
    }))
    .await
}
