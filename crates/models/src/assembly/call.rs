//! A call under assembly, and which call a part belongs to.
//!
//! Invariant: a part without any identifier belongs to the last call; a part that can only start a call starts
//! one.

/// A part of a call. Empty identifiers count as missing.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CallPart<'a> {
    /// Distinguishes the calls of a response: an index or an item id.
    pub(crate) key: Option<&'a str>,
    pub(crate) id: Option<&'a str>,
    pub(crate) name: Option<&'a str>,
    pub(crate) args: &'a str,
}

#[derive(Debug, Default)]
pub(super) struct Call {
    key: Option<String>,
    pub(super) provider_id: Option<String>,
    pub(super) wire_name: Option<String>,
    /// Our id; empty until the start was emitted.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) args: String,
    pub(super) sent_bytes: usize,
    pub(super) ended: bool,
    nesting: Nesting,
}

/// Nesting depth of braces and brackets, updated incrementally: parsing again for every part would be
/// quadratic.
#[derive(Debug, Default)]
struct Nesting {
    depth: usize,
    in_string: bool,
    escaped: bool,
    closed: bool,
}

impl Nesting {
    fn take(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if std::mem::take(&mut self.escaped) => {}
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.closed |= self.depth == 0;
                }
                _ => {}
            }
        }
    }
}

impl Call {
    pub(super) fn has_key(&self, key: &str) -> bool {
        self.key.as_deref() == Some(key)
    }

    pub(super) fn take(&mut self, call_part: &CallPart<'_>) {
        fill(&mut self.key, call_part.key);
        fill(&mut self.provider_id, call_part.id);
        fill(&mut self.wire_name, call_part.name);
        self.args.push_str(call_part.args);
        self.nesting.take(call_part.args);
    }

    /// Whether a part with the same identifier starts another call: some servers give every call index 0, and
    /// some repeat id and name in every part.
    fn is_another(&self, call_part: &CallPart<'_>) -> bool {
        if self.ended {
            return true;
        }
        let (Some(old_name), Some(name)) = (self.wire_name.as_deref(), set(call_part.name)) else {
            return false;
        };
        match (self.provider_id.as_deref(), set(call_part.id)) {
            (Some(own), Some(other)) => own != other,
            _ => old_name != name || (!call_part.args.trim().is_empty() && self.nesting.closed),
        }
    }
}

pub(super) fn belongs_to(calls: &[Call], call_part: &CallPart<'_>) -> Option<usize> {
    let position = match (set(call_part.key), set(call_part.id)) {
        (Some(key), _) => calls.iter().rposition(|call| call.has_key(key)),
        (None, Some(id)) => {
            match calls.iter().rposition(|c| c.provider_id.as_deref() == Some(id)) {
                Some(at) => Some(at),
                // The id arrived after other parts of the call.
                None => {
                    calls.iter().rposition(|c| c.provider_id.is_none() && c.wire_name.is_none())
                }
            }
        }
        (None, None) => calls.len().checked_sub(1),
    };
    position.filter(|at| !calls[*at].is_another(call_part))
}

fn set(mark: Option<&str>) -> Option<&str> {
    mark.filter(|mark| !mark.is_empty())
}

fn fill(slot: &mut Option<String>, mark: Option<&str>) {
    if slot.is_none() {
        *slot = set(mark).map(str::to_owned);
    }
}
