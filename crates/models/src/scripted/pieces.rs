//! A text in the pieces in which a model would send it.
//!
//! Invariant: the pieces put together are the text.

/// Characters of a piece where no word ends, as in Chinese.
const RUN_MAX: usize = 8;

/// Words with the blanks behind them, or as many characters as asked for.
pub(super) fn pieces(text: &str, characters: Option<usize>) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let mut length = 0;
    let mut last = None;
    for c in text.chars() {
        let full = match characters {
            Some(characters) => length >= characters.max(1),
            None => ends(last, c) || length >= RUN_MAX && !c.is_ascii(),
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

/// Whether a word begins here.
fn ends(last: Option<char>, next: char) -> bool {
    last.is_some_and(char::is_whitespace) && !next.is_whitespace()
}

#[cfg(test)]
mod tests {
    use super::pieces;

    #[test]
    fn a_text_comes_in_words_and_chinese_in_short_runs() {
        assert_eq!(pieces("one  two\nthree", None), ["one  ", "two\n", "three"]);
        assert_eq!(pieces("今天有什么安排和会议吗", None), ["今天有什么安排和", "会议吗"]);
        assert_eq!(pieces("abcde", Some(2)), ["ab", "cd", "e"]);
        assert!(pieces("", None).is_empty());
    }
}
