//! Subscriptions: following a run's results from any number to its end.

use crate::feed::{Batch, Joined, is_terminal};
use crate::host::Host;
use bytes::Bytes;
use greenroom_protocol::result::kind;
use greenroom_store::types::ResultRecord;
use greenroom_store::{StoreError, reads};
use greenroom_tools::ui::Language;
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Results read from the store at once.
const READ_AT_ONCE: usize = 1000;

/// One part of the stream.
#[derive(Debug)]
pub struct Frames {
    /// Server-sent events, complete ones.
    pub sse: Bytes,
    pub batch: Arc<Batch>,
    /// The run ends with these.
    pub end: bool,
}

/// One reader of a run and its position.
pub struct Subscription {
    host: Host,
    workspace: String,
    run_id: String,
    /// The language of the cards to add; none leaves them out.
    cards: Option<Language>,
    after: i64,
    stored: bool,
    ready: VecDeque<Arc<Batch>>,
    live: mpsc::Receiver<Arc<Batch>>,
    over: bool,
}

impl Host {
    /// Follows a run after number `after`; none if the run does not exist.
    pub async fn subscribe(
        &self,
        workspace: &str,
        run_id: &str,
        after: i64,
    ) -> Result<Option<Subscription>, StoreError> {
        // Subscribe first, then read: what is committed after the read is received live.
        let buffer = self.settings().limits.subscriber_buffer;
        let feed = self.shared.feeds.open(run_id);
        let Joined { unstored, live, from_start } = feed.subscribe(workspace, buffer);
        let subscription = Subscription {
            host: self.clone(),
            workspace: workspace.to_owned(),
            run_id: run_id.to_owned(),
            cards: None,
            after,
            stored: !from_start,
            ready: unstored.into(),
            live,
            over: false,
        };
        if from_start {
            return Ok(Some(subscription));
        }
        let (workspace, id) = (workspace.to_owned(), run_id.to_owned());
        let run = self.shared.store.read(move |tx| reads::runs::get(tx, &workspace, &id)).await?;
        if run.as_ref().is_none_or(|run| !run.status.is_open()) {
            self.shared.feeds.close(run_id);
        }
        Ok(run.map(|_| subscription))
    }
}

impl Subscription {
    /// With the card of every completed tool call, as `ui_schema` in its data.
    #[must_use]
    pub fn with_cards(mut self, language: Language) -> Self {
        self.cards = Some(language);
        self
    }

    /// The next part; none once the run has ended, or when this reader has lagged too far and must resume with
    /// its last number.
    pub async fn next(&mut self) -> Result<Option<Frames>, StoreError> {
        while !self.over {
            let batch = if self.stored {
                match self.read_stored().await? {
                    Some(batch) => batch,
                    None => {
                        self.stored = false;
                        continue;
                    }
                }
            } else if let Some(batch) = self.ready.pop_front() {
                batch
            } else {
                match self.live.recv().await {
                    Some(batch) => batch,
                    // Another reader may have closed the feed after the run ended and before its end was published.
                    None => match self.read_stored().await? {
                        Some(batch) if batch.is_end() => batch,
                        _ => return Ok(None),
                    },
                }
            };
            let batch = self.add_cards(batch).await?;
            let sse = batch.sse_after(self.after);
            if sse.is_empty() {
                continue;
            }
            self.after = batch.last_sequence();
            self.over = batch.is_end();
            return Ok(Some(Frames { sse, batch, end: self.over }));
        }
        Ok(None)
    }

    async fn add_cards(&self, batch: Arc<Batch>) -> Result<Arc<Batch>, StoreError> {
        let is_call = |record: &ResultRecord| record.kind == kind::TOOL_CALL_COMPLETED;
        let Some(language) = self.cards.filter(|_| batch.records.iter().any(is_call)) else {
            return Ok(batch);
        };
        let mut records = batch.records.clone();
        self.host.add_cards(&self.workspace, &self.run_id, &mut records, language).await?;
        Ok(Arc::new(Batch::new(&self.run_id, records)))
    }

    async fn read_stored(&mut self) -> Result<Option<Arc<Batch>>, StoreError> {
        let (run_id, after) = (self.run_id.clone(), self.after);
        let read = self
            .host
            .shared
            .store
            .read(move |tx| reads::results::page(tx, &run_id, after, READ_AT_ONCE));
        let records: Vec<ResultRecord> = read.await?;
        debug_assert!(records.iter().rev().skip(1).all(|record| !is_terminal(record)));
        Ok((!records.is_empty()).then(|| Arc::new(Batch::new(&self.run_id, records))))
    }
}
