//! Skills of the modules: a card for each, an overview, and the fields of every method (seed 004 §2.3).
//!
//! Invariant: written from the contracts that calls are checked against; a run reads notes on its own methods only.

use super::Modules;
use crate::project_cli::{MethodSet, specs};
use crate::skills::Card;
use crate::{ToolFailure, ToolOutput};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The first file of a skill.
const OVERVIEW: &str = "SKILL.md";
/// Methods named on a card.
const METHODS_ON_CARD: usize = 12;

impl Modules {
    /// The names of all modules, built-in ones included.
    pub fn names(&self) -> BTreeSet<String> {
        let built_in = specs().iter().map(|spec| spec.module.to_owned());
        built_in.chain(self.manifests().map(|manifest| manifest.module.clone())).collect()
    }

    /// The card of a module.
    pub fn card(&self, module: &str) -> Option<Card> {
        let names: Vec<String> = self.all().map(|(name, ..)| name).collect();
        let methods = names.iter().filter_map(|name| name.split_once('.'));
        let methods: Vec<&str> =
            methods.filter(|(of, _)| *of == module).map(|(_, method)| method).collect();
        let (shown, rest) = methods.split_at(methods.len().min(METHODS_ON_CARD));
        let more = if rest.is_empty() { "" } else { ", …" };
        (!methods.is_empty()).then(|| Card {
            name: module.to_owned(),
            description: format!(
                "How to call the module `{module}` with project_cli: fields and examples of {}{more}",
                shown.join(", ")
            ),
        })
    }

    /// A file of a module's notes, for a run with these methods.
    pub fn read_notes(
        &self,
        module: &str,
        path: Option<&str>,
        methods: &BTreeSet<String>,
    ) -> ToolOutput {
        let contracts = self.contracts(&MethodSet::new(methods.iter().cloned()));
        let own = contracts.iter().filter_map(|(name, contract)| {
            let (of, method) = name.split_once('.')?;
            (of == module).then_some((method, contract))
        });
        let own: BTreeMap<&str, &Value> = own.collect();
        let path = path.unwrap_or(OVERVIEW);
        let files: Vec<String> = std::iter::once(OVERVIEW.to_owned())
            .chain(own.keys().map(|method| format!("{method}.md")))
            .collect();
        let content = match path.strip_suffix(".md").and_then(|method| own.get_key_value(method)) {
            Some((method, contract)) => method_notes(module, method, contract),
            None if path == OVERVIEW && !own.is_empty() => overview(module, &own),
            None => {
                let message = format!("skill `{module}` has no file `{path}`");
                return ToolOutput::failure(
                    ToolFailure::new("NOT_FOUND", message).detail("files", files),
                );
            }
        };
        ToolOutput::success(
            json!({"skill": module, "path": path, "content": content, "files": files}),
        )
    }
}

fn word<'a>(contract: &'a Value, key: &str) -> &'a str {
    contract[key].as_str().unwrap_or_default()
}

fn overview(module: &str, methods: &BTreeMap<&str, &Value>) -> String {
    let mut text = format!(
        "# {module}\n\nCall project_cli with `module`, `method` and `input`. Read `METHOD.md` for the fields \
         of a method before you call it for the first time.\n\n| method | risk | what it does |\n|---|---|---|\n"
    );
    for (method, contract) in methods {
        let (risk, about) = (word(contract, "risk"), word(contract, "description"));
        text.push_str(&format!("| `{method}` | {risk} | {about} |\n"));
    }
    text
}

fn method_notes(module: &str, method: &str, contract: &Value) -> String {
    let (risk, about) = (word(contract, "risk"), word(contract, "description"));
    let mut text = format!("# {module}.{method}\n\n{about} ({risk}).\n\nInput:\n\n");
    let schema = &contract["input_schema"];
    // The fields of a built-in method are described in words, those of others by JSON Schema.
    match schema.as_object().filter(|fields| fields.values().all(Value::is_string)) {
        Some(fields) if fields.is_empty() => text.push_str("none: `{}`\n"),
        Some(fields) => {
            for (field, takes) in fields {
                text.push_str(&format!("- `{field}`: {}\n", takes.as_str().unwrap_or_default()));
            }
        }
        None => text.push_str(&format!("```json\n{schema:#}\n```\n")),
    }
    let call = json!({"module": module, "method": method, "input": {}});
    text.push_str(&format!("\nThe call, with these fields in `input`: `{call}`\n"));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_have_the_fields_of_the_granted_methods() {
        let modules = Modules::default();
        let card = modules.card("calendar").unwrap();
        assert!(card.description.contains("create") && card.description.len() < 300, "{card:?}");
        assert_eq!(modules.card("nothing"), None);
        let granted = BTreeSet::from(["calendar.create".to_owned(), "memory.read".to_owned()]);
        let read = |path| format!("{:?}", modules.read_notes("calendar", path, &granted));
        let overview = read(None);
        assert!(overview.contains("`create`") && !overview.contains("`delete`"), "{overview}");
        let create = read(Some("create.md"));
        assert!(create.contains("`start_at`: string RFC 3339"), "{create}");
        for missing in ["delete.md", "../x", "memory.md"] {
            let told = read(Some(missing));
            assert!(told.contains("NOT_FOUND") && told.contains("create.md"), "{told}");
        }
    }
}
