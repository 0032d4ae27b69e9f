//! Records over the host's API, as a child reaches them with its credential.
//!
//! Invariant: the credential stands in one header of these requests and nowhere else.

use super::records::{
    Answered, Deleted, Found, Link, LinkStatus, Listed, Module, Op, Put, Record, Records,
    RecordsError, Shared, Written,
};
use greenroom_outgoing::{Outgoing, cause};
use greenroom_protocol::AgentAPIError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Names the actor when an administrator works by hand.
const ACTOR_HEADER: &str = "x-greenroom-actor";

pub struct HttpRecords {
    /// Of the host, e.g. `http://127.0.0.1:8700`.
    pub url: String,
    pub credential: String,
    /// For an administrator by hand: whose records, in which workspace. A credential knows both.
    pub on_behalf: Option<OnBehalf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnBehalf {
    pub actor: String,
    pub workspace: Option<String>,
}

#[derive(Deserialize)]
struct Refusal {
    error: AgentAPIError,
}

impl HttpRecords {
    async fn send<T: DeserializeOwned>(&self, op: &Op) -> Result<T, RecordsError> {
        // The host is where we were told it is, loopback included.
        let outgoing = Outgoing {
            allow_private: true,
            timeout: Some(TIMEOUT),
            connect_timeout: Some(CONNECT_TIMEOUT),
            ..Outgoing::default()
        };
        let unreachable = |message: String| RecordsError::Unreachable(message);
        let mut url = outgoing
            .check(&format!("{}/v1/tool-runtime/records", self.url.trim_end_matches('/')))
            .map_err(|error| unreachable(error.to_string()))?;
        let client = outgoing.build().map_err(|error| unreachable(cause(&error)))?;
        if let Some(workspace) = self.on_behalf.as_ref().and_then(|on| on.workspace.as_ref()) {
            url.query_pairs_mut().append_pair("workspace_id", workspace);
        }
        let mut request = client.post(url).bearer_auth(&self.credential).json(op);
        if let Some(on_behalf) = &self.on_behalf {
            request = request.header(ACTOR_HEADER, on_behalf.actor.as_bytes());
        }
        let response = request.send().await.map_err(|error| unreachable(cause(&error)))?;
        if response.status().is_success() {
            return response.json().await.map_err(|_| RecordsError::Strange);
        }
        match response.json::<Refusal>().await {
            Ok(refusal) => Err(RecordsError::Refused(refusal.error)),
            Err(_) => Err(RecordsError::Strange),
        }
    }
}

impl std::fmt::Debug for HttpRecords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HttpRecords({})", self.url)
    }
}

#[async_trait::async_trait]
impl Records for HttpRecords {
    async fn list(
        &self,
        module: Module,
        span: Option<(i64, i64)>,
        limit: u32,
    ) -> Result<Vec<Record>, RecordsError> {
        let (from, to) = span.unzip();
        let listed: Listed = self.send(&Op::List { module, from, to, limit }).await?;
        Ok(listed.items)
    }

    async fn get(&self, module: Module, id: &str) -> Result<Found, RecordsError> {
        self.send(&Op::Get { module, id: id.to_owned() }).await
    }

    async fn put(&self, module: Module, put: Put) -> Result<Record, RecordsError> {
        let Put { id, if_version, starts_at, ends_at, body } = put;
        let op = Op::Put { module, id, if_version, starts_at, ends_at, body };
        let written: Written = self.send(&op).await?;
        Ok(written.record)
    }

    async fn delete(
        &self,
        module: Module,
        id: &str,
        if_version: Option<i64>,
    ) -> Result<bool, RecordsError> {
        let op = Op::Delete { module, id: id.to_owned(), if_version };
        let deleted: Deleted = self.send(&op).await?;
        Ok(deleted.deleted)
    }

    async fn share(
        &self,
        module: Module,
        id: &str,
        with: Vec<String>,
    ) -> Result<Vec<Link>, RecordsError> {
        let shared: Shared = self.send(&Op::Share { module, id: id.to_owned(), with }).await?;
        Ok(shared.links)
    }

    async fn answer(
        &self,
        module: Module,
        id: &str,
        status: LinkStatus,
    ) -> Result<Option<Link>, RecordsError> {
        let answered: Answered =
            self.send(&Op::Answer { module, id: id.to_owned(), status }).await?;
        Ok(answered.link)
    }
}
