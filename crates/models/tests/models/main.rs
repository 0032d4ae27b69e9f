//! Models against real servers on real sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod faults;
mod kit;
mod limits;
mod sizes;
mod wires;
