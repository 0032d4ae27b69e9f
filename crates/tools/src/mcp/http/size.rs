//! The size of each event of a stream.
//!
//! Invariant: an event above the limit ends the stream before it is buffered.

use super::HttpError;

/// Counts the bytes since the last empty line, which ends an event.
pub(super) struct EventSize {
    bytes: usize,
    bytes_max: usize,
    line_is_empty: bool,
}

impl EventSize {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { bytes: 0, bytes_max, line_is_empty: true }
    }

    pub(super) fn observe(&mut self, chunk: &[u8]) -> Result<(), HttpError> {
        for byte in chunk {
            match byte {
                b'\n' if self.line_is_empty => self.bytes = 0,
                b'\n' => self.line_is_empty = true,
                b'\r' => {}
                _ => {
                    self.line_is_empty = false;
                    self.bytes += 1;
                }
            }
            if self.bytes > self.bytes_max {
                return Err(HttpError::TooLarge { bytes_max: self.bytes_max });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_is_measured_separately() {
        let mut size = EventSize::new(10);
        for _ in 0..5 {
            assert!(size.observe(b"data: 1234\r\n\r\n").is_ok());
        }
        assert!(size.observe(b"data: 12").is_ok());
        assert!(matches!(size.observe(b"345"), Err(HttpError::TooLarge { bytes_max: 10 })));
    }
}
