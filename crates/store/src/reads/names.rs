//! Pages of names in byte order, by prefix.
//!
//! Invariant: a page reads the rows it hands out and one more, whatever the prefix holds.

/// The least name that has the prefix and is greater than `after`. Names hold no U+0000, so nothing comes
/// between a name and the same with U+0001 behind it; byte order is the order of the characters.
pub(super) fn first_name(prefix: &str, after: &str) -> String {
    match after {
        "" => prefix.to_owned(),
        _ => prefix.to_owned().max(format!("{after}\u{1}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_starts_behind_the_last_name_and_never_before_the_prefix() {
        let cases = [
            ("", "", ""),
            ("a", "", "a"),
            ("a", "a", "a\u{1}"),
            ("b", "a", "b"),
            ("a", "b", "b\u{1}"),
            ("数", "数据", "数据\u{1}"),
            ("\u{10ffff}", "a", "\u{10ffff}"),
        ];
        for (prefix, after, first) in cases {
            assert_eq!(first_name(prefix, after), first, "{prefix:?} after {after:?}");
        }
    }
}
