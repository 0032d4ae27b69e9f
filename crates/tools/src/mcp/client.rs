//! Our side of the protocol: the notifications and questions that we handle, and the requests that we refuse.
//!
//! Invariant: a server gets nothing from us but calls, and answers that the user gave. Sampling and roots are not
//! offered; requests for them are answered with an error.

use super::questions::Askers;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationCapability,
    ErrorData, FormElicitationCapability, Implementation, ListRootsRequestMethod,
    ProgressNotificationParam, ProgressToken, ProtocolVersion, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{Mutex, Notify};

/// The progress of a call, as reported by the server.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// Receives progress; must not block.
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// The receivers of progress, by call.
#[derive(Default)]
pub(super) struct Sinks(Mutex<HashMap<ProgressToken, Sink>>);

struct Sink {
    last: f64,
    notify: OnProgress,
}

impl Sinks {
    /// Locked while a call is sent, so that its first progress finds its receiver.
    pub(super) async fn register<E>(
        &self,
        notify: OnProgress,
        send: impl Future<Output = Result<(ProgressToken, E), rmcp::ServiceError>>,
    ) -> Result<(ProgressToken, E), rmcp::ServiceError> {
        let mut sinks = self.0.lock().await;
        let (token, sent) = send.await?;
        sinks.insert(token.clone(), Sink { last: f64::NEG_INFINITY, notify });
        Ok((token, sent))
    }

    pub(super) async fn forget(&self, token: &ProgressToken) {
        self.0.lock().await.remove(token);
    }

    /// Progress only increases; late notifications are ignored.
    async fn notify(&self, params: ProgressNotificationParam) {
        let mut sinks = self.0.lock().await;
        let Some(sink) = sinks.get_mut(&params.progress_token) else { return };
        if params.progress > sink.last {
            sink.last = params.progress;
            let ProgressNotificationParam { progress, total, message, .. } = params;
            (sink.notify)(Progress { progress, total, message });
        }
    }
}

/// Handles notifications of one connection.
#[derive(Clone, Default)]
pub(super) struct Handler {
    pub(super) sinks: Arc<Sinks>,
    /// Notified when the server reports that its tools have changed.
    pub(super) changed: Arc<Notify>,
    /// The calls that may ask the user.
    pub(super) askers: Askers,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("greenroom", env!("CARGO_PKG_VERSION"));
        let elicitation = ElicitationCapability::new()
            .with_form(FormElicitationCapability::default())
            .with_url(UrlElicitationCapability::default());
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(elicitation);
        let mut config = ClientConfig::new(capabilities, own);
        // The version of `initialize`; newer ones have no such handshake.
        config.protocol_version = ProtocolVersion::LATEST_WITH_INITIALIZE;
        config
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.sinks.notify(params).await;
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }

    #[expect(deprecated, reason = "servers may still ask, and are answered with an error")]
    async fn list_roots(
        &self,
        _context: RequestContext<RoleClient>,
    ) -> Result<rmcp::model::ListRootsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListRootsRequestMethod>())
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        self.askers.find()?.ask(request).await
    }
}
