//! An answer while it comes in: bytes, events, items.
//!
//! Invariant: items that came before a fault go out before it; after a finish or a fault nothing comes, and the
//! connection is gone or back in the pool.

use super::{Caller, Failure, Until, retry};
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

/// All bytes of a body: most of an event is not text of the model.
const BODY_BYTES_MAX: usize = 128 * 1024 * 1024;
/// For the end of a body whose answer is over, so that its connection can be used again.
const DRAIN: Duration = Duration::from_millis(20);

pub(crate) struct Answer {
    caller: Arc<Caller>,
    connection: Option<(Response, Slot)>,
    splitter: Splitter,
    decoder: Decoder,
    assembly: Assembly,
    until: Until,
    bytes: usize,
    fault: Option<ModelError>,
}

impl Answer {
    /// Sends the request, again if need be, and waits for the first item.
    pub(crate) async fn begin(
        caller: &Arc<Caller>,
        provider: ProviderKind,
        request: WireRequest,
        until: Until,
        assembly: impl Fn() -> Assembly,
    ) -> Result<Self, ModelError> {
        let body = Bytes::from(request.body.to_string());
        let mut attempt = 0;
        loop {
            let opened = caller.open(&request.url, &body, until).await;
            let begun = match opened {
                Err(error) => Err(error),
                Ok(opened) => {
                    let framing = framing(&opened.response, request.framing);
                    let mut answer = Self {
                        caller: Arc::clone(caller),
                        connection: Some((opened.response, opened.slot)),
                        splitter: Splitter::new(framing),
                        decoder: Decoder::new(provider)?,
                        assembly: assembly(),
                        until,
                        bytes: 0,
                        fault: None,
                    };
                    answer.first().await.map(|()| answer).map_err(Failure::from)
                }
            };
            match begun {
                Err(failure) if attempt < caller.retries() && failure.again => {
                    retry::wait(attempt, failure, until).await?;
                    attempt += 1;
                }
                begun => return begun.map_err(|failure| failure.error),
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
                self.hang_up().await;
                return None;
            }
            self.more().await;
        }
    }

    pub(crate) fn about(&self) -> &Object {
        &self.assembly.about
    }

    async fn first(&mut self) -> Result<(), ModelError> {
        while !self.assembly.has_items() {
            if let Some(fault) = self.fault.take() {
                return Err(fault);
            }
            self.more().await;
        }
        Ok(())
    }

    /// Reads once. A fault ends the connection at once, unless the answer was complete before it.
    async fn more(&mut self) {
        let read = self.read().await;
        if let Err(fault) = read {
            self.connection = None;
            match self.assembly.is_complete() {
                true => self.assembly.finish(),
                false => self.fault = Some(self.caller.clean(fault)),
            }
        }
    }

    async fn read(&mut self) -> Result<(), ModelError> {
        let Some((response, _)) = &mut self.connection else {
            return Err(ModelError::Unavailable("the answer is over".to_owned()));
        };
        let idle = self.caller.idle_timeout();
        let patience = self.until.or_idle(idle);
        let mut events = Vec::new();
        match timeout_at(patience, response.chunk()).await {
            Err(_) => Err(self.until.passed(patience, idle)),
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

    async fn hang_up(&mut self) {
        if let Some((mut response, _)) = self.connection.take() {
            let _ = timeout(DRAIN, response.chunk()).await;
        }
    }
}

/// A server that does not stream answers with one JSON value.
fn framing(response: &Response, asked: Framing) -> Framing {
    let kind = response.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    match kind.is_some_and(|kind| kind.starts_with("application/json")) && asked == Framing::Sse {
        true => Framing::Whole,
        false => asked,
    }
}
