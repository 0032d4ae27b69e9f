//! `NaN` and `Infinity`: Python writes them into JSON, which has no such numbers.
//!
//! Invariant: text inside strings is not changed.

/// The message with `null` in their places; none if it has none of them.
pub(super) fn without_nan(message: &str) -> Option<String> {
    let mut clean = String::new();
    let (mut rest, mut is_in_string) = (message, false);
    while let Some(at) = rest.find(['"', '\\', 'N', 'I', '-']) {
        let (before, from) = rest.split_at(at);
        clean.push_str(before);
        let word = ["NaN", "Infinity", "-Infinity"].into_iter().find(|word| from.starts_with(word));
        let length = match (is_in_string, word) {
            (false, Some(word)) => {
                clean.push_str("null");
                rest = &from[word.len()..];
                continue;
            }
            (true, _) if from.starts_with('\\') => {
                // What it escapes is one character.
                1 + from[1..].chars().next().map_or(0, char::len_utf8)
            }
            _ => 1,
        };
        is_in_string ^= from.starts_with('"');
        clean.push_str(&from[..length]);
        rest = &from[length..];
    }
    clean.push_str(rest);
    (clean != message).then_some(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_json_lacks_are_null_and_texts_stay() {
        let clean = |text: &str| without_nan(text);
        assert_eq!(
            clean(r#"{"a":NaN,"b":[-Infinity, Infinity,-1],"NaN":"NaN \" NaN \\","ä":NaN}"#),
            Some(r#"{"a":null,"b":[null, null,-1],"NaN":"NaN \" NaN \\","ä":null}"#.to_owned())
        );
        assert_eq!(clean(r#"{"a":"NaN","b":-1,"c":"\ü Infinity"}"#), None);
        assert_eq!(clean(r#"{"a":"\"#), None);
    }
}
