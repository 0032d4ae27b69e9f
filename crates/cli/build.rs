//! Has the linker of a released program keep one copy of functions that came out the same.
//!
//! Invariant: only the linker that the compiler itself brings along is told so; any other is left alone.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var_os(name).is_some_and(|found| found == value);
    let flags = std::env::var_os("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let chosen =
        std::env::var_os("RUSTC_LINKER").is_some() || flags.to_string_lossy().contains("link");
    if is("TARGET", "x86_64-unknown-linux-gnu") && is("PROFILE", "release") && !chosen {
        println!("cargo::rustc-link-arg-bins=-Wl,--icf=all");
    }
}
