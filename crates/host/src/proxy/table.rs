//! The table of methods: what a call of each needs, reaches and costs (CONTRACT §4).
//!
//! Invariant: a method without a row does not compile; checks, costs, turns and `available_apis` all come from
//! here.

use super::langbot::LangbotMethod;
use crate::context::Identity;
use crate::grant::Grant;
use crate::settings::Reach;
use greenroom_protocol::ContextAPICapabilities;
use greenroom_protocol::api::Method;
use greenroom_protocol::manifest::{
    ArtifactPermission, EventPermission, HistoryPermission, KnowledgePermission, ModelPermission,
    ToolPermission,
};
use greenroom_runtime::Wire;

/// What one method asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) needs: Needs,
    pub(crate) reaches: Reaches,
    pub(crate) effect: Effect,
    /// What a call takes out of the buckets of its run and its plugin: 1 is a look-up of a few microseconds.
    pub(crate) cost: u64,
    pub(crate) turn: Turn,
    pub(crate) at_end: AtEnd,
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
    /// Any kind of tool of a harness; which one is checked with the parameters.
    Harness,
    /// What is about the run itself needs no permission.
    Nothing,
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

/// What a call does to what the host keeps. A write commits its audit record with its outcome, a read's is
/// batched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Read,
    /// The parameters are redacted before they are kept.
    Write,
    /// Bytes in base64, which the handler redacts.
    WriteBytes,
}

/// How many calls of one run are served at once. Every call first waits until the results that its run sent
/// before it are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// No limit.
    Free,
    /// One of the run's few reads.
    Read,
    /// One of the run's few streams.
    Stream,
}

/// What the end of its run means for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtEnd {
    /// It is cut off.
    Stops,
    /// It finishes; later ones are refused.
    Finishes,
    /// It finishes; later ones are served, to the runner that had the run.
    Served,
}

/// A method of the contract, or one that a single wire has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProxyMethod {
    Api(Method),
    Langbot(LangbotMethod),
}

impl ProxyMethod {
    pub(crate) fn parse(name: &str, wire: Wire) -> Option<Self> {
        let langbot = || LangbotMethod::parse(name).filter(|_| wire == Wire::Langbot);
        Method::parse(name).map(Self::Api).or_else(|| langbot().map(Self::Langbot))
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
pub(crate) fn row(method: ProxyMethod) -> Row {
    use AtEnd::{Finishes, Served, Stops};
    use Effect::{Read, Write, WriteBytes};
    use ProxyMethod::{Api, Langbot};
    use Reaches::{Facts, Owners, Resource, Run, Surface};
    use Turn::Free;
    let (needs, reaches, effect, cost, turn, at_end) = match method {
        Api(Method::ModelsInvoke)               => (Needs::Model(ModelPermission::Invoke), Resource, Read, ERRAND, Free, Stops),
        Api(Method::ModelsStream)               => (Needs::Model(ModelPermission::Stream), Resource, Read, ERRAND, Free, Stops),
        Api(Method::ModelsRerank)               => (Needs::Model(ModelPermission::Rerank), Resource, Read, ERRAND, Free, Stops),
        Api(Method::ModelsEmbed)                => (Needs::Model(ModelPermission::Embed), Resource, Read, ERRAND, Free, Stops),
        Api(Method::ModelsCountTokens)          => (Needs::Model(ModelPermission::Invoke), Resource, Read, PAGE, Free, Stops),
        Api(Method::ToolsGetDetail)             => (Needs::Tool(ToolPermission::Detail), Resource, Read, LOOK_UP, Free, Stops),
        Api(Method::ToolsSearch)                => (Needs::Tool(ToolPermission::Detail), Resource, Read, PAGE, Free, Stops),
        Api(Method::ToolsCall)                  => (Needs::Tool(ToolPermission::Call), Resource, Write, ERRAND, Free, Stops),
        Api(Method::KnowledgeList)              => (Needs::Knowledge(KnowledgePermission::List), Resource, Read, LOOK_UP, Free, Stops),
        Api(Method::KnowledgeRetrieve)          => (Needs::Knowledge(KnowledgePermission::Retrieve), Resource, Read, SEARCH, Free, Stops),
        Api(Method::HistoryPage)                => (Needs::History(HistoryPermission::Page), Facts, Read, PAGE, Turn::Read, Stops),
        Api(Method::HistorySearch)              => (Needs::History(HistoryPermission::Search), Facts, Read, SEARCH, Turn::Read, Stops),
        Api(Method::EventsGet)                  => (Needs::Event(EventPermission::Get), Facts, Read, LOOK_UP, Free, Stops),
        Api(Method::EventsPage)                 => (Needs::Event(EventPermission::Page), Facts, Read, PAGE, Turn::Read, Stops),
        Api(Method::ArtifactsMetadata)          => (Needs::Artifact(ArtifactPermission::Metadata), Facts, Read, LOOK_UP, Free, Stops),
        Api(Method::ArtifactsReadRange)         => (Needs::Artifact(ArtifactPermission::Read), Facts, Read, BYTES, Turn::Read, Stops),
        Api(Method::ArtifactsOpenStream)        => (Needs::Artifact(ArtifactPermission::Read), Facts, Read, ERRAND, Turn::Stream, Stops),
        Api(Method::ArtifactsCreate)            => (Needs::Artifact(ArtifactPermission::Create), Facts, WriteBytes, ERRAND, Free, Stops),
        Api(Method::ArtifactsBegin)             => (Needs::Artifact(ArtifactPermission::Create), Facts, Write, WRITE, Free, Stops),
        Api(Method::ArtifactsAppend)            => (Needs::Artifact(ArtifactPermission::Create), Facts, WriteBytes, ERRAND, Free, Stops),
        Api(Method::ArtifactsCommit)            => (Needs::Artifact(ArtifactPermission::Create), Facts, Write, ERRAND, Free, Stops),
        Api(Method::StateGet)                   => (Needs::State, Owners, Read, LOOK_UP, Free, Stops),
        Api(Method::StateList)                  => (Needs::State, Owners, Read, PAGE, Turn::Read, Stops),
        Api(Method::StateSet)                   => (Needs::State, Owners, Write, WRITE, Free, Stops),
        Api(Method::StateDelete)                => (Needs::State, Owners, Write, WRITE, Free, Stops),
        Api(Method::StorageGet)                 => (Needs::Storage, Owners, Read, BYTES, Turn::Read, Stops),
        Api(Method::StorageList)                => (Needs::Storage, Owners, Read, PAGE, Turn::Read, Stops),
        Api(Method::StorageSet)                 => (Needs::Storage, Owners, WriteBytes, BYTES, Free, Stops),
        Api(Method::StorageDelete)              => (Needs::Storage, Owners, Write, WRITE, Free, Stops),
        Api(Method::PlatformRequestAction)      => (Needs::Action, Surface, Write, ERRAND, Free, Stops),
        Api(Method::HarnessPermission)          => (Needs::Harness, Run, Write, ERRAND, Free, Stops),
        Api(Method::SteeringPull)               => (Needs::Steering, Run, Write, WRITE, Free, Stops),
        Langbot(LangbotMethod::GetPrompt)       => (Needs::Nothing, Run, Read, LOOK_UP, Free, Stops),
        Langbot(LangbotMethod::GetConfigFile)   => (Needs::Nothing, Run, Read, LOOK_UP, Free, Stops),
        Langbot(LangbotMethod::HistoryPage)     => (Needs::History(HistoryPermission::Page), Facts, Read, PAGE, Turn::Read, Stops),
        Langbot(LangbotMethod::RunGet)          => (Needs::Nothing, Run, Read, LOOK_UP, Free, Served),
        Langbot(LangbotMethod::RunList)         => (Needs::Nothing, Run, Read, PAGE, Free, Stops),
        Langbot(LangbotMethod::RunEventsPage)   => (Needs::Nothing, Run, Read, PAGE, Free, Stops),
        Langbot(LangbotMethod::RunCancel)       => (Needs::Nothing, Run, Read, LOOK_UP, Free, Finishes),
        Langbot(LangbotMethod::RunResult)       => (Needs::Nothing, Run, Read, LOOK_UP, Free, Stops),
    };
    Row { needs, reaches, effect, cost, turn, at_end, flag: flag(needs) }
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
        // `ctx.resources` says which.
        Needs::Model(_) | Needs::Tool(_) | Needs::Knowledge(_) | Needs::Action => return None,
        Needs::Harness | Needs::Nothing => return None,
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
            // The handlers check which of the two it is about.
            Needs::Artifact(ArtifactPermission::Metadata | ArtifactPermission::Read)
                if !grant.files.is_empty() =>
            {
                true
            }
            Needs::Artifact(operation) => grant.artifacts.operations.contains(&operation),
            Needs::State => !grant.state.is_empty(),
            Needs::Storage => !grant.storage.is_empty(),
            // The handler refuses an action that is not granted.
            Needs::Action => !grant.actions.is_empty(),
            Needs::Steering => grant.steering,
            Needs::Harness => !grant.harness.is_empty(),
            Needs::Nothing => true,
        }
    }
}

/// The APIs that a grant makes available to the runner of a run. What needs a party that its event lacks is not offered.
pub(crate) fn available_apis(grant: &Grant, identity: &Identity) -> ContextAPICapabilities {
    let mut apis = ContextAPICapabilities::default();
    for row in Method::ALL.iter().map(|method| row(ProxyMethod::Api(*method))) {
        if let Some(flag) = row.flag {
            *flag(&mut apis) |= row.needs.granted(grant);
        }
    }
    let reaches = |reach| reach == Reach::Workspace || identity.conversation_id.is_some();
    apis.history_page &= reaches(grant.history.reach);
    apis.history_search &= reaches(grant.history.reach);
    apis.event_page &= reaches(grant.events.reach);
    apis.state &= grant.state.iter().any(|scope| identity.state_owner(*scope).is_some());
    apis
}
