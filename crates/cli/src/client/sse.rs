//! An incremental parser of server-sent events.
//!
//! Invariant: the frames do not depend on how the bytes are split.

/// Longest accepted line; results are far smaller.
const LINE_BYTES_MAX: usize = 64 << 20;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Frame {
    pub event: String,
    pub id: Option<String>,
    pub data: String,
}

#[derive(Debug, thiserror::Error)]
#[error("the host sent a line of more than {LINE_BYTES_MAX} bytes")]
pub(super) struct LineTooLong;

#[derive(Debug, Default)]
pub(super) struct Parser {
    line: Vec<u8>,
    frame: Frame,
    has_data: bool,
}

impl Parser {
    /// Adds bytes and returns the frames they complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Frame>, LineTooLong> {
        let mut frames = Vec::new();
        let mut rest = bytes;
        while let Some(at) = rest.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&rest[..at]);
            rest = &rest[at + 1..];
            let line = std::mem::take(&mut self.line);
            let line = line.strip_suffix(b"\r").unwrap_or(&line);
            frames.extend(self.take(&String::from_utf8_lossy(line)));
        }
        self.line.extend_from_slice(rest);
        if self.line.len() > LINE_BYTES_MAX {
            return Err(LineTooLong);
        }
        Ok(frames)
    }

    fn take(&mut self, line: &str) -> Option<Frame> {
        if line.is_empty() {
            let frame = std::mem::take(&mut self.frame);
            return std::mem::take(&mut self.has_data).then_some(frame);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.frame.event = value.to_owned(),
            "id" => self.frame.id = Some(value.to_owned()),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.frame.data.push('\n');
                }
                self.frame.data.push_str(value);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STREAM: &str = ": hello\r\n\r\nevent: message.delta\nid: 7\ndata: {\"a\":\ndata: \"中\"}\n\nretry: 5\n\ndata: x\n\n";

    fn frames() -> Vec<Frame> {
        let frame = |event: &str, id: Option<&str>, data: &str| Frame {
            event: event.to_owned(),
            id: id.map(str::to_owned),
            data: data.to_owned(),
        };
        vec![frame("message.delta", Some("7"), "{\"a\":\n\"中\"}"), frame("", None, "x")]
    }

    #[test]
    fn comments_and_frames_without_data_are_skipped() {
        assert_eq!(Parser::default().push(STREAM.as_bytes()).unwrap(), frames());
    }

    proptest! {
        #[test]
        fn cuts_make_no_difference(cuts in prop::collection::vec(1..9usize, 1..60)) {
            let (mut parser, mut parsed, mut rest) = (Parser::default(), Vec::new(), STREAM.as_bytes());
            for cut in cuts.into_iter().cycle() {
                let (piece, next) = rest.split_at(cut.min(rest.len()));
                parsed.extend(parser.push(piece).unwrap());
                rest = next;
                if rest.is_empty() { break; }
            }
            prop_assert_eq!(parsed, frames());
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Parser::default().push(&bytes);
        }
    }
}
