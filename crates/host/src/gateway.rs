//! The gateway: binds an event and commits it before its sender gets an answer.
//!
//! Invariant: a committed event is followed up even if its sender disconnects.

mod bound;
mod branch;
mod people;
mod placed;
mod refusal;

pub(crate) use bound::surface;
pub use branch::ClientBranch;
pub use people::ActorIds;
pub use refusal::Refusal;

use crate::artifacts::{Ingested, Kept, uploads_of};
use crate::context::{Envelope, clean_adapter, client_tools, workspace_of};
use crate::follow_up::FollowUp;
use crate::grant::Sources;
use crate::host::{Host, Shared};
use crate::ids::{self, now_ms};
use crate::interactions;
use crate::ledger::RESERVE_FIRST;
use crate::metrics::Metrics;
use crate::settings::{Agent, Settings};
use bound::{bind, ids, is_replay, item, warnings};
use greenroom_protocol::{ActorContext, AdapterContext, EventAnswer, NewEvent, TriggerSource};
use greenroom_store::commands::{AcceptEvent, Accepted, NewRun};
use greenroom_store::reads::conversations::{Names, Own};
use greenroom_store::reads::events::EventKey;
use greenroom_store::types::RunRow;
use greenroom_store::{StoreError, reads};
use serde_json::value::{RawValue, to_raw_value};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinError;

/// How often the conversation of a limited sender's event is looked up, at most.
const PLACINGS_MAX: usize = 3;

/// The source of the events that the host itself adds to the log.
const HOST_SOURCE: &str = "host";
/// The source of events of AG-UI clients, which keep the thread themselves.
const AGUI_SOURCE: &str = "agui";

/// Nobody sends in the name of the host.
pub(crate) fn refuse_host_source(event: &NewEvent) -> Result<(), Refusal> {
    if event.source != HOST_SOURCE {
        return Ok(());
    }
    Err(Refusal::Invalid(format!("`source` `{HOST_SOURCE}` is reserved for the host")))
}

/// A limited sender's conversations (decision 020).
#[derive(Debug, Clone)]
pub struct SenderLimit {
    pub own: Arc<Own>,
    /// Ids that it does not begin, because the configuration names them for others.
    pub reserved: Names,
}

/// Who sends an event, and through which API.
#[derive(Debug, Clone)]
pub struct Sender {
    pub entrance: TriggerSource,
    /// Its token: `token:NAME` or `admin`; recorded with the conversations that it begins.
    pub name: Option<Arc<str>>,
    /// The only actor it may send for; none means any.
    pub actor: Option<Arc<str>>,
    /// The people whom its actor ids name.
    pub actors: ActorIds,
    /// The agents it may send to; none means all.
    pub agents: Option<Arc<[String]>>,
    /// The conversations it is limited to; none means that it may join any.
    pub limit: Option<SenderLimit>,
    /// The limited token whose run this event continues: the new run reaches no further.
    pub continues: Option<String>,
    /// The language that it asks for, as a BCP 47 tag.
    pub locale: Option<Arc<str>>,
    /// Protocol-specific context for the runner; decides only that a client's tool clashes with a granted one.
    pub adapter: Option<AdapterContext>,
    /// The messages that its client has, if it keeps them itself: what is missing there was replaced.
    pub branch: Option<ClientBranch>,
    /// The `traceparent` of its request.
    pub traceparent: Option<String>,
}

impl Sender {
    fn may_reach(&self, agent: &str) -> bool {
        self.agents.as_ref().is_none_or(|agents| agents.iter().any(|name| name == agent))
    }

    /// Sets the sender's actor on an event without one; an event of another actor is refused.
    fn sign(&self, event: &mut NewEvent) -> Result<(), Refusal> {
        let Some(own) = &self.actor else { return Ok(()) };
        let actor = event.actor.get_or_insert_with(|| ActorContext {
            actor_type: "user".to_owned(),
            ..ActorContext::default()
        });
        let named = actor.actor_id.get_or_insert_with(|| own.to_string());
        if **named == **own { Ok(()) } else { Err(Refusal::OtherActor(named.clone())) }
    }
}

impl Host {
    /// Accepts an event. `Ok` means that it is durable; the flag says whether it is new.
    pub async fn accept(
        &self,
        sender: &Sender,
        event: NewEvent,
    ) -> Result<(EventAnswer, bool), Refusal> {
        if self.shared.tasks.stopping().is_cancelled() {
            return Err(Refusal::Stopping);
        }
        interactions::refuse_forged(&event)?;
        if sender.limit.is_some() {
            for _ in 1..PLACINGS_MAX {
                match self.place_and_accept(sender, event.clone()).await {
                    // Another sender began the conversation in the meantime.
                    Err(Refusal::ForeignConversation) => {}
                    answered => return answered,
                }
            }
        }
        self.place_and_accept(sender, event).await
    }

    async fn place_and_accept(
        &self,
        sender: &Sender,
        event: NewEvent,
    ) -> Result<(EventAnswer, bool), Refusal> {
        let body = to_raw_value(&event).unwrap_or_else(|_| RawValue::NULL.to_owned());
        let body_hash = hash(&body);
        let mut event = self.shared.without_secrets(event, &body)?;
        self.shared.place(sender, &mut event).await?;
        let ingested = self.shared.ingest(sender, event).await?;
        self.accept_ingested(sender, ingested, body_hash).await
    }

    /// Accepts an event whose large parts are stored already.
    pub(crate) async fn accept_ingested(
        &self,
        sender: &Sender,
        ingested: Ingested,
        body_hash: [u8; 32],
    ) -> Result<(EventAnswer, bool), Refusal> {
        let event = &ingested.event;
        let key = event
            .event_id
            .clone()
            .map(|id| (workspace_of(event).to_owned(), event.source.clone(), id));
        let superseded = self.shared.superseded(sender, event).await?;
        let prepared = self.shared.prepare(sender, ingested, body_hash, superseded);
        let (command, envelope, kept) = match prepared {
            Ok(prepared) => prepared,
            Err(refusal) => {
                return self.shared.first_answer(sender, key, body_hash, refusal).await;
            }
        };
        let warnings = warnings(&envelope);
        let shared = Arc::clone(&self.shared);
        let reach = sender.clone();
        // In a task of its own: the commit is followed up even if the sender disconnects.
        let answered = self.shared.tasks.spawn("event", async move {
            let answered = shared.commit_event(&reach, command, envelope).await;
            // The bytes of the event are pinned until its rows refer to them.
            drop(kept);
            answered
        });
        let failed = |error: JoinError| Refusal::Store(StoreError::Refused(error.to_string()));
        let (answer, is_new) = answered.await.map_err(failed)??;
        Ok((EventAnswer { warnings, ..answer }, is_new))
    }
}

impl Shared {
    /// Removes secrets of this host from an event. Ids decide where an event belongs and cannot be changed, so
    /// an id that holds a secret is refused.
    fn without_secrets(&self, event: NewEvent, body: &RawValue) -> Result<NewEvent, Refusal> {
        let Some(clean) = self.redactor.exact().json(body) else { return Ok(event) };
        match serde_json::from_str::<NewEvent>(clean.get()) {
            Ok(clean) if ids(&clean) == ids(&event) => Ok(clean),
            _ => Err(Refusal::Invalid("an id of the event holds a secret of this host".into())),
        }
    }

    /// Decides what an event leads to. Stores nothing.
    fn prepare(
        &self,
        sender: &Sender,
        ingested: Ingested,
        body_hash: [u8; 32],
        superseded: Vec<[i64; 2]>,
    ) -> Result<(AcceptEvent, Arc<Envelope>, Vec<Kept>), Refusal> {
        let Ingested { mut event, raw_ref, kept } = ingested;
        sender.sign(&mut event)?;
        let now_ms = now_ms();
        event.event_time.get_or_insert(now_ms.div_euclid(1000));
        event.check().map_err(|error| Refusal::Invalid(error.to_string()))?;
        refuse_host_source(&event)?;
        let settings = self.settings.load();
        let workspace = workspace_of(&event).to_owned();
        let (agent, bound) = bind(&settings, sender, &sender.as_sent(&event), &workspace)?.unzip();
        let surface = surface(&settings, Some(sender), &event, agent)?;
        let run = match agent {
            Some(agent) if self.metrics.runs_open() >= settings.limits.runs_open => {
                let open = self.metrics.runs_open();
                tracing::warn!(agent = agent.name, open, "event refused: too many open runs");
                return Err(Refusal::Busy);
            }
            Some(agent) => {
                let tools = client_tools(sender.adapter.as_ref());
                Some(self.new_run(agent, surface, (&event, &tools), &settings)?)
            }
            None => None,
        };
        let event_id = event.event_id.get_or_insert_with(|| ids::fresh("evt")).clone();
        let item = item(&event, &event_id, run.as_ref());
        let adapter = sender.adapter.clone().map(|adapter| clean_adapter(adapter, &self.redactor));
        let limited_to = sender.limit.as_ref().map(|limit| limit.own.begun_by.clone());
        let limited_to = limited_to.or_else(|| sender.continues.clone());
        let actors_of = sender.actors.namespace(&event.source);
        let envelope = Arc::new(Envelope {
            trigger: sender.entrance,
            limited_to,
            actors_of,
            raw_ref,
            adapter,
            superseded,
            traceparent: sender.traceparent.clone(),
            locale: sender.locale.as_deref().map(str::to_owned),
            bound,
            event,
        });
        let event = &envelope.event;
        let limited_to = sender.limited_to(event.conversation_id.as_deref());
        let command = AcceptEvent {
            limited_to,
            workspace_id: workspace,
            source: event.source.clone(),
            event_id,
            body_hash,
            event_type: event.event_type.clone(),
            conversation_id: event.conversation_id.clone(),
            body: serde_json::to_string(&*envelope).unwrap_or_default(),
            item: event.conversation_id.is_some().then_some(item),
            run,
            artifacts: kept.iter().map(|kept| kept.row.clone()).collect(),
            uploads: uploads_of(event),
            sent_by: sender.name.as_deref().map(str::to_owned),
            now_ms,
        };
        Ok((command, envelope, kept))
    }

    /// A repeated event gets its first answer, even if it would be refused now because its agent was removed
    /// or the host is full.
    async fn first_answer(
        &self,
        sender: &Sender,
        key: Option<(String, String, String)>,
        body_hash: [u8; 32],
        refusal: Refusal,
    ) -> Result<(EventAnswer, bool), Refusal> {
        let may_be_known =
            matches!(refusal, Refusal::UnknownAgent(_) | Refusal::Tie(_) | Refusal::Busy);
        let Some((workspace, source, event_id)) = key.filter(|_| may_be_known) else {
            return Err(refusal);
        };
        let id = event_id.clone();
        let own = sender.limit.as_ref().map(|limit| limit.own.begun_by.clone());
        let read = self.store.read(move |tx| {
            let key = EventKey { source: &source, sender: own.as_deref(), event_id: &id };
            let Some(known) = reads::events::known(tx, &workspace, key, &body_hash)? else {
                return Ok(None);
            };
            let run = match &known.run_id {
                Some(run_id) => reads::runs::get(tx, &workspace, run_id)?,
                None => None,
            };
            Ok(Some((known, run)))
        });
        match read.await.map_err(Refusal::Store)? {
            None => Err(refusal),
            // The sender must not learn of a run of an agent that it may not reach.
            Some((_, Some(run))) if !sender.may_reach(&run.agent) => Err(refusal),
            Some((known, _)) if known.body_hash != body_hash => Err(Refusal::Conflict),
            Some((known, Some(run))) if run.event_seq != known.seq => {
                Ok((steered(event_id, &run), false))
            }
            Some((_, run)) => Ok((answer(event_id, run.as_ref()), false)),
        }
    }

    fn new_run(
        &self,
        agent: &Agent,
        surface: Option<String>,
        (event, client_tools): (&NewEvent, &BTreeSet<String>),
        settings: &Arc<Settings>,
    ) -> Result<NewRun, Refusal> {
        let limits = &settings.limits;
        let descriptor = self.runtime.descriptor(&agent.runner);
        let resources = self.resources.load();
        // The run waits for tools that are still starting; the sender does not.
        let is_known = resources.tools.is_settled(&agent.grant.tools, limits.runner_start);
        let grant = descriptor.filter(|_| is_known).map(|descriptor| {
            let (descriptor, resources) = (&descriptor, &*resources);
            let (grant, doc) =
                self.grant_cache.of(agent, Sources { settings, descriptor, resources });
            self.keep_grant(&doc.hash, &grant);
            let clash = client_tools.iter().find(|name| grant.tools.names.contains(*name));
            match clash {
                Some(name) => Err(Refusal::ToolClash(name.clone())),
                None => Ok((doc, grant.steering)),
            }
        });
        let (grant, steers) = grant.transpose()?.unzip();
        // A replay is always a run of its own.
        let steering = event.event_type.starts_with("message.") && !is_replay(event);
        Ok(NewRun {
            run_id: ids::fresh("run"),
            agent: agent.name.clone(),
            runner_id: agent.runner.to_string(),
            queue: agent.queue,
            replaces: agent.replaces,
            lane_length_max: limits.lane_length,
            grant,
            on_interrupt: agent.on_interrupt,
            deadline_ms: i64::try_from(agent.deadline.as_millis()).unwrap_or(i64::MAX),
            surface,
            reserved_seq: RESERVE_FIRST,
            epoch: self.store.epoch(),
            steers: steers.unwrap_or(false),
            steering_length_max: steering.then_some(limits.steering_length),
        })
    }

    /// Commits an event, starts its run if it is its turn, and answers the sender.
    async fn commit_event(
        self: &Arc<Self>,
        sender: &Sender,
        command: AcceptEvent,
        envelope: Arc<Envelope>,
    ) -> Result<(EventAnswer, bool), Refusal> {
        let event_id = command.event_id.clone();
        let accepted = self.store.commit(command).await.map_err(Refusal::Store)?;
        let answered = answer_to(&accepted, sender, event_id);
        match &answered {
            Ok((_, true)) => Metrics::add(&self.metrics.events_accepted),
            Ok((_, false)) => Metrics::add(&self.metrics.events_repeated),
            Err(Refusal::Busy) => Metrics::add(&self.metrics.events_refused),
            Err(_) => {}
        }
        self.follow_up(FollowUp::accepted(accepted, envelope)).await;
        answered
    }
}

pub(crate) fn hash(body: &RawValue) -> [u8; 32] {
    Sha256::digest(body.get()).into()
}

/// The answer to the sender; the flag says whether the event is new.
fn answer_to(
    accepted: &Accepted,
    sender: &Sender,
    event_id: String,
) -> Result<(EventAnswer, bool), Refusal> {
    let is_hidden = |run: &RunRow| !sender.may_reach(&run.agent);
    match accepted {
        Accepted::New { run, .. } => Ok((answer(event_id, run.as_ref()), true)),
        Accepted::Steered { run } => Ok((steered(event_id, run), true)),
        // It was accepted for an agent that this sender may not reach.
        Accepted::Repeated { run: Some(run) } if is_hidden(run) => Err(Refusal::Conflict),
        Accepted::SteeredBefore { run } if is_hidden(run) => Err(Refusal::Conflict),
        Accepted::Repeated { run } => Ok((answer(event_id, run.as_ref()), false)),
        Accepted::SteeredBefore { run } => Ok((steered(event_id, run), false)),
        Accepted::Conflict => Err(Refusal::Conflict),
        Accepted::LaneFull => Err(Refusal::Busy),
        Accepted::ForeignConversation => Err(Refusal::ForeignConversation),
    }
}

/// The answer to a message that an active run takes.
fn steered(event_id: String, run: &RunRow) -> EventAnswer {
    EventAnswer {
        event_id,
        run_id: Some(run.run_id.clone()),
        status: "steered".to_owned(),
        warnings: Vec::new(),
    }
}

fn answer(event_id: String, run: Option<&RunRow>) -> EventAnswer {
    EventAnswer {
        event_id,
        run_id: run.map(|run| run.run_id.clone()),
        status: run.map_or("unbound", |run| run.status.as_str()).to_owned(),
        warnings: Vec::new(),
    }
}
