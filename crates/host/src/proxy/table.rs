//! The table of methods: for each what it takes to call it (CONTRACT §4).
//!
//! Invariant: a method without a row does not compile; checks, `available_apis` and costs all come from here.

use crate::grant::Grant;
use greenroom_protocol::ContextAPICapabilities;
use greenroom_protocol::api::Method;
use greenroom_protocol::manifest::{
    ArtifactPermission, EventPermission, HistoryPermission, KnowledgePermission, ModelPermission,
    ToolPermission,
};

/// What one method asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) needs: Needs,
    pub(crate) reaches: Reaches,
    pub(crate) effect: Effect,
    /// What a call takes out of the buckets of its run and its plugin: 1 is a look-up of a few microseconds.
    pub(crate) cost: u64,
    /// The field of `available_apis` that tells the runner.
    pub(crate) flag: Option<fn(&mut ContextAPICapabilities) -> &mut bool>,
}

/// The manifest permission; that the binding's grant covers it too is settled when the grant is frozen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    Model(ModelPermission),
    Tool(ToolPermission),
    Knowledge(KnowledgePermission),
    History(HistoryPermission),
    Event(EventPermission),
    Artifact(ArtifactPermission),
    /// Any state scope; which one is checked with the parameters.
    State,
    /// Any storage area; which one is checked with the parameters.
    Storage,
    /// Any action; which one is checked with the parameters.
    Action,
    Steering,
}

/// How far the method reaches at most, and who checks the parameters against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reaches {
    /// A resource named in the grant.
    Resource,
    /// The run's conversation (and thread), or its workspace if the grant says so.
    Facts,
    /// The owners that the run's event and binding give.
    Owners,
    /// The surface that the run answers to.
    Surface,
    /// The run alone.
    Run,
}

impl Reaches {
    /// The scope in audit records, unless the handler says more.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Reaches::Resource => "resource",
            Reaches::Facts => "facts",
            Reaches::Owners => "owner",
            Reaches::Surface => "surface",
            Reaches::Run => "run",
        }
    }
}

/// What becomes of the audit record: a write commits it with its outcome, a read's is batched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Read,
    Write,
}

/// Whether a call waits for its turn among those of its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    None,
    Read,
    Stream,
}

impl Row {
    pub(crate) fn turn(&self) -> Turn {
        match self.reaches {
            Reaches::Facts | Reaches::Owners if self.effect == Effect::Read => match self.cost {
                LOOK_UP => Turn::None,
                ERRAND => Turn::Stream,
                _ => Turn::Read,
            },
            _ => Turn::None,
        }
    }
}

const LOOK_UP: u64 = 1;
const PAGE: u64 = 10;
const WRITE: u64 = 10;
const SEARCH: u64 = 100;
const BYTES: u64 = 20;
/// Calls that leave the host: a model, a tool, a person.
const ERRAND: u64 = 50;

#[rustfmt::skip]
pub(crate) fn row(method: Method) -> Row {
    use Effect::{Read, Write};
    use Reaches::{Facts, Owners, Resource, Run, Surface};
    let (needs, reaches, effect, cost) = match method {
        Method::ModelsInvoke        => (Needs::Model(ModelPermission::Invoke), Resource, Read, ERRAND),
        Method::ModelsStream        => (Needs::Model(ModelPermission::Stream), Resource, Read, ERRAND),
        Method::ModelsRerank        => (Needs::Model(ModelPermission::Rerank), Resource, Read, ERRAND),
        Method::ModelsEmbed         => (Needs::Model(ModelPermission::Embed), Resource, Read, ERRAND),
        Method::ModelsCountTokens   => (Needs::Model(ModelPermission::Invoke), Resource, Read, PAGE),
        Method::ToolsGetDetail      => (Needs::Tool(ToolPermission::Detail), Resource, Read, LOOK_UP),
        Method::ToolsSearch         => (Needs::Tool(ToolPermission::Detail), Resource, Read, PAGE),
        Method::ToolsCall           => (Needs::Tool(ToolPermission::Call), Resource, Write, ERRAND),
        Method::KnowledgeList       => (Needs::Knowledge(KnowledgePermission::List), Resource, Read, LOOK_UP),
        Method::KnowledgeRetrieve   => (Needs::Knowledge(KnowledgePermission::Retrieve), Resource, Read, SEARCH),
        Method::HistoryPage         => (Needs::History(HistoryPermission::Page), Facts, Read, PAGE),
        Method::HistorySearch       => (Needs::History(HistoryPermission::Search), Facts, Read, SEARCH),
        Method::EventsGet           => (Needs::Event(EventPermission::Get), Facts, Read, LOOK_UP),
        Method::EventsPage          => (Needs::Event(EventPermission::Page), Facts, Read, PAGE),
        Method::ArtifactsMetadata   => (Needs::Artifact(ArtifactPermission::Metadata), Facts, Read, LOOK_UP),
        Method::ArtifactsReadRange  => (Needs::Artifact(ArtifactPermission::Read), Facts, Read, BYTES),
        Method::ArtifactsOpenStream => (Needs::Artifact(ArtifactPermission::Read), Facts, Read, ERRAND),
        Method::ArtifactsCreate     => (Needs::Artifact(ArtifactPermission::Create), Facts, Write, ERRAND),
        Method::StateGet            => (Needs::State, Owners, Read, LOOK_UP),
        Method::StateList           => (Needs::State, Owners, Read, PAGE),
        Method::StateSet            => (Needs::State, Owners, Write, WRITE),
        Method::StateDelete         => (Needs::State, Owners, Write, WRITE),
        Method::StorageGet          => (Needs::Storage, Owners, Read, BYTES),
        Method::StorageList         => (Needs::Storage, Owners, Read, PAGE),
        Method::StorageSet          => (Needs::Storage, Owners, Write, BYTES),
        Method::StorageDelete       => (Needs::Storage, Owners, Write, WRITE),
        Method::PlatformRequestAction => (Needs::Action, Surface, Write, ERRAND),
        Method::SteeringPull        => (Needs::Steering, Run, Write, WRITE),
    };
    Row { needs, reaches, effect, cost, flag: flag(needs) }
}

fn flag(needs: Needs) -> Option<fn(&mut ContextAPICapabilities) -> &mut bool> {
    Some(match needs {
        Needs::History(HistoryPermission::Page) => |apis| &mut apis.history_page,
        Needs::History(HistoryPermission::Search) => |apis| &mut apis.history_search,
        Needs::Event(EventPermission::Get) => |apis| &mut apis.event_get,
        Needs::Event(EventPermission::Page) => |apis| &mut apis.event_page,
        Needs::Artifact(ArtifactPermission::Metadata) => |apis| &mut apis.artifact_metadata,
        Needs::Artifact(ArtifactPermission::Read) => |apis| &mut apis.artifact_read,
        Needs::Artifact(ArtifactPermission::Create) => |apis| &mut apis.artifact_create,
        Needs::State => |apis| &mut apis.state,
        Needs::Storage => |apis| &mut apis.storage,
        Needs::Steering => |apis| &mut apis.steering_pull,
        // Told by `ctx.resources`.
        Needs::Model(_) | Needs::Tool(_) | Needs::Knowledge(_) | Needs::Action => return None,
    })
}

impl Needs {
    /// Whether the grant covers the method at all.
    pub(crate) fn granted(self, grant: &Grant) -> bool {
        match self {
            Needs::Model(operation) => grant.models.operations.contains(&operation),
            Needs::Tool(operation) => grant.tools.operations.contains(&operation),
            Needs::Knowledge(operation) => grant.knowledge.operations.contains(&operation),
            Needs::History(operation) => grant.history.operations.contains(&operation),
            Needs::Event(operation) => grant.events.operations.contains(&operation),
            Needs::Artifact(operation) => grant.artifacts.operations.contains(&operation),
            Needs::State => !grant.state.is_empty(),
            Needs::Storage => !grant.storage.is_empty(),
            // An action that is not granted is told apart from the others by its own refusal.
            Needs::Action => !grant.actions.is_empty(),
            Needs::Steering => grant.steering,
        }
    }
}

/// What the runner is told that it may ask for.
pub(crate) fn available_apis(grant: &Grant) -> ContextAPICapabilities {
    let mut apis = ContextAPICapabilities::default();
    for row in Method::ALL.iter().copied().map(row) {
        if let Some(flag) = row.flag {
            *flag(&mut apis) |= row.needs.granted(grant);
        }
    }
    apis
}
