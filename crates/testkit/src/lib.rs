//! What tests start: real servers that end with the test, whatever becomes of it.
//!
//! Invariant: nothing here knows the host; a failure to start something is a panic that says why.

pub mod postgres;
