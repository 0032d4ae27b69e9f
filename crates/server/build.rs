//! Says so when the web interface is not built.
//!
//! Invariant: a release build is made anew when the files that it carries change; other builds read them at run time.

use std::path::Path;

const DIST: &str = "../../web/dist";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("PROFILE").is_some_and(|profile| profile == "release") {
        println!("cargo:rerun-if-changed={DIST}");
    }
    if !Path::new(DIST).join("index.html").exists() {
        println!(
            "cargo:warning=the web interface was not built when this was compiled: `make web` builds it \
             (debug builds then show it as they are, release builds are to be made again)"
        );
    }
}
