//! Has the linker of a released program keep one copy of functions that came out the same, and write down in
//! a few bits which addresses move with the program, where the C library can read that.
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
        if reads_packed_relocations().unwrap_or(false) {
            println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
        }
    }
}

/// Since glibc 2.36.
#[expect(clippy::disallowed_methods, reason = "the machine that builds says what its library is")]
fn reads_packed_relocations() -> Option<bool> {
    let output = std::process::Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?;
    let version = String::from_utf8(output.stdout).ok()?;
    let (major, minor) = version.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?) >= (2, 36))
}
