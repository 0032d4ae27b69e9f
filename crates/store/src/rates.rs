//! Slots of time and classes of durations, in which runs and calls of models are counted.
//!
//! Invariant: a class is a quarter of a doubling wide, so that a value derived from it is within ten per cent and
//! a millisecond.

/// Slots that are counted in: minutes for an hour, ten minutes for a day, two hours for a week.
pub const SPANS_MS: [i64; 3] = [60_000, 600_000, 7_200_000];

const GRADES_PER_DOUBLING: f64 = 4.0;

/// When the slot of a moment began.
pub fn slot(span_ms: i64, at_ms: i64) -> i64 {
    at_ms - at_ms.rem_euclid(span_ms)
}

/// The class of a duration.
pub fn grade(duration_ms: i64) -> i64 {
    let doublings = (duration_ms.max(0) as f64 + 1.0).log2();
    (doublings * GRADES_PER_DOUBLING) as i64
}

/// A duration of this class.
pub fn duration_ms(grade: i64) -> i64 {
    let middle = (grade as f64 + 0.5) / GRADES_PER_DOUBLING;
    (middle.exp2() - 1.0).round() as i64
}

/// The duration that this share of the runs took at most, by their number in each class in order; nothing
/// without runs.
pub fn percentile(grades: impl Iterator<Item = (i64, i64)> + Clone, share: f64) -> Option<i64> {
    let all: i64 = grades.clone().map(|(_, runs)| runs).sum();
    let wanted = ((all as f64 * share).ceil() as i64).max(1);
    let mut seen = 0;
    let found = grades.into_iter().find(|(_, runs)| {
        seen += runs;
        seen >= wanted
    });
    found.map(|(grade, _)| duration_ms(grade))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_told_within_ten_per_cent_and_a_millisecond() {
        for exact in (0..200).chain((200..1_000_000).step_by(997)) {
            let value = duration_ms(grade(exact));
            let off = (value - exact).abs();
            assert!(off as f64 <= 1.0 + exact as f64 * 0.1, "{exact} is reported as {value}");
        }
        assert_eq!(grade(-5), 0);
    }

    #[test]
    fn a_slot_begins_at_a_whole_minute() {
        assert_eq!(slot(60_000, 60_000), 60_000);
        assert_eq!(slot(60_000, 119_999), 60_000);
        assert_eq!(slot(600_000, 1_234_567), 1_200_000);
    }

    #[test]
    fn percentiles_are_those_of_the_classes() {
        let runs = [(grade(10), 50), (grade(100), 45), (grade(1000), 5)];
        let at = |share| percentile(runs.into_iter(), share);
        assert_eq!(at(0.5), Some(duration_ms(grade(10))));
        assert_eq!(at(0.51), Some(duration_ms(grade(100))));
        assert_eq!(at(0.95), Some(duration_ms(grade(100))));
        assert_eq!(at(0.96), Some(duration_ms(grade(1000))));
        assert_eq!(percentile([].into_iter(), 0.5), None);
    }
}
