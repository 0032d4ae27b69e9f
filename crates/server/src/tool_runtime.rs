//! The API for tool processes: records of the actor that they act for.
//!
//! Invariant: a credential is valid for its call only; an operator's token must name the actor.

use crate::access::{Caller, bearer};
use crate::events::{check_type, read_body};
use crate::query::Params;
use crate::response::{ApiResult, Problem, ok};
use crate::router::App;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::HeaderMap;
use greenroom_host::{ActorIds, RecordCaller};
use greenroom_protocol::records::RecordOp;
use greenroom_store::records::Person;

pub(crate) const RECORDS: &str = "/v1/tool-runtime/records";
/// The actor that an operator acts for.
const ACTOR_HEADER: &str = "x-greenroom-actor";
/// The source whose actor that is, and the token if it has actors of its own.
const SOURCE_HEADER: &str = "x-greenroom-source";
const TOKEN_HEADER: &str = "x-greenroom-token";
/// The default actor.
const DEFAULT_ACTOR: &str = "cli";
const DEFAULT_SOURCE: &str = "api";

pub(crate) async fn records(State(app): State<App>, params: Params, request: Request) -> ApiResult {
    let params = params.only(&["workspace_id"])?;
    let (mut parts, body) = request.into_parts();
    let by_credential = bearer(&parts).and_then(|token| app.host.record_caller(token));
    let caller = match by_credential {
        Some(caller) => caller,
        None => {
            Caller::from_request_parts(&mut parts, &app).await?.require_admin()?;
            RecordCaller { person: person(params.workspace(), &parts.headers)?, methods: None }
        }
    };
    check_type(&parts.headers)?;
    let body = read_body(&app, body).await?;
    let op: RecordOp = serde_json::from_slice(&body)
        .map_err(|error| Problem::invalid(format!("invalid record operation: {error}")))?;
    ok(app.host.record(&caller, op).await.map_err(Problem::from)?)
}

/// The person that an operator acts for.
fn person(workspace: &str, headers: &HeaderMap) -> Result<Person, Problem> {
    let source = text(headers, SOURCE_HEADER)?.unwrap_or(DEFAULT_SOURCE);
    let source = match text(headers, TOKEN_HEADER)? {
        Some(token) => ActorIds::OfToken(format!("token:{token}").into()).of(source),
        None => source.to_owned(),
    };
    Ok(Person {
        workspace_id: workspace.to_owned(),
        source,
        actor: text(headers, ACTOR_HEADER)?.unwrap_or(DEFAULT_ACTOR).to_owned(),
    })
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>, Problem> {
    let Some(value) = headers.get(name) else { return Ok(None) };
    let value = std::str::from_utf8(value.as_bytes()).ok().filter(|value| !value.is_empty());
    value.map(Some).ok_or_else(|| Problem::invalid(format!("`{name}` is not valid")))
}
