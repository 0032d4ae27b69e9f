//! A process while it lives: its reader, its log, its writer, and its end in steps.
//!
//! Invariant: what was written before the end still counts.

use super::Serving;
use crate::connection::{Connection, LAST_WORDS, REPLACED};
use crate::process::Reports;
use crate::reader::Reader;
use crate::run::RunEnd;
use crate::stderr::{self, LastLines};
use greenroom_protocol::wire::method;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::unix::pipe;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// A process with its readers.
pub(super) struct Attended {
    pub(super) serving: Serving,
    pub(super) reports: Reports,
}

impl Attended {
    /// Reads until the process ends, then ends what is open and cleans up.
    pub(super) async fn attend(mut self, stdout: pipe::Receiver, stderr_pipe: pipe::Receiver) {
        let connection = self.serving.connection.clone();
        let last = LastLines::new(connection.cleaner.clone());
        let mut log = std::pin::pin!(stderr::log(
            connection.runner.clone(),
            stderr_pipe,
            connection.limits.clone(),
            last.clone()
        ));
        let mut read = std::pin::pin!(Reader::new(connection.clone()).read_pipe(stdout));
        let mut logged = false;
        let message = loop {
            tokio::select! {
                () = &mut log, if !logged => logged = true,
                () = &mut read => {
                    break timeout(LAST_WORDS, self.reports.ended())
                        .await
                        .map_or_else(|_| "closed its standard output".to_owned(), |(why, _)| why);
                }
                (message, _) = self.reports.ended() => {
                    // What was written before the end still counts.
                    let _ = timeout(LAST_WORDS, &mut read).await;
                    break message;
                }
            }
        };
        let end = Instant::now();
        self.serving.control.kill();
        if !logged {
            let _ = timeout(LAST_WORDS, &mut log).await;
        }
        last.last_words(end).into_iter().for_each(|line| connection.keep_last_words(line));
        connection.close(message);
        self.reports.gone().await;
    }
}

pub(super) async fn write(connection: Arc<Connection>) {
    if connection.outbox.write_queued().await.is_err() {
        connection.input_is_closed();
    }
}

/// Lets the last runs of a process end, then stops the process step by step.
pub(super) async fn retire(serving: Serving, step: Duration, now: CancellationToken) {
    let Serving { connection, control } = serving;
    let mut live = connection.live();
    tokio::select! {
        _ = live.wait_for(|live| *live == 0) => {}
        () = now.cancelled() => {}
    }
    let message = connection.says(REPLACED);
    connection.fail(None, &RunEnd::Crashed { message });
    let mut gone = std::pin::pin!(connection.gone());
    let asked = async {
        let nothing = serde_json::json!({});
        // Whether it agrees or not, its input is closed next.
        let _ = timeout(step, connection.request(method::SHUTDOWN, &nothing)).await;
        connection.outbox.close();
    };
    tokio::select! {
        () = &mut gone => return,
        () = asked => {}
    }
    if timeout(step, &mut gone).await.is_ok() {
        return;
    }
    control.terminate();
    if timeout(step, &mut gone).await.is_err() {
        control.kill();
    }
}
