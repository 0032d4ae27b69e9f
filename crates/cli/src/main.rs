//! The `greenroom` program.

fn main() {}
