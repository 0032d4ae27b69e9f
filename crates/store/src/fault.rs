//! Places where a test may let the power go out.
//!
//! Invariant: without the feature `faults` this is nothing at all.

#[cfg(feature = "faults")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Plan {
        place: String,
        passes_left: AtomicU64,
    }

    static PLAN: OnceLock<Plan> = OnceLock::new();

    /// Arms one place: `place:n` ends the process when the place is passed for the n-th time.
    pub fn arm(spec: &str) {
        let (place, count) = spec.split_once(':').unwrap_or((spec, "1"));
        let passes_left = AtomicU64::new(count.parse().unwrap_or(1));
        let _ = PLAN.set(Plan { place: place.to_owned(), passes_left });
    }

    /// Ends the process if this place is armed and its time has come.
    pub fn point(place: &str) {
        let Some(plan) = PLAN.get().filter(|plan| plan.place == place) else { return };
        if plan.passes_left.fetch_sub(1, Ordering::SeqCst) == 1 {
            std::process::abort();
        }
    }
}

#[cfg(feature = "faults")]
pub use armed::{arm, point};

#[cfg(not(feature = "faults"))]
#[inline(always)]
pub fn point(_place: &str) {}
