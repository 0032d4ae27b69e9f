//! How a connection writes down what it has to say: the native wire, or LangBot's.
//!
//! Invariant: what is said and what it means is the same on every wire; only its spelling differs, and a frame
//! comes out of here whole, to be written without anything in between.

pub(crate) mod langbot;
pub(crate) mod native;

use crate::connection::Connection;
use crate::proxy::NotTaken;
use crate::spec::Wire;
use bytes::Bytes;
use greenroom_protocol::{AgentAPIError, AgentRunRequest};
use langbot::Session;
use serde::Serialize;
use serde_json::value::RawValue;

/// The spelling of one connection.
#[derive(Debug)]
pub(crate) enum Codec {
    Native,
    Langbot(Box<Session>),
}

impl Codec {
    pub(crate) fn wire(&self) -> Wire {
        match self {
            Codec::Native => Wire::Native,
            Codec::Langbot(_) => Wire::Langbot,
        }
    }

    /// A request of ours, under its number.
    pub(crate) fn request(&self, number: i64, method: &str, params: &impl Serialize) -> Bytes {
        match self {
            Codec::Native => native::request(number, method, params),
            Codec::Langbot(_) => langbot::frames::request(number, method, params),
        }
    }

    /// The request that starts a run.
    pub(crate) fn run(&self, number: i64, request: &AgentRunRequest) -> Bytes {
        match self {
            Codec::Native => native::run(number, request),
            Codec::Langbot(session) => session.run(number, request),
        }
    }

    /// The answer to a call of the runner's, which it knows by this id.
    pub(crate) fn answer(&self, id: &str, answer: Result<Box<RawValue>, AgentAPIError>) -> Bytes {
        match self {
            Codec::Native => native::answer(id, answer),
            Codec::Langbot(_) => langbot::frames::answer(id, answer),
        }
    }

    /// How many runs the other side takes at once; further ones wait here.
    pub(crate) fn window(&self) -> usize {
        match self {
            Codec::Native => usize::MAX,
            Codec::Langbot(_) => langbot::WINDOW,
        }
    }

    /// One item of a streaming call, to whoever made it.
    pub(crate) async fn send_item(
        &self,
        connection: &Connection,
        request_id: &str,
        item: &RawValue,
    ) -> Result<(), NotTaken> {
        connection.outbox.room_for_items().await;
        let frame = match self {
            Codec::Native => Some(native::item(request_id, item)),
            Codec::Langbot(session) => session.item(request_id, item).await,
        };
        frame.map_or(Ok(()), |frame| connection.outbox.push(frame).map_err(|_| NotTaken))
    }
}
