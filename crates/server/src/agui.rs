//! AG-UI: `POST /v1/agui/{agent}` sends a message and streams the run's events.
//!
//! Invariant: an event is accepted under the same rules as through `POST /v1/events`. A `runId` is the id of its
//! event: repeating it attaches to the run it started and never starts another.

mod card;
pub(crate) mod copilot;
mod event;
mod follow;
mod history;
mod input;
mod interrupt;
mod translate;

use crate::accept::language;
use crate::access::Caller;
use crate::events::{check_type, read_body_within, traceparent};
use crate::facts::{can_read, stored_id};
use crate::id::Id;
use crate::query::Params;
use crate::response::{ApiResult, Problem};
use crate::router::App;
use crate::runs::{last_event_id, load};
use crate::stream::respond;
use crate::stream_access::StreamAccess;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use event::Event;
use follow::{FollowOptions, ON_DISCONNECT, OnDisconnect, StreamStart, follow};
use futures_util::stream;
use greenroom_host::Refusal;
use greenroom_protocol::{ErrorCode, InteractionSubmission, TriggerSource};
use greenroom_tools::ui::Language;
use input::{RunInput, SOURCE};
use interrupt::{Rejection, Resumed};
use serde_json::Value;
use translate::{Repeats, Stream, Translator};

pub(crate) async fn run(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(agent): Id,
    request: Request,
) -> ApiResult {
    let agui = AguiRequest::read(app, caller, params, agent, request).await?;
    agui.run().await
}

/// A parsed and validated request.
struct AguiRequest {
    app: App,
    caller: Caller,
    workspace: String,
    agent: String,
    input: RunInput,
    /// The stored id of the thread's conversation.
    conversation: String,
    /// The sequence number of the last result that an earlier stream of this run delivered.
    last_event_id: Option<i64>,
    on_disconnect: OnDisconnect,
    language: Language,
    traceparent: Option<String>,
}

/// The run to stream.
struct RunToFollow {
    run_id: String,
    from: StreamStart,
    /// Whether the run may already be waiting for an approval.
    may_be_waiting: bool,
}

impl AguiRequest {
    async fn read(
        app: App,
        caller: Caller,
        params: Params,
        agent: String,
        request: Request,
    ) -> Result<Self, Problem> {
        caller.require_sender()?;
        let params = params.only(&["workspace_id", ON_DISCONNECT])?;
        let workspace = params.workspace().to_owned();
        let on_disconnect = OnDisconnect::parse(params.text(ON_DISCONNECT), &caller)?;
        check_type(request.headers())?;
        let last_event_id = last_event_id(request.headers())?;
        let language = language(request.headers());
        let traceparent = traceparent(request.headers());
        let bytes_max = app.options.limits.agui_bytes;
        let body = read_body_within(&app, request.into_body(), bytes_max).await?;
        let input = RunInput::parse(&body)?;
        let conversation = stored_id(&app, &caller, &workspace, input.thread_id.clone()).await?;
        Ok(Self {
            app,
            caller,
            workspace,
            agent,
            input,
            conversation,
            last_event_id,
            on_disconnect,
            language,
            traceparent,
        })
    }

    async fn run(self) -> ApiResult {
        let run = if let Some((run_id, answer)) = self.input.interaction()? {
            Ok(self.answer(run_id, answer).await?)
        } else if self.input.resume().is_empty() {
            match self.earlier_run().await? {
                Some(run) => Ok(run),
                None => self.start().await?,
            }
        } else {
            self.resume().await?
        };
        match run {
            Ok(run) => self.follow(run).await,
            Err(Rejection { code, message }) => {
                let event = Event::RunError { message, code: Some(code.to_owned()) };
                let frame = follow::frames(vec![event], None);
                Ok(respond(stream::once(async move { frame })))
            }
        }
    }

    /// The run that this `runId` started earlier.
    async fn earlier_run(&self) -> Result<Option<RunToFollow>, Problem> {
        let events = self.app.host.events_by_id(&self.workspace, &self.input.run_id).await?;
        let Some(event) = self.own_event(&events).await? else { return Ok(None) };
        let conflict = || {
            let message = "this `runId` was used before, in another thread or for another agent";
            Problem::new(StatusCode::CONFLICT, ErrorCode::InvalidArgument, message)
        };
        let own = self.caller.limited();
        let thread =
            event["conversation_id"].as_str().map(|id| own.map_or(id, |own| own.known_as(id)));
        if thread != Some(self.input.thread_id.as_str()) || !self.may_attach(event).await? {
            return Err(conflict());
        }
        let Some(run_id) = event["run_id"].as_str() else { return Err(conflict()) };
        let run = self.app.host.run(&self.workspace, run_id).await?;
        let run = run.filter(|run| run.agent == self.agent).ok_or_else(conflict)?;
        self.caller.require_agent(&run.agent)?;
        let from = self.last_event_id.map_or(StreamStart::Beginning, StreamStart::Reconnect);
        Ok(Some(RunToFollow { run_id: run.run_id, from, may_be_waiting: true }))
    }

    /// The event of this `runId`: event ids of limited callers are their own.
    async fn own_event<'a>(&self, events: &'a [Value]) -> Result<Option<&'a Value>, Problem> {
        let own = self.caller.limited().map(|own| own.begun_by.as_str());
        let mut of_agui = events.iter().filter(|event| event["source"] == SOURCE);
        if let Some(event) = of_agui.clone().find(|event| event["sent_by"].as_str() == own) {
            return Ok(Some(event));
        }
        // Stored before event ids were the sender's own.
        let Some(older) = of_agui.find(|event| event["sent_by"].is_null()) else { return Ok(None) };
        let thread = older["conversation_id"].as_str();
        let is_own = can_read(&self.app, &self.caller, &self.workspace, thread).await?;
        Ok(Some(older).filter(|_| is_own))
    }

    /// Whether the caller may read the thread of an event, or sent it under its own name.
    async fn may_attach(&self, event: &Value) -> Result<bool, Problem> {
        let actor = &event["event"]["actor"]["actor_id"];
        let thread = event["conversation_id"].as_str();
        let is_sender = match self.caller.limited() {
            Some(own) => event["sent_by"] == own.begun_by.as_str(),
            None => actor == self.caller.actor(),
        };
        Ok(is_sender || can_read(&self.app, &self.caller, &self.workspace, thread).await?)
    }

    /// Sends the newest message as an event.
    async fn start(&self) -> Result<Result<RunToFollow, Rejection>, Problem> {
        let event = self.input.event(&self.workspace, &self.agent, self.caller.actor())?;
        self.input.check_size(&event, self.app.options.limits.event_bytes)?;
        if self.caller.can_answer_approvals() {
            let thread = (self.conversation.as_str(), self.agent.as_str());
            let pending = interrupt::pending_in(&self.app, &self.workspace, thread).await?;
            if !pending.is_empty() {
                return Ok(Err(interrupt::still_pending(&pending)));
            }
        }
        let mut sender = self.caller.require_sender()?;
        sender.adapter = Some(self.input.adapter());
        sender.branch = Some(self.input.branch());
        sender.traceparent = self.traceparent.clone();
        if sender.entrance == TriggerSource::Api {
            sender.entrance = TriggerSource::HostAdapter;
        }
        let answer = match self.app.host.accept(&sender, event).await {
            Ok((answer, _)) => answer,
            // Another request with this `runId` was accepted first.
            Err(Refusal::Conflict) => {
                let run = self.earlier_run().await?;
                return run.map(Ok).ok_or_else(|| Refusal::Conflict.into());
            }
            Err(refusal) => return Err(refusal.into()),
        };
        // An event that names its agent always gets a run.
        let run_id = answer.run_id.ok_or_else(Problem::internal)?;
        let from = match answer.status.as_str() {
            // Earlier results of the run belong to other streams.
            "steered" => {
                let run = self.app.host.run(&self.workspace, &run_id).await?;
                StreamStart::After(run.map_or(0, |run| run.last_sequence))
            }
            _ => StreamStart::Beginning,
        };
        Ok(Ok(RunToFollow { run_id, from, may_be_waiting: false }))
    }

    /// Answers a question of a run of this thread and agent; the run that gets the answer is followed.
    async fn answer(
        &self,
        run_id: String,
        answer: InteractionSubmission,
    ) -> Result<RunToFollow, Problem> {
        let missing = || Problem::not_found("interaction");
        let asked = load(&self.app, &self.caller, &self.workspace, &run_id).await?;
        if asked.agent != self.agent || asked.conversation_id.as_ref() != Some(&self.conversation) {
            return Err(missing());
        }
        let sender = self.caller.require_sender()?;
        let run = (self.workspace.as_str(), run_id.as_str());
        let answered = self.app.host.answer_interaction(&sender, run, answer).await?;
        let run_id = answered.ok_or_else(missing)?.run_id.ok_or_else(Problem::internal)?;
        let from = self.last_event_id.map_or(StreamStart::Beginning, StreamStart::Reconnect);
        Ok(RunToFollow { run_id, from, may_be_waiting: true })
    }

    async fn resume(&self) -> Result<Result<RunToFollow, Rejection>, Problem> {
        let thread = (self.conversation.as_str(), self.agent.as_str());
        let entries = self.input.resume();
        let is_limited = self.caller.limited().is_some();
        let (app, thread_id) = (&self.app, Some(self.conversation.as_str()));
        if is_limited && !can_read(app, &self.caller, &self.workspace, thread_id).await? {
            let id = entries.first().map_or("", |entry| entry.interrupt_id.as_str());
            return Ok(Err(interrupt::unknown(id)));
        }
        let resumed =
            interrupt::resume(&self.app, &self.caller, &self.workspace, thread, entries).await?;
        Ok(resumed.map(|Resumed { run_id, after }| RunToFollow {
            run_id,
            from: self.last_event_id.map_or(StreamStart::After(after), StreamStart::Reconnect),
            may_be_waiting: true,
        }))
    }

    async fn follow(self, run: RunToFollow) -> ApiResult {
        let RunInput { messages, state, .. } = self.input.clone();
        self.follow_with(run, messages, state, Vec::new()).await
    }

    async fn follow_with(
        self,
        run: RunToFollow,
        messages: Vec<Value>,
        state: Value,
        history: Vec<Event>,
    ) -> ApiResult {
        let began_earlier = run.may_be_waiting || matches!(run.from, StreamStart::After(_));
        let began_with = match began_earlier {
            true => self.app.host.adapter(&self.workspace, &run.run_id).await?,
            false => None,
        };
        let stream = self.stream(run.run_id);
        let mut translator = Translator::new(stream, messages, state);
        if let Some(mut adapter) = began_with {
            let state = adapter.extra.remove("state").unwrap_or_default();
            let repeats = match run.from {
                StreamStart::Beginning => Repeats::All,
                StreamStart::After(_) | StreamStart::Reconnect(_) => Repeats::Rest,
            };
            translator.began_with(state, repeats);
        }
        let first = match run.from {
            StreamStart::Reconnect(_) => Vec::new(),
            StreamStart::After(_) => vec![translator.started()],
            StreamStart::Beginning => {
                let start = [translator.started()].into_iter().chain(history);
                start.chain(translator.take_back()).collect()
            }
        };
        let options = FollowOptions {
            workspace: self.workspace,
            language: self.language,
            translator,
            from: run.from,
            first,
            answers: self.caller.can_answer_approvals(),
            may_be_waiting: run.may_be_waiting,
            on_disconnect: self.on_disconnect,
            access: StreamAccess::new(&self.app, &self.caller),
        };
        let response = follow(&self.app, options).await?;
        response.ok_or_else(|| Problem::not_found("run"))
    }

    fn stream(&self, run_id: String) -> Stream {
        Stream {
            thread_id: self.input.thread_id.clone(),
            agui_run_id: self.input.run_id.clone(),
            run_id,
            profile: self.input.profile(),
            catalogue: self.input.catalogue(),
        }
    }
}
