//! Text as it is compared: lower case, without accents, widths and presentation forms made one.
//!
//! Invariant: a folded text holds characters of words, characters of dense scripts (those written without
//! blanks) and single U+0020 between them, nothing else; the same text always folds to the same.

use unicode_normalization::char::decompose_compatible;

/// What a folded character is part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A letter or digit of a script that puts blanks between words.
    Word,
    /// A character of a script without blanks, or a pictograph: found by itself and in pairs.
    Dense,
}

/// The kind of a folded character; none for U+0020.
pub(crate) fn kind(c: char) -> Option<Kind> {
    match c {
        'a'..='z' | '0'..='9' => Some(Kind::Word),
        ' ' => None,
        _ if is_dense(c) => Some(Kind::Dense),
        _ => Some(Kind::Word),
    }
}

/// The folded text.
pub(crate) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    fold_into(text, |c, _| folded.push(c));
    folded
}

/// Folds a text; each folded character comes with the number of the character it was made from.
pub(crate) fn fold_into(text: &str, mut emit: impl FnMut(char, usize)) {
    let (mut last, mut gap) = (None, false);
    for (number, c) in text.chars().enumerate() {
        expand(c, |part| match part {
            Part::Of(kind, c) => {
                // A blank between 数据库 and `mysql` is optional.
                if gap && last == Some(kind) {
                    emit(' ', number);
                }
                emit(c, number);
                (last, gap) = (Some(kind), false);
            }
            Part::Dropped => {}
            Part::Gap => gap = true,
        });
    }
}

/// Whether a character separates phrases of a query, unlike those that join words as in `example.com`.
pub(crate) fn parts_phrases(c: char) -> bool {
    matches!(part(c), Part::Gap) && !".-_:/@'+#&=".contains(c)
}

/// Whether a character is ignored and does not separate words.
pub(crate) fn is_dropped(c: char) -> bool {
    matches!(c,
        '\u{0300}'..='\u{036f}' | '\u{00ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{3099}' | '\u{309a}' | '\u{20d0}'..='\u{20ff}')
}

enum Part {
    Of(Kind, char),
    Dropped,
    Gap,
}

fn expand(c: char, mut emit: impl FnMut(Part)) {
    match c {
        'a'..='z' | '0'..='9' => emit(Part::Of(Kind::Word, c)),
        'A'..='Z' => emit(Part::Of(Kind::Word, c.to_ascii_lowercase())),
        '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' => emit(Part::Of(Kind::Dense, c)),
        _ if c.is_ascii() => emit(part(c)),
        // Voiced kana keep their marks: か and が are different letters.
        '\u{3040}'..='\u{30ff}' => emit(part(c)),
        _ => decompose_compatible(c, |c| c.to_lowercase().for_each(|c| emit(part(c)))),
    }
}

fn part(c: char) -> Part {
    if is_dropped(c) {
        Part::Dropped
    } else if is_dense(c) {
        Part::Of(Kind::Dense, c)
    } else if c.is_alphanumeric() {
        Part::Of(Kind::Word, c)
    } else {
        Part::Gap
    }
}

fn is_dense(c: char) -> bool {
    match c {
        '\u{0}'..='\u{e00}' => false,
        // Thai, Lao, Myanmar, Hangul letters, Khmer.
        '\u{e01}'..='\u{e4e}' | '\u{e81}'..='\u{ecf}' | '\u{1000}'..='\u{109f}' => true,
        '\u{1100}'..='\u{11ff}' | '\u{1780}'..='\u{17d3}' => true,
        // Pictographs.
        '\u{2600}'..='\u{27bf}' | '\u{1f000}'..='\u{1faff}' => true,
        // Han, kana, bopomofo, Yi, Hangul.
        '\u{30a0}' | '\u{30fb}' | '\u{3097}'..='\u{309c}' => false,
        '\u{2e80}'..='\u{2fdf}' | '\u{3005}'..='\u{3007}' | '\u{3021}'..='\u{3029}' => true,
        '\u{3041}'..='\u{318f}' | '\u{31a0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' => true,
        '\u{4e00}'..='\u{a4cf}' | '\u{a960}'..='\u{a97f}' | '\u{ac00}'..='\u{d7ff}' => true,
        '\u{f900}'..='\u{faff}' | '\u{1b000}'..='\u{1b16f}' | '\u{20000}'..='\u{3ffff}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn case_accents_widths_and_forms_are_one() {
        for (text, folded) in [
            ("Hello, World!", "hello world"),
            ("Café CAFE\u{301} ÀÉÎÕÜ", "cafe cafe aeiou"),
            ("ＡＢＣ１２３", "abc123"),
            ("ﬁne ﾊﾝｶｸ", "fineハンカク"),
            ("İstanbul Straße", "istanbul straße"),
            ("がか", "がか"),
            ("example.com/a_b?c=1", "example com a b c 1"),
            ("  \t\n", ""),
            ("。!?…", ""),
            ("\u{0}a\u{0}b\u{fffd}", "a b"),
            ("zero\u{200b}width", "zerowidth"),
        ] {
            assert_eq!(fold(text), folded, "{text}");
        }
    }

    #[test]
    fn a_gap_between_scripts_does_not_count() {
        assert_eq!(fold("数据库 MySQL 连接"), "数据库mysql连接");
        assert_eq!(fold("数据库(MySQL)连接"), "数据库mysql连接");
        assert_eq!(fold("你好 世界,再见"), "你好 世界 再见");
        assert_eq!(fold("🎉🎉 done"), "🎉🎉done");
    }

    proptest! {
        #[test]
        fn folding_twice_is_folding_once(text in ".{0,64}") {
            let once = fold(&text);
            prop_assert_eq!(fold(&once), once.clone());
            prop_assert!(!once.contains("  ") && once.trim() == once);
        }
    }
}
