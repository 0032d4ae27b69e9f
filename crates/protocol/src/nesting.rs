//! The nesting depth of JSON text, computed without parsing it.
//!
//! Invariant: accepted text can be read by every JSON parser (ours stop at 128 levels), even inside a result, a
//! page and a message.

/// Deepest nesting of an event or of a result's data.
pub const NESTING_MAX: usize = 100;

/// The deepest level of brackets and braces outside of strings.
pub fn depth(json: &[u8]) -> usize {
    let (mut level, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => {
                level += 1;
                deepest = deepest.max(level);
            }
            b'}' | b']' if !in_string => level = level.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}
