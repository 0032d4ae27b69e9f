//! A streaming call: its items, then its response.
//!
//! Invariant: reading ends at the run's deadline and with its cancellation; a stream dropped before its end is
//! cancelled at the host.

use crate::RunCtx;
use crate::calls::{self, OpenCall};
use crate::inbox::{End, Inbox, Next};
use greenroom_protocol::AgentAPIError;
use greenroom_protocol::api::Params;
use serde_json::value::RawValue;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

pub(crate) struct Items {
    inbox: Arc<Inbox>,
    interrupted: Pin<Box<dyn Future<Output = AgentAPIError> + Send>>,
    /// Cancels the call when dropped.
    _call: OpenCall,
}

pub(crate) enum Event {
    Item(Box<RawValue>),
    Answer(Box<RawValue>),
    /// The call was cancelled because its items were not read in time.
    Overflowed,
    Failed(AgentAPIError),
}

impl Items {
    /// Sends the call immediately; the caller has waited for room and checked the parameters.
    pub(crate) fn open<P: Params>(ctx: &RunCtx, params: &P) -> Result<Self, AgentAPIError> {
        let (call, inbox) = ctx.open(params)?;
        let ctx = ctx.clone();
        let interrupted = Box::pin(async move { ctx.interrupted(P::METHOD.as_str()).await });
        Ok(Self { inbox, interrupted, _call: call })
    }

    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if let Poll::Ready(error) = self.interrupted.as_mut().poll(cx) {
            return Poll::Ready(Event::Failed(error));
        }
        self.inbox.poll_next(cx).map(|next| match next {
            Next::Item(item) => Event::Item(item),
            Next::End(End::Answered(Ok(answer))) => Event::Answer(answer),
            Next::End(End::Answered(Err(error))) => Event::Failed(calls::api_error(error)),
            Next::End(End::Overflowed) => Event::Overflowed,
            Next::End(End::Closed) => Event::Failed(calls::closed()),
        })
    }
}
