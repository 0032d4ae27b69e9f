//! The configuration, data folder and database of a backup or move.

use crate::client::DEFAULT_DATA;
use crate::failure::{Exit, Failure};
use crate::{output, wiring};
use greenroom_config::env;
use greenroom_config::{self as config, Artifacts, Config, Loaded};
use greenroom_store::Location;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A host: its configuration, data folder and stores.
pub(crate) struct Setup {
    pub(crate) data: PathBuf,
    pub(crate) file: Option<PathBuf>,
    pub(crate) config: Config,
    pub(crate) location: Location,
}

pub(crate) fn data_folder(named: Option<&Path>) -> PathBuf {
    let from_env = || env::get(env::DATA).map(PathBuf::from);
    named.map(Path::to_owned).or_else(from_env).unwrap_or_else(|| DEFAULT_DATA.into())
}

impl Setup {
    /// The host with this data folder; a running host has announced its configuration.
    pub(crate) fn of_host(data: Option<&Path>, file: Option<&Path>) -> Result<Self, Failure> {
        let data = std::path::absolute(data_folder(data))?;
        if !data.is_dir() {
            return Err(Failure::new(format!("data folder `{}` does not exist", data.display()))
                .exit(Exit::NotFound)
                .hint("select it with `--data DIR` or `GREENROOM_DATA`"));
        }
        crate::data_folder::refuse_incomplete(&data)?;
        let file = match file {
            Some(file) => Some(file.to_owned()),
            None => match announced(&data) {
                Some(announced) => announced,
                None => config::find_file(None),
            },
        };
        Self::with(data, file)
    }

    /// A host to be created: uses only an explicitly given configuration.
    pub(crate) fn of_new_host(data: &Path, file: Option<&Path>) -> Result<Self, Failure> {
        Self::with(data.to_owned(), file.map(Path::to_owned))
    }

    fn with(data: PathBuf, file: Option<PathBuf>) -> Result<Self, Failure> {
        let config = match &file {
            Some(file) => read(file)?,
            None => Config::default(),
        };
        let location = wiring::store(&config, &data).location;
        Ok(Self { data, file, config, location })
    }

    /// Environment variables in the configuration.
    pub(crate) fn environment(&self) -> Vec<String> {
        let mut names = BTreeSet::new();
        if let Some(table) = self.file.as_deref().and_then(raw) {
            find_variables(&table, &mut names);
        }
        names.into_iter().collect()
    }

    /// How to change the configuration to another store.
    pub(crate) fn change_of_store(&self, to: &Location) -> String {
        let value = match to {
            Location::Sqlite(_) => to.to_string(),
            Location::Postgres(_) => {
                format!("{to} (with its password, preferably as `{{ env = \"NAME\" }}`)")
            }
        };
        let Some(file) = &self.file else {
            return format!("write a greenroom.toml with `[store]` and `url` set to {value}");
        };
        let line = wiring::load_file(file)
            .ok()
            .as_ref()
            .and_then(|loaded: &Loaded| loaded.line_of(&["store", "url"]));
        match line {
            Some(line) => {
                format!("set `store.url` in `{}` (line {line}) to {value}", file.display())
            }
            None => format!("add `[store]` with `url` set to {value} to `{}`", file.display()),
        }
    }
}

/// The configuration of the running host, if one runs.
fn announced(data: &Path) -> Option<Option<PathBuf>> {
    let text = std::fs::read_to_string(data.join("host.json")).ok()?;
    let host: Value = serde_json::from_str(&text).ok()?;
    Some(host["config"].as_str().map(PathBuf::from))
}

/// Loads a configuration; mistakes outside `store` and `artifacts` are ignored.
fn read(file: &Path) -> Result<Config, Failure> {
    let failure = match wiring::load_file(file) {
        Ok(loaded) => return Ok(loaded.config),
        Err(error) => Failure::from(error),
    };
    let (Some(config), Some(table)) = (config::load_lenient(file, &wiring::known()), raw(file))
    else {
        return Err(failure);
    };
    let says = |section: &str| table[section]["url"] != Value::Null;
    let store = says("store") == config.store.url.is_some();
    let artifacts = says("artifacts") == (config.artifacts != Artifacts::InData);
    if !store || !artifacts {
        return Err(failure);
    }
    output::note(&format!(
        "{failure}\nnote: continuing, because `store` and `artifacts` are valid"
    ));
    Ok(config)
}

fn raw(file: &Path) -> Option<Value> {
    toml::from_str(&std::fs::read_to_string(file).ok()?).ok()
}

fn find_variables(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(table) => {
            if let (Some(Value::String(name)), 1) = (table.get("env"), table.len()) {
                names.insert(name.clone());
            }
            table.values().for_each(|value| find_variables(value, names));
        }
        Value::Array(values) => values.iter().for_each(|value| find_variables(value, names)),
        _ => {}
    }
}

/// A database on the command line: `sqlite:PATH`, `postgres://…`, or `env:NAME` for an environment variable.
pub(crate) fn location(text: &str) -> Result<Location, Failure> {
    if let Some(name) = text.strip_prefix("env:") {
        let value = env::get(name).ok_or_else(|| {
            Failure::new(format!("the environment variable `{name}` is not set")).exit(Exit::Usage)
        })?;
        return written(&value);
    }
    written(text)
}

fn written(text: &str) -> Result<Location, Failure> {
    match text.strip_prefix("sqlite:") {
        Some(path) if !path.is_empty() => Ok(Location::Sqlite(std::path::absolute(path)?)),
        None if text.starts_with("postgres://") || text.starts_with("postgresql://") => {
            Ok(Location::Postgres(text.to_owned()))
        }
        _ => Err(Failure::new("not the address of a store")
            .exit(Exit::Usage)
            .hint("write `sqlite:PATH`, `postgres://USER@HOST/DATABASE`, or `env:NAME` for an environment variable")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn variables_are_found_wherever_a_secret_may_stand() {
        let table = json!({"tokens": {"a": {"token": {"env": "A"}}},
            "runners": {"r": {"env": {"KEY": {"env": "B"}, "PLAIN": "env"}}}});
        let mut names = BTreeSet::new();
        find_variables(&table, &mut names);
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["A", "B"]);
    }

    #[test]
    fn a_location_is_one_of_the_two_databases() {
        assert_eq!(location("sqlite:/a/b.db").unwrap(), Location::Sqlite("/a/b.db".into()));
        let url = "postgres://me@db/facts";
        assert_eq!(location(url).unwrap(), Location::Postgres(url.to_owned()));
        for bad in ["", "sqlite:", "mysql://x", "env:GREENROOM_NO_SUCH_VARIABLE"] {
            assert_eq!(location(bad).unwrap_err().exit, Exit::Usage, "{bad}");
        }
    }
}
