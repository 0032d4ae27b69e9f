//! Pages of runs.
//!
//! Invariant: a page looks at a bounded number of runs, whatever it is narrowed to, and says where to go on;
//! runs that come meanwhile shift nothing.

use greenroom_protocol::RunStatus;
use greenroom_store::reads::runs::RunFilter;
use greenroom_store::sql::Tx;
use greenroom_store::types::RunRow;
use greenroom_store::{StoreError, reads};

/// Runs that a page with filters looks at.
const LOOKED_AT_MAX: i64 = 10_000;
/// How far the time in a run's id may be from the time that was kept with it.
const SLACK_MS: i64 = 60_000;

/// The runs of a page, and the id to go on before.
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

/// Ids are made by time, so a time bounds them; the exact time is compared beside.
pub(super) fn by_time(filter: RunFilter) -> RunFilter {
    RunFilter {
        id_min: filter.since_ms.map(|since| first_id(since.saturating_sub(SLACK_MS))),
        id_end: filter.until_ms.map(|until| first_id(until.saturating_add(SLACK_MS))),
        ..filter
    }
}

/// What no id of that moment or a later one is before.
fn first_id(at_ms: i64) -> String {
    // 48 bits of milliseconds come first in a UUID of version 7.
    format!("run_{:012x}", at_ms.clamp(0, 0xffff_ffff_ffff))
}

/// What a cursor of this list is bound to.
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
