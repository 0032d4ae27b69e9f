//! Trace contexts: the `traceparent` of a sender, and the ids of a run's own spans.
//!
//! Invariant: the ids of a run's span follow from its id and attempt, so that spans of one run find each other
//! without being kept, also after a restart.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The `traceparent` header of W3C Trace Context, version 00.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    trace: [u8; 16],
    span: [u8; 8],
    is_sampled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SpanId(pub(super) [u8; 8]);

/// The trace of one attempt of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trace {
    pub(super) id: [u8; 16],
    /// The span of the sender.
    parent: Option<[u8; 8]>,
    /// The span of the run.
    run: [u8; 8],
    pub(super) is_sampled: bool,
}

impl TraceParent {
    /// Any other version or form is none: a bad header must not refuse an event.
    pub fn parse(header: &str) -> Option<Self> {
        let mut parts = header.trim().split('-');
        let (version, trace, span, flags) =
            (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        if version != "00" || parts.next().is_some() {
            return None;
        }
        let (trace, span, [flags]) = (bytes::<16>(trace)?, bytes::<8>(span)?, bytes::<1>(flags)?);
        let is_valid = trace != [0; 16] && span != [0; 8];
        is_valid.then_some(Self { trace, span, is_sampled: flags & 1 == 1 })
    }
}

impl Trace {
    pub(super) fn of_run(run_id: &str, attempt: i64, traceparent: Option<&str>) -> Self {
        let given = traceparent.and_then(TraceParent::parse);
        let id = given.map_or_else(|| part(&derived(run_id, "trace")), |given| given.trace);
        let run = part(&derived(run_id, &format!("attempt {attempt}")));
        let is_sampled = given.is_none_or(|given| given.is_sampled);
        Self { id, parent: given.map(|given| given.span), run, is_sampled }
    }

    pub(super) fn sender(&self) -> Option<SpanId> {
        self.parent.map(SpanId)
    }

    pub(super) fn run(&self) -> SpanId {
        SpanId(self.run)
    }

    /// The span of one call of the run.
    pub(super) fn call(&self, call_id: &str) -> SpanId {
        let mut hash = Sha256::new_with_prefix(self.run);
        hash.update(call_id);
        SpanId(part(&hash.finalize().into()))
    }

    /// For the runner, which may continue the trace.
    pub(super) fn header(&self) -> String {
        format!("00-{}-{}-{:02x}", hex(&self.id), hex(&self.run), u8::from(self.is_sampled))
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn derived(run_id: &str, what: &str) -> [u8; 32] {
    let mut hash = Sha256::new_with_prefix(run_id);
    hash.update([0]);
    hash.update(what);
    hash.finalize().into()
}

fn part<const N: usize>(hash: &[u8; 32]) -> [u8; N] {
    let mut id = [0; N];
    id.copy_from_slice(&hash[..N]);
    id
}

/// Lower-case hexadecimal digits, as the specification says.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != N * 2 || !text.bytes().all(is_hex) {
        return None;
    }
    let mut out = [0; N];
    for (at, byte) in out.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[at * 2..at * 2 + 2], 16).ok()?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_run_continues_the_trace_of_its_sender() {
        let trace = Trace::of_run("run_1", 1, Some(HEADER));
        assert_eq!(hex(&trace.id), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!(trace.sender().map(|span| hex(&span.0)).as_deref(), Some("b7ad6b7169203331"));
        assert!(trace.header().starts_with("00-0af7651916cd43dd8448eb211c80319c-"));
        assert_ne!(trace.run(), Trace::of_run("run_1", 2, Some(HEADER)).run());
    }

    #[test]
    fn a_bad_header_is_ignored() {
        let zero = "00-00000000000000000000000000000000-b7ad6b7169203331-01";
        for header in ["", "x", "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", zero] {
            assert_eq!(TraceParent::parse(header), None, "{header}");
            assert_eq!(Trace::of_run("run_1", 1, Some(header)).sender(), None, "{header}");
        }
        assert_eq!(TraceParent::parse(&HEADER.to_uppercase()), None);
    }

    #[test]
    fn a_trace_that_is_not_recorded_stays_so() {
        let trace = Trace::of_run("run_1", 1, Some(&HEADER.replace("-01", "-00")));
        assert!(!trace.is_sampled && trace.header().ends_with("-00"));
    }
}
