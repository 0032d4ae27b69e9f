//! A response while it is received: bytes, events, items.
//!
//! Invariant: items received before a fault are emitted before it; nothing follows a finish or a fault, and the
//! connection is then closed or back in the pool.

use super::{CallDeadline, Failure, ProviderClient, retry};
use crate::assembly::Assembly;
use crate::limits::Slot;
use crate::sse::{Framing, Splitter};
use crate::wires::{Decoder, Flow, WireRequest};
use crate::{ModelError, ProviderKind};
use bytes::Bytes;
use greenroom_outgoing::cause;
use greenroom_protocol::Object;
use greenroom_protocol::api::models::ModelStreamItem;
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{timeout, timeout_at};

/// Limit for a body: most bytes of an event are not model text.
const BODY_BYTES_MAX: usize = 128 * 1024 * 1024;
/// How long to wait for the end of a body, so that its connection can be reused.
const DRAIN: Duration = Duration::from_millis(20);

pub(crate) struct ResponseStream {
    provider_client: Arc<ProviderClient>,
    connection: Option<(Response, Slot)>,
    splitter: Splitter,
    decoder: Decoder,
    assembly: Assembly,
    until: CallDeadline,
    bytes: usize,
    fault: Option<ModelError>,
}

impl ResponseStream {
    /// Sends the request, with retries, and waits for the first item.
    pub(crate) async fn open(
        provider_client: &Arc<ProviderClient>,
        provider: ProviderKind,
        request: WireRequest,
        until: CallDeadline,
        assembly: impl Fn() -> Assembly,
    ) -> Result<Self, ModelError> {
        let body = Bytes::from(request.body.to_string());
        let mut attempt = 0;
        loop {
            let opened = provider_client.open(&request.url, &body, until).await;
            let stream = match opened {
                Err(error) => Err(error),
                Ok(opened) => {
                    let framing = framing(&opened.response, request.framing);
                    let mut stream = Self {
                        provider_client: Arc::clone(provider_client),
                        connection: Some((opened.response, opened.slot)),
                        splitter: Splitter::new(framing),
                        decoder: Decoder::new(provider)?,
                        assembly: assembly(),
                        until,
                        bytes: 0,
                        fault: None,
                    };
                    stream.wait_for_item().await.map(|()| stream).map_err(Failure::from)
                }
            };
            match stream {
                Err(failure) if attempt < provider_client.retries() && failure.retryable => {
                    retry::wait(attempt, failure, until).await?;
                    attempt += 1;
                }
                stream => return stream.map_err(|failure| failure.error),
            }
        }
    }

    pub(crate) async fn next(&mut self) -> Option<Result<ModelStreamItem, ModelError>> {
        loop {
            if let Some(item) = self.assembly.pop() {
                return Some(Ok(item));
            }
            if let Some(fault) = self.fault.take() {
                return Some(Err(fault));
            }
            self.connection.as_ref()?;
            if self.assembly.is_finished() {
                self.drain().await;
                return None;
            }
            self.read_more().await;
        }
    }

    pub(crate) fn metadata(&self) -> &Object {
        &self.assembly.metadata
    }

    async fn wait_for_item(&mut self) -> Result<(), ModelError> {
        while !self.assembly.has_items() {
            if let Some(fault) = self.fault.take() {
                return Err(fault);
            }
            self.read_more().await;
        }
        Ok(())
    }

    /// Reads once. A fault closes the connection, unless the response was already complete.
    async fn read_more(&mut self) {
        let result = self.read().await;
        if let Err(fault) = result {
            self.connection = None;
            match self.assembly.is_complete() {
                true => self.assembly.finish(),
                false => self.fault = Some(self.provider_client.redact(fault)),
            }
        }
    }

    async fn read(&mut self) -> Result<(), ModelError> {
        let Some((response, _)) = &mut self.connection else {
            return Err(ModelError::Unavailable("the response has ended".to_owned()));
        };
        let idle = self.provider_client.idle_timeout();
        let wait_until = self.until.or_idle(idle);
        let mut events = Vec::new();
        match timeout_at(wait_until, response.chunk()).await {
            Err(_) => Err(self.until.timeout_error(wait_until, idle)),
            Ok(Err(error)) => Err(ModelError::Unavailable(cause(&error))),
            Ok(Ok(Some(bytes))) => {
                self.bytes += bytes.len();
                if self.bytes > BODY_BYTES_MAX {
                    return Err(ModelError::TooLarge(BODY_BYTES_MAX));
                }
                let split = self.splitter.push(&bytes, &mut events);
                self.decode(&events)?;
                split
            }
            Ok(Ok(None)) => {
                let split = self.splitter.finish(&mut events);
                self.decode(&events)?;
                split?;
                self.decoder.end(&mut self.assembly)
            }
        }
    }

    fn decode(&mut self, events: &[String]) -> Result<(), ModelError> {
        for event in events {
            if self.decoder.event(event, &mut self.assembly)? == Flow::Over {
                break;
            }
        }
        Ok(())
    }

    async fn drain(&mut self) {
        if let Some((mut response, _)) = self.connection.take() {
            let _ = timeout(DRAIN, response.chunk()).await;
        }
    }
}

/// A server that does not stream responds with one JSON value.
fn framing(response: &Response, requested: Framing) -> Framing {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    match kind.is_some_and(|kind| kind.starts_with("application/json")) && requested == Framing::Sse
    {
        true => Framing::Whole,
        false => requested,
    }
}
