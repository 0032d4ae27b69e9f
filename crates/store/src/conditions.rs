//! Statuses in statements.
//!
//! Invariant: a status is a parameter, bound as the typed value. The exceptions are here: a database takes a
//! partial index only for a statement that repeats the index's condition word for word.

use crate::approvals::{ApprovalKind, ApprovalStatus};
use crate::sql::Value;
use crate::types::{DeliveryStatus, OnInterrupt, Queue};
use greenroom_protocol::RunStatus;
use greenroom_protocol::records::RecordLinkStatus;

/// The condition of `outbox_open`.
macro_rules! delivery_is_open {
    () => {
        "status IN ('pending', 'claimed')"
    };
}

/// The condition of `outbox_unsuccessful`.
macro_rules! delivery_is_unsuccessful {
    () => {
        "status IN ('failed', 'unknown', 'discarded')"
    };
}

/// The condition of `approvals_pending` and `approvals_due`.
macro_rules! approval_is_pending {
    () => {
        "status = 'pending'"
    };
}

pub(crate) use {approval_is_pending, delivery_is_open, delivery_is_unsuccessful};

macro_rules! bound_by_name {
    ($($kind:ty),+) => {
        $(impl From<$kind> for Value<'_> {
            fn from(value: $kind) -> Self {
                Value::Text(value.as_str())
            }
        })+
    };
}

bound_by_name!(
    ApprovalKind,
    ApprovalStatus,
    DeliveryStatus,
    OnInterrupt,
    Queue,
    RecordLinkStatus,
    RunStatus
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_name_the_statuses_they_mean_and_repeat_those_of_the_indexes() {
        use DeliveryStatus::{Claimed, Discarded, Failed, Pending, Unknown};
        let among = |statuses: &[DeliveryStatus]| {
            let names: Vec<_> = statuses.iter().map(|s| format!("'{}'", s.as_str())).collect();
            format!("status IN ({})", names.join(", "))
        };
        assert_eq!(delivery_is_open!(), among(&[Pending, Claimed]));
        assert_eq!(delivery_is_unsuccessful!(), among(&[Failed, Unknown, Discarded]));
        let pending = format!("status = '{}'", ApprovalStatus::Pending.as_str());
        assert_eq!(approval_is_pending!(), pending);
        let schema = include_str!("schema.sql");
        for condition in [delivery_is_open!(), delivery_is_unsuccessful!(), approval_is_pending!()]
        {
            assert!(schema.contains(&format!("WHERE {condition};")), "{condition}");
        }
    }
}
