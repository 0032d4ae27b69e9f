//! Patterns of secrets whose values are unknown.
//!
//! Invariant: a pattern is a public prefix and a body of certain characters; only the body is removed. A body is
//! long and, where it could be words, has a digit.

use super::forms::inner_base64;
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// The prefix of a run token.
pub(crate) const RUN_TOKEN: &str = "grt_";
/// The longest body that is held back until it is certain.
pub(super) const UNCERTAIN_MAX: u32 = 200;
/// The length of the longest prefix that must not follow a letter or digit, and of the character before it.
pub(super) const BEFORE_MAX: usize = 12;

/// A set of ASCII characters, a bit each.
type Class = u128;

#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) prefix: Vec<u8>,
    /// The characters of the body, in turns.
    classes: Vec<Class>,
    /// How many there are at least.
    pub(super) least: u32,
    /// Whether it must be at the beginning of a word.
    pub(super) is_word: bool,
    /// Whether a digit must be among them.
    pub(super) needs_digit: bool,
    /// Whether its prefix is enough where the text is interrupted.
    pub(super) is_run_token: bool,
}

impl Pattern {
    pub(super) fn takes(&self, count: u32, byte: u8) -> bool {
        let class = self.classes[count as usize % self.classes.len()];
        byte < 128 && class & (1 << byte) != 0
    }
}

const DIGIT: Class = range(b'0', b'9');
const UPPER: Class = range(b'A', b'Z');
const ALNUM: Class = DIGIT | UPPER | range(b'a', b'z');
const WORD: Class = ALNUM | one(b'_') | one(b'-');
const HEX: Class = DIGIT | range(b'a', b'f');
/// Including the line breaks of a key, plain or escaped.
const KEY: Class = ALNUM | one(b'+') | one(b'/') | one(b'=') | one(b'\n') | one(b'\r') | one(b'\\');
const BEARER: Class = WORD | one(b'.') | one(b'~') | one(b'+') | one(b'/') | one(b'=');

const fn one(byte: u8) -> Class {
    1 << byte
}

const fn range(first: u8, last: u8) -> Class {
    (u128::MAX >> (127 - last)) & (u128::MAX << first)
}

pub(super) fn all() -> Vec<Pattern> {
    let mut patterns = run_tokens();
    patterns.extend(["sk-", "xoxb-", "xoxp-"].map(|prefix| word(prefix, WORD, 20)));
    let github = ["ghp_", "gho_", "ghu_", "ghs_", "ghr_"];
    patterns.extend(github.map(|prefix| word(prefix, ALNUM, 30)));
    patterns.push(word("github_pat_", WORD, 30));
    patterns.push(word("glpat-", WORD, 20));
    patterns.push(word("AIza", WORD, 35));
    patterns.extend(["AKIA", "ASIA"].map(|prefix| word(prefix, DIGIT | UPPER, 16)));
    patterns.extend(["Bearer ", "bearer "].map(|prefix| word(prefix, BEARER, 16)));
    // The second part of a JWT is an object too; the first only names the algorithm.
    patterns.push(anywhere(".eyJ", &[WORD | one(b'.')], 20));
    for kind in ["", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED "] {
        patterns.push(anywhere(&format!("-----BEGIN {kind}PRIVATE KEY-----"), &[KEY], 32));
    }
    patterns
}

fn word(prefix: &str, class: Class, least: u32) -> Pattern {
    Pattern { is_word: true, needs_digit: true, ..anywhere(prefix, &[class], least) }
}

fn anywhere(prefix: &str, classes: &[Class], least: u32) -> Pattern {
    Pattern {
        prefix: prefix.as_bytes().to_vec(),
        classes: classes.to_vec(),
        least,
        is_word: false,
        needs_digit: false,
        is_run_token: false,
    }
}

/// The value of a run token is unknown (the host holds its hash only), but its shape is known.
fn run_tokens() -> Vec<Pattern> {
    let mut patterns = vec![anywhere(RUN_TOKEN, &[HEX], 16)];
    for offset in 0..3 {
        let prefix = inner_base64(&STANDARD_NO_PAD, RUN_TOKEN.as_bytes(), offset);
        let next = (offset * 8).div_ceil(6) + prefix.len();
        let classes: Vec<Class> = (next..next + 4).map(hex_in_base64).collect();
        patterns.push(anywhere(&prefix, &classes, 22));
    }
    let percent = [one(b'%'), one(b'3') | one(b'6'), HEX | range(b'A', b'F')];
    for prefix in ["%67%72%74%5F", "%67%72%74%5f"] {
        patterns.push(anywhere(prefix, &percent, 48));
    }
    patterns.into_iter().map(|pattern| Pattern { is_run_token: true, ..pattern }).collect()
}

/// The characters that hex digits give at this position of a base64 text.
fn hex_in_base64(place: usize) -> Class {
    let digits: Vec<u8> = b"0123456789abcdef_".to_vec();
    let mut class = 0;
    for one in &digits {
        for other in &digits {
            // The bytes before and after the position, within their group of three.
            let group = match place % 4 {
                0 => [*one, 0, 0],
                1 => [*one, *other, 0],
                2 => [0, *one, *other],
                _ => [0, 0, *one],
            };
            let text = STANDARD_NO_PAD.encode(group);
            class |= self::one(text.as_bytes()[place % 4]);
        }
    }
    class
}
