//! `GET /v1/overview`.

use crate::access::Caller;
use crate::query::Params;
use crate::response::{ApiResult, Problem, ok};
use crate::router::App;
use axum::extract::State;
use greenroom_host::Window;

/// The time windows that can be chosen.
pub(crate) const MINUTES: [i64; 3] =
    [Window::ALL[0].minutes, Window::ALL[1].minutes, Window::ALL[2].minutes];

pub(crate) async fn show(State(app): State<App>, caller: Caller, params: Params) -> ApiResult {
    caller.require_reader()?;
    let params = params.only(&["workspace_id", "minutes"])?;
    let minutes = params.number("minutes")?.unwrap_or(MINUTES[0]);
    let window = Window::ALL.into_iter().find(|window| window.minutes == minutes);
    let window = window.ok_or_else(|| {
        let [hour, day, week] = MINUTES;
        Problem::invalid(format!("`minutes` is {hour}, {day} or {week}"))
    })?;
    ok(app.host.overview(params.workspace(), window).await)
}
