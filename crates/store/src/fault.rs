//! Fault injection for tests: points at which the process aborts, and settings that only a test may change.
//!
//! Invariant: without the feature `faults` it compiles to nothing.

#[cfg(feature = "faults")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Plan {
        point: String,
        passes_left: AtomicU64,
        panics: bool,
    }

    static PLAN: OnceLock<Plan> = OnceLock::new();

    /// Arms one point: `point:n` aborts the process when the point is passed for the n-th time,
    /// `point:n:panic` panics there instead.
    pub fn arm(spec: &str) {
        let mut parts = spec.split(':');
        let point = parts.next().unwrap_or_default().to_owned();
        let count = parts.next().and_then(|count| count.parse().ok()).unwrap_or(1);
        let (passes_left, panics) = (AtomicU64::new(count), parts.next() == Some("panic"));
        let _ = PLAN.set(Plan { point, passes_left, panics });
    }

    /// Aborts or panics if this point is armed and was passed often enough.
    pub fn point(name: &str) {
        let Some(plan) = PLAN.get().filter(|plan| plan.point == name) else { return };
        if plan.passes_left.fetch_sub(1, Ordering::SeqCst) == 1 {
            assert!(!plan.panics, "a fault was armed at {name}");
            std::process::abort();
        }
    }

    /// The number that a setting such as `delivery_clock:3600` was armed with.
    pub fn setting(name: &str) -> Option<u64> {
        let plan = PLAN.get().filter(|plan| plan.point == name)?;
        Some(plan.passes_left.load(Ordering::Relaxed))
    }
}

#[cfg(feature = "faults")]
pub use armed::{arm, point, setting};

#[cfg(not(feature = "faults"))]
#[inline(always)]
pub fn point(_name: &str) {}

#[cfg(not(feature = "faults"))]
#[inline(always)]
pub fn setting(_name: &str) -> Option<u64> {
    None
}
