//! The native wire over a pair of byte streams: one message per line.
//!
//! Invariant: ends when the host closes its side or requests shutdown, after everything queued was written; or at
//! once when writing fails.

use crate::connection::{Connection, Next};
use crate::outbox::Outbox;
use crate::plugin::CheckedPlugin;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// Longest line from the host.
const LINE_BYTES_MAX: u64 = 64 * 1024 * 1024;

pub(crate) async fn serve(
    plugin: Arc<CheckedPlugin>,
    mut reader: impl AsyncBufRead + Unpin,
    writer: impl AsyncWrite + Unpin,
) -> io::Result<()> {
    let connection = Connection::new(plugin);
    let reading = async {
        let shutdown = read(&connection, &mut reader).await?;
        connection.drain(shutdown).await;
        Ok(())
    };
    let served = tokio::try_join!(reading, write(&connection.outbox, writer));
    connection.abandon();
    served.map(|_| ())
}

/// Reads until the end; returns the id of the host's `shutdown`.
async fn read(
    connection: &Arc<Connection>,
    reader: &mut (impl AsyncBufRead + Unpin),
) -> io::Result<Option<greenroom_protocol::wire::RequestId>> {
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut *reader).take(LINE_BYTES_MAX).read_until(b'\n', &mut line).await? == 0 {
            return Ok(None);
        }
        if line.len() as u64 == LINE_BYTES_MAX && !line.ends_with(b"\n") {
            let text = format!("a line from the host has more than {LINE_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        if let Next::ShutDown(id) = connection.receive(&line).await {
            return Ok(id);
        }
    }
}

async fn write(outbox: &Outbox, mut writer: impl AsyncWrite + Unpin) -> io::Result<()> {
    let mut batch = Vec::new();
    while outbox.take(&mut batch).await {
        writer.write_all(&batch).await?;
        writer.flush().await?;
    }
    Ok(())
}
