//! Deliveries: pages of them, and one in full.
//!
//! Invariant: a page scans a bounded number of deliveries and says where to continue; payloads are shown with
//! one delivery only.

use super::Page;
use crate::delivery::conversation_of;
use crate::host::Host;
use crate::ids::rfc3339;
use greenroom_store::reads::deliveries::{DeliveryFilter, Unsuccessful, page};
use greenroom_store::sql::Tx;
use greenroom_store::types::{DeliveryRow, DeliveryStatus};
use greenroom_store::{StoreError, reads};
use serde_json::{Value, json};

/// Deliveries that a page scans.
const LOOKED_AT_MAX: i64 = 10_000;

impl Host {
    /// Deliveries, newest first; none if the cursor does not belong to this list.
    pub async fn deliveries(
        &self,
        workspace: &str,
        filter: DeliveryFilter,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Option<Page<Value>>, StoreError> {
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let status = filter.status.map_or("", DeliveryStatus::as_str);
        let (surface, run_id) = (text(&filter.surface), text(&filter.run_id));
        let domain = ["deliveries", workspace, status, &surface, &run_id];
        let Ok(position) = self.position(&domain, cursor) else { return Ok(None) };
        let before = position.and_then(|id| id.parse().ok()).unwrap_or(i64::MAX);
        let owner = workspace.to_owned();
        let read = move |tx: &mut dyn Tx| page(tx, &owner, &filter, before, (limit, LOOKED_AT_MAX));
        let page = self.store().read(read).await?;
        let items = page.rows.iter().map(delivery_view).collect();
        let next = page.next.map(|id| id.to_string());
        let has_more = next.is_some();
        Ok(Some(self.page(&domain, items, next, has_more)))
    }

    /// One delivery, with its payload.
    pub async fn delivery(
        &self,
        workspace: &str,
        delivery_id: &str,
    ) -> Result<Option<Value>, StoreError> {
        let (workspace, id) = (workspace.to_owned(), delivery_id.to_owned());
        let read = self.store().read(move |tx| reads::deliveries::get(tx, &workspace, &id));
        Ok(read.await?.map(|row| {
            let mut view = delivery_view(&row);
            view["payload"] = serde_json::from_str(&row.payload).unwrap_or_default();
            view
        }))
    }

    /// How many deliveries of a workspace failed or have an unknown outcome.
    pub async fn unsuccessful_deliveries(
        &self,
        workspace: &str,
    ) -> Result<Unsuccessful, StoreError> {
        let workspace = workspace.to_owned();
        self.store().read(move |tx| reads::deliveries::unsuccessful(tx, &workspace)).await
    }
}

pub(super) fn delivery_view(row: &DeliveryRow) -> Value {
    json!({"delivery_id": row.delivery_id, "surface": row.surface, "target": row.target,
        "conversation_id": conversation_of(row), "run_id": row.run_id, "sequence": row.sequence,
        "status": row.status.as_str(), "attempts": row.attempts, "error": row.error,
        "created_at": rfc3339(row.created_at), "updated_at": rfc3339(row.updated_at),
        "next_attempt_at": row.next_attempt_at.map(rfc3339)})
}
