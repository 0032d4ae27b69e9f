//! Backups and moves: the real binary beside a real host, and the host that comes out of it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod answers;
mod archives;
mod busy;
mod bytes;
mod interrupted;
mod moving;
mod scene;

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");

/// A number that whoever runs the tests may set.
#[expect(clippy::disallowed_methods, reason = "the tests' settings are read here")]
fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: `{text}`")))
}
