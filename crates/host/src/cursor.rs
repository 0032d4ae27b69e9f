//! Cursors: opaque positions that only this host can make, each valid for one list.
//!
//! Invariant: a cursor that opens was made by this database for exactly this domain (workspace, list,
//! conversation). A foreign or altered one does not open.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use sha2::Sha256;

/// At the beginning of a cursor, before its position.
pub(crate) const TAG_BYTES: usize = 16;

#[derive(Clone)]
pub struct Cursors {
    key: Vec<u8>,
}

impl Cursors {
    pub fn new(key: &str) -> Self {
        Self { key: key.as_bytes().to_vec() }
    }

    /// Makes a cursor for a position within a domain.
    pub fn seal(&self, domain: &[&str], position: &str) -> String {
        let mut bytes = self.tag(domain, position);
        bytes.extend_from_slice(position.as_bytes());
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The position, if the cursor belongs to the domain.
    pub fn open(&self, domain: &[&str], cursor: &str) -> Option<String> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor).ok()?;
        let (tag, position) = bytes.split_at_checked(TAG_BYTES)?;
        let position = std::str::from_utf8(position).ok()?;
        self.mac(domain, position).verify_truncated_left(tag).ok()?;
        Some(position.to_owned())
    }

    fn tag(&self, domain: &[&str], position: &str) -> Vec<u8> {
        let full = self.mac(domain, position).finalize().into_bytes();
        full[..TAG_BYTES].to_vec()
    }

    #[expect(clippy::expect_used, reason = "HMAC takes keys of any length")]
    fn mac(&self, domain: &[&str], position: &str) -> Hmac<Sha256> {
        let mut mac = Hmac::new_from_slice(&self.key).expect("a key of any length");
        for part in domain.iter().chain([&position]) {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cursor_opens_in_its_own_domain_only() {
        let cursors = Cursors::new("key");
        let cursor = cursors.seal(&["history", "default", "c1"], "42");
        assert_eq!(cursors.open(&["history", "default", "c1"], &cursor).as_deref(), Some("42"));
        assert_eq!(cursors.open(&["history", "default", "c2"], &cursor), None);
        assert_eq!(cursors.open(&["history", "defaultc1", ""], &cursor), None);
        assert_eq!(Cursors::new("other").open(&["history", "default", "c1"], &cursor), None);
    }

    proptest! {
        #[test]
        fn garbage_never_opens(text in ".{0,64}") {
            prop_assert_eq!(Cursors::new("key").open(&["x"], &text), None);
        }

        #[test]
        fn a_cursor_opens_as_it_was_made_and_not_when_altered(
            position in ".{0,32}", at in any::<prop::sample::Index>(), other in "[A-Za-z0-9_-]",
        ) {
            let cursors = Cursors::new("key");
            let cursor = cursors.seal(&["x"], &position);
            prop_assert_eq!(cursors.open(&["x"], &cursor), Some(position));
            let at = at.index(cursor.len());
            let altered = format!("{}{other}{}", &cursor[..at], &cursor[at + 1..]);
            prop_assume!(altered != cursor);
            prop_assert_eq!(cursors.open(&["x"], &altered), None);
        }
    }
}
