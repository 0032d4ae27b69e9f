//! Splits a response to events, either server-sent events or one JSON value per line.
//!
//! Invariant: chunk boundaries make no difference; no event is larger than `EVENT_BYTES_MAX`.

use crate::ModelError;

/// Limit for one line, and for the data of one event.
pub(crate) const EVENT_BYTES_MAX: usize = 8 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Framing {
    /// `text/event-stream`; only `data` is used, because every wire repeats the event type in it.
    Sse,
    /// One JSON value per line.
    Lines,
    /// The whole body is one event.
    Whole,
}

#[derive(Debug)]
pub(crate) struct Splitter {
    framing: Framing,
    line: Vec<u8>,
    /// Data of the current event; `None` before its first `data` line.
    data: Option<String>,
    /// The last byte was a CR, which a LF may follow.
    after_cr: bool,
    at_start: bool,
}

impl Splitter {
    pub(crate) fn new(framing: Framing) -> Self {
        Self { framing, line: Vec::new(), data: None, after_cr: false, at_start: true }
    }

    /// Consumes bytes; appends the events that they complete.
    pub(crate) fn push(
        &mut self,
        mut bytes: &[u8],
        events: &mut Vec<String>,
    ) -> Result<(), ModelError> {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = bytes.iter().position(|byte| self.ends_line(*byte)) {
            self.extend(&bytes[..end])?;
            self.line_ended(events)?;
            let was_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if was_cr {
                self.after_cr = bytes.is_empty();
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
        }
        self.extend(bytes)
    }

    /// The end of the response also ends an unterminated line.
    pub(crate) fn finish(&mut self, events: &mut Vec<String>) -> Result<(), ModelError> {
        if !self.line.is_empty() {
            self.line_ended(events)?;
        }
        events.extend(self.data.take());
        Ok(())
    }

    fn ends_line(&self, byte: u8) -> bool {
        match self.framing {
            Framing::Sse => byte == b'\n' || byte == b'\r',
            Framing::Lines => byte == b'\n',
            Framing::Whole => false,
        }
    }

    fn extend(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        if self.line.len() + bytes.len() > EVENT_BYTES_MAX {
            return Err(ModelError::TooLarge(EVENT_BYTES_MAX));
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn line_ended(&mut self, events: &mut Vec<String>) -> Result<(), ModelError> {
        let line = std::mem::take(&mut self.line);
        let mut line = std::str::from_utf8(&line)
            .map_err(|_| ModelError::InvalidResponse("it is not UTF-8".to_owned()))?;
        if std::mem::take(&mut self.at_start) {
            line = line.trim_start_matches('\u{feff}');
        }
        if self.framing != Framing::Sse {
            let line = line.trim();
            if !line.is_empty() {
                events.push(line.to_owned());
            }
            return Ok(());
        }
        if line.is_empty() {
            events.extend(self.data.take());
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        match field {
            "data" => self.data_line(value.strip_prefix(' ').unwrap_or(value)),
            _ => Ok(()),
        }
    }

    fn data_line(&mut self, value: &str) -> Result<(), ModelError> {
        match &mut self.data {
            None => self.data = Some(value.to_owned()),
            Some(data) if data.len() + value.len() < EVENT_BYTES_MAX => {
                data.push('\n');
                data.push_str(value);
            }
            Some(_) => return Err(ModelError::TooLarge(EVENT_BYTES_MAX)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(framing: Framing, pieces: &[&[u8]]) -> Result<Vec<String>, ModelError> {
        let mut splitter = Splitter::new(framing);
        let mut events = Vec::new();
        for chunk in pieces {
            splitter.push(chunk, &mut events)?;
        }
        splitter.finish(&mut events)?;
        Ok(events)
    }

    const STREAM: &str = "\u{feff}: hello\r\nevent: x\r\ndata: {\"a\":\"你好\"}\r\n\r\ndata:one\rdata:  two\r\r\n\nid: 1\n\ndata\n\ndata: last";

    #[test]
    fn events_follow_the_standard() {
        let events = split(Framing::Sse, &[STREAM.as_bytes()]).unwrap();
        assert_eq!(events, ["{\"a\":\"你好\"}", "one\n two", "", "last"]);
    }

    #[test]
    fn lines_are_trimmed_and_empty_ones_skipped() {
        let events = split(Framing::Lines, &[b"{\"a\":1}\r\n\n {\"b\":2}\n{\"c\":3}"]).unwrap();
        assert_eq!(events, ["{\"a\":1}", "{\"b\":2}", "{\"c\":3}"]);
    }

    #[test]
    fn a_body_is_one_event_whatever_its_lines() {
        assert_eq!(split(Framing::Whole, &[b"{\n", b"}\n"]).unwrap(), ["{\n}"]);
    }

    #[test]
    fn a_line_over_the_limit_is_rejected() {
        let chunk = vec![b'x'; 1024 * 1024];
        let mut splitter = Splitter::new(Framing::Sse);
        let mut events = Vec::new();
        let taken = (0..100).take_while(|_| splitter.push(&chunk, &mut events).is_ok()).count();
        assert_eq!(taken, 8);
        assert_eq!(splitter.push(&chunk, &mut events), Err(ModelError::TooLarge(EVENT_BYTES_MAX)));
    }

    #[test]
    fn an_event_over_the_limit_is_rejected() {
        let line = format!("data: {}\n", "x".repeat(1024 * 1024));
        let mut splitter = Splitter::new(Framing::Sse);
        let mut events = Vec::new();
        let taken =
            (0..100).take_while(|_| splitter.push(line.as_bytes(), &mut events).is_ok()).count();
        assert!(taken < 9, "{taken}");
        assert!(events.is_empty());
    }

    #[test]
    fn invalid_utf8_is_an_error() {
        let error = split(Framing::Sse, &[b"data: \xff\xfe\n\n"]).unwrap_err();
        assert_eq!(error, ModelError::InvalidResponse("it is not UTF-8".to_owned()));
    }

    #[test]
    fn chunks_of_one_byte_give_the_same_events() {
        let whole = split(Framing::Sse, &[STREAM.as_bytes()]).unwrap();
        for at in 0..=STREAM.len() {
            let (first, second) = STREAM.as_bytes().split_at(at);
            assert_eq!(split(Framing::Sse, &[first, second]).unwrap(), whole, "cut at {at}");
        }
        let bytes: Vec<&[u8]> = STREAM.as_bytes().chunks(1).collect();
        assert_eq!(split(Framing::Sse, &bytes).unwrap(), whole);
    }

    proptest! {
        #[test]
        fn chunk_boundaries_make_no_difference(
            text in "(data|event|:|: |\r|\n|\r\n|[a-z]|é){0,40}",
            size in 1usize..7,
        ) {
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
            for framing in [Framing::Sse, Framing::Lines] {
                prop_assert_eq!(split(framing, &pieces), split(framing, &[text.as_bytes()]));
            }
        }
    }
}
