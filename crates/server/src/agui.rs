//! AG-UI: `POST /v1/agui/{agent}` hands a message in and answers with the run's events as they come.
//!
//! Invariant: an event comes in as through `POST /v1/events`, under the same rules. A `runId` is the key of its
//! event: the same one again attaches to the run it started and never starts another.

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
use crate::answer::{Answer, Problem};
use crate::events::{check_type, read_body_within};
use crate::facts::is_reached;
use crate::id::Id;
use crate::query::Params;
use crate::router::App;
use crate::runs::last_event_id;
use crate::standing::Standing;
use crate::stream::respond;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use event::Event;
use follow::{Following, From, follow};
use futures_util::stream;
use greenroom_host::Refusal;
use greenroom_protocol::ErrorCode;
use greenroom_tools::ui::Language;
use input::{RunInput, SOURCE};
use interrupt::{Refused, Resumed};
use serde_json::Value;
use translate::{Stream, Translator};

pub(crate) async fn run(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    Id(agent): Id,
    request: Request,
) -> Answer {
    let asking = Asking::read(app, caller, params, agent, request).await?;
    asking.run().await
}

/// A request, read and checked.
struct Asking {
    app: App,
    caller: Caller,
    workspace: String,
    agent: String,
    input: RunInput,
    /// The number of the last result that an earlier stream of this run brought.
    last: Option<i64>,
    language: Language,
}

/// A run of the host's that a stream shows.
struct Place {
    run_id: String,
    from: From,
    /// Whether it may have asked something before.
    may_wait: bool,
}

impl Asking {
    async fn read(
        app: App,
        caller: Caller,
        params: Params,
        agent: String,
        request: Request,
    ) -> Result<Self, Problem> {
        caller.sender()?;
        let workspace = params.only(&["workspace_id"])?.workspace().to_owned();
        check_type(request.headers())?;
        let last = last_event_id(request.headers())?;
        let language = language(request.headers());
        let bytes_max = app.options.limits.agui_bytes;
        let body = read_body_within(&app, request.into_body(), bytes_max).await?;
        let input = RunInput::parse(&body)?;
        Ok(Self { app, caller, workspace, agent, input, last, language })
    }

    async fn run(self) -> Answer {
        let place = if self.input.resume().is_empty() {
            match self.known().await? {
                Some(place) => Ok(place),
                None => self.begin().await?,
            }
        } else {
            self.resume().await?
        };
        match place {
            Ok(place) => self.follow(place).await,
            Err(Refused { code, message }) => {
                let event = Event::RunError { message, code: Some(code.to_owned()) };
                let frame = follow::frames(vec![event], None);
                Ok(respond(stream::once(async move { frame })))
            }
        }
    }

    /// The run that this `runId` started before.
    async fn known(&self) -> Result<Option<Place>, Problem> {
        let events = self.app.host.events_by_id(&self.workspace, &self.input.run_id).await?;
        let Some(event) = events.iter().find(|event| event["source"] == SOURCE) else {
            return Ok(None);
        };
        let elsewhere = || {
            let message = "this `runId` was used before, in another thread or for another agent";
            Problem::new(StatusCode::CONFLICT, ErrorCode::InvalidArgument, message)
        };
        if event["conversation_id"] != self.input.thread_id.as_str() || !self.is_ours(event).await?
        {
            return Err(elsewhere());
        }
        let Some(run_id) = event["run_id"].as_str() else { return Err(elsewhere()) };
        let run = self.app.host.run(&self.workspace, run_id).await?;
        let run = run.filter(|run| run.agent == self.agent).ok_or_else(elsewhere)?;
        self.caller.sees(&run.agent)?;
        let from = self.last.map_or(From::Start, From::CutOff);
        Ok(Some(Place { run_id: run.run_id, from, may_wait: true }))
    }

    /// Whether the caller may read the thread of an event, or sent it under its own name.
    async fn is_ours(&self, event: &Value) -> Result<bool, Problem> {
        let actor = &event["event"]["actor"]["actor_id"];
        let thread = event["conversation_id"].as_str();
        Ok(actor == self.caller.actor()
            || is_reached(&self.app, &self.caller, &self.workspace, thread).await?)
    }

    /// Hands the newest message in.
    async fn begin(&self) -> Result<Result<Place, Refused>, Problem> {
        let event = self.input.event(&self.workspace, &self.agent, self.caller.actor())?;
        self.input.check_size(&event, self.app.options.limits.event_bytes)?;
        if self.caller.answers() {
            let place = (self.input.thread_id.as_str(), self.agent.as_str());
            let waits = interrupt::pending_in(&self.app, &self.workspace, place).await?;
            if !waits.is_empty() {
                return Ok(Err(interrupt::still_pending(&waits)));
            }
        }
        let mut sender = self.caller.sender()?;
        sender.adapter = Some(self.input.adapter());
        let answer = match self.app.host.accept(&sender, event).await {
            Ok((answer, _)) => answer,
            // Another request with this `runId` was quicker.
            Err(Refusal::Conflict) => {
                let known = self.known().await?;
                return known.map(Ok).ok_or_else(|| Refusal::Conflict.into());
            }
            Err(refusal) => return Err(refusal.into()),
        };
        // An agent that is named takes its event.
        let run_id = answer.run_id.ok_or_else(Problem::internal)?;
        let from = match answer.status.as_str() {
            // What the run said before this message joined it was told to others.
            "steered" => {
                let run = self.app.host.run(&self.workspace, &run_id).await?;
                From::Behind(run.map_or(0, |run| run.last_sequence))
            }
            _ => From::Start,
        };
        Ok(Ok(Place { run_id, from, may_wait: false }))
    }

    async fn resume(&self) -> Result<Result<Place, Refused>, Problem> {
        let place = (self.input.thread_id.as_str(), self.agent.as_str());
        let entries = self.input.resume();
        let resumed =
            interrupt::resume(&self.app, &self.caller, &self.workspace, place, entries).await?;
        Ok(resumed.map(|Resumed { run_id, after }| Place {
            run_id,
            from: self.last.map_or(From::Behind(after), From::CutOff),
            may_wait: true,
        }))
    }

    async fn follow(self, place: Place) -> Answer {
        let RunInput { messages, state, .. } = self.input.clone();
        self.follow_with(place, messages, state, Vec::new()).await
    }

    async fn follow_with(
        self,
        place: Place,
        messages: Vec<Value>,
        state: Value,
        more: Vec<Event>,
    ) -> Answer {
        let stream = self.stream(place.run_id);
        let translator = Translator::new(stream, messages, state);
        let first = match place.from {
            From::CutOff(_) => Vec::new(),
            From::Behind(_) => vec![translator.started()],
            From::Start => {
                let start = [translator.started()].into_iter().chain(more);
                start.chain(translator.reset()).collect()
            }
        };
        let following = Following {
            workspace: self.workspace,
            language: self.language,
            translator,
            from: place.from,
            first,
            answers: self.caller.answers(),
            may_wait: place.may_wait,
            standing: Standing::of(&self.app, &self.caller),
        };
        let response = follow(&self.app, following).await?;
        response.ok_or_else(|| Problem::not_found("run"))
    }

    fn stream(&self, run_id: String) -> Stream {
        Stream {
            thread_id: self.input.thread_id.clone(),
            agui_run_id: self.input.run_id.clone(),
            run_id,
            profile: self.input.profile(),
        }
    }
}
