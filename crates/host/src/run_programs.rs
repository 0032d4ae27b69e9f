//! Calls that programs of a run make over HTTP with its run token: clients of MCP and of models (decision 029).
//!
//! Invariant: every call passes the proxy like one on the runner's wire, with the identity of the connection that
//! has the run. A token is valid for its attempt only: while that runs, and for nothing else.

use crate::host::{Host, Shared};
use crate::live::{LiveRun, Rights};
use crate::proxy::{self, area_name, refuse};
use crate::resources::granted_resources;
use greenroom_models::{Kind, Model};
use greenroom_protocol::api::Method;
use greenroom_protocol::{AgentAPIError, AgentResources, ErrorCode};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Items of a stream that wait for a slow client; then the provider is not read.
const ITEMS_WAITING_MAX: usize = 64;

/// The items of a streaming call.
pub type Items = mpsc::Receiver<Box<RawValue>>;

/// A call in progress; dropping it cancels the call.
pub type Answering =
    Pin<Box<dyn Future<Output = Result<Box<RawValue>, AgentAPIError>> + Send + 'static>>;

/// A program that has shown the token of an active run.
#[derive(Clone)]
pub struct RunProgram {
    shared: Arc<Shared>,
    live: Arc<LiveRun>,
    run_id: Arc<str>,
}

impl Host {
    /// The run of a run token, while its attempt is active; none if the token is another run's.
    pub fn run_program(&self, run_id: &str, token: &str) -> Option<RunProgram> {
        let (owner, attempt) = self.run_by_token(token)?;
        let live = self.shared.live.get(&owner).filter(|_| owner == run_id)?;
        live.rights().filter(|rights| rights.attempt == attempt)?;
        Some(RunProgram { shared: Arc::clone(&self.shared), live, run_id: owner.into() })
    }
}

impl RunProgram {
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Whether the grant covers a method.
    pub fn is_granted(&self, method: Method) -> bool {
        self.rights().is_some_and(|rights| {
            proxy::table::row(proxy::table::ProxyMethod::Api(method)).needs.granted(&rights.grant)
        })
    }

    /// The granted models for chat, in the order of the binding.
    pub fn chat_models(&self) -> Vec<Arc<Model>> {
        let Some(rights) = self.rights() else { return Vec::new() };
        let models = rights.grant.models.names.iter();
        let models = models.filter_map(|name| rights.resources.models.get(name));
        models.filter(|model| model.settings().kind == Kind::Chat).collect()
    }

    /// The granted resources, as `ctx.resources` has them.
    pub fn resources(&self) -> AgentResources {
        let rights = self.rights();
        rights.map(|it| granted_resources(&it.grant, &it.resources)).unwrap_or_default()
    }

    /// What the methods with scopes accept.
    pub fn scopes(&self) -> Scopes {
        let Some(rights) = self.rights() else { return Scopes::default() };
        let (grant, identity) = (&rights.grant, &rights.identity);
        let state = grant.state.iter().filter(|scope| identity.state_owner(**scope).is_some());
        Scopes {
            state: state.map(|scope| scope.as_str().to_owned()).collect(),
            storage: grant.storage.iter().map(|area| area_name(*area).to_owned()).collect(),
            actions: grant.actions.keys().cloned().collect(),
            knowledge: grant.knowledge.names.iter().cloned().collect(),
        }
    }

    /// Makes a call for the run. Dropping the future cancels it.
    pub async fn call(
        &self,
        method: Method,
        params: &impl Serialize,
    ) -> Result<Box<RawValue>, AgentAPIError> {
        // Nothing reads the items: a method that streams ends as if its caller were gone.
        let (sender, _) = mpsc::channel(1);
        self.serve(method, params, sender).await
    }

    /// The same; the items of a stream arrive before the answer. The receiver must be read.
    pub fn stream<P: Serialize + Send + Sync + 'static>(
        &self,
        method: Method,
        params: P,
    ) -> (Items, Answering) {
        let (sender, items) = mpsc::channel(ITEMS_WAITING_MAX);
        let program = self.clone();
        (items, Box::pin(async move { program.serve(method, &params, sender).await }))
    }

    async fn serve(
        &self,
        method: Method,
        params: &impl Serialize,
        items: mpsc::Sender<Box<RawValue>>,
    ) -> Result<Box<RawValue>, AgentAPIError> {
        let Ok(_turn) = self.live.program_calls.try_acquire() else {
            let message = "too many calls of this run's programs are in progress";
            return Err(refuse(ErrorCode::RateLimited, message).retryable());
        };
        let params = to_raw_value(params)
            .map_err(|error| refuse(ErrorCode::InvalidArgument, error.to_string()))?;
        let over = || refuse(ErrorCode::Unauthorized, "the run is over");
        let seat = self.live.seat().await.ok_or_else(over)?;
        proxy::serve(&self.shared, seat.call(&self.run_id, method.as_str(), params, items)).await
    }

    /// Resolves when the run has ended.
    pub async fn ended(&self) {
        self.live.wait_for_end().await;
    }

    fn rights(&self) -> Option<&Rights> {
        self.live.rights()
    }
}

/// What the methods with scopes accept for this run, by name.
#[derive(Debug, Clone, Default)]
pub struct Scopes {
    pub state: Vec<String>,
    pub storage: Vec<String>,
    pub actions: Vec<String>,
    pub knowledge: Vec<String>,
}
