//! Warns if the web interface is not built.
//!
//! Invariant: a release build is rebuilt when its embedded files change; other builds read them at run time.

use std::path::Path;

const DIST: &str = "../../web/dist";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("PROFILE").is_some_and(|profile| profile == "release") {
        println!("cargo:rerun-if-changed={DIST}");
    }
    if !Path::new(DIST).join("index.html").exists() {
        println!(
            "cargo:warning=the web interface is not built: run `make web` \
             (debug builds then serve it, release builds must be rebuilt)"
        );
    }
}
