//! Full-text search of transcripts: what is compared, what is indexed, what is found.
//!
//! Invariant: the index only proposes items; whether an item matches, how well, and where, is decided here
//! from its text alone. So both databases find the same, items that are not indexed yet are found like
//! indexed ones, and an entry that went stale or a hash that collided shows nothing wrong.

pub(crate) mod fold;
pub(crate) mod index;
pub(crate) mod query;
mod ranges;
pub(crate) mod snippet;
pub(crate) mod terms;
