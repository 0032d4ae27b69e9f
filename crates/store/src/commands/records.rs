//! Records of the project modules: a person's own, and those that others share with them.
//!
//! Invariant: only its owner changes or removes a record; only an actor it was shared with answers. A record without a
//! source (schema 4) gets that of the first owner who changes it.

use super::Command;
use crate::records::{Person, Record};
use crate::sql::Tx;
use crate::{StoreError, params, reads};
use greenroom_protocol::records::{RecordLink, RecordLinkStatus};

#[derive(Debug, Clone)]
pub struct WriteRecord {
    /// Who writes.
    pub person: Person,
    pub module: String,
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
        if let RecordChange::Answer { status } = &self.change {
            return self.answer(tx, *status);
        }
        let own = match reads::records::own(tx, &self.person, &self.module, &self.record_id)? {
            Some(found) => Some(self.adopt(tx, found)?),
            None => None,
        };
        match (&self.change, own) {
            (RecordChange::Put { if_version, .. }, own) => {
                let version = own.as_ref().map_or(0, |own| own.version);
                match if_version {
                    Some(wanted) if *wanted != version => Ok(RecordWritten::Conflict(version)),
                    _ => self.put(tx, own.is_none()),
                }
            }
            (RecordChange::Delete { if_version: Some(wanted) }, Some(own))
                if *wanted != own.version =>
            {
                Ok(RecordWritten::Conflict(own.version))
            }
            (RecordChange::Delete { .. }, Some(own)) => self.delete(tx, &own),
            (RecordChange::Share { with, links_max }, Some(own)) => {
                self.share(tx, &own, with, *links_max)
            }
            (_, _) => Ok(RecordWritten::NotFound),
        }
    }
}

impl WriteRecord {
    /// Gives a record without a source that of its owner.
    fn adopt(&self, tx: &mut dyn Tx, found: Record) -> Result<Record, StoreError> {
        let Person { workspace_id, source, actor } = &self.person;
        if found.source == *source {
            return Ok(found);
        }
        for sql in [
            "UPDATE records SET source = ?1
             WHERE workspace_id = ?2 AND module = ?3 AND source = '' AND owner = ?4 AND record_id = ?5",
            "UPDATE record_links SET source = ?1
             WHERE workspace_id = ?2 AND module = ?3 AND source = '' AND owner = ?4 AND record_id = ?5",
        ] {
            tx.execute(sql, params![source, workspace_id, &self.module, actor, &self.record_id])?;
        }
        Ok(Record { source: source.clone(), ..found })
    }

    fn put(&self, tx: &mut dyn Tx, is_new: bool) -> Result<RecordWritten, StoreError> {
        let RecordChange::Put { starts_at, ends_at, body, records_max, .. } = &self.change else {
            return Ok(RecordWritten::NotFound);
        };
        let (person, module) = (&self.person, &self.module);
        if is_new && reads::records::count(tx, person, module, *records_max)? >= *records_max {
            return Ok(RecordWritten::TooMany);
        }
        tx.execute(
            "INSERT INTO records (workspace_id, module, source, owner, record_id, version, starts_at, ends_at,
                 body, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, 1, ?6, ?7, ?8, ?9)
             ON CONFLICT (workspace_id, module, source, owner, record_id) DO UPDATE SET
                 version = records.version + 1, starts_at = excluded.starts_at,
                 ends_at = excluded.ends_at, body = excluded.body,
                 updated_at = excluded.updated_at",
            params![
                &person.workspace_id,
                module,
                &person.source,
                &person.actor,
                &self.record_id,
                *starts_at,
                *ends_at,
                body,
                self.now_ms
            ],
        )?;
        let written = reads::records::own(tx, person, module, &self.record_id)?;
        Ok(written.map_or(RecordWritten::NotFound, RecordWritten::Put))
    }

    fn delete(&self, tx: &mut dyn Tx, own: &Record) -> Result<RecordWritten, StoreError> {
        let workspace = &self.person.workspace_id;
        let key = params![workspace, &self.module, &own.source, &own.owner, &self.record_id];
        for sql in [
            "DELETE FROM record_links WHERE workspace_id = ?1 AND module = ?2 AND source = ?3
                 AND owner = ?4 AND record_id = ?5",
            "DELETE FROM records WHERE workspace_id = ?1 AND module = ?2 AND source = ?3
                 AND owner = ?4 AND record_id = ?5",
        ] {
            tx.execute(sql, key)?;
        }
        Ok(RecordWritten::Deleted)
    }

    fn share(
        &self,
        tx: &mut dyn Tx,
        own: &Record,
        with: &[String],
        links_max: i64,
    ) -> Result<RecordWritten, StoreError> {
        for actor in with.iter().filter(|actor| **actor != own.owner) {
            tx.execute(
                "INSERT INTO record_links (workspace_id, module, source, owner, record_id, actor, status,
                     updated_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?8, ?7)
                 ON CONFLICT (workspace_id, module, source, owner, record_id, actor) DO NOTHING",
                params![
                    &self.person.workspace_id,
                    &self.module,
                    &own.source,
                    &own.owner,
                    &self.record_id,
                    actor,
                    self.now_ms,
                    RecordLinkStatus::Pending
                ],
            )?;
        }
        let links = self.links(tx, own)?;
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
        let found = reads::records::shared(tx, &self.person, &self.module, &self.record_id)?;
        let Some(shared) = found else { return Ok(RecordWritten::NotFound) };
        tx.execute(
            "UPDATE record_links SET status = ?7, updated_at = ?8
             WHERE workspace_id = ?1 AND module = ?2 AND source = ?3 AND owner = ?4 AND record_id = ?5
               AND actor = ?6",
            params![
                &self.person.workspace_id,
                &self.module,
                &shared.source,
                &shared.owner,
                &self.record_id,
                &self.person.actor,
                status,
                self.now_ms
            ],
        )?;
        Ok(RecordWritten::Links(self.links(tx, &shared)?))
    }

    fn links(&self, tx: &mut dyn Tx, record: &Record) -> Result<Vec<RecordLink>, StoreError> {
        reads::records::links(tx, (&self.person.workspace_id, &self.module), record)
    }
}
