//! One run, and pages of runs.
//!
//! Invariant: a page scans a bounded number of runs, whatever the filter, and says where to continue; new runs
//! do not shift pages.

use super::{DIAGNOSTICS_SHOWN, approval_view, delivery_view, model_calls, run_view};
use crate::host::Host;
use crate::ids::rfc3339;
use greenroom_protocol::{RunStatus, RunView};
use greenroom_store::reads::approvals::ApprovalFilter;
use greenroom_store::reads::runs::RunFilter;
use greenroom_store::sql::Tx;
use greenroom_store::types::RunRow;
use greenroom_store::{StoreError, reads};
use serde_json::{Value, json};

/// Runs that a page with filters scans.
const LOOKED_AT_MAX: i64 = 10_000;
/// How far the time in a run's id may be from its stored time.
const SLACK_MS: i64 = 60_000;

impl Host {
    /// A run in full.
    pub async fn run(&self, workspace: &str, run_id: &str) -> Result<Option<RunView>, StoreError> {
        let live = self.shared.live.get(run_id);
        let (workspace, run_id) = (workspace.to_owned(), run_id.to_owned());
        let read = self.store().read(move |tx| {
            let Some(run) = reads::runs::get(tx, &workspace, &run_id)? else { return Ok(None) };
            let diagnostics = reads::runs::diagnostics(tx, &run_id, DIAGNOSTICS_SHOWN)?;
            let deliveries = reads::deliveries::of_run(tx, &workspace, &run_id)?;
            let of_run = ApprovalFilter { status: None, run_id: Some(run_id.clone()) };
            let approvals =
                reads::approvals::page(tx, &workspace, &of_run, None, DIAGNOSTICS_SHOWN)?;
            let spend = reads::spend::sum_of_run(tx, &workspace, &run_id)?;
            Ok(Some((run, diagnostics, deliveries, approvals, spend)))
        });
        Ok(read.await?.map(|(run, diagnostics, deliveries, approvals, spend)| {
            let mut view = RunView { model_calls: Some(model_calls(spend)), ..run_view(run) };
            let notes: Vec<Value> = diagnostics
                .into_iter()
                .map(|note| {
                    json!({"kind": note.kind, "message": note.message, "created_at": rfc3339(note.created_at)})
                })
                .collect();
            let deliveries: Vec<Value> = deliveries.iter().map(delivery_view).collect();
            view.extra.insert("diagnostics".to_owned(), notes.into());
            let approvals: Vec<Value> = approvals.iter().rev().map(approval_view).collect();
            view.extra.insert("deliveries".to_owned(), deliveries.into());
            view.extra.insert("approvals".to_owned(), approvals.into());
            if view.status == RunStatus::Running {
                let is_with_runner = live.is_some_and(|live| live.is_with_runner());
                view.extra.insert("with_runner".to_owned(), is_with_runner.into());
            }
            view
        }))
    }
}

/// The runs of a page, and the id before which the next page starts.
pub(super) fn page(
    tx: &mut dyn Tx,
    workspace: &str,
    filter: &RunFilter,
    before: Option<&str>,
    limit: usize,
) -> Result<(Vec<RunRow>, Option<String>), StoreError> {
    let bounded = filter.passes_over() && filter.conversation_id.is_none();
    let floor = match bounded {
        true => reads::runs::floor(tx, workspace, filter, before, LOOKED_AT_MAX)?,
        false => None,
    };
    let id_min = floor.clone().or_else(|| filter.id_min.clone());
    let filter = RunFilter { id_min, ..filter.clone() };
    let wanted = i64::try_from(limit).map_or(i64::MAX, |limit| limit + 1);
    let mut rows = reads::runs::page(tx, workspace, &filter, before, wanted)?;
    let next = match rows.len() > limit {
        true => {
            rows.truncate(limit);
            rows.last().map(|run| run.run_id.clone())
        }
        false => floor,
    };
    Ok((rows, next))
}

/// Ids begin with a time, so a time bounds them; the exact time is compared as well.
pub(super) fn by_time(filter: RunFilter) -> RunFilter {
    RunFilter {
        id_min: filter.since_ms.map(|since| first_id(since.saturating_sub(SLACK_MS))),
        id_end: filter.until_ms.map(|until| first_id(until.saturating_add(SLACK_MS))),
        ..filter
    }
}

/// A lower bound of the ids of that time or later.
fn first_id(at_ms: i64) -> String {
    // 48 bits of milliseconds come first in a UUID of version 7.
    format!("run_{:012x}", at_ms.clamp(0, 0xffff_ffff_ffff))
}

/// The domain of the cursors of this list.
pub(super) fn domain(workspace: &str, filter: &RunFilter) -> Vec<String> {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let time = |part: Option<i64>| part.map(|time| time.to_string()).unwrap_or_default();
    vec![
        "runs".to_owned(),
        workspace.to_owned(),
        text(&filter.conversation_id),
        text(&filter.agent),
        filter.status.map_or("", RunStatus::as_str).to_owned(),
        text(&filter.runner_id),
        text(&filter.event_type),
        text(&filter.error_code),
        time(filter.since_ms),
        time(filter.until_ms),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_stands_between_the_bounds_of_its_time() {
        let at_ms = crate::ids::now_ms();
        let id = crate::ids::fresh("run");
        assert!(first_id(at_ms - 1) < id && id < first_id(at_ms + SLACK_MS), "{id}");
        assert!(first_id(-5) == "run_000000000000" && first_id(i64::MAX) == "run_ffffffffffff");
    }
}
