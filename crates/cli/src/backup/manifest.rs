//! The manifest of an archive, its second to last member.

use greenroom_store::copy::{Sum, Table};
use serde::{Deserialize, Serialize};

/// The format that this version writes, and the newest that it reads.
pub(crate) const FORMAT: u32 = 1;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub(crate) format: u32,
    /// Version of the program that wrote it.
    pub(crate) version: String,
    /// RFC 3339; the archive has everything acknowledged before.
    pub(crate) created_at: String,
    pub(crate) database: Database,
    pub(crate) artifacts: Artifacts,
    pub(crate) config: Option<Config>,
    /// Every other member, in order.
    pub(crate) members: Vec<Member>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Database {
    /// `sqlite` or `postgres`.
    pub(crate) kind: String,
    pub(crate) schema: i64,
    pub(crate) epoch: i64,
    pub(crate) tables: Vec<TableDump>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct TableDump {
    #[serde(flatten)]
    pub(crate) table: Table,
    #[serde(flatten)]
    pub(crate) sum: Sum,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Artifacts {
    /// The name with which the database owns its object store.
    pub(crate) owner: String,
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// Hashes of bytes that the host deleted, with their rows, before they were copied.
    pub(crate) collected: Vec<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Config {
    /// The member that is the configuration file, and where it was.
    pub(crate) member: String,
    pub(crate) path: String,
    /// Environment variables it refers to; their values are not in the archive.
    pub(crate) environment: Vec<String>,
    /// Whether it sets the store or the artifacts.
    pub(crate) names_store: bool,
    pub(crate) names_artifacts: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) size: u64,
    pub(crate) sha256: String,
}

impl Manifest {
    pub(crate) fn rows(&self) -> u64 {
        self.database.tables.iter().map(|dump| dump.sum.rows).sum()
    }

    pub(crate) fn rows_of(&self, table: &str) -> u64 {
        let found = self.database.tables.iter().find(|dump| dump.table.name == table);
        found.map_or(0, |dump| dump.sum.rows)
    }
}
