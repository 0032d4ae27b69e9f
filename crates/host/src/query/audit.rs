//! The audit trail as the API returns it.
//!
//! Invariant: names, sizes and times only, as they were recorded.

use super::Page;
use crate::host::Host;
use crate::ids::rfc3339;
use greenroom_protocol::api::audit::AuditView;
use greenroom_store::reads::audit::{AuditEntry, AuditFilter, AuditPosition};
use greenroom_store::{StoreError, reads};

impl Host {
    /// Calls of runners, newest first; none if the cursor does not belong to this list. With a filter that
    /// matches few records, a page may be short although more follow.
    pub async fn audit(
        &self,
        workspace: &str,
        filter: AuditFilter,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Option<Page<AuditView>>, StoreError> {
        let run_id = filter.run_id.clone().unwrap_or_default();
        let method = filter.method.clone().unwrap_or_default();
        let code = filter.code.clone().unwrap_or_default();
        let denied = if filter.denied_only { "denied" } else { "" };
        let domain = ["audit", workspace, &run_id, &method, &code, denied];
        let Ok(position) = self.position(&domain, cursor) else { return Ok(None) };
        let before = position.and_then(|text| parse(&text));
        let owner = workspace.to_owned();
        let read = move |tx: &mut dyn greenroom_store::sql::Tx| {
            reads::audit::page(tx, &owner, &filter, before, limit)
        };
        let page = self.store().read(read).await?;
        let next = page.next.map(|next| format!("{}.{}", next.id, next.index));
        let items = page.entries.into_iter().map(view).collect();
        let has_more = next.is_some();
        Ok(Some(self.page(&domain, items, next, has_more)))
    }
}

fn parse(text: &str) -> Option<AuditPosition> {
    let (id, index) = text.split_once('.')?;
    Some(AuditPosition { id: id.parse().ok()?, index: index.parse().ok()? })
}

fn view(AuditEntry { run_id, record }: AuditEntry) -> AuditView {
    AuditView {
        run_id,
        attempt: record.attempt,
        agent: Some(record.agent).filter(|agent| !agent.is_empty()),
        runner: record.runner,
        plugin: record.plugin,
        runner_id: record.runner_id,
        method: record.method,
        resource: record.resource,
        scope: record.scope,
        authority: record.authority,
        code: record.code,
        bytes_in: record.bytes_in,
        bytes_out: record.bytes_out,
        duration_us: record.duration_us,
        at: rfc3339(record.at_ms),
    }
}
