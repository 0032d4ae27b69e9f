//! One call while its parts come in, and which call a part belongs to.
//!
//! Invariant: a part without any mark goes to the last call; a part that can only begin a call begins one.

/// A part of a call. Empty marks count as none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Piece<'a> {
    /// What the wire tells calls of one answer apart by: a position or an item's id.
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
    /// Ours; empty until the call was announced.
    pub(super) id: String,
    pub(super) name: String,
    pub(super) args: String,
    pub(super) sent_bytes: usize,
    pub(super) ended: bool,
    nesting: Nesting,
}

/// How deep in braces and brackets a text is, kept while it grows: reading it again with every part would take
/// the square of its length.
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

    pub(super) fn take(&mut self, piece: &Piece<'_>) {
        fill(&mut self.key, piece.key);
        fill(&mut self.provider_id, piece.id);
        fill(&mut self.wire_name, piece.name);
        self.args.push_str(piece.args);
        self.nesting.take(piece.args);
    }

    /// Whether a part with the same mark is nevertheless another call: some servers give every call the
    /// position 0, and some repeat id and name in every part.
    fn is_another(&self, piece: &Piece<'_>) -> bool {
        if self.ended {
            return true;
        }
        let (Some(had), Some(name)) = (self.wire_name.as_deref(), set(piece.name)) else {
            return false;
        };
        match (self.provider_id.as_deref(), set(piece.id)) {
            (Some(mine), Some(its)) => mine != its,
            _ => had != name || (!piece.args.trim().is_empty() && self.nesting.closed),
        }
    }
}

pub(super) fn belongs_to(calls: &[Call], piece: &Piece<'_>) -> Option<usize> {
    let found = match (set(piece.key), set(piece.id)) {
        (Some(key), _) => calls.iter().rposition(|call| call.has_key(key)),
        (None, Some(id)) => {
            match calls.iter().rposition(|c| c.provider_id.as_deref() == Some(id)) {
                Some(at) => Some(at),
                // The id of a call whose other parts came first.
                None => {
                    calls.iter().rposition(|c| c.provider_id.is_none() && c.wire_name.is_none())
                }
            }
        }
        (None, None) => calls.len().checked_sub(1),
    };
    found.filter(|at| !calls[*at].is_another(piece))
}

fn set(mark: Option<&str>) -> Option<&str> {
    mark.filter(|mark| !mark.is_empty())
}

fn fill(slot: &mut Option<String>, mark: Option<&str>) {
    if slot.is_none() {
        *slot = set(mark).map(str::to_owned);
    }
}
