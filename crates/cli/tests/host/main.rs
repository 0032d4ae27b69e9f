//! The host as a whole: the real binary, real sockets, real runner processes, and the power going out.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod approvals;
mod audit;
mod borders;
mod crash;
mod damage;
mod duplicates;
mod facts;
#[cfg(feature = "faults")]
mod faults;
mod hostile;
mod interrupted;
mod lanes;
mod lifecycle;
mod reload;
mod remote;
mod results;
mod sandbox;
mod secrets;
mod senders;
mod stage;
mod steering;
mod writes;

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");

/// A number that whoever runs the tests may set.
#[expect(clippy::disallowed_methods, reason = "the tests' settings are read here")]
fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: `{text}`")))
}
