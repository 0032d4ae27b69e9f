//! Makes characters visible that change how a terminal shows the rest, or that are shown as nothing.
//!
//! Invariant: no control character, direction mark or zero-width character reaches a terminal. Letters of every
//! script and joined emoji stay as they are.

/// The text with each hidden character as `<U+202E>`, except for those in `kept`.
pub(crate) fn text(text: &str, kept: &[char]) -> String {
    shown(text, kept, |c, out| out.push_str(&format!("<U+{:04X}>", u32::from(c))))
}

/// JSON of the same value, with each hidden character escaped. Line breaks are white space in JSON.
pub(crate) fn json(text: &str) -> String {
    shown(text, &['\n'], |c, out| {
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            out.push_str(&format!("\\u{unit:04x}"));
        }
    })
}

fn shown(text: &str, kept: &[char], show: impl Fn(char, &mut String)) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut before, mut rest) = (None, text.chars().peekable());
    while let Some(c) = rest.next() {
        let is_plain = !is_hidden(c) || kept.contains(&c) || joins(c, before, rest.peek().copied());
        match is_plain {
            true => out.push(c),
            false => show(c, &mut out),
        }
        before = Some(c);
    }
    out
}

fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Direction: marks, embeddings and overrides, isolates.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
            // Zero width: soft hyphen, joiners, invisible operators and fillers, line and paragraph separators.
            | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
            | '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2065}'
            | '\u{206a}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
            // Tags.
            | '\u{e0000}'..='\u{e0fff}')
}

/// Joiners belong to the spelling of several scripts and to emoji: they stay between two such characters. A text may be
/// one part of a stream, so that only one of them is known.
fn joins(c: char, before: Option<char>, after: Option<char>) -> bool {
    let is_joined = |other: Option<char>| other.is_none_or(|c| !c.is_ascii() && !is_hidden(c));
    let has_neighbour = before.is_some() || after.is_some();
    matches!(c, '\u{200c}' | '\u{200d}') && has_neighbour && is_joined(before) && is_joined(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_characters_are_shown() {
        let cases = [
            ("pay \u{202e}gnp.exe", "pay <U+202E>gnp.exe"),
            ("\u{2066}a\u{2069}\u{200f}\u{61c}", "<U+2066>a<U+2069><U+200F><U+061C>"),
            ("\u{1b}[2Jgone\u{9b}31m", "<U+001B>[2Jgone<U+009B>31m"),
            ("ad\u{200b}min\u{feff}", "ad<U+200B>min<U+FEFF>"),
            ("a\u{200d}b", "a<U+200D>b"),
            ("a\u{200d}", "a<U+200D>"),
            ("\u{200d}", "<U+200D>"),
            ("one\ntwo\tthree", "one\ntwo\tthree"),
            ("over\rwritten", "over<U+000D>written"),
            ("\u{e0041}", "<U+E0041>"),
        ];
        for (given, expected) in cases {
            assert_eq!(text(given, &['\n', '\t']), expected);
        }
    }

    #[test]
    fn ordinary_text_is_unchanged() {
        for given in [
            "שלום עולם",
            "مرحبا",
            "می\u{200c}خواهم",
            "👩\u{200d}👩\u{200d}👧",
            "❤\u{fe0f}",
            "क\u{94d}\u{200d}ष",
            "报告",
            "é",
        ] {
            assert_eq!(text(given, &[]), given);
        }
    }

    #[test]
    fn json_keeps_its_value() {
        let value = serde_json::json!({"name": "a\u{202e}b\u{9b}\u{e0041}", "plain": "שלום"});
        let printed = json(&value.to_string());
        assert!(!printed.contains(is_hidden), "{printed}");
        assert!(printed.contains("\\u202e") && printed.contains("שלום"), "{printed}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&printed).unwrap(), value);
    }
}
