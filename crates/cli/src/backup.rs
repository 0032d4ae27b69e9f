//! Backups: one file with everything that a host keeps, made beside a running host and restored elsewhere.
//!
//! The file is a plain tar, so that any tar program can look into it and a list need not read all of it. Its members:
//! `database/TABLE.jsonl.gz` (the rows of one snapshot), `artifacts/HASH` (their bytes), `data/…` (the admin's token
//! and the folders of runners), `config/…` and `config-outside/…` (the configuration and the files it names, secrets
//! included), and last `manifest.json` with `manifest.sha256`.
//!
//! Invariants: the snapshot comes first and bytes after it, so every row has its bytes unless the host has collected
//! them in between, which is looked up and noted; an archive without its last member is incomplete; nothing is
//! restored from an archive before all of it was checked against the manifest.

pub(crate) mod archive;
pub(crate) mod bytes;
pub(crate) mod files;
pub(crate) mod manifest;
pub(crate) mod places;
pub(crate) mod progress;
pub(crate) mod tables;
