//! Accepts an event: deduplicated, bound, admitted and appended in one transaction.
//!
//! Invariant: a refusal writes nothing, so that a retry is a first try.

mod lane;

pub use lane::{Admission, Displaced, Lane, admit};

use super::Command;
use super::artifacts::{Owner, adopt_artifact, insert_artifact};
use super::transcript::{ItemPosition, count_event, insert_item};
use crate::reads::events::{EventKey, Known, stored_source};
use crate::sql::Tx;
use crate::types::{GrantDoc, NewArtifact, NewItem, OnInterrupt, Queue, RunRow};
use crate::{StoreError, clock, params, reads};
use greenroom_protocol::{Replaces, RunStatus};

#[derive(Debug, Clone)]
pub struct AcceptEvent {
    pub workspace_id: String,
    pub source: String,
    /// The limited token that sends it: its event ids and conversations are its own.
    pub limited_to: Option<LimitedTo>,
    pub event_id: String,
    pub body_hash: [u8; 32],
    pub event_type: String,
    pub conversation_id: Option<String>,
    pub body: String,
    /// The run that the binding starts; none for an unbound event.
    pub run: Option<NewRun>,
    pub item: Option<NewItem>,
    /// Parts of the event that are stored as bytes; they belong to the event's run.
    pub artifacts: Vec<NewArtifact>,
    /// Ids of uploads that the event names.
    pub uploads: Vec<String>,
    /// The token of the sender; that of a conversation's first event is stored with the conversation.
    pub sent_by: Option<String>,
    pub now_ms: i64,
}

/// A limited token, and what this event of it may join.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitedTo {
    /// `token:NAME`.
    pub sender: String,
    pub joins: Joins,
}

/// Which conversation an event may join, besides one that does not exist yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joins {
    /// One that its sender began.
    Own,
    /// Any: the configuration names it.
    Named,
}

#[derive(Debug, Clone)]
pub struct NewRun {
    pub run_id: String,
    pub agent: String,
    pub runner_id: String,
    pub queue: Queue,
    pub replaces: Replaces,
    pub lane_length_max: i64,
    /// None while the runner's manifest is unknown; then frozen before `run_agent`.
    pub grant: Option<GrantDoc>,
    pub on_interrupt: OnInterrupt,
    pub deadline_ms: i64,
    pub surface: Option<String>,
    /// Numbers 1..=reserved_seq may be published before they are stored.
    pub reserved_seq: i64,
    pub epoch: i64,
    /// Its grant lets it pull messages that arrive while it runs.
    pub steers: bool,
    /// How many messages may wait for the run that this event would steer; none: it steers no run.
    pub steering_length_max: Option<i64>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Accepted {
    /// Stored. `run` is none for an unbound event.
    New { run: Option<RunRow>, displaced: Displaced },
    /// Stored for the active run to pull.
    Steered { run: Box<RunRow> },
    /// The same key with the same body was accepted before: the first outcome again.
    Repeated { run: Option<RunRow> },
    /// The same, for an event that steered a run.
    SteeredBefore { run: Box<RunRow> },
    /// The same key was accepted before with another body.
    Conflict,
    /// Too many runs wait in the lane; nothing was written.
    LaneFull,
    /// The conversation was begun by another sender; nothing was written.
    ForeignConversation,
}

impl Command for AcceptEvent {
    type Outcome = Accepted;
    const FROM_OUTSIDE: bool = true;

    fn fair_share(&self) -> Option<&str> {
        Some(&self.workspace_id)
    }

    fn execute(&self, tx: &mut dyn Tx) -> Result<Accepted, StoreError> {
        if let Some(earlier) = self.earlier(tx)? {
            return Ok(earlier);
        }
        if self.is_foreign(tx)? {
            return Ok(Accepted::ForeignConversation);
        }
        if let Some(active) = self.steerable(tx)? {
            return self.steer(tx, active);
        }
        let (admission, running) = match (&self.run, &self.conversation_id) {
            (Some(run), Some(conversation)) => self.admission(tx, run, conversation)?,
            _ => (Admission::Start, Vec::new()),
        };
        if admission == Admission::Refuse {
            return Ok(Accepted::LaneFull);
        }
        let displaced = match &self.run {
            Some(run) if run.queue == Queue::Replace => self.displace(tx, run, running)?,
            _ => Displaced::default(),
        };
        let (conversation_seq, transcript_seq) = self.append_to_conversation(tx)?;
        let run_id = self.run.as_ref().map(|run| run.run_id.as_str());
        let event_seq = self.insert_event(tx, run_id, conversation_seq)?;
        let run = match &self.run {
            Some(run) => {
                let row = self.row(run, admission, event_seq, conversation_seq, transcript_seq);
                insert_run(tx, &row)?;
                if let Some(grant) = &run.grant {
                    insert_grant(tx, grant)?;
                }
                Some(row)
            }
            None => None,
        };
        Ok(Accepted::New { run, displaced })
    }
}

impl AcceptEvent {
    /// The outcome for a key that was accepted before.
    fn earlier(&self, tx: &mut dyn Tx) -> Result<Option<Accepted>, StoreError> {
        let sender = self.limited_to.as_ref().map(|limited| limited.sender.as_str());
        let key = EventKey { source: &self.source, sender, event_id: &self.event_id };
        let found = reads::events::known(tx, &self.workspace_id, key, &self.body_hash)?;
        let Some(Known { seq, body_hash, run_id }) = found else { return Ok(None) };
        if body_hash != self.body_hash {
            return Ok(Some(Accepted::Conflict));
        }
        let run = match &run_id {
            Some(run_id) => reads::runs::get(tx, &self.workspace_id, run_id)?,
            None => None,
        };
        // A commit of ours whose reply was lost counts as new, so that the host acts on it.
        let ours = self.run.as_ref().map(|run| &run.run_id) == run_id.as_ref() && run_id.is_some();
        Ok(Some(match run {
            Some(run) if ours => Accepted::New { run: Some(run), displaced: Displaced::default() },
            Some(run) if run.event_seq != seq => Accepted::SteeredBefore { run: Box::new(run) },
            run => Accepted::Repeated { run },
        }))
    }

    /// Whether a limited sender would join the conversation of another one.
    fn is_foreign(&self, tx: &mut dyn Tx) -> Result<bool, StoreError> {
        let (Some(limited), Some(conversation)) = (&self.limited_to, &self.conversation_id) else {
            return Ok(false);
        };
        if limited.joins == Joins::Named {
            return Ok(false);
        }
        let found = reads::conversations::get(tx, &self.workspace_id, conversation)?;
        Ok(found.is_some_and(|found| found.begun_by.as_ref() != Some(&limited.sender)))
    }

    /// The session of the event; an event without a conversation has none.
    pub(super) fn session(&self) -> &str {
        self.item.as_ref().map_or("", |item| &item.session)
    }

    pub(super) fn append_to_conversation(
        &self,
        tx: &mut dyn Tx,
    ) -> Result<(Option<i64>, Option<i64>), StoreError> {
        let Some(conversation) = &self.conversation_id else { return Ok((None, None)) };
        let items = i64::from(self.item.is_some());
        let (event_seq, transcript_seq) =
            count_event(tx, (&self.workspace_id, conversation), items, &self.sent_by, self.now_ms)?;
        if let Some(item) = &self.item {
            let position = ItemPosition {
                workspace: &self.workspace_id,
                conversation,
                event_seq,
                event_type: Some(&self.event_type),
            };
            insert_item(tx, position, transcript_seq, item, self.now_ms)?;
        }
        Ok((Some(event_seq), Some(transcript_seq)))
    }

    pub(super) fn insert_event(
        &self,
        tx: &mut dyn Tx,
        run_id: Option<&str>,
        conversation_seq: Option<i64>,
    ) -> Result<i64, StoreError> {
        let sender = self.limited_to.as_ref().map(|limited| limited.sender.as_str());
        let seq = tx.insert(
            "INSERT INTO events (workspace_id, source, event_id, body_hash, event_type,
                 conversation_id, conversation_seq, run_id, body, created_at, session)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11) RETURNING seq",
            params![
                &self.workspace_id,
                stored_source(&self.source, sender).as_ref(),
                &self.event_id,
                self.body_hash.as_slice(),
                &self.event_type,
                &self.conversation_id,
                conversation_seq,
                run_id,
                &self.body,
                self.now_ms,
                self.session(),
            ],
        )?;
        self.keep_artifacts(tx, run_id)?;
        Ok(seq)
    }

    fn keep_artifacts(&self, tx: &mut dyn Tx, run_id: Option<&str>) -> Result<(), StoreError> {
        for artifact in &self.artifacts {
            let run_id = run_id.map(str::to_owned);
            let agent = self.run.as_ref().map(|run| run.agent.clone());
            let artifact = NewArtifact { run_id, agent, ..artifact.clone() };
            insert_artifact(tx, &self.workspace_id, &artifact, self.now_ms)?;
        }
        let owner = Owner {
            limited_to: self.limited_to.as_ref().map(|limited| limited.sender.as_str()),
            conversation_id: self.conversation_id.as_deref(),
            session: self.session(),
            run_id,
            agent: self.run.as_ref().map(|run| run.agent.as_str()),
        };
        for artifact_id in &self.uploads {
            adopt_artifact(tx, &self.workspace_id, artifact_id, &owner)?;
        }
        Ok(())
    }

    pub(super) fn row(
        &self,
        run: &NewRun,
        admission: Admission,
        event_seq: i64,
        conversation_seq: Option<i64>,
        transcript_seq: Option<i64>,
    ) -> RunRow {
        let starts = admission == Admission::Start;
        RunRow {
            workspace_id: self.workspace_id.clone(),
            run_id: run.run_id.clone(),
            event_seq,
            event_id: self.event_id.clone(),
            agent: run.agent.clone(),
            runner_id: run.runner_id.clone(),
            conversation_id: self.conversation_id.clone(),
            conversation_seq,
            transcript_seq,
            queue: run.queue,
            status: if starts { RunStatus::Running } else { RunStatus::Queued },
            attempt: 1,
            epoch: run.epoch,
            grant_hash: run.grant.as_ref().map(|grant| grant.hash.clone()),
            on_interrupt: run.on_interrupt,
            deadline_ms: run.deadline_ms,
            surface: run.surface.clone(),
            last_seq: 0,
            reserved_seq: run.reserved_seq,
            effects: false,
            cancel_requested: false,
            steers: run.steers,
            created_at: self.now_ms,
            // Its predecessor may have ended after this command was made.
            started_at: starts.then(|| self.now_ms.max(clock::now_ms())),
            finished_at: None,
            error: None,
            usage: None,
            isolation: None,
            session: self.session().to_owned(),
        }
    }
}

pub(super) fn insert_run(tx: &mut dyn Tx, run: &RunRow) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO runs (workspace_id, run_id, event_seq, event_id, agent, runner_id,
             conversation_id, conversation_seq, transcript_seq, queue, status, attempt, epoch,
             grant_hash, on_interrupt, deadline_ms, surface, last_seq, reserved_seq, effects,
             cancel_requested, steers, created_at, started_at, session)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, 0, ?18,
             0, 0, ?19, ?20, ?21, ?22)",
        params![
            &run.workspace_id,
            &run.run_id,
            run.event_seq,
            &run.event_id,
            &run.agent,
            &run.runner_id,
            &run.conversation_id,
            run.conversation_seq,
            run.transcript_seq,
            run.queue,
            run.status,
            run.attempt,
            run.epoch,
            &run.grant_hash,
            run.on_interrupt,
            run.deadline_ms,
            &run.surface,
            run.reserved_seq,
            i64::from(run.steers),
            run.created_at,
            run.started_at,
            &run.session,
        ],
    )?;
    Ok(())
}

pub(super) fn insert_grant(tx: &mut dyn Tx, grant: &GrantDoc) -> Result<(), StoreError> {
    tx.execute(
        "INSERT INTO grants (hash, body) VALUES (?1, ?2) ON CONFLICT (hash) DO NOTHING",
        params![&grant.hash, &grant.body],
    )?;
    Ok(())
}
