//! Our side of the protocol: what a server may tell us, and what it may not ask of us.
//!
//! Invariant: a server gets nothing from us but calls. Sampling, elicitation and roots are not offered, and asking
//! for them is answered with an error.

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationCreateRequestMethod, ErrorData, Implementation, ListRootsRequestMethod,
    ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::{Mutex, Notify};

/// How far a call is, as the server says.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    pub progress: f64,
    pub total: Option<f64>,
    pub message: Option<String>,
}

/// Whom to tell of progress; must not wait.
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// Who wants to hear of the progress of which call.
#[derive(Default)]
pub(super) struct Sinks(Mutex<HashMap<ProgressToken, Sink>>);

struct Sink {
    last: f64,
    tell: OnProgress,
}

impl Sinks {
    /// Held while a call is sent, so that its first progress finds whom to tell.
    pub(super) async fn register<E>(
        &self,
        tell: OnProgress,
        send: impl Future<Output = Result<(ProgressToken, E), rmcp::ServiceError>>,
    ) -> Result<(ProgressToken, E), rmcp::ServiceError> {
        let mut sinks = self.0.lock().await;
        let (token, sent) = send.await?;
        sinks.insert(token.clone(), Sink { last: f64::NEG_INFINITY, tell });
        Ok((token, sent))
    }

    pub(super) async fn forget(&self, token: &ProgressToken) {
        self.0.lock().await.remove(token);
    }

    /// Progress only ever increases; what comes late tells nothing.
    async fn tell(&self, params: ProgressNotificationParam) {
        let mut sinks = self.0.lock().await;
        let Some(sink) = sinks.get_mut(&params.progress_token) else { return };
        if params.progress > sink.last {
            sink.last = params.progress;
            let ProgressNotificationParam { progress, total, message, .. } = params;
            (sink.tell)(Progress { progress, total, message });
        }
    }
}

/// What listens to one connection.
#[derive(Clone, Default)]
pub(super) struct Handler {
    pub(super) sinks: Arc<Sinks>,
    /// Rung when the server says that its tools have changed.
    pub(super) changed: Arc<Notify>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("greenroom", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), own)
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        self.sinks.tell(params).await;
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
        _request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Err(ErrorData::method_not_found::<ElicitationCreateRequestMethod>())
    }
}
