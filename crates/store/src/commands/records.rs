//! Records of the project modules: an actor's own, and those that others share with them.
//!
//! Invariant: only its owner changes or removes a record; only an actor it was shared with answers.

use super::Command;
use crate::records::Record;
use crate::sql::Tx;
use crate::{StoreError, params, reads};
use greenroom_protocol::records::{RecordLink, RecordLinkStatus};

#[derive(Debug, Clone)]
pub struct WriteRecord {
    pub workspace_id: String,
    pub module: String,
    /// Who writes.
    pub actor: String,
    pub record_id: String,
    pub change: RecordChange,
    pub now_ms: i64,
}

#[derive(Debug, Clone)]
pub enum RecordChange {
    Put {
        /// The version that it must have now, 0 for none at all.
        if_version: Option<i64>,
        starts_at: Option<i64>,
        ends_at: Option<i64>,
        body: String,
        /// Records that one actor may keep in one module.
        records_max: i64,
    },
    Delete {
        if_version: Option<i64>,
    },
    Share {
        with: Vec<String>,
        links_max: i64,
    },
    Answer {
        status: RecordLinkStatus,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum RecordWritten {
    Put(Record),
    Deleted,
    Links(Vec<RecordLink>),
    /// It does not exist, or belongs to another actor.
    NotFound,
    Conflict(i64),
    TooMany,
}

impl Command for WriteRecord {
    type Outcome = RecordWritten;

    fn execute(&self, tx: &mut dyn Tx) -> Result<RecordWritten, StoreError> {
        let found = reads::records::get(tx, self.key())?;
        match &self.change {
            RecordChange::Put { if_version, .. } => {
                let own = found.as_ref().is_none_or(|found| found.owner == self.actor);
                let version = found.as_ref().map_or(0, |found| found.version);
                match if_version {
                    _ if !own => Ok(RecordWritten::NotFound),
                    Some(wanted) if *wanted != version => Ok(RecordWritten::Conflict(version)),
                    _ => self.put(tx, found.is_none()),
                }
            }
            RecordChange::Delete { if_version } => match found {
                Some(found) if found.owner == self.actor => match if_version {
                    Some(wanted) if *wanted != found.version => {
                        Ok(RecordWritten::Conflict(found.version))
                    }
                    _ => self.delete(tx),
                },
                _ => Ok(RecordWritten::NotFound),
            },
            RecordChange::Share { with, links_max } => match found {
                Some(found) if found.owner == self.actor => self.share(tx, with, *links_max),
                _ => Ok(RecordWritten::NotFound),
            },
            RecordChange::Answer { status } => self.answer(tx, *status),
        }
    }
}

impl WriteRecord {
    fn put(&self, tx: &mut dyn Tx, is_new: bool) -> Result<RecordWritten, StoreError> {
        let RecordChange::Put { starts_at, ends_at, body, records_max, .. } = &self.change else {
            return Ok(RecordWritten::NotFound);
        };
        let own = (self.workspace_id.as_str(), self.module.as_str(), self.actor.as_str());
        if is_new && reads::records::count(tx, own, *records_max)? >= *records_max {
            return Ok(RecordWritten::TooMany);
        }
        tx.execute(
            "INSERT INTO records (workspace_id, module, record_id, owner, version, starts_at, ends_at,
                 body, updated_at)
             VALUES (?1, ?2, ?3, ?4, 1, ?5, ?6, ?7, ?8)
             ON CONFLICT (workspace_id, module, record_id) DO UPDATE SET
                 version = records.version + 1, starts_at = excluded.starts_at,
                 ends_at = excluded.ends_at, body = excluded.body,
                 updated_at = excluded.updated_at",
            params![
                &self.workspace_id,
                &self.module,
                &self.record_id,
                &self.actor,
                *starts_at,
                *ends_at,
                body,
                self.now_ms
            ],
        )?;
        let written = reads::records::get(tx, self.key())?;
        Ok(written.map_or(RecordWritten::NotFound, RecordWritten::Put))
    }

    fn delete(&self, tx: &mut dyn Tx) -> Result<RecordWritten, StoreError> {
        let key = params![&self.workspace_id, &self.module, &self.record_id];
        tx.execute(
            "DELETE FROM record_links WHERE workspace_id = ?1 AND module = ?2 AND record_id = ?3",
            key,
        )?;
        tx.execute(
            "DELETE FROM records WHERE workspace_id = ?1 AND module = ?2 AND record_id = ?3",
            key,
        )?;
        Ok(RecordWritten::Deleted)
    }

    fn share(
        &self,
        tx: &mut dyn Tx,
        with: &[String],
        links_max: i64,
    ) -> Result<RecordWritten, StoreError> {
        for actor in with.iter().filter(|actor| **actor != self.actor) {
            tx.execute(
                "INSERT INTO record_links (workspace_id, module, record_id, actor, status, updated_at)
                 VALUES (?1, ?2, ?3, ?4, ?6, ?5)
                 ON CONFLICT (workspace_id, module, record_id, actor) DO NOTHING",
                params![
                    &self.workspace_id,
                    &self.module,
                    &self.record_id,
                    actor,
                    self.now_ms,
                    RecordLinkStatus::Pending
                ],
            )?;
        }
        let links = self.links(tx)?;
        if i64::try_from(links.len()).is_ok_and(|count| count > links_max) {
            return Err(StoreError::Refused("a record is shared with too many".to_owned()));
        }
        Ok(RecordWritten::Links(links))
    }

    fn answer(
        &self,
        tx: &mut dyn Tx,
        status: RecordLinkStatus,
    ) -> Result<RecordWritten, StoreError> {
        let changed = tx.execute(
            "UPDATE record_links SET status = ?5, updated_at = ?6
             WHERE workspace_id = ?1 AND module = ?2 AND record_id = ?3 AND actor = ?4",
            params![
                &self.workspace_id,
                &self.module,
                &self.record_id,
                &self.actor,
                status,
                self.now_ms
            ],
        )?;
        match changed {
            0 => Ok(RecordWritten::NotFound),
            _ => Ok(RecordWritten::Links(self.links(tx)?)),
        }
    }

    fn links(&self, tx: &mut dyn Tx) -> Result<Vec<RecordLink>, StoreError> {
        reads::records::links(tx, self.key())
    }

    fn key(&self) -> reads::records::RecordKey<'_> {
        (&self.workspace_id, &self.module, &self.record_id)
    }
}
