//! The API proxy: everything that a runner may ask the host for during a run.
//!
//! Invariant: every call passes, in this order: the rate of its plugin, a live run on the connection that
//! calls, the rate of that run, a method that the frozen grant covers, its size. Handlers then check ids and
//! scopes. Every call leaves one audit record; every refusal has the same shape. A call that panics in the
//! host is answered like any other.

mod actions;
mod artifacts;
mod asking;
pub(crate) mod audit;
mod call;
mod events;
mod fit;
mod harness;
mod history;
mod langbot;
pub(crate) mod meter;
mod models;
mod resources;
mod state;
mod steering;
mod storage;
pub(crate) mod table;
mod tools;
pub(crate) mod uploads;

use crate::host::Shared;
use crate::live::{LiveRun, Rights};
use crate::metrics::Metrics;
use audit::{Beginning, Trail};
pub(crate) use models::spending::{Size, Spending};

pub(crate) use call::refuse;
use call::{Answer, Call, failed_inside, stale};
use futures_util::FutureExt;
use greenroom_protocol::api::Method;
use greenroom_protocol::{AgentAPIError, ErrorCode};
use greenroom_runtime::{Proxy, ProxyCall, ProxyFuture, Standing};
use greenroom_store::fault;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};
pub(crate) use storage::area_name;
use table::{AtEnd, Effect, ProxyMethod, Row, Turn};

/// Extra cost for the plugin of a call without a live run.
const NO_RUN_COST: u64 = 200;

/// Connects runtime and host: the runtime exists before the host's own parts do.
#[derive(Default)]
pub(crate) struct ProxyGate {
    shared: OnceLock<Weak<Shared>>,
}

impl ProxyGate {
    pub(crate) fn open(&self, shared: &Arc<Shared>) {
        let _ = self.shared.set(Arc::downgrade(shared));
    }

    fn shared(&self) -> Option<Arc<Shared>> {
        self.shared.get().and_then(Weak::upgrade)
    }
}

impl Proxy for ProxyGate {
    fn call(&self, call: ProxyCall) -> ProxyFuture<'_> {
        Box::pin(async move {
            match self.shared() {
                Some(shared) => serve(&shared, call).await,
                None => Err(refuse(ErrorCode::RuntimeError, "the host is not ready").retryable()),
            }
        })
    }

    fn refused(&self, call: &ProxyCall, error: &AgentAPIError) {
        let Some(shared) = self.shared() else { return };
        Metrics::add(&shared.metrics.proxy_calls);
        Metrics::add(&shared.metrics.proxy_refusals);
        let run = live_run(&shared, call);
        let rights = run.as_ref().and_then(|live| live.rights());
        trail(&shared, call, rights).refused_by_runtime(error.code);
    }
}

pub(crate) async fn serve(shared: &Arc<Shared>, call: ProxyCall) -> Answer {
    let started = Instant::now();
    Metrics::add(&shared.metrics.proxy_calls);
    let run = live_run(shared, &call);
    let run = run.as_ref().and_then(|live| Some((live, live.rights()?)));
    let mut trail = trail(shared, &call, run.map(|(_, rights)| rights));
    // A panic is the host's fault: it ends this call, with its record, and nothing else.
    let served = AssertUnwindSafe(check_and_carry_out(shared, &call, run, &mut trail));
    let mut answer = served.catch_unwind().await.unwrap_or_else(|_| {
        tracing::error!(method = call.method, "a proxy call panicked");
        Err(failed_inside())
    });
    match &mut answer {
        Ok(answer) => trail.served(&shared.store, answer.get().len()).await,
        Err(error) => {
            error.message = shared.redactor.text(&error.message).into_owned();
            error.details.values_mut().for_each(|detail| shared.redactor.value(detail));
            Metrics::add(&shared.metrics.proxy_refusals);
            tracing::debug!(
                code = error.code.as_str(),
                message = error.message,
                "proxy call refused"
            );
            trail.refused(&shared.store, error.code).await;
        }
    }
    shared.metrics.proxy_call_duration.observe(started.elapsed());
    answer
}

/// The run of a call: live in this host, on the connection that calls.
fn live_run(shared: &Shared, call: &ProxyCall) -> Option<Arc<LiveRun>> {
    let run_id = call.run_id.as_deref().filter(|_| call.standing == Standing::Live)?;
    shared.live.get(run_id)
}

fn trail(shared: &Shared, call: &ProxyCall, rights: Option<&Rights>) -> Trail {
    let subject = match rights {
        Some(rights) => Arc::clone(&rights.subject),
        None => Arc::new(shared.auditor.claimed(call.run_id.as_deref())),
    };
    let method = match Method::parse(&call.method) {
        Some(method) => Cow::Borrowed(method.as_str()),
        None => Cow::Owned(shared.auditor.quoted(&call.method)),
    };
    let (runner, plugin) = (Arc::clone(&call.runner), Arc::clone(&call.plugin));
    let bytes_in = call.params.get().len();
    let scope = ProxyMethod::parse(&call.method, call.wire);
    let scope = scope.map(|method| table::row(method).reaches.as_str().into());
    Trail::new(&shared.auditor, Beginning { subject, runner, plugin, method, scope, bytes_in })
}

/// The checks of every call, in one place.
async fn check_and_carry_out(
    shared: &Arc<Shared>,
    call: &ProxyCall,
    run: Option<(&Arc<LiveRun>, &Rights)>,
    trail: &mut Trail,
) -> Answer {
    let settings = shared.settings.load_full();
    let limits = &settings.limits;
    let method = ProxyMethod::parse(&call.method, call.wire);
    let row = method.map(table::row);
    let cost = row.map_or(1, |row| row.cost);
    let may_have_ended = row.is_some_and(|row| row.at_end == AtEnd::Served);
    let is_after_end = run.is_none() && may_have_ended && call.standing != Standing::Foreign;
    // By its name in the configuration: what a process declares is unchecked until its handshake is over.
    let bucket = shared.plugin_buckets.of(&call.runner);
    // A refusal without a run costs a commit of its own: a flood of them soon exceeds the rate.
    let extra = if run.is_none() && !is_after_end { NO_RUN_COST } else { 0 };
    let taken = bucket.take(cost + extra, limits.calls_per_s_plugin);
    taken.map_err(|wait| over_rate("plugin", wait))?;
    if is_after_end {
        check_size("call", &call.params, limits.call_bytes)?;
        return langbot::get_ended_run(shared, call, trail).await;
    }
    let Some((live, rights)) = run else { return Err(no_run(shared, call)) };
    live.bucket.take(cost, limits.calls_per_s_run).map_err(|wait| over_rate("run", wait))?;
    let granted = method.zip(row).filter(|(_, row)| row.needs.granted(&rights.grant));
    let (method, row) = granted.ok_or_else(|| {
        let message = format!("`{}` is not granted to this run", call.method.escape_debug());
        refuse(ErrorCode::Unauthorized, message).detail("reason", "not_granted")
    })?;
    check_size("call", &call.params, limits.call_bytes)?;
    shared.auditor.room().await;
    let clean = match row.effect {
        Effect::Read | Effect::WriteBytes => None,
        Effect::Write => shared.redactor.json(&call.params),
    };
    let mut call = Call {
        shared,
        live,
        rights,
        settings: &settings,
        method: match method {
            ProxyMethod::Api(method) => method.as_str(),
            ProxyMethod::Langbot(_) => "langbot",
        },
        plugin: &call.plugin,
        sink: &call.sink,
        params: clean.as_deref().unwrap_or(&call.params),
        results_before: call.results_before,
        trail,
    };
    let answer = match row.at_end {
        AtEnd::Stops => tokio::select! {
            biased;
            answer = carry_out(&mut call, method, &row) => answer?,
            () = live.wait_for_end() => return Err(over(live)),
        },
        AtEnd::Finishes | AtEnd::Served => carry_out(&mut call, method, &row).await?,
    };
    if row.effect == Effect::Read {
        check_size("answer", &answer, limits.response_bytes)?;
    }
    Ok(answer)
}

/// Serves a call after the results that its run sent before it are applied.
async fn carry_out(call: &mut Call<'_>, method: ProxyMethod, row: &Row) -> Answer {
    call.live.wait_for_applied(call.results_before).await;
    fault::point("in_call");
    if row.at_end == AtEnd::Stops && call.live.rights().is_none() {
        return Err(over(call.live));
    }
    let turns = match row.turn {
        Turn::Free => None,
        Turn::Read => Some(&call.live.reads),
        Turn::Stream => Some(&call.live.streams),
    };
    // Never closed, so every call gets its turn.
    let _turn = match turns {
        Some(turns) => turns.acquire().await.ok(),
        None => None,
    };
    let method = match method {
        ProxyMethod::Api(method) => method,
        ProxyMethod::Langbot(method) => return langbot::serve(call, method).await,
    };
    match method {
        Method::StateGet => state::get(call).await,
        Method::StateList => state::list(call).await,
        Method::StateSet => state::set(call).await,
        Method::StateDelete => state::delete(call).await,
        Method::StorageGet => storage::get(call).await,
        Method::StorageList => storage::list(call).await,
        Method::StorageSet => storage::set(call).await,
        Method::StorageDelete => storage::delete(call).await,
        Method::HistoryPage => history::page(call, history::View::Earlier).await,
        Method::HistorySearch => history::search(call).await,
        Method::PlatformRequestAction => actions::request(call).await,
        Method::SteeringPull => steering::pull(call).await,
        Method::HarnessPermission => harness::permission(call).await,
        Method::ArtifactsMetadata => artifacts::metadata(call).await,
        Method::ArtifactsReadRange => artifacts::read_range(call).await,
        Method::ArtifactsOpenStream => artifacts::open_stream(call).await,
        Method::ArtifactsCreate => artifacts::create(call).await,
        Method::ArtifactsBegin => uploads::begin(call).await,
        Method::ArtifactsAppend => uploads::append(call).await,
        Method::ArtifactsCommit => uploads::commit(call).await,
        Method::EventsGet => events::get(call).await,
        Method::EventsPage => events::page(call).await,
        Method::ModelsInvoke
        | Method::ModelsStream
        | Method::ModelsRerank
        | Method::ModelsEmbed
        | Method::ModelsCountTokens => models::serve(call, method).await,
        Method::ToolsGetDetail | Method::ToolsSearch | Method::ToolsCall => {
            tools::serve(call, method).await
        }
        Method::KnowledgeList => resources::list_knowledge(),
        Method::KnowledgeRetrieve => resources::retrieve_knowledge(call).await,
    }
}

/// The refusal of a call without a live run; the runner of an overdue run learns that it was.
fn no_run(shared: &Shared, call: &ProxyCall) -> AgentAPIError {
    let overdue = |run_id: &str| shared.live.was_overdue(run_id);
    if call.standing != Standing::Foreign && call.run_id.as_deref().is_some_and(overdue) {
        return refuse(ErrorCode::DeadlineExceeded, "the run took longer than it may");
    }
    refuse(ErrorCode::Unauthorized, "there is no such live run")
}

/// The refusal of a call whose run has ended meanwhile.
fn over(live: &LiveRun) -> AgentAPIError {
    if live.is_overdue() {
        return refuse(ErrorCode::DeadlineExceeded, "the run took longer than it may");
    }
    stale()
}

fn over_rate(whose: &str, wait: Duration) -> AgentAPIError {
    let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
    refuse(ErrorCode::RateLimited, format!("the {whose} calls more often than it may"))
        .detail("retry_after_ms", wait_ms)
}

fn check_size(what: &str, json: &RawValue, bytes_max: usize) -> Result<(), AgentAPIError> {
    let bytes = json.get().len();
    if bytes <= bytes_max {
        return Ok(());
    }
    let message = format!("the {what} has {bytes} bytes, {bytes_max} are allowed");
    Err(refuse(ErrorCode::PayloadTooLarge, message))
}
