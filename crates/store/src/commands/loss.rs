//! The record of a loss that an operator accepted: a fact like any other.

use super::results::insert_host_event;
use crate::sql::Tx;
use crate::types::HostEvent;
use crate::{StoreError, clock};
use serde_json::json;

/// The workspace of the host's own events.
const WORKSPACE: &str = "default";

/// Appends the event `store.loss_accepted`, once per start.
pub(crate) fn record_accepted_loss(
    tx: &mut dyn Tx,
    epoch: i64,
    found: &str,
) -> Result<(), StoreError> {
    let event = HostEvent {
        event_id: format!("store.loss_accepted.{epoch}"),
        event_type: "store.loss_accepted".to_owned(),
        body: json!({"data": {"found": found, "start": epoch}}).to_string(),
    };
    insert_host_event(tx, WORKSPACE, &event, (None, None), clock::now_ms())
}
