//! `[retention]`: how long facts are kept.
//!
//! Invariant: 0 days means for ever; by default only the audit trail is deleted.

use super::reader::Reader;
use std::time::Duration;

/// Longest time that can be set: a hundred years.
const DAYS_MAX: u64 = 36_500;
const DAY: Duration = Duration::from_secs(86_400);

/// `None` keeps facts for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// Bodies of events; their keys stay.
    pub events: Option<Duration>,
    pub transcript: Option<Duration>,
    /// Results, diagnostics and deliveries of ended runs; the runs stay.
    pub ledger: Option<Duration>,
    pub audit: Option<Duration>,
    pub artifacts: Option<Duration>,
    /// Workspaces of external harnesses that no run has used.
    pub workspaces: Option<Duration>,
    /// Pause between two passes that delete expired rows.
    pub collect_every: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            events: None,
            transcript: None,
            ledger: None,
            audit: Some(90 * DAY),
            artifacts: None,
            workspaces: None,
            collect_every: Duration::from_secs(60),
        }
    }
}

impl Retention {
    pub(super) fn read(mut reader: Reader<'_>) -> Self {
        let absent = Self::default();
        let mut days = |key, absent| match reader.get(key).and_then(|v| v.integer(0..=DAYS_MAX)) {
            Some(0) => None,
            Some(days) => Some(DAY.saturating_mul(u32::try_from(days).unwrap_or(u32::MAX))),
            None => absent,
        };
        let retention = Self {
            events: days("events_days", absent.events),
            transcript: days("transcript_days", absent.transcript),
            ledger: days("ledger_days", absent.ledger),
            audit: days("audit_days", absent.audit),
            artifacts: days("artifacts_days", absent.artifacts),
            workspaces: days("workspaces_days", absent.workspaces),
            collect_every: reader
                .get("collect_every_s")
                .and_then(|value| value.integer(1..=86_400))
                .map_or(absent.collect_every, Duration::from_secs),
        };
        reader.finish();
        retention
    }

    /// How long an unused workspace is kept: after the time of transcripts, nothing else of its conversation is left.
    pub fn unused_workspaces(&self) -> Option<Duration> {
        self.workspaces.into_iter().chain(self.transcript).min()
    }
}
