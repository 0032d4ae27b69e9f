//! Validates an input with the handler itself, which runs until it would access data.
//!
//! Invariant: nothing is read or changed; the router refuses the same inputs with the same message.

use super::records::{Module, Put, RecordWithLinks, Records, RecordsError};
use super::table::MethodSpec;
use super::{handle, to_failure};
use crate::ToolFailure;
use futures_util::FutureExt;
use greenroom_protocol::Object;
use greenroom_protocol::records::{
    RecordLink as Link, RecordLinkStatus as LinkStatus, RecordView as Record,
};
use std::sync::atomic::{AtomicBool, Ordering};

/// Refuses an input that its handler would refuse before it accesses a record.
pub fn check(spec: &MethodSpec, input: &Object) -> Result<(), ToolFailure> {
    let records = NoRecords::default();
    // It never waits: the first access to a record ends it.
    let done = handle(spec.action, input, &records).now_or_never();
    match done {
        Some(Err(trouble)) if !records.were_asked.load(Ordering::Relaxed) => {
            Err(to_failure(spec, trouble))
        }
        _ => Ok(()),
    }
}

/// Records that cannot be accessed; remembers whether that was tried.
#[derive(Default)]
struct NoRecords {
    were_asked: AtomicBool,
}

impl NoRecords {
    fn refuse<T>(&self) -> Result<T, RecordsError> {
        self.were_asked.store(true, Ordering::Relaxed);
        Err(RecordsError::Strange)
    }
}

#[async_trait::async_trait]
impl Records for NoRecords {
    async fn list(
        &self,
        _module: Module,
        _span: Option<(i64, i64)>,
        _limit: u32,
    ) -> Result<Vec<Record>, RecordsError> {
        self.refuse()
    }

    async fn get(&self, _module: Module, _id: &str) -> Result<RecordWithLinks, RecordsError> {
        self.refuse()
    }

    async fn put(&self, _module: Module, _put: Put) -> Result<Record, RecordsError> {
        self.refuse()
    }

    async fn delete(
        &self,
        _module: Module,
        _id: &str,
        _if_version: Option<i64>,
    ) -> Result<bool, RecordsError> {
        self.refuse()
    }

    async fn share(
        &self,
        _module: Module,
        _id: &str,
        _with: Vec<String>,
    ) -> Result<Vec<Link>, RecordsError> {
        self.refuse()
    }

    async fn answer(
        &self,
        _module: Module,
        _id: &str,
        _status: LinkStatus,
    ) -> Result<Option<Link>, RecordsError> {
        self.refuse()
    }
}
