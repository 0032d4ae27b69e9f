//! `[retention]`: how long facts are kept.
//!
//! Invariant: 0 days means for ever; nothing but the audit trail goes unless the file says so.

use super::reader::Reader;

/// Longest time that can be asked for: a hundred years.
const DAYS_MAX: u64 = 36_500;
const AUDIT_DAYS: u64 = 90;
const COLLECT_EVERY_S: u64 = 60;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Bodies of events; their keys stay.
    pub events_days: u64,
    pub transcript_days: u64,
    /// Results, diagnostics and deliveries of ended runs; the runs stay.
    pub ledger_days: u64,
    pub audit_days: u64,
    pub artifacts_days: u64,
    /// Pause between two looks for what is past its time.
    pub collect_every_s: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            events_days: 0,
            transcript_days: 0,
            ledger_days: 0,
            audit_days: AUDIT_DAYS,
            artifacts_days: 0,
            collect_every_s: COLLECT_EVERY_S,
        }
    }
}

impl Retention {
    pub(super) fn read(mut reader: Reader<'_>) -> Self {
        let absent = Self::default();
        let mut days = |key, absent| {
            let value = reader.get(key).and_then(|value| value.integer(0..=DAYS_MAX));
            value.unwrap_or(absent)
        };
        let retention = Self {
            events_days: days("events_days", absent.events_days),
            transcript_days: days("transcript_days", absent.transcript_days),
            ledger_days: days("ledger_days", absent.ledger_days),
            audit_days: days("audit_days", absent.audit_days),
            artifacts_days: days("artifacts_days", absent.artifacts_days),
            collect_every_s: reader
                .get("collect_every_s")
                .and_then(|value| value.integer(1..=86_400))
                .unwrap_or(absent.collect_every_s),
        };
        reader.finish();
        retention
    }
}
