//! Records in memory, for tests: several actors, links, versions.
//!
//! Invariant: behaves as the record API is specified, so that handlers see what the host would return.

use super::records::{Module, Put, RecordWithLinks, Records, RecordsError};
use greenroom_protocol::records::{
    RecordLink as Link, RecordLinkStatus as LinkStatus, RecordView as Record,
};
use greenroom_protocol::{AgentAPIError, ErrorCode};
use std::sync::{Arc, Mutex};

#[derive(Debug, Clone)]
struct Row {
    module: Module,
    record: Record,
    links: Vec<Link>,
}

#[derive(Debug, Default)]
struct Rows {
    rows: Vec<Row>,
    made: usize,
    /// Writes before which another client changes the record.
    races: usize,
    /// Writes that succeed before the rest is refused.
    writes_left: Option<usize>,
    calls: Vec<&'static str>,
}

/// The view of one actor.
#[derive(Debug, Clone)]
pub(super) struct InMemory {
    actor: String,
    rows: Arc<Mutex<Rows>>,
}

impl InMemory {
    pub(super) fn new(actor: &str) -> Self {
        Self { actor: actor.to_owned(), rows: Arc::default() }
    }

    /// The same records for another actor.
    pub(super) fn seen_by(&self, actor: &str) -> Self {
        Self { actor: actor.to_owned(), rows: self.rows.clone() }
    }

    /// Before the next writes another client changes the record.
    pub(super) fn race(&self, writes: usize) {
        self.rows.lock().unwrap().races = writes;
    }

    pub(super) fn refuse_after(&self, writes: usize) {
        self.rows.lock().unwrap().writes_left = Some(writes);
    }

    /// The operations since the last call.
    pub(super) fn calls(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.rows.lock().unwrap().calls)
    }
}

fn refused(code: ErrorCode) -> RecordsError {
    RecordsError::Refused(AgentAPIError::new(code, "refused"))
}

fn check_version(record: &Record, if_version: Option<i64>) -> Result<(), RecordsError> {
    match if_version.is_none_or(|version| version == record.version) {
        true => Ok(()),
        false => Err(RecordsError::Refused(
            AgentAPIError::new(ErrorCode::InvalidArgument, "the record has another version")
                .detail("reason", "version_conflict")
                .detail("version", record.version),
        )),
    }
}

impl Rows {
    fn own(&mut self, actor: &str, module: Module, id: &str) -> Option<usize> {
        self.rows.iter().position(|row| {
            row.module == module && row.record.id == id && row.record.owner == actor
        })
    }

    fn may_write(&mut self) -> Result<(), RecordsError> {
        match &mut self.writes_left {
            Some(0) => Err(refused(ErrorCode::RateLimited)),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }
}

#[async_trait::async_trait]
impl Records for InMemory {
    async fn list(
        &self,
        module: Module,
        span: Option<(i64, i64)>,
        limit: u32,
    ) -> Result<Vec<Record>, RecordsError> {
        let mut rows = self.rows.lock().unwrap();
        rows.calls.push("list");
        let mine = |row: &&Row| {
            let link = row.links.iter().find(|link| link.actor == self.actor);
            row.module == module
                && (row.record.owner == self.actor
                    || link.is_some_and(|link| link.status != LinkStatus::Rejected))
        };
        // The handler applies the exact limits: a span returns what touches it.
        let touches = |row: &&Row| {
            let record = &row.record;
            span.is_none_or(|(from, to)| {
                record.starts_at.unwrap_or(0) <= to && record.ends_at.unwrap_or(i64::MAX) >= from
            })
        };
        let found = rows.rows.iter().filter(mine).filter(touches);
        let seen = found.map(|row| {
            let mut record = row.record.clone();
            let link = row.links.iter().find(|link| link.actor == self.actor);
            record.link_status = link.map(|link| link.status);
            record
        });
        Ok(seen.take(limit as usize).collect())
    }

    async fn get(&self, module: Module, id: &str) -> Result<RecordWithLinks, RecordsError> {
        let mut rows = self.rows.lock().unwrap();
        rows.calls.push("get");
        for row in rows.rows.iter().filter(|row| row.module == module && row.record.id == id) {
            let link = row.links.iter().find(|link| link.actor == self.actor);
            if row.record.owner == self.actor || link.is_some() {
                let mut record = row.record.clone();
                record.link_status = link.map(|link| link.status);
                return Ok(RecordWithLinks { record: Some(record), links: row.links.clone() });
            }
        }
        Ok(RecordWithLinks::default())
    }

    async fn put(&self, module: Module, put: Put) -> Result<Record, RecordsError> {
        let mut rows = self.rows.lock().unwrap();
        rows.calls.push("put");
        rows.may_write()?;
        rows.made += 1;
        let id = put.id.clone().unwrap_or_else(|| format!("rec_{}", rows.made));
        let Some(at) = rows.own(&self.actor, module, &id) else {
            let record = Record {
                id,
                owner: self.actor.clone(),
                version: 1,
                starts_at: put.starts_at,
                ends_at: put.ends_at,
                body: put.body,
                updated_at: "2026-04-20T08:00:00.000Z".to_owned(),
                link_status: None,
            };
            rows.rows.push(Row { module, record: record.clone(), links: Vec::new() });
            return Ok(record);
        };
        if rows.races > 0 {
            rows.races -= 1;
            let record = &mut rows.rows[at].record;
            record.version += 1;
            record.body.insert("location".to_owned(), "moved".into());
        }
        let record = &mut rows.rows[at].record;
        check_version(record, put.if_version)?;
        record.version += 1;
        (record.starts_at, record.ends_at, record.body) = (put.starts_at, put.ends_at, put.body);
        Ok(record.clone())
    }

    async fn delete(
        &self,
        module: Module,
        id: &str,
        if_version: Option<i64>,
    ) -> Result<bool, RecordsError> {
        let mut rows = self.rows.lock().unwrap();
        rows.calls.push("delete");
        rows.may_write()?;
        let Some(at) = rows.own(&self.actor, module, id) else { return Ok(false) };
        check_version(&rows.rows[at].record, if_version)?;
        rows.rows.remove(at);
        Ok(true)
    }

    async fn share(
        &self,
        module: Module,
        id: &str,
        with: Vec<String>,
    ) -> Result<Vec<Link>, RecordsError> {
        let mut rows = self.rows.lock().unwrap();
        rows.calls.push("share");
        let at = rows.own(&self.actor, module, id).ok_or(refused(ErrorCode::NotFound))?;
        let links = &mut rows.rows[at].links;
        for actor in with {
            if !links.iter().any(|link| link.actor == actor) {
                links.push(Link { actor, status: LinkStatus::Pending });
            }
        }
        Ok(links.clone())
    }

    async fn answer(
        &self,
        module: Module,
        id: &str,
        status: LinkStatus,
    ) -> Result<Option<Link>, RecordsError> {
        let mut rows = self.rows.lock().unwrap();
        rows.calls.push("answer");
        let mut links = rows
            .rows
            .iter_mut()
            .filter(|row| row.module == module && row.record.id == id)
            .flat_map(|row| &mut row.links);
        let link = links.find(|link| link.actor == self.actor);
        Ok(link.map(|link| {
            link.status = status;
            link.clone()
        }))
    }
}
