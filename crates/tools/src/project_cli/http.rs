//! Records over the host's API, for a child with its credential.
//!
//! Invariant: the credential is sent only in one header of these requests.

use super::records::{Module, Put, RecordWithLinks, Records, RecordsError};
use greenroom_outgoing::{Outgoing, cause};
use greenroom_protocol::AgentAPIError;
use greenroom_protocol::records::{
    RecordLink as Link, RecordLinkStatus as LinkStatus, RecordOp as Op, RecordView as Record,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(20);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The actor, for an administrator on the command line.
const ACTOR_HEADER: &str = "x-greenroom-actor";
const SOURCE_HEADER: &str = "x-greenroom-source";
const TOKEN_HEADER: &str = "x-greenroom-token";

pub struct HttpRecords {
    client: reqwest::Client,
    url: reqwest::Url,
    credential: String,
    on_behalf: Option<OnBehalf>,
}

/// For an administrator on the command line: whose records, in which workspace. A credential implies both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnBehalf {
    pub actor: String,
    /// The source whose actor it is; the host's default if absent.
    pub source: Option<String>,
    /// The token whose actor it is, if that token has actors of its own.
    pub token: Option<String>,
    pub workspace: Option<String>,
}

#[derive(Deserialize)]
struct Refusal {
    error: AgentAPIError,
}

#[derive(Deserialize)]
struct Listed {
    items: Vec<Record>,
}

#[derive(Deserialize)]
struct Written {
    record: Record,
}

#[derive(Deserialize)]
struct Deleted {
    deleted: bool,
}

#[derive(Deserialize)]
struct Shared {
    links: Vec<Link>,
}

#[derive(Deserialize)]
struct Answered {
    link: Option<Link>,
}

impl HttpRecords {
    /// Records behind the host at `url`, e.g. `http://127.0.0.1:8700`.
    pub fn new(
        url: &str,
        credential: String,
        on_behalf: Option<OnBehalf>,
    ) -> Result<Self, RecordsError> {
        // The configured address of the host, loopback included.
        let outgoing = Outgoing {
            allow_private: true,
            timeout: Some(TIMEOUT),
            connect_timeout: Some(CONNECT_TIMEOUT),
            keep_idle: 1,
            ..Outgoing::default()
        };
        let mut url = outgoing
            .check(&format!("{}/v1/tool-runtime/records", url.trim_end_matches('/')))
            .map_err(|error| RecordsError::Unreachable(error.to_string()))?;
        let client = outgoing.build().map_err(unreachable)?;
        if let Some(workspace) = on_behalf.as_ref().and_then(|on| on.workspace.as_ref()) {
            url.query_pairs_mut().append_pair("workspace_id", workspace);
        }
        Ok(Self { client, url, credential, on_behalf })
    }

    /// With a client that knows the host's certificate.
    pub fn by(self, client: reqwest::Client) -> Self {
        Self { client, ..self }
    }

    async fn send<T: DeserializeOwned>(&self, op: &Op) -> Result<T, RecordsError> {
        let mut request = self.client.post(self.url.clone()).bearer_auth(&self.credential).json(op);
        if let Some(OnBehalf { actor, source, token, .. }) = &self.on_behalf {
            let named = [(SOURCE_HEADER, source), (TOKEN_HEADER, token)];
            let named = named.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
            for (name, value) in named.chain([(ACTOR_HEADER, actor)]) {
                request = request.header(name, value.as_bytes());
            }
        }
        let response = request.send().await.map_err(unreachable)?;
        if response.status().is_success() {
            return response.json().await.map_err(|_| RecordsError::Strange);
        }
        match response.json::<Refusal>().await {
            Ok(refusal) => Err(RecordsError::Refused(refusal.error)),
            Err(_) => Err(RecordsError::Strange),
        }
    }
}

fn unreachable(error: reqwest::Error) -> RecordsError {
    RecordsError::Unreachable(cause(&error))
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
        let module = module.as_str().to_owned();
        let op = Op::List { module, from, to, limit: Some(limit), cursor: None };
        let listed: Listed = self.send(&op).await?;
        Ok(listed.items)
    }

    async fn get(&self, module: Module, id: &str) -> Result<RecordWithLinks, RecordsError> {
        self.send(&Op::Get { module: module.as_str().to_owned(), id: id.to_owned() }).await
    }

    async fn put(&self, module: Module, put: Put) -> Result<Record, RecordsError> {
        let Put { id, if_version, starts_at, ends_at, body } = put;
        let module = module.as_str().to_owned();
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
        let module = module.as_str().to_owned();
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
        let op = Op::Share { module: module.as_str().to_owned(), id: id.to_owned(), with };
        let shared: Shared = self.send(&op).await?;
        Ok(shared.links)
    }

    async fn answer(
        &self,
        module: Module,
        id: &str,
        status: LinkStatus,
    ) -> Result<Option<Link>, RecordsError> {
        let op = Op::Answer { module: module.as_str().to_owned(), id: id.to_owned(), status };
        let answered: Answered = self.send(&op).await?;
        Ok(answered.link)
    }
}
