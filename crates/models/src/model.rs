//! One configured model, and all of them.
//!
//! Invariant: models with the same URL and key share their limits; a stream ends with exactly one finish or one
//! error.

use crate::assembly::Assembly;
use crate::client::{self, ProviderClient, ResponseStream};
use crate::limits::Limits;
use crate::scripted::{self, Script};
use crate::wires::{self, PreparedRequest};
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

#[derive(Debug)]
pub struct Model {
    settings: ModelSettings,
    backend: Backend,
}

#[derive(Debug)]
enum Backend {
    Network(Arc<ProviderClient>),
    Scripted(Arc<Script>),
}

impl Model {
    /// A model with limits of its own; `Models` shares limits between models.
    pub fn new(settings: ModelSettings) -> Result<Self, ModelError> {
        let limits = Limits::new(settings.max_concurrent, settings.requests_per_minute);
        Self::build(settings, Arc::new(limits), &mut Clients::default())
    }

    fn build(
        settings: ModelSettings,
        limits: Arc<Limits>,
        clients: &mut Clients,
    ) -> Result<Self, ModelError> {
        let backend = match settings.provider {
            ProviderKind::Scripted => Backend::Scripted(Arc::new(script(&settings)?)),
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
                Backend::Network(Arc::new(ProviderClient::new(&settings, client, limits)?))
            }
        };
        Ok(Self { settings, backend })
    }

    pub fn settings(&self) -> &ModelSettings {
        &self.settings
    }

    /// Scheme, host and port of its provider, without anything that may contain a key; `None` if scripted.
    pub fn address(&self) -> Option<String> {
        if self.script().is_some() {
            return None;
        }
        let base = presets::base_url(&self.settings).ok()?;
        Some(reqwest::Url::parse(&base).ok()?.origin().ascii_serialization())
    }

    /// Sends a request and waits for the first item.
    pub async fn stream(
        &self,
        request: ModelRequest,
        deadline: Instant,
    ) -> Result<ModelStream, ModelError> {
        let source = match &self.backend {
            Backend::Scripted(script) => {
                let until = deadline.min(Instant::now() + self.settings.timeout);
                let idle = self.settings.idle_timeout;
                let items = scripted::stream(Arc::clone(script), request, idle).boxed();
                Source::Scripted(Some(items), until)
            }
            Backend::Network(provider_client) => {
                let until = provider_client.call_deadline(deadline);
                let prepared = PreparedRequest::new(&self.settings, &request)?;
                let wire = wires::request(&prepared)?;
                let names = prepared.names;
                let assembly = || Assembly::new(&request, names.clone(), seed());
                let provider = self.settings.provider;
                let stream =
                    ResponseStream::open(provider_client, provider, wire, until, assembly).await?;
                Source::Network(Box::new(stream))
            }
        };
        Ok(ModelStream { source, model: self.settings.name.clone() })
    }

    /// The complete response: the folded stream.
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

    /// For requests other than chat; an error for scripted models.
    pub(crate) fn provider_client(&self) -> Result<&ProviderClient, ModelError> {
        match &self.backend {
            Backend::Network(provider_client) => Ok(provider_client),
            Backend::Scripted(_) => Err(ModelError::Unsupported("network")),
        }
    }

    pub(crate) fn script(&self) -> Option<&Script> {
        match &self.backend {
            Backend::Scripted(script) => Some(script),
            Backend::Network(_) => None,
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

/// A random prefix of generated ids.
fn seed() -> String {
    let mut bytes = [0; 6];
    match getrandom::fill(&mut bytes) {
        Ok(()) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Err(_) => String::new(),
    }
}

/// The items of one response. Dropping it cancels the request.
pub struct ModelStream {
    source: Source,
    model: String,
}

enum Source {
    Network(Box<ResponseStream>),
    /// `None` after its end.
    Scripted(Option<BoxStream<'static, Result<ModelStreamItem, ModelError>>>, Instant),
}

impl ModelStream {
    /// The next item; `None` after a finish or an error.
    pub async fn next(&mut self) -> Option<Result<ModelStreamItem, ModelError>> {
        match &mut self.source {
            Source::Network(stream) => stream.next().await,
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

    /// Metadata for `Fold::finish`: `model`, and the provider's names of model, response and finish reason. Complete
    /// after the last item.
    pub fn metadata(&self) -> Object {
        let mut metadata = match &self.source {
            Source::Network(stream) => stream.metadata().clone(),
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
    /// In configured order.
    order: Vec<String>,
}

impl Models {
    pub fn new(all: Vec<ModelSettings>) -> Result<Self, ModelError> {
        let mut strictest: HashMap<(String, String), (Option<u32>, Option<u32>)> = HashMap::new();
        for settings in &all {
            let (concurrent, rate) = strictest.entry(key(settings)).or_default();
            *concurrent = smaller(*concurrent, settings.max_concurrent);
            *rate = smaller(*rate, settings.requests_per_minute);
        }
        let limits: HashMap<_, _> = strictest
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

    /// In configured order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.order.iter().map(String::as_str)
    }
}

/// What a provider applies its limits to.
fn key(settings: &ModelSettings) -> (String, String) {
    let base = presets::base_url(settings).unwrap_or_else(|_| settings.name.clone());
    let base = base.split('?').next().unwrap_or_default().to_owned();
    let key = settings.api_key.as_ref().map(|key| key.expose().to_owned());
    (base, key.unwrap_or_default())
}

fn smaller(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    one.into_iter().chain(other).min()
}

/// HTTP clients by connection settings.
#[derive(Default)]
struct Clients(HashMap<Outgoing, Client>);

impl Clients {
    fn get(&mut self, outgoing: &Outgoing) -> Result<Client, ModelError> {
        if let Some(client) = self.0.get(outgoing) {
            return Ok(client.clone());
        }
        let client = outgoing.build().map_err(|error| {
            let cause = greenroom_outgoing::cause(&error);
            ModelError::InvalidRequest(format!("cannot create an HTTP client: {cause}"))
        })?;
        self.0.insert(outgoing.clone(), client.clone());
        Ok(client)
    }
}
