//! What people see of a call: hints are made with the output, and compiled to A2UI when somebody looks.
//!
//! Invariant: hints come from `result` alone and never leave the host; what is compiled from them passes the
//! catalogue, or there is no UI.

mod catalogue;
mod compile;
mod components;
mod hints;
mod words;

pub use catalogue::{InvalidUi, validate};
pub use compile::{CATALOGUE_ID, Options, compile};
pub use hints::hints;
pub use words::Language;

#[cfg(test)]
mod tests;
