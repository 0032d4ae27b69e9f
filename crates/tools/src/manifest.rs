//! User-defined modules: a TOML file with methods, their schemas and the command that runs them.
//!
//! Invariant: a manifest that was read is complete and consistent; it never replaces a built-in module, and its
//! schemas refer to nothing outside.

mod modules;
mod notes;

pub use modules::{Modules, Target};

use crate::Risk;
use crate::project_cli;
use crate::schema::{BadSchema, Schema};
use greenroom_config::NetworkAccess;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Largest manifest.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Longest quote of a parse error.
const REASON_CHARS_MAX: usize = 100;
const TIMEOUT_S: u64 = 30;
const TIMEOUT_S_MAX: u64 = 600;
const METHODS_MAX: usize = 100;
const NAME_BYTES_MAX: usize = 64;
const DESCRIPTION_CHARS_MAX: usize = 2000;

/// A module as described by its manifest.
#[derive(Debug, Clone)]
pub struct Manifest {
    pub module: String,
    pub description: String,
    /// The file it was read from.
    pub path: PathBuf,
    pub methods: BTreeMap<String, ModuleMethod>,
}

/// One method: what is needed to check a call and to run it.
#[derive(Debug, Clone)]
pub struct ModuleMethod {
    pub module: String,
    pub method: String,
    pub description: String,
    pub risk: Risk,
    pub timeout: Duration,
    /// The program with its arguments; module and method are appended.
    pub command: Vec<String>,
    /// The working directory: the folder of the manifest.
    pub dir: PathBuf,
    pub network: NetworkAccess,
    /// Further folders that it may use.
    pub paths: Vec<PathBuf>,
    pub handover: Handover,
    pub input: Arc<Schema>,
    /// The inputs that an approval shows, in this order; all of them if absent.
    pub show: Option<Vec<String>>,
}

/// How the program gets the credential of a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Handover {
    /// In a variable, which processes of the same user can read as long as the program runs.
    #[default]
    Env,
    /// As the first line of standard input, before the payload.
    Stdin,
}

/// Why a module cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    #[error("cannot read `{}`", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("`{}` cannot be understood: {message}", path.display())]
    Syntax { path: PathBuf, message: String },
    #[error("`{}`: {problem}", path.display())]
    Invalid { path: PathBuf, problem: Problem },
    #[error("there are two modules `{module}`: in `{}` and in `{}`", first.display(), second.display())]
    Clash { module: String, first: PathBuf, second: PathBuf },
}

/// What is wrong with a manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    #[error("`{0}` is not a name: 1 to 64 of a-z, 0-9 and _, beginning with a letter")]
    Name(String),
    #[error("there is a built-in module `{0}`")]
    BuiltIn(String),
    #[error("the module has no methods")]
    NoMethods,
    #[error("the module has more than {METHODS_MAX} methods")]
    TooManyMethods,
    #[error(
        "`{0}` has no command: write `command = [\"program\", \"argument\"]` for it or for the module"
    )]
    NoCommand(String),
    #[error("the timeout of `{0}` is not between 1 and {TIMEOUT_S_MAX} seconds")]
    Timeout(String),
    #[error("the description of `{0}` is empty or longer than {DESCRIPTION_CHARS_MAX} characters")]
    Description(String),
    #[error("the schema of `{method}` is refused: {reason}")]
    Schema { method: String, reason: BadSchema },
    #[error("the schema of `{0}` does not say `type = \"object\"`")]
    NotAnObject(String),
    #[error("`show` of `{method}` names `{field}`, which its schema does not have")]
    Show { method: String, field: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    module: String,
    description: String,
    #[serde(default)]
    command: Vec<String>,
    timeout_s: Option<u64>,
    network: Option<NetworkAccess>,
    #[serde(default)]
    paths: Vec<PathBuf>,
    #[serde(default)]
    credential: Handover,
    #[serde(default)]
    methods: BTreeMap<String, FileMethod>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileMethod {
    description: String,
    risk: Risk,
    input_schema: Value,
    command: Option<Vec<String>>,
    timeout_s: Option<u64>,
    network: Option<NetworkAccess>,
    show: Option<Vec<String>>,
}

impl Manifest {
    pub fn load(path: &Path) -> Result<Self, ManifestError> {
        let unreadable = |source| ManifestError::Unreadable { path: path.to_owned(), source };
        let file = std::fs::metadata(path).map_err(unreadable)?;
        if !file.is_file() || file.len() > FILE_BYTES_MAX {
            let reason = format!("it is not a file of at most {FILE_BYTES_MAX} bytes");
            return Err(unreadable(std::io::Error::other(reason)));
        }
        if is_outside(path).map_err(unreadable)? {
            return Err(unreadable(std::io::Error::other("it is a link out of its folder")));
        }
        let text = std::fs::read_to_string(path).map_err(unreadable)?;
        Self::parse(&text, path)
    }

    /// Parses a manifest; relative paths start at the folder of `path`.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ManifestError> {
        let file: File = toml::from_str(text).map_err(|error| ManifestError::Syntax {
            path: path.to_owned(),
            message: parse_error(&error, text),
        })?;
        let dir = path.parent().unwrap_or(Path::new("")).to_owned();
        let checked = checked(file, &dir);
        let (module, description, methods) =
            checked.map_err(|problem| ManifestError::Invalid { path: path.to_owned(), problem })?;
        Ok(Self { module, description, path: path.to_owned(), methods })
    }
}

/// Whether the file, with links resolved, is outside its folder.
fn is_outside(path: &Path) -> std::io::Result<bool> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    Ok(!path.canonicalize()?.starts_with(folder.canonicalize()?))
}

/// Where the text is wrong and why. The line is not quoted: a link may have replaced the file, and errors are
/// logged.
fn parse_error(error: &toml::de::Error, text: &str) -> String {
    let at = error.span().map_or(0, |span| span.start);
    let line = text.get(..at).unwrap_or(text).matches('\n').count() + 1;
    let reason: String = error.message().chars().take(REASON_CHARS_MAX).collect();
    format!("line {line}: {reason}")
}

type Checked = (String, String, BTreeMap<String, ModuleMethod>);

fn checked(file: File, dir: &Path) -> Result<Checked, Problem> {
    let File { module, description, command, timeout_s, network, paths, credential, methods } =
        file;
    check_name(&module)?;
    if project_cli::specs().iter().any(|spec| spec.module == module) {
        return Err(Problem::BuiltIn(module));
    }
    check_description(&module, &description)?;
    match methods.len() {
        0 => return Err(Problem::NoMethods),
        count if count > METHODS_MAX => return Err(Problem::TooManyMethods),
        _ => {}
    }
    let paths: Vec<PathBuf> = paths.iter().map(|path| dir.join(path)).collect();
    let mut checked = BTreeMap::new();
    for (name, method) in methods {
        check_name(&name)?;
        let full = format!("{module}.{name}");
        check_description(&full, &method.description)?;
        let command = method.command.unwrap_or_else(|| command.clone());
        if command.first().is_none_or(String::is_empty) {
            return Err(Problem::NoCommand(full));
        }
        let timeout_s = method.timeout_s.or(timeout_s).unwrap_or(TIMEOUT_S);
        if !(1..=TIMEOUT_S_MAX).contains(&timeout_s) {
            return Err(Problem::Timeout(full));
        }
        let method = ModuleMethod {
            module: module.clone(),
            method: name.clone(),
            description: method.description,
            risk: method.risk,
            timeout: Duration::from_secs(timeout_s),
            command: resolve_program(command, dir),
            dir: dir.to_owned(),
            network: method.network.or_else(|| network.clone()).unwrap_or(NetworkAccess::None),
            paths: paths.clone(),
            handover: credential,
            show: shown(&full, method.show, &method.input_schema)?,
            input: Arc::new(input_schema(&full, &method.input_schema)?),
        };
        checked.insert(name, method);
    }
    Ok((module, description, checked))
}

fn input_schema(method: &str, source: &Value) -> Result<Schema, Problem> {
    let schema = Schema::compile(source)
        .map_err(|reason| Problem::Schema { method: method.to_owned(), reason })?;
    match source.get("type").and_then(Value::as_str) {
        Some("object") => Ok(schema),
        _ => Err(Problem::NotAnObject(method.to_owned())),
    }
}

fn shown(
    method: &str,
    show: Option<Vec<String>>,
    schema: &Value,
) -> Result<Option<Vec<String>>, Problem> {
    let is_known = |field: &&String| schema["properties"].get(field.as_str()).is_some();
    let unknown = show.iter().flatten().find(|field| !is_known(field)).cloned();
    match unknown {
        Some(field) => Err(Problem::Show { method: method.to_owned(), field }),
        None => Ok(show),
    }
}

/// A program with a slash is relative to the manifest; a bare name is looked up in `PATH`.
fn resolve_program(mut command: Vec<String>, dir: &Path) -> Vec<String> {
    if let Some(program) = command.first_mut().filter(|program| program.contains('/')) {
        *program = dir.join(&*program).to_string_lossy().into_owned();
    }
    command
}

fn check_name(name: &str) -> Result<(), Problem> {
    let good = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.len() <= NAME_BYTES_MAX
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_');
    if good { Ok(()) } else { Err(Problem::Name(name.to_owned())) }
}

fn check_description(of: &str, description: &str) -> Result<(), Problem> {
    let good =
        !description.trim().is_empty() && description.chars().count() <= DESCRIPTION_CHARS_MAX;
    if good { Ok(()) } else { Err(Problem::Description(of.to_owned())) }
}

#[cfg(test)]
mod tests;
