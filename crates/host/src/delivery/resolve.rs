//! Deliveries that a user retries or discards.
//!
//! Invariant: each is decided once; the event log records who decided.

use super::attempt::{conversation_of, log_body};
use crate::follow_up::FollowUp;
use crate::host::{Host, Shared};
use crate::ids::{self, now_ms};
use greenroom_store::commands::{Resolution, ResolveDelivery, Resolved};
use greenroom_store::reads::deliveries::Lane;
use greenroom_store::types::HostEvent;
use greenroom_store::{StoreError, reads};
use std::sync::Arc;

impl Host {
    /// Retries a delivery that failed or whose outcome is unknown, or discards one.
    pub async fn resolve_delivery(
        &self,
        workspace: &str,
        delivery_id: &str,
        resolution: Resolution,
        by: &str,
    ) -> Result<Resolved, StoreError> {
        let host = self.clone();
        let (workspace, id) = (workspace.to_owned(), delivery_id.to_owned());
        let by = by.to_owned();
        // In a task: a caller that disconnects must not leave the lane without its wake-up.
        let work = async move { host.shared.resolve(workspace, id, resolution, &by).await };
        let resolved = self.shared.tasks.spawn("resolve a delivery", work).await;
        resolved.map_err(|error| StoreError::Refused(error.to_string()))?
    }
}

impl Shared {
    async fn resolve(
        self: &Arc<Self>,
        workspace_id: String,
        delivery_id: String,
        resolution: Resolution,
        by: &str,
    ) -> Result<Resolved, StoreError> {
        let workspace = workspace_id.clone();
        let read = self.store.read(move |tx| reads::deliveries::get(tx, &workspace, &delivery_id));
        let Some(row) = read.await? else { return Ok(Resolved::NotFound) };
        let verb = match resolution {
            Resolution::Retry => "retried",
            Resolution::Discard => "discarded",
        };
        let mut body = log_body(&row);
        body["status"] = verb.into();
        body["by"] = by.into();
        let command = ResolveDelivery {
            id: row.id,
            workspace_id,
            run_id: row.run_id.clone(),
            conversation_id: conversation_of(&row),
            resolution,
            log: HostEvent {
                event_id: ids::fresh("evt"),
                event_type: format!("delivery.{verb}"),
                body: body.to_string(),
            },
            now_ms: now_ms(),
        };
        let resolved = self.store.commit(command).await?;
        if resolved == Resolved::Done {
            tracing::info!(
                run.id = row.run_id,
                delivery.id = row.delivery_id,
                surface = row.surface,
                by,
                "delivery {verb}"
            );
            let lane = Lane { surface: row.surface, target: row.target };
            let wake = FollowUp::WakeDelivery { delivery_id: row.delivery_id };
            self.follow_up(vec![wake, FollowUp::DeliverNow(lane)]).await;
        }
        Ok(resolved)
    }
}
