//! Whether an input fits its method, asked of the handler itself: it runs up to where it would touch data.
//!
//! Invariant: nothing is read or changed; what is refused here is refused by the router in the same words.

use super::records::{Found, Module, Put, Records, RecordsError};
use super::table::MethodSpec;
use super::{handle, told};
use crate::ToolFailure;
use futures_util::FutureExt;
use greenroom_protocol::Object;
use greenroom_protocol::records::{
    RecordLink as Link, RecordLinkStatus as LinkStatus, RecordView as Record,
};
use std::sync::atomic::{AtomicBool, Ordering};

/// Refuses an input that its handler would refuse before it looks at any record.
pub fn check(spec: &MethodSpec, input: &Object) -> Result<(), ToolFailure> {
    let records = NoRecords::default();
    // Nothing in it waits: the first record that it asks for ends it.
    let done = handle(spec.action, input, &records).now_or_never();
    match done {
        Some(Err(trouble)) if !records.were_asked.load(Ordering::Relaxed) => {
            Err(told(spec, trouble))
        }
        _ => Ok(()),
    }
}

/// Records that nobody gets; knows whether somebody asked.
#[derive(Default)]
struct NoRecords {
    were_asked: AtomicBool,
}

impl NoRecords {
    fn asked<T>(&self) -> Result<T, RecordsError> {
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
        self.asked()
    }

    async fn get(&self, _module: Module, _id: &str) -> Result<Found, RecordsError> {
        self.asked()
    }

    async fn put(&self, _module: Module, _put: Put) -> Result<Record, RecordsError> {
        self.asked()
    }

    async fn delete(
        &self,
        _module: Module,
        _id: &str,
        _if_version: Option<i64>,
    ) -> Result<bool, RecordsError> {
        self.asked()
    }

    async fn share(
        &self,
        _module: Module,
        _id: &str,
        _with: Vec<String>,
    ) -> Result<Vec<Link>, RecordsError> {
        self.asked()
    }

    async fn answer(
        &self,
        _module: Module,
        _id: &str,
        _status: LinkStatus,
    ) -> Result<Option<Link>, RecordsError> {
        self.asked()
    }
}
