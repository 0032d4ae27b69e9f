//! Questions of runners with fields and buttons: found by the message that asks, answered once by an event.
//!
//! Invariant: a question and its answer are events with the same id, so the log keeps at most one answer. An answer
//! goes to the agent and conversation of the run that asked, and reaches no further than that run.

use crate::artifacts::Ingested;
use crate::context::{Envelope, Identity};
use crate::gateway::{ClientBranch, Refusal, Sender, hash};
use crate::host::Host;
use crate::ids::{self, now_ms, rfc3339};
use greenroom_protocol::context::ASKED_GROUP;
use greenroom_protocol::interaction::INTERACTION;
use greenroom_protocol::payload::Message;
use greenroom_protocol::{
    AgentInput, ArtifactRef, EventAnswer, INTERACTION_SUBMITTED, InteractionRequest,
    InteractionSubmission, NewEvent, Object, SubjectContext,
};
use greenroom_store::types::{EventRow, HostEvent, RunRow};
use greenroom_store::{StoreError, reads};
use serde::{Deserialize, Serialize};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The type of the event of a question.
const REQUESTED: &str = "interaction.requested";
/// The source of answers, which no sender can use.
const SOURCE: &str = "interaction";
/// How long a question without `expires_at` can be answered, and any at most.
const OPEN_MS: i64 = 30 * 60 * 1000;
const OPEN_MS_MAX: i64 = 24 * 60 * 60 * 1000;
/// Bytes of the hash of a question's id in the id of its events.
const MARK_BYTES: usize = 16;
/// Questions of one run that are listed.
const LISTED_MAX: i64 = 200;

/// A question as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct Question {
    run_id: String,
    request: InteractionRequest,
    expires_at_ms: i64,
}

/// A question as the API shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InteractionView {
    pub run_id: String,
    pub interaction_id: String,
    pub status: InteractionStatus,
    pub request: InteractionRequest,
    pub created_at: String,
    pub expires_at: String,
    pub answered_at: Option<String>,
    pub answer: Option<InteractionSubmission>,
    /// The run that got the answer.
    pub answer_run_id: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InteractionStatus {
    Pending,
    Answered,
    Expired,
}

/// Refuses an event that looks like an answer: only the host makes those.
pub(crate) fn refuse_forged(event: &NewEvent) -> Result<(), Refusal> {
    let is_answer = event.source == SOURCE
        || event.event_type == INTERACTION_SUBMITTED
        || event.input.extra.contains_key(INTERACTION);
    if !is_answer {
        return Ok(());
    }
    let message = "answers of interactions are sent by `POST /v1/runs/ID/interactions`";
    Err(Refusal::Invalid(message.to_owned()))
}

/// The event of the question in a message, if it has one; an error says why it cannot be answered.
pub(crate) fn asked_by(
    message: &Message,
    identity: &Identity,
    at_ms: i64,
) -> Option<Result<HostEvent, String>> {
    let asked = message.metadata.as_ref()?.get(INTERACTION)?;
    let request = match InteractionRequest::parse(asked) {
        Ok(request) => request,
        Err(problem) => return Some(Err(format!("the interaction cannot be answered: {problem}"))),
    };
    let expires_at_ms = request.expires_at.map_or(at_ms + OPEN_MS, |at| at.saturating_mul(1000));
    let expires_at_ms = expires_at_ms.min(at_ms + OPEN_MS_MAX);
    let event_id = event_id(&identity.run_id, &request.interaction_id);
    let question = Question { run_id: identity.run_id.clone(), request, expires_at_ms };
    let body = serde_json::to_string(&question).unwrap_or_default();
    Some(Ok(HostEvent { event_id, event_type: REQUESTED.to_owned(), body }))
}

/// The id of the events of a question and of its answer.
fn event_id(run_id: &str, interaction_id: &str) -> String {
    let hash = Sha256::digest(interaction_id.as_bytes());
    format!("{}{}", prefix(run_id), ids::hex(&hash[..MARK_BYTES]))
}

fn prefix(run_id: &str) -> String {
    format!("{run_id}.interaction.")
}

impl Host {
    /// The questions of a run, in the order of their events' ids.
    pub async fn interactions(
        &self,
        workspace: &str,
        run_id: &str,
    ) -> Result<Vec<InteractionView>, StoreError> {
        let (workspace, prefix) = (workspace.to_owned(), prefix(run_id));
        let read = self
            .store()
            .read(move |tx| reads::events::by_id_prefix(tx, &workspace, &prefix, LISTED_MAX));
        let rows = read.await?;
        let answer_to =
            |id: &str| rows.iter().find(|row| row.source == SOURCE && row.event_id == id);
        let asked = rows.iter().filter(|row| row.event_type == REQUESTED);
        Ok(asked.filter_map(|row| view(row, answer_to(&row.event_id))).collect())
    }

    /// Answers a question. The same answer again gets the same response; another one is refused. `Ok(None)`: there
    /// is no such question.
    pub async fn answer_interaction(
        &self,
        sender: &Sender,
        (workspace, run_id): (&str, &str),
        answer: InteractionSubmission,
    ) -> Result<Option<EventAnswer>, Refusal> {
        let id = event_id(run_id, &answer.interaction_id);
        let (workspace, run_id, event_id) = (workspace.to_owned(), run_id.to_owned(), id.clone());
        let read = self.store().read(move |tx| {
            let Some(run) = reads::runs::get(tx, &workspace, &run_id)? else { return Ok(None) };
            let event = reads::events::load(tx, &workspace, run.event_seq)?;
            Ok(Some((run, event, reads::events::by_id(tx, &workspace, &event_id)?)))
        });
        let Some((run, event, rows)) = read.await.map_err(Refusal::Store)? else { return Ok(None) };
        let asked = rows.iter().find(|row| row.event_type == REQUESTED);
        let Some(question) = asked.and_then(question) else { return Ok(None) };
        question.request.check(&answer).map_err(Refusal::Invalid)?;
        let is_answered = rows.iter().any(|row| row.source == SOURCE);
        if !is_answered && question.expires_at_ms <= now_ms() {
            return Err(Refusal::Expired);
        }
        let body = event.and_then(|event| event.body).ok_or(Refusal::Gone)?;
        let envelope: Envelope = serde_json::from_str(&body).map_err(|_| Refusal::Gone)?;
        let mut event = answering(&run, envelope.event, (id, &answer));
        let files = question.request.files(&answer);
        event.input.attachments = attachments(&files);
        let body = to_raw_value(&event).unwrap_or_else(|_| RawValue::NULL.to_owned());
        if !is_answered {
            // Not part of what is hashed: it is the same answer once its files have expired.
            self.shared.describe(sender, &mut event).await?;
            check_files(&files, &event.input.attachments)?;
        }
        let sender = Sender {
            // The log has one answer, whoever gives it; its run reaches what the run that asked does.
            limit: None,
            continues: envelope.limited_to,
            branch: envelope.adapter.is_some().then(ClientBranch::default),
            adapter: envelope.adapter,
            ..sender.clone()
        };
        let ingested = Ingested { event, raw_ref: None, kept: Vec::new() };
        match self.accept_ingested(&sender, ingested, hash(&body)).await {
            Ok((answered, _)) => Ok(Some(answered)),
            Err(Refusal::Conflict) => Err(Refusal::Answered),
            Err(refusal) => Err(refusal),
        }
    }
}

/// The event of an answer: from the actor of the event that led to the question, where that one came from.
fn answering(
    run: &RunRow,
    to: NewEvent,
    (id, answer): (String, &InteractionSubmission),
) -> NewEvent {
    let submission = json!(answer);
    let text = answer.action_id.clone().unwrap_or_else(|| "submitted".to_owned());
    let mut data = Object::from_iter([("action_id".to_owned(), json!(answer.action_id))]);
    if let Some(group) = to.subject.as_ref().and_then(SubjectContext::group) {
        let group = json!({"subject_id": group.id, "data": group.data});
        data.insert(ASKED_GROUP.to_owned(), group);
    }
    NewEvent {
        event_type: INTERACTION_SUBMITTED.to_owned(),
        event_id: Some(id),
        source: SOURCE.to_owned(),
        event_time: None,
        subject: Some(SubjectContext {
            subject_type: INTERACTION.to_owned(),
            subject_id: Some(answer.interaction_id.clone()),
            data,
            extra: Object::new(),
        }),
        input: AgentInput {
            text: Some(text),
            extra: Object::from_iter([(INTERACTION.to_owned(), submission.clone())]),
            ..AgentInput::default()
        },
        data: Object::from_iter([(INTERACTION.to_owned(), submission)]),
        agent: Some(run.agent.clone()),
        conversation_id: run.conversation_id.clone(),
        metadata: Object::new(),
        ..to
    }
}

/// The files of an answer are files of its event, so that the runner may read them.
fn attachments(files: &[(&str, &str)]) -> Vec<ArtifactRef> {
    let file = |artifact_id: &str| ArtifactRef {
        artifact_id: artifact_id.to_owned(),
        ..ArtifactRef::default()
    };
    files.iter().map(|(_, artifact_id)| file(artifact_id)).collect()
}

/// Refuses files that the sender cannot attach to the conversation: those have no description.
fn check_files(files: &[(&str, &str)], described: &[ArtifactRef]) -> Result<(), Refusal> {
    let mut pairs = files.iter().zip(described);
    match pairs.find(|(_, file)| file.sha256.is_none()) {
        Some(((field, _), _)) => {
            let clause = "must be the id of an artifact of this conversation";
            Err(Refusal::Invalid(format!("field `{field}` {clause}")))
        }
        None => Ok(()),
    }
}

fn question(row: &EventRow) -> Option<Question> {
    serde_json::from_str(row.body.as_deref()?).ok()
}

fn view(asked: &EventRow, answered: Option<&EventRow>) -> Option<InteractionView> {
    let Question { run_id, request, expires_at_ms } = question(asked)?;
    let status = match answered {
        Some(_) => InteractionStatus::Answered,
        None if expires_at_ms <= now_ms() => InteractionStatus::Expired,
        None => InteractionStatus::Pending,
    };
    let answer = answered.and_then(|row| {
        let body: Value = serde_json::from_str(row.body.as_deref()?).ok()?;
        serde_json::from_value(body["event"]["data"][INTERACTION].clone()).ok()
    });
    Some(InteractionView {
        run_id,
        interaction_id: request.interaction_id.clone(),
        status,
        request,
        created_at: rfc3339(asked.created_at),
        expires_at: rfc3339(expires_at_ms),
        answered_at: answered.map(|row| rfc3339(row.created_at)),
        answer,
        answer_run_id: answered.and_then(|row| row.run_id.clone()),
    })
}
