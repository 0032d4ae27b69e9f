//! Splits text to the pieces in which a model would stream it.
//!
//! Invariant: the concatenated pieces are the text.

/// Characters per piece in scripts without spaces, such as Chinese.
const RUN_MAX: usize = 8;

/// Words with their trailing spaces, or the given number of characters.
pub(super) fn pieces(text: &str, characters: Option<usize>) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let mut length = 0;
    let mut last = None;
    for c in text.chars() {
        let full = match characters {
            Some(characters) => length >= characters.max(1),
            None => starts_word(last, c) || length >= RUN_MAX && !c.is_ascii(),
        };
        if full && !piece.is_empty() {
            pieces.push(std::mem::take(&mut piece));
            length = 0;
        }
        piece.push(c);
        length += 1;
        last = Some(c);
    }
    if !piece.is_empty() {
        pieces.push(piece);
    }
    pieces
}

fn starts_word(last: Option<char>, next: char) -> bool {
    last.is_some_and(char::is_whitespace) && !next.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn text_is_split_by_words_and_chinese_in_short_runs() {
        assert_eq!(pieces("one  two\nthree", None), ["one  ", "two\n", "three"]);
        assert_eq!(pieces("今天有什么安排和会议吗", None), ["今天有什么安排和", "会议吗"]);
        assert_eq!(pieces("abcde", Some(2)), ["ab", "cd", "e"]);
        assert!(pieces("", None).is_empty());
    }
}
