//! Places where a test may let the power go out, and settings that only a test may change.
//!
//! Invariant: without the feature `faults` this is nothing at all.

#[cfg(feature = "faults")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Plan {
        place: String,
        passes_left: AtomicU64,
        panics: bool,
    }

    static PLAN: OnceLock<Plan> = OnceLock::new();

    /// Arms one place: `place:n` ends the process when the place is passed for the n-th time,
    /// `place:n:panic` only what passes it.
    pub fn arm(spec: &str) {
        let mut parts = spec.split(':');
        let place = parts.next().unwrap_or_default().to_owned();
        let count = parts.next().and_then(|count| count.parse().ok()).unwrap_or(1);
        let (passes_left, panics) = (AtomicU64::new(count), parts.next() == Some("panic"));
        let _ = PLAN.set(Plan { place, passes_left, panics });
    }

    /// Ends the process, or panics, if this place is armed and its time has come.
    pub fn point(place: &str) {
        let Some(plan) = PLAN.get().filter(|plan| plan.place == place) else { return };
        if plan.passes_left.fetch_sub(1, Ordering::SeqCst) == 1 {
            assert!(!plan.panics, "a fault was armed at {place}");
            std::process::abort();
        }
    }

    /// The number that a setting such as `delivery_clock:3600` was armed with.
    pub fn setting(name: &str) -> Option<u64> {
        let plan = PLAN.get().filter(|plan| plan.place == name)?;
        Some(plan.passes_left.load(Ordering::Relaxed))
    }
}

#[cfg(feature = "faults")]
pub use armed::{arm, point, setting};

#[cfg(not(feature = "faults"))]
#[inline(always)]
pub fn point(_place: &str) {}

#[cfg(not(feature = "faults"))]
#[inline(always)]
pub fn setting(_name: &str) -> Option<u64> {
    None
}
