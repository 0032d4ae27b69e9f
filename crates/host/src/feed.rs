//! Live fan-out of a run's results.
//!
//! Invariant: a reader sees every number once and in order: first stored results, then published results that
//! are not stored yet, then new ones. A reader that lags is cut off and may resume at its position; the run
//! never waits for it.

use crate::ids::Moment;
use bytes::{BufMut, Bytes, BytesMut};
use greenroom_protocol::result::kind;
use greenroom_store::types::ResultRecord;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc;

/// Results that were published together, encoded once for all readers.
#[derive(Debug)]
pub struct Batch {
    pub records: Vec<ResultRecord>,
    /// The same as server-sent events; `ends[i]` is where record i ends.
    sse: Bytes,
    ends: Vec<usize>,
}

impl Batch {
    pub fn new(run_id: &str, records: Vec<ResultRecord>) -> Self {
        let mut sse = BytesMut::with_capacity(records.len() * 192);
        let mut ends = Vec::with_capacity(records.len());
        let mut moment = Moment::default();
        for record in &records {
            write_sse(&mut sse, run_id, record, &mut moment);
            ends.push(sse.len());
        }
        Self { records, sse: sse.freeze(), ends }
    }

    pub fn last_sequence(&self) -> i64 {
        self.records.last().map_or(0, |record| record.sequence)
    }

    /// Whether the run ends with this batch.
    pub fn is_end(&self) -> bool {
        self.records.last().is_some_and(is_terminal)
    }

    /// The events with a number above `after`.
    pub fn sse_after(&self, after: i64) -> Bytes {
        let skipped = self.records.partition_point(|record| record.sequence <= after);
        let start = skipped.checked_sub(1).map_or(0, |index| self.ends[index]);
        self.sse.slice(start..)
    }
}

pub fn is_terminal(record: &ResultRecord) -> bool {
    matches!(&*record.kind, kind::RUN_COMPLETED | kind::RUN_FAILED)
}

fn write_sse(out: &mut BytesMut, run_id: &str, record: &ResultRecord, moment: &mut Moment) {
    out.put_slice(b"event: ");
    // The type is text of the runner: it must not break the frame.
    out.extend(record.kind.bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')));
    out.put_slice(b"\nid: ");
    write_number(out, record.sequence);
    out.put_slice(b"\ndata: ");
    write_json(out, run_id, record, moment);
    out.put_slice(b"\n\n");
}

/// A result as readers see it, on one line.
pub fn write_json(out: &mut BytesMut, run_id: &str, record: &ResultRecord, moment: &mut Moment) {
    out.put_slice(b"{\"run_id\":");
    let _ = serde_json::to_writer((&mut *out).writer(), run_id);
    out.put_slice(b",\"type\":");
    let _ = serde_json::to_writer((&mut *out).writer(), &record.kind);
    out.put_slice(b",\"data\":");
    out.put_slice(record.data.get().as_bytes());
    out.put_slice(b",\"sequence\":");
    write_number(out, record.sequence);
    out.put_slice(b",\"timestamp\":");
    let timestamp = record.runner_timestamp.unwrap_or_else(|| record.at_ms.div_euclid(1000));
    write_number(out, timestamp);
    out.put_slice(b",\"created_at\":\"");
    out.put_slice(moment.text(record.at_ms).as_bytes());
    out.put_slice(b"\"");
    if let Some(number) = record.runner_sequence {
        out.put_slice(b",\"runner_sequence\":");
        write_number(out, number);
    }
    if let Some(usage) = &record.usage {
        out.put_slice(b",\"usage\":");
        out.put_slice(usage.get().as_bytes());
    }
    out.put_slice(b"}");
}

/// Four numbers per delta: the JSON writer is faster than formatting.
fn write_number(out: &mut BytesMut, number: i64) {
    let _ = serde_json::to_writer(out.writer(), &number);
}

/// The live readers of one run, and the published results that are not stored yet.
#[derive(Debug, Default)]
pub struct Feed {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The workspace of a run of which nothing is stored yet.
    fresh: Option<String>,
    unstored: Vec<Arc<Batch>>,
    readers: Vec<mpsc::Sender<Arc<Batch>>>,
}

/// What a new reader starts with.
#[derive(Debug)]
pub struct Joined {
    /// Published, but not stored yet.
    pub unstored: Vec<Arc<Batch>>,
    pub live: mpsc::Receiver<Arc<Batch>>,
    /// Whether nothing was stored before: no read of the store is needed.
    pub from_start: bool,
}

impl Feed {
    /// The run starts with nothing stored: a reader that joins before the first commit need not read the store.
    pub fn begin(&self, workspace: &str) {
        self.lock().fresh = Some(workspace.to_owned());
    }

    /// Publishes deltas before they are stored.
    pub fn publish_unstored(&self, batch: Batch) {
        let batch = Arc::new(batch);
        let mut inner = self.lock();
        inner.unstored.push(Arc::clone(&batch));
        send(&mut inner.readers, &batch);
    }

    /// Everything published so far is stored; publishes the results of this commit.
    pub fn publish_stored(&self, batch: Option<Batch>) {
        let mut inner = self.lock();
        inner.fresh = None;
        inner.unstored.clear();
        if let Some(batch) = batch {
            send(&mut inner.readers, &Arc::new(batch));
        }
    }

    /// Adds a reader.
    pub fn subscribe(&self, workspace: &str, buffer: usize) -> Joined {
        let (sender, live) = mpsc::channel(buffer);
        let mut inner = self.lock();
        inner.readers.push(sender);
        let from_start = inner.fresh.as_deref() == Some(workspace);
        Joined { unstored: inner.unstored.clone(), live, from_start }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends a batch to every reader that keeps up; the others are cut off.
fn send(readers: &mut Vec<mpsc::Sender<Arc<Batch>>>, batch: &Arc<Batch>) {
    readers.retain(|reader| reader.try_send(Arc::clone(batch)).is_ok());
}

/// The feeds of all open runs.
#[derive(Debug, Default)]
pub struct Feeds {
    by_run: Mutex<HashMap<String, Arc<Feed>>>,
}

impl Feeds {
    /// The feed of a run, created on first use.
    pub fn open(&self, run_id: &str) -> Arc<Feed> {
        let mut feeds = self.lock();
        if let Some(feed) = feeds.get(run_id) {
            return Arc::clone(feed);
        }
        let feed = Arc::new(Feed::default());
        feeds.insert(run_id.to_owned(), Arc::clone(&feed));
        feed
    }

    /// The run has ended: the channels of its readers close after their last batch.
    pub fn close(&self, run_id: &str) {
        self.lock().remove(run_id);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Feed>>> {
        self.by_run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;

    fn record(sequence: i64, kind: &str, data: &str) -> ResultRecord {
        ResultRecord {
            sequence,
            kind: kind.to_owned().into(),
            data: RawValue::from_string(data.to_owned()).unwrap(),
            at_ms: 7_250,
            runner_sequence: None,
            runner_timestamp: None,
            usage: None,
        }
    }

    #[test]
    fn a_batch_can_be_entered_at_any_number() {
        let batch = Batch::new("r1", vec![record(3, "a", "{}"), record(5, "b\nc", "{}")]);
        let both = "event: a\nid: 3\ndata: {\"run_id\":\"r1\",\"type\":\"a\",\"data\":{},\
                    \"sequence\":3,\"timestamp\":7,\"created_at\":\"1970-01-01T00:00:07.250Z\"}\n\n\
                    event: bc\nid: 5\ndata: {\"run_id\":\"r1\",\"type\":\"b\\nc\",\"data\":{},\
                    \"sequence\":5,\"timestamp\":7,\"created_at\":\"1970-01-01T00:00:07.250Z\"}\n\n";
        assert_eq!(batch.sse_after(0), both);
        assert_eq!(batch.sse_after(3), both[both.find("event: bc").unwrap()..]);
        assert_eq!(batch.sse_after(4), both[both.find("event: bc").unwrap()..]);
        assert_eq!(batch.sse_after(5), "");
    }

    #[test]
    fn a_reader_that_lags_is_cut_off_and_the_others_go_on() {
        let feed = Feed::default();
        let mut slow = feed.subscribe("w", 1).live;
        let mut quick = feed.subscribe("w", 8).live;
        for sequence in 1..=3 {
            feed.publish_unstored(Batch::new("r", vec![record(sequence, "a", "{}")]));
        }
        assert_eq!(slow.try_recv().unwrap().last_sequence(), 1);
        assert_eq!(slow.try_recv().unwrap_err(), mpsc::error::TryRecvError::Disconnected);
        assert_eq!(quick.try_recv().unwrap().last_sequence(), 1);
        assert_eq!(feed.subscribe("w", 1).unstored.len(), 3);
        feed.publish_stored(None);
        assert!(feed.subscribe("w", 1).unstored.is_empty());
    }

    #[test]
    fn a_reader_that_joined_before_the_first_commit_need_not_read_the_store() {
        let feed = Feed::default();
        assert!(!feed.subscribe("w", 1).from_start);
        feed.begin("w");
        assert!(feed.subscribe("w", 1).from_start);
        assert!(!feed.subscribe("another", 1).from_start);
        feed.publish_unstored(Batch::new("r", vec![record(1, "a", "{}")]));
        assert!(feed.subscribe("w", 1).from_start);
        feed.publish_stored(None);
        assert!(!feed.subscribe("w", 1).from_start);
    }
}
