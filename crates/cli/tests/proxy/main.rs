//! The API proxy from a runner's side: every method, asked for by those who may and by those who may not, over
//! real connections to the real program.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

mod calls;
mod envelope;
mod facts;
mod files;
mod frozen;
mod fuzz;
mod granted_files;
mod matrix;
mod people;
mod records;
mod said;
mod sessions;
mod situations;
mod stage;
mod statics;
mod theft;
mod wire;

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");

/// A number that whoever runs the tests may set.
#[expect(clippy::disallowed_methods, reason = "the tests' settings are read here")]
fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is not a number: `{text}`")))
}
