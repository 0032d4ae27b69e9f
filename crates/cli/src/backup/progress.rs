//! Progress of a long command: one changing line on a terminal, one line per step elsewhere.

use crate::output;
use std::time::{Duration, Instant};

/// Shortest time between two updates.
const EVERY: Duration = Duration::from_millis(100);

pub(crate) struct Progress {
    is_live: bool,
    shown_at: Option<Instant>,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { is_live: output::is_terminal(), shown_at: None }
    }

    /// Updates the current step; cheap to call often.
    pub(crate) fn update(&mut self, text: impl FnOnce() -> String) {
        if !self.is_live || self.shown_at.is_some_and(|at| at.elapsed() < EVERY) {
            return;
        }
        self.shown_at = Some(Instant::now());
        output::overwrite(&text());
    }

    /// Completes a step.
    pub(crate) fn done(&mut self, text: &str) {
        if self.shown_at.take().is_some() {
            output::overwrite("");
        }
        output::note(text);
    }
}

/// Bytes in the largest unit that fits.
pub(crate) fn size(bytes: u64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    match units.into_iter().find(|(_, shift)| bytes >> shift > 0) {
        Some((unit, shift)) => {
            let tenths = (u128::from(bytes) * 10) >> shift;
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} bytes"),
    }
}

/// `1 row`, `2 rows`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}
