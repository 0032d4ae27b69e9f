//! Backups: one file with everything a host stores, created while the host runs and restored elsewhere.
//!
//! The file is a plain tar: any tar program can open it, and listing does not read all of it. Its members:
//! `database/TABLE.jsonl.gz` (the rows of one snapshot), `artifacts/HASH` (their bytes), `data/…` (the admin token
//! and the folders of runners), `config/…` and `config-outside/…` (the configuration and the files it names, secrets
//! included), and last `manifest.json` with `manifest.sha256`.
//!
//! Invariants: the snapshot is written before the bytes, so every row has its bytes unless the host deleted them in
//! between, which is checked and noted; an archive without its last member is incomplete; nothing is restored before
//! the whole archive was checked against the manifest.

pub(crate) mod archive;
pub(crate) mod bytes;
pub(crate) mod files;
pub(crate) mod manifest;
pub(crate) mod places;
pub(crate) mod progress;
pub(crate) mod tables;
