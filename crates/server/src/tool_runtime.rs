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
use greenroom_host::RecordCaller;
use greenroom_protocol::records::RecordOp;

pub(crate) const RECORDS: &str = "/v1/tool-runtime/records";
/// The actor that an operator acts for.
const ACTOR_HEADER: &str = "x-greenroom-actor";
/// The default actor.
const DEFAULT_ACTOR: &str = "cli";

pub(crate) async fn records(State(app): State<App>, params: Params, request: Request) -> ApiResult {
    let params = params.only(&["workspace_id"])?;
    let (mut parts, body) = request.into_parts();
    let by_credential = bearer(&parts).and_then(|token| app.host.record_caller(token));
    let caller = match by_credential {
        Some(caller) => caller,
        None => {
            Caller::from_request_parts(&mut parts, &app).await?.require_admin()?;
            RecordCaller {
                workspace_id: params.workspace().to_owned(),
                actor: actor(&parts.headers)?,
                methods: None,
            }
        }
    };
    check_type(&parts.headers)?;
    let body = read_body(&app, body).await?;
    let op: RecordOp = serde_json::from_slice(&body)
        .map_err(|error| Problem::invalid(format!("invalid record operation: {error}")))?;
    ok(app.host.record(&caller, op).await.map_err(Problem::from)?)
}

fn actor(headers: &HeaderMap) -> Result<String, Problem> {
    let Some(actor) = headers.get(ACTOR_HEADER) else { return Ok(DEFAULT_ACTOR.to_owned()) };
    let actor = std::str::from_utf8(actor.as_bytes()).ok().filter(|actor| !actor.is_empty());
    let wrong = || Problem::invalid(format!("`{ACTOR_HEADER}` is not a valid actor"));
    actor.map(str::to_owned).ok_or_else(wrong)
}
