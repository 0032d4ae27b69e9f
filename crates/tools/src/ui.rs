//! The UI of a call: hints are made with the output, and compiled to A2UI when it is shown.
//!
//! Invariant: hints are derived from `result` and never leave the host; a compiled UI is valid for the
//! catalogue, or there is none.

mod catalogue;
mod compile;
mod components;
mod hints;
mod words;

pub use catalogue::{InvalidUi, validate};
pub use compile::{BASIC_CATALOGUES, CATALOGUE_ID, OLDER_CATALOGUE_ID, Options, compile};
pub use hints::hints;
pub use words::Language;

#[cfg(test)]
mod tests;
