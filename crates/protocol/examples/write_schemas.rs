//! Writes `docs/schema/*.json` from the protocol's types: `cargo run -p greenroom-protocol --example write_schemas`.
//!
//! Invariant: afterwards the folder contains exactly one file per structure.

use greenroom_protocol::schema;
use std::{fs, io, path::Path};

fn main() -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    fs::create_dir_all(&folder)?;
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            fs::remove_file(path)?;
        }
    }
    for (name, schema) in schema::all() {
        fs::write(folder.join(format!("{name}.json")), schema::file_text(&schema))?;
    }
    Ok(())
}
