//! Descriptions of the database for operators.
//!
//! Invariant: they never hold a user or password.

use crate::Location;
use crate::StoreError;
use crate::reads::rates::database_bytes;
use crate::sql::Tx;
use crate::store::Store;
use postgres::config::Host;
use std::path::{Path, PathBuf};

impl Location {
    /// Its name without its address: for everyone.
    pub fn title(&self) -> String {
        match self {
            Location::Sqlite(path) => format!("SQLite database `{}`", file_name(path)),
            Location::Postgres(url) => match url.parse::<postgres::Config>() {
                Ok(config) => format!("PostgreSQL database `{}`", database(&config)),
                Err(_) => "PostgreSQL database".to_owned(),
            },
        }
    }

    /// Its name and address: for operators.
    pub fn name(&self) -> String {
        match self {
            Location::Sqlite(path) => format!("SQLite database `{}`", path.display()),
            Location::Postgres(url) => match url.parse::<postgres::Config>() {
                Ok(config) => {
                    format!(
                        "PostgreSQL database `{}` on `{}`",
                        database(&config),
                        addresses(&config)
                    )
                }
                Err(_) => "PostgreSQL database".to_owned(),
            },
        }
    }

    /// Name, address and size; pages in SQLite's log are not in its file yet.
    pub(crate) fn describe(&self, tx: &mut dyn Tx) -> Result<String, StoreError> {
        let name = self.name();
        match self {
            Location::Sqlite(path) => {
                let (file, log) = (file_bytes(path), file_bytes(&log_file(path)));
                Ok(format!("{name}, {}, {} in the log", in_units(file), in_units(log)))
            }
            Location::Postgres(_) => {
                let version = tx.query_opt("SHOW server_version", &[])?;
                let version = version.map(|mut row| row.text()).transpose()?.unwrap_or_default();
                let bytes = database_bytes(tx)?;
                Ok(format!("{name}, version {version}, {}", in_units(bytes)))
            }
        }
    }

    /// Size of SQLite's write-ahead log.
    pub fn log_bytes(&self) -> Option<i64> {
        match self {
            Location::Sqlite(path) => Some(file_bytes(&log_file(path))),
            Location::Postgres(_) => None,
        }
    }
}

impl Store {
    /// Its name and address: for operators.
    pub fn name(&self) -> String {
        self.location().name()
    }

    /// Name, address and size.
    pub async fn describe(&self) -> Result<String, StoreError> {
        let location = self.location().clone();
        self.read(move |tx| location.describe(tx)).await
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn log_file(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}-wal", path.display()))
}

fn file_bytes(path: &Path) -> i64 {
    let bytes = std::fs::metadata(path).map_or(0, |file| file.len());
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// The default is the name of the user.
fn database(config: &postgres::Config) -> &str {
    config.get_dbname().or(config.get_user()).unwrap_or("postgres")
}

fn addresses(config: &postgres::Config) -> String {
    let ports = config.get_ports();
    let port = |index: usize| ports.get(index).or(ports.first()).copied().unwrap_or(5432);
    let address = |(index, host): (usize, &Host)| match host {
        Host::Tcp(name) => format!("{name}:{}", port(index)),
        Host::Unix(folder) => folder.display().to_string(),
    };
    let addresses: Vec<String> = config.get_hosts().iter().enumerate().map(address).collect();
    addresses.join(", ")
}

/// A number of bytes in the largest unit that fits.
pub fn in_units(bytes: i64) -> String {
    let units = [("GiB", 30), ("MiB", 20), ("KiB", 10)];
    let fits = units.into_iter().find(|(_, shift)| bytes >> shift > 0);
    match fits {
        Some((unit, shift)) => {
            let tenths = (i128::from(bytes) * 10) >> shift;
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_in_the_largest_unit() {
        let cases = [
            (0, "0 bytes"),
            (1023, "1023 bytes"),
            (1024, "1.0 KiB"),
            (1_572_864, "1.5 MiB"),
            (i64::MAX, "8589934591.9 GiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(in_units(bytes), text);
        }
    }

    #[test]
    fn a_database_is_named_without_user_and_password() {
        let named = |url: &str| Location::Postgres(url.to_owned()).name();
        let full = "postgres://ann:hunter2@db.example.com:5433/greenroom?sslmode=disable";
        assert_eq!(named(full), "PostgreSQL database `greenroom` on `db.example.com:5433`");
        let short = "postgres://ann:hunter2@db.example.com";
        assert_eq!(named(short), "PostgreSQL database `ann` on `db.example.com:5432`");
        assert_eq!(named("postgres://ann:hunter2@[bad"), "PostgreSQL database");
        let file = Location::Sqlite("/var/lib/greenroom/greenroom.db".into());
        assert_eq!(file.name(), "SQLite database `/var/lib/greenroom/greenroom.db`");
        assert_eq!(file.title(), "SQLite database `greenroom.db`");
    }
}
