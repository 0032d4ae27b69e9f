//! One configured model, and all of them.
//!
//! Invariant: models with the same address and key share their limits; a stream ends with exactly one finish or
//! one error.

use crate::assembly::Assembly;
use crate::client::{self, Answer, Caller};
use crate::limits::Limits;
use crate::scripted::{self, Script};
use crate::wires::{self, Ask};
use crate::{Fold, ModelError, ModelRequest, ModelSettings, ProviderKind, presets};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use greenroom_outgoing::Outgoing;
use greenroom_protocol::Object;
use greenroom_protocol::api::models::{ModelStreamItem, ProviderResponse};
use reqwest::Client;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};

/// A model that can be asked.
#[derive(Debug)]
pub struct Model {
    settings: ModelSettings,
    way: Way,
}

#[derive(Debug)]
enum Way {
    Network(Arc<Caller>),
    Scripted(Arc<Script>),
}

impl Model {
    /// A model by itself; those of one configuration come from `Models`, where they share limits.
    pub fn new(settings: ModelSettings) -> Result<Self, ModelError> {
        let limits = Limits::new(settings.max_concurrent, settings.requests_per_minute);
        Self::build(settings, Arc::new(limits), &mut Clients::default())
    }

    fn build(
        settings: ModelSettings,
        limits: Arc<Limits>,
        clients: &mut Clients,
    ) -> Result<Self, ModelError> {
        let way = match settings.provider {
            ProviderKind::Scripted => Way::Scripted(Arc::new(script(&settings)?)),
            _ => {
                let outgoing = client::outgoing(&settings);
                let base = presets::base_url(&settings)?;
                outgoing.check(&base).map_err(|error| {
                    let name = &settings.name;
                    ModelError::InvalidRequest(format!(
                        "the model `{name}` cannot be reached: {error}"
                    ))
                })?;
                let client = clients.get(&outgoing)?;
                Way::Network(Arc::new(Caller::new(&settings, client, limits)?))
            }
        };
        Ok(Self { settings, way })
    }

    pub fn settings(&self) -> &ModelSettings {
        &self.settings
    }

    /// Where its provider is: scheme, host and port, and nothing that may hold a key. A scripted model is
    /// nowhere.
    pub fn address(&self) -> Option<String> {
        if self.script().is_some() {
            return None;
        }
        let base = presets::base_url(&self.settings).ok()?;
        Some(reqwest::Url::parse(&base).ok()?.origin().ascii_serialization())
    }

    /// Asks, and waits for the beginning of the answer.
    pub async fn stream(
        &self,
        request: ModelRequest,
        deadline: Instant,
    ) -> Result<ModelStream, ModelError> {
        let source = match &self.way {
            Way::Scripted(script) => {
                let until = deadline.min(Instant::now() + self.settings.timeout);
                let idle = self.settings.idle_timeout;
                let items = scripted::stream(Arc::clone(script), request, idle).boxed();
                Source::Scripted(Some(items), until)
            }
            Way::Network(caller) => {
                let until = caller.until(deadline);
                let ask = Ask::new(&self.settings, &request)?;
                let wire = wires::request(&ask)?;
                let names = ask.names;
                let assembly = || Assembly::new(&request, names.clone(), seed());
                let provider = self.settings.provider;
                let answer = Answer::begin(caller, provider, wire, until, assembly).await?;
                Source::Network(Box::new(answer))
            }
        };
        Ok(ModelStream { source, model: self.settings.name.clone() })
    }

    /// The whole answer: the fold of the stream.
    pub async fn invoke(
        &self,
        request: ModelRequest,
        deadline: Instant,
    ) -> Result<ProviderResponse, ModelError> {
        let mut stream = self.stream(request, deadline).await?;
        let mut fold = Fold::new();
        while let Some(item) = stream.next().await {
            fold.push(&item?);
        }
        Ok(fold.finish(stream.metadata()))
    }

    /// For requests beside chat: the way to the provider, unless there is none.
    pub(crate) fn caller(&self) -> Result<&Caller, ModelError> {
        match &self.way {
            Way::Network(caller) => Ok(caller),
            Way::Scripted(_) => Err(ModelError::Unsupported("network")),
        }
    }

    pub(crate) fn script(&self) -> Option<&Script> {
        match &self.way {
            Way::Scripted(script) => Some(script),
            Way::Network(_) => None,
        }
    }
}

fn script(settings: &ModelSettings) -> Result<Script, ModelError> {
    match &settings.script {
        None => Ok(Script::built_in()),
        Some(path) => Script::load(path).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            ModelError::InvalidRequest(format!("{error}{}", cause.unwrap_or_default()))
        }),
    }
}

/// In front of ids that are made here; other answers make others.
fn seed() -> String {
    let mut bytes = [0; 6];
    match getrandom::fill(&mut bytes) {
        Ok(()) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Err(_) => String::new(),
    }
}

/// The items of one answer. Dropping it ends the request.
pub struct ModelStream {
    source: Source,
    model: String,
}

enum Source {
    Network(Box<Answer>),
    /// Gone after its end.
    Scripted(Option<BoxStream<'static, Result<ModelStreamItem, ModelError>>>, Instant),
}

impl ModelStream {
    /// The next item; after a finish or an error none.
    pub async fn next(&mut self) -> Option<Result<ModelStreamItem, ModelError>> {
        match &mut self.source {
            Source::Network(answer) => answer.next().await,
            Source::Scripted(items, until) => {
                let next = timeout_at(*until, items.as_mut()?.next()).await;
                let next = next.unwrap_or(Some(Err(ModelError::DeadlineExceeded)));
                if !matches!(next, Some(Ok(_))) {
                    *items = None;
                }
                next
            }
        }
    }

    /// What is known of the answer beside its items, for `Fold::finish`: `model`, and what the provider called
    /// the model, the answer and the reason to stop. Complete after the last item.
    pub fn metadata(&self) -> Object {
        let mut metadata = match &self.source {
            Source::Network(answer) => answer.about().clone(),
            Source::Scripted(..) => Object::new(),
        };
        metadata.insert("model".to_owned(), self.model.clone().into());
        metadata
    }
}

/// All models of a configuration.
#[derive(Debug, Default)]
pub struct Models {
    by_name: BTreeMap<String, Arc<Model>>,
    /// In the order in which they are configured.
    order: Vec<String>,
}

impl Models {
    pub fn new(all: Vec<ModelSettings>) -> Result<Self, ModelError> {
        let mut tightest: HashMap<(String, String), (Option<u32>, Option<u32>)> = HashMap::new();
        for settings in &all {
            let (concurrent, rate) = tightest.entry(key(settings)).or_default();
            *concurrent = least(*concurrent, settings.max_concurrent);
            *rate = least(*rate, settings.requests_per_minute);
        }
        let limits: HashMap<_, _> = tightest
            .into_iter()
            .map(|(key, (concurrent, rate))| (key, Arc::new(Limits::new(concurrent, rate))))
            .collect();
        let mut clients = Clients::default();
        let mut by_name = BTreeMap::new();
        let order = all.iter().map(|settings| settings.name.clone()).collect();
        for settings in all {
            let limits = limits.get(&key(&settings)).cloned().unwrap_or_default();
            let model = Model::build(settings, limits, &mut clients)?;
            by_name.insert(model.settings.name.clone(), Arc::new(model));
        }
        Ok(Self { by_name, order })
    }

    pub fn get(&self, name: &str) -> Option<Arc<Model>> {
        self.by_name.get(name).cloned()
    }

    /// In the order in which they are configured.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.order.iter().map(String::as_str)
    }
}

/// What a provider counts requests by.
fn key(settings: &ModelSettings) -> (String, String) {
    let base = presets::base_url(settings).unwrap_or_else(|_| settings.name.clone());
    let base = base.split('?').next().unwrap_or_default().to_owned();
    let key = settings.api_key.as_ref().map(|key| key.expose().to_owned());
    (base, key.unwrap_or_default())
}

fn least(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    one.into_iter().chain(other).min()
}

/// HTTP clients, one for all that reach the outside in the same way.
#[derive(Default)]
struct Clients(HashMap<Outgoing, Client>);

impl Clients {
    fn get(&mut self, outgoing: &Outgoing) -> Result<Client, ModelError> {
        if let Some(client) = self.0.get(outgoing) {
            return Ok(client.clone());
        }
        let client = outgoing.build().map_err(|error| {
            let cause = greenroom_outgoing::cause(&error);
            ModelError::InvalidRequest(format!("no HTTP client can be made: {cause}"))
        })?;
        self.0.insert(outgoing.clone(), client.clone());
        Ok(client)
    }
}
