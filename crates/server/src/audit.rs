//! `GET /v1/audit`: calls of runners.

use crate::access::Caller;
use crate::query::Params;
use crate::response::{ApiResult, Problem, ok};
use crate::router::App;
use axum::extract::State;
use greenroom_protocol::ErrorCode;
use greenroom_store::audit::OK;
use greenroom_store::reads::audit::AuditFilter;

pub(crate) async fn list(State(app): State<App>, caller: Caller, params: Params) -> ApiResult {
    caller.require_reader()?;
    let known = ["workspace_id", "run_id", "method", "code", "denied", "cursor", "limit"];
    let params = params.only(&known)?;
    let text = |name| params.text(name).map(str::to_owned);
    let filter = AuditFilter {
        run_id: text("run_id"),
        method: text("method"),
        code: params.text("code").map(code).transpose()?,
        denied_only: match params.text("denied") {
            None | Some("false") => false,
            Some("true") => true,
            Some(_) => return Err(Problem::invalid("`denied` is `true` or `false`")),
        },
    };
    let page = app.host.audit(params.workspace(), filter, params.cursor(), params.limit()?).await?;
    ok(page.ok_or_else(Problem::foreign_cursor)?)
}

fn code(text: &str) -> Result<String, Problem> {
    if codes().any(|code| code == text) {
        return Ok(text.to_owned());
    }
    Err(Problem::invalid("`code` is `ok` or an error code"))
}

/// Values of `code`.
pub(crate) fn codes() -> impl Iterator<Item = &'static str> {
    std::iter::once(OK).chain(ErrorCode::ALL.map(ErrorCode::as_str))
}
