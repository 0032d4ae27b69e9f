//! Writes `docs/openapi.json`: `cargo run -p greenroom-server --example write_openapi`.

use std::{fs, io, path::Path};

fn main() -> io::Result<()> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    fs::write(file, format!("{:#}\n", greenroom_server::openapi_document()))
}
