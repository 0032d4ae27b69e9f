//! Upload and download of bytes, streamed: never all of them in memory.

use super::{Client, Error, read, send};
use greenroom_protocol::api::artifacts::ArtifactView;
use reqwest::{Body, Method, Response};

impl Client {
    /// Uploads bytes; without a `mime_type` the host detects it.
    pub async fn upload(
        &self,
        query: &[(&str, String)],
        mime_type: Option<&str>,
        body: Body,
    ) -> Result<ArtifactView, Error> {
        let mut request = self.request(Method::POST, &["v1", "artifacts"])?.query(query).body(body);
        if let Some(mime_type) = mime_type {
            request = request.header("content-type", mime_type);
        }
        read(send(request).await?).await
    }

    /// The bytes of an artifact, from the beginning.
    pub async fn download(&self, artifact_id: &str) -> Result<Download, Error> {
        let request = self.request(Method::GET, &["v1", "artifacts", artifact_id])?;
        Ok(Download(send(request).await?))
    }
}

pub struct Download(Response);

impl Download {
    /// The SHA-256 of the bytes, from the host.
    pub fn sha256(&self) -> Option<&str> {
        self.0.headers().get("etag")?.to_str().ok().map(|tag| tag.trim_matches('"'))
    }

    /// The next chunk; `None` at the end. Long silence counts as a lost connection.
    pub async fn piece(&mut self) -> Result<Option<impl AsRef<[u8]> + use<>>, Error> {
        self.0.chunk().await.map_err(|error| Error::Lost(error.without_url()))
    }
}
