//! The manifests of a LangBot plugin, read from its folder.
//!
//! Invariant: runs nothing of the plugin. Aliases and deep nesting are not read, since they make a small file
//! large.

use serde_json::{Map, Value};
use std::path::{Path, PathBuf};
use yaml_rust2::Yaml;
use yaml_rust2::parser::{Event, MarkedEventReceiver, Parser};
use yaml_rust2::scanner::{Marker, TScalarStyle};

const FILE_BYTES_MAX: u64 = 1024 * 1024;
const NESTING_MAX: usize = 64;
const COMPONENTS_MAX: usize = 500;

/// What the files of a plugin say.
#[derive(Debug, PartialEq)]
pub(crate) struct PluginManifest {
    /// `author/name`.
    pub(crate) path: String,
    /// The form of its settings, as written.
    pub(crate) config: Value,
    pub(crate) components: Vec<Component>,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Component {
    pub(crate) kind: String,
    pub(crate) name: String,
    /// The form of its settings, as written.
    pub(crate) config: Value,
}

/// Reads the manifest and those of the components; none if it cannot be read. A component that cannot be read
/// is left out.
pub(crate) fn read(folder: &Path) -> Option<PluginManifest> {
    let manifest = yaml(&folder.join("manifest.yaml"))?;
    let text = |key: &str| manifest["metadata"][key].as_str().unwrap_or_default();
    let files = manifest["spec"]["components"].as_object().into_iter().flatten();
    let files = files.flat_map(|(_, group)| component_files(folder, group));
    let component = |file: PathBuf| {
        let manifest = yaml(&file)?;
        Some(Component {
            kind: manifest["kind"].as_str()?.to_owned(),
            name: manifest["metadata"]["name"].as_str()?.to_owned(),
            config: manifest["spec"]["config"].clone(),
        })
    };
    Some(PluginManifest {
        path: format!("{}/{}", text("author"), text("name")),
        config: manifest["spec"]["config"].clone(),
        components: files.take(COMPONENTS_MAX).filter_map(component).collect(),
    })
}

/// The files of one kind of components, named or in folders.
fn component_files(folder: &Path, group: &Value) -> Vec<PathBuf> {
    let named = group["fromFiles"].as_array().into_iter().flatten();
    let named = named.filter_map(|name| Some(folder.join(name.as_str()?)));
    let folders = group["fromDirs"].as_array().into_iter().flatten();
    let found = folders.flat_map(|entry| {
        let depth = entry["maxDepth"].as_u64().unwrap_or(1);
        let mut files = Vec::new();
        if let Some(path) = entry["path"].as_str() {
            yaml_files(&folder.join(path), depth, &mut files);
        }
        files.sort();
        files
    });
    named.chain(found).collect()
}

fn yaml_files(folder: &Path, depth: u64, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        let is_yaml = path.extension().is_some_and(|end| end == "yaml" || end == "yml");
        if kind.is_dir() && depth > 1 && files.len() < COMPONENTS_MAX {
            yaml_files(&path, depth - 1, files);
        } else if kind.is_file() && is_yaml {
            files.push(path);
        }
    }
}

/// A file as JSON; none if it is missing or malformed.
fn yaml(file: &Path) -> Option<Value> {
    let about = std::fs::metadata(file).ok()?;
    if !about.is_file() || about.len() > FILE_BYTES_MAX {
        return None;
    }
    parse(&std::fs::read_to_string(file).ok()?)
}

fn parse(text: &str) -> Option<Value> {
    let mut document = Document::default();
    Parser::new_from_str(text).load(&mut document, false).ok()?;
    document.root.filter(|_| !document.is_refused)
}

/// Builds a value from the events of the parser.
#[derive(Default)]
struct Document {
    open: Vec<Open>,
    root: Option<Value>,
    is_refused: bool,
}

/// A collection that is not complete.
enum Open {
    List(Vec<Value>),
    /// With the key whose value follows.
    Map(Map<String, Value>, Option<String>),
}

impl Document {
    fn add(&mut self, value: Value) {
        match self.open.last_mut() {
            None => self.root = Some(value),
            Some(Open::List(items)) => items.push(value),
            Some(Open::Map(fields, key)) => match key.take() {
                Some(key) => drop(fields.insert(key, value)),
                None => {
                    let text = value.as_str().map(str::to_owned);
                    *key = Some(text.unwrap_or_else(|| value.to_string()));
                }
            },
        }
    }

    fn open(&mut self, collection: Open) {
        self.is_refused |= self.open.len() >= NESTING_MAX;
        if !self.is_refused {
            self.open.push(collection);
        }
    }

    fn close(&mut self) {
        match self.open.pop() {
            Some(Open::List(items)) => self.add(items.into()),
            Some(Open::Map(fields, _)) => self.add(fields.into()),
            None => self.is_refused = true,
        }
    }
}

impl MarkedEventReceiver for Document {
    fn on_event(&mut self, event: Event, _: Marker) {
        match event {
            Event::Scalar(text, style, ..) => self.add(scalar(text, style)),
            Event::SequenceStart(..) => self.open(Open::List(Vec::new())),
            Event::MappingStart(..) => self.open(Open::Map(Map::new(), None)),
            Event::SequenceEnd | Event::MappingEnd => self.close(),
            Event::Alias(_) => self.is_refused = true,
            _ => {}
        }
    }
}

fn scalar(text: String, style: TScalarStyle) -> Value {
    if style != TScalarStyle::Plain {
        return text.into();
    }
    match Yaml::from_str(&text) {
        Yaml::Integer(number) => number.into(),
        Yaml::Real(number) => number.parse::<f64>().map_or(Value::Null, Into::into),
        Yaml::Boolean(value) => value.into(),
        Yaml::Null => Value::Null,
        _ => text.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_manifest_is_read_as_its_plugin_reads_it() {
        let text = "metadata: {name: bot, version: \"1.0\"}\nspec:\n  config:\n    - name: key\n      \
                    required: true\n      default: ''\n    - {name: size, default: 3, show: [a, 1.5, ~]}\n";
        assert_eq!(
            parse(text),
            Some(json!({"metadata": {"name": "bot", "version": "1.0"}, "spec": {"config": [
                {"name": "key", "required": true, "default": ""},
                {"name": "size", "default": 3, "show": ["a", 1.5, null]}]}}))
        );
    }

    #[test]
    fn a_small_file_stays_small() {
        assert_eq!(parse("a: &a [1]\nb: [*a, *a]\n"), None);
        assert_eq!(parse(&"[".repeat(200)), None);
        assert_eq!(parse(&format!("{}{}", "[".repeat(100), "]".repeat(100))), None);
        assert_eq!(parse("a: [\n"), None);
    }

    #[test]
    fn the_components_are_found_where_the_manifest_names_them() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        write(
            "manifest.yaml",
            "kind: Plugin\nmetadata: {author: acme, name: bot}\nspec:\n  components:\n    Tool:\n      \
             fromDirs: [{path: tools/}]\n    Runner:\n      fromFiles: [run.yaml]\n",
        );
        write("tools/a.yaml", "kind: Tool\nmetadata: {name: add}\n");
        write("tools/bad.yaml", "kind: [\n");
        write("run.yaml", "kind: Runner\nmetadata: {name: main}\nspec: {config: [{name: x}]}\n");
        let read = read(folder.path()).unwrap();
        assert_eq!(read.path, "acme/bot");
        let component = |kind: &str, name: &str, config: Value| Component {
            kind: kind.to_owned(),
            name: name.to_owned(),
            config,
        };
        assert_eq!(
            read.components,
            [
                component("Runner", "main", json!([{"name": "x"}])),
                component("Tool", "add", Value::Null)
            ]
        );
    }
}
