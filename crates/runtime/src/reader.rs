//! Reads what a runner writes and hands it to the router, message by message.
//!
//! Invariant: never waits for a run, a call or a writer.

use crate::connection::Connection;
use crate::wires::Decoder;
use std::sync::Arc;

mod pipe;
mod router;

use router::Router;

/// How much of a message that is too long is looked at.
const HEAD_BYTES: usize = 64 * 1024;

pub(crate) struct Reader {
    connection: Arc<Connection>,
    pub(crate) decoder: Decoder,
    router: Router,
}

impl Reader {
    pub(crate) fn new(connection: Arc<Connection>) -> Self {
        let (decoder, router) = (connection.codec.decoder(), Router::new(connection.clone()));
        Self { connection, decoder, router }
    }

    /// Takes one frame of a transport that has frames of its own.
    pub(crate) fn take_frame(&mut self, frame: &[u8]) {
        if frame.len() > self.connection.limits.configured.line_bytes {
            self.too_long("a message that is too long", &frame[..frame.len().min(HEAD_BYTES)]);
        } else {
            self.take(frame);
        }
        self.router.announce();
    }

    fn take(&mut self, line: &[u8]) {
        let Self { connection, decoder, router } = self;
        decoder.decode(connection, line, &mut |inbound| router.take(inbound));
    }

    fn too_long(&mut self, what: &'static str, head: &[u8]) {
        self.decoder.reset();
        self.router.too_long(what, head);
    }
}
