//! Times and durations as text.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Milliseconds from one RFC 3339 time to another.
pub fn between(from: &str, to: &str) -> Option<i64> {
    let parse = |text| OffsetDateTime::parse(text, &Rfc3339).ok();
    i64::try_from((parse(to)? - parse(from)?).whole_milliseconds()).ok()
}

/// `2026-01-02 03:04:05` of an RFC 3339 time.
pub fn short(text: &str) -> String {
    text.chars().take(19).map(|c| if c == 'T' { ' ' } else { c }).collect()
}

/// A time span in the unit that fits it.
pub fn duration(ms: i64) -> String {
    match ms {
        ..1_000 => format!("{ms} ms"),
        1_000..60_000 => format!("{}.{} s", ms / 1_000, ms % 1_000 / 100),
        _ => format!("{} min {} s", ms / 60_000, ms % 60_000 / 1_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_the_unit_that_fits() {
        let span = between("2026-01-01T00:00:00.000Z", "2026-01-01T00:01:02.340Z").unwrap();
        assert_eq!(duration(span), "1 min 2 s");
        assert_eq!(duration(2_340), "2.3 s");
        assert_eq!(duration(12), "12 ms");
        assert_eq!(short("2026-01-01T00:01:02.340Z"), "2026-01-01 00:01:02");
    }
}
