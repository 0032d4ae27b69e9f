//! Runners on other machines, over any transport that carries one JSON message per frame.
//!
//! Invariant: a name has one connection at a time; a second is refused while the first lives.

use crate::connection::{Connection, Parts};
use crate::handshake;
use crate::outbox::Outbox;
use crate::reader::Reader;
use crate::registry::Phase;
use crate::run::RunEnd;
use crate::runtime::Shared;
use crate::wires::Codec;
use bytes::Bytes;
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use std::fmt::Display;
use std::sync::Arc;
use std::time::SystemTime;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    #[error("there is no remote runner `{0}` in the configuration")]
    Unknown(String),
    #[error("runner `{0}` is connected already")]
    Connected(String),
    #[error("runner `{name}` {reason}")]
    Refused { name: String, reason: String },
}

/// Serves a connection until it ends.
pub(crate) async fn attach<T, R, W>(
    shared: &Arc<Shared>,
    name: &str,
    transport: T,
) -> Result<(), AttachError>
where
    T: Stream<Item = Result<Bytes, R>> + Sink<Bytes, Error = W> + Send,
    R: Display + Send,
    W: Display + Send,
{
    let (generation, pin, stop) = claim(shared, name)?;
    let limits = shared.settings.limits.clone();
    let parts = Parts {
        id: shared.next_connection(),
        runner: name.into(),
        isolation: "remote".into(),
        limits: limits.clone(),
        cleaner: shared.settings.cleaner.clone(),
        proxy: shared.proxy.clone(),
        tasks: shared.tasks.clone(),
        codec: Codec::Native,
    };
    let connection = Connection::new(parts, Outbox::new(limits.queue_bytes_max, None));
    let _release = Release { shared: shared.clone(), connection: connection.clone(), generation };
    let (mut sink, mut stream) = transport.split();
    let reading = {
        let mut reader = Reader::new(connection.clone());
        async move {
            while let Some(frame) = stream.next().await {
                match frame {
                    Ok(frame) => reader.take_frame(&frame),
                    Err(error) => return format!("lost its connection: {error}"),
                }
                tokio::task::coop::consume_budget().await;
            }
            "closed its connection".to_owned()
        }
    };
    let writing = {
        let connection = connection.clone();
        async move {
            while let Some(frame) = connection.outbox.next().await {
                if let Err(error) = sink.send(frame).await {
                    return format!("lost its connection: {error}");
                }
            }
            // The peer may be gone already.
            let _ = sink.close().await;
            "was disconnected".to_owned()
        }
    };
    let serving = async {
        handshake::admit(shared, &connection, generation, pin.as_deref()).await?;
        tracing::info!(
            runner = name,
            plugin = connection.plugin.get().map(|plugin| &**plugin),
            "the runner has connected"
        );
        until_idle(shared, &connection, generation, &stop).await;
        Ok::<(), String>(())
    };
    let (reason, result) = tokio::select! {
        reason = reading => (reason, Ok(())),
        reason = writing => (reason, Ok(())),
        result = serving => match result {
            Err(reason) => (reason.clone(), Err(AttachError::Refused { name: name.to_owned(), reason })),
            Ok(()) => ("was disconnected".to_owned(), Ok(())),
        },
    };
    tracing::info!(runner = name, "the runner {reason}");
    connection.close(reason);
    result
}

/// Serves until the connection drains or the runner is removed, and its runs have ended.
async fn until_idle(
    shared: &Shared,
    connection: &Arc<Connection>,
    generation: u64,
    stop: &CancellationToken,
) {
    tokio::select! {
        () = connection.not_serving() => {}
        () = stop.cancelled() => {}
    }
    connection.replace("is stopping".to_owned());
    release(shared, connection, generation);
    let mut live = connection.live();
    let drained = timeout(shared.settings.limits.drain_max, live.wait_for(|live| *live == 0)).await;
    if drained.is_err() {
        let message = connection.says("was disconnected before the run had ended");
        connection.fail(None, &RunEnd::Crashed { message });
    }
}

fn claim(
    shared: &Shared,
    name: &str,
) -> Result<(u64, Option<String>, CancellationToken), AttachError> {
    shared.registry.change(|entries| {
        let entry = entries.by_name.get_mut(name).filter(|entry| entry.spec.command.is_empty());
        let entry = entry.ok_or_else(|| AttachError::Unknown(name.to_owned()))?;
        if entry.phase != Phase::Disconnected {
            return Err(AttachError::Connected(name.to_owned()));
        }
        entry.phase = Phase::Starting;
        entry.isolation = Some("remote".to_owned());
        Ok((entry.generation, entry.spec.plugin.clone(), entry.stop.clone()))
    })
}

/// Frees the name for the next connection, also when the caller drops `attach`.
struct Release {
    shared: Arc<Shared>,
    connection: Arc<Connection>,
    generation: u64,
}

impl Drop for Release {
    fn drop(&mut self) {
        self.connection.close("was disconnected".to_owned());
        release(&self.shared, &self.connection, self.generation);
    }
}

fn release(shared: &Shared, connection: &Arc<Connection>, generation: u64) {
    shared.registry.update(&connection.runner, generation, |entry| {
        let other = entry.connection.as_ref().is_some_and(|current| current.id != connection.id);
        if !other && entry.phase != Phase::Disconnected {
            entry.connection = None;
            entry.phase = Phase::Disconnected;
            entry.restarts += 1;
            entry.last_error = connection.reason().map(|reason| connection.says(&reason));
            entry.last_failure = entry.last_error.clone().map(|error| (SystemTime::now(), error));
        }
    });
}
