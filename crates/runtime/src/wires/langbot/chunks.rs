//! Assembles long messages of a plugin from their pieces.
//!
//! Invariant: holds at most one message, and no more of it than was announced and is allowed.

use super::frames::{Frame, MESSAGE_BYTES_MAX, PIECES_MAX};

/// A message of which some pieces have arrived.
#[derive(Debug)]
pub(crate) struct Assembly {
    text: String,
    total_bytes: usize,
    pieces: usize,
}

/// The state of a message after a piece.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Joined {
    Part,
    Whole(String),
    /// The pieces do not fit; a clause about the plugin says how.
    Broken(&'static str),
}

impl Assembly {
    /// Adds one piece: a frame with a `type`.
    pub(crate) fn take(current: &mut Option<Assembly>, frame: &Frame<'_>) -> Joined {
        match (frame.kind.as_deref(), current.as_mut()) {
            (Some("chunk_start"), _) => Self::begin(current, frame.total_size),
            (Some("chunk_data"), Some(assembly)) => assembly.add(frame),
            (Some("chunk_end"), Some(assembly)) if assembly.text.len() == assembly.total_bytes => {
                let text = std::mem::take(&mut assembly.text);
                *current = None;
                Joined::Whole(text)
            }
            (Some("chunk_end"), Some(_)) => Joined::Broken("ended a message before it was whole"),
            _ => Joined::Broken("sent a piece of no message"),
        }
    }

    fn begin(current: &mut Option<Assembly>, total: Option<u64>) -> Joined {
        let total = total.and_then(|total| usize::try_from(total).ok());
        match total.filter(|total| *total <= MESSAGE_BYTES_MAX) {
            Some(total_bytes) => {
                *current = Some(Assembly { text: String::new(), total_bytes, pieces: 0 });
                Joined::Part
            }
            None => Joined::Broken("announced a message that is too long"),
        }
    }

    fn add(&mut self, frame: &Frame<'_>) -> Joined {
        let piece = frame.data.and_then(|data| serde_json::from_str::<String>(data.get()).ok());
        let Some(piece) = piece else { return Joined::Broken("sent a piece without text") };
        if frame.offset != Some(self.text.len() as u64) {
            return Joined::Broken("sent the pieces of a message out of order");
        }
        self.pieces += 1;
        if self.text.len() + piece.len() > self.total_bytes || self.pieces > PIECES_MAX {
            return Joined::Broken("sent more of a message than it had announced");
        }
        self.text.push_str(&piece);
        Joined::Part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(lines: &[&str]) -> Joined {
        let mut current = None;
        let mut last = Joined::Part;
        for line in lines {
            last = Assembly::take(&mut current, &serde_json::from_str(line).unwrap());
        }
        last
    }

    #[test]
    fn pieces_make_the_message_that_was_announced_and_no_other() {
        let start = r#"{"type":"chunk_start","total_size":4}"#;
        let ab = r#"{"type":"chunk_data","data":"ab","offset":0}"#;
        let cd = r#"{"type":"chunk_data","data":"cd","offset":2}"#;
        let end = r#"{"type":"chunk_end"}"#;
        assert_eq!(joined(&[start, ab, cd, end]), Joined::Whole("abcd".to_owned()));
        assert_eq!(joined(&[start, ab, start, ab, cd, end]), Joined::Whole("abcd".to_owned()));
        for (lines, reason) in [
            (vec![ab], "sent a piece of no message"),
            (vec![start, cd], "sent the pieces of a message out of order"),
            (vec![start, ab, end], "ended a message before it was whole"),
            (
                vec![start, r#"{"type":"chunk_data","data":"abcde","offset":0}"#],
                "sent more of a message than it had announced",
            ),
            (vec![start, r#"{"type":"chunk_data","offset":0}"#], "sent a piece without text"),
            (
                vec![r#"{"type":"chunk_start","total_size":16777217}"#],
                "announced a message that is too long",
            ),
            (vec![r#"{"type":"chunk_start"}"#], "announced a message that is too long"),
        ] {
            assert_eq!(joined(&lines), Joined::Broken(reason));
        }
    }
}
