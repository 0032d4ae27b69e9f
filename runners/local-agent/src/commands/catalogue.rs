//! Everything that a command can call: granted tools, and granted methods of the project CLI.
//!
//! Invariant: everything listed is granted; the host still decides on each call.

use super::schema::Schema;
use crate::texts::Texts;
use crate::tools::PROJECT_CLI;
use greenroom_sdk::{Object, RunCtx, ToolResource, Value};

#[derive(Debug, Clone)]
pub(crate) struct Callable {
    pub(crate) name: String,
    about: String,
    about_zh: Option<String>,
    pub(crate) schema: Schema,
    target: Target,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Tool,
    /// A method of the project CLI.
    Method,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Catalogue {
    callables: Vec<Callable>,
}

/// The result of a lookup.
pub(crate) enum Lookup<'c> {
    Nothing,
    One(&'c Callable),
    /// The name is a suffix of several names.
    Several(Vec<&'c Callable>),
}

impl Callable {
    /// The tool and its arguments.
    pub(crate) fn call(&self, arguments: Object) -> (&str, Object) {
        match (&self.target, self.name.split_once('.')) {
            (Target::Method, Some((module, method))) => {
                let parameters = [
                    ("module", module.into()),
                    ("method", method.into()),
                    ("input", Value::Object(arguments)),
                ];
                let parameters = parameters.map(|(key, value)| (key.to_owned(), value));
                (PROJECT_CLI, Object::from_iter(parameters))
            }
            _ => (&self.name, arguments),
        }
    }

    /// The description, in the reader's language if available.
    pub(crate) fn about(&self, texts: Texts) -> &str {
        match (texts, &self.about_zh) {
            (Texts::Chinese, Some(about)) => about,
            _ => &self.about,
        }
    }

    /// Whether its name or description, in any language, contains a word.
    pub(crate) fn contains(&self, word: &str) -> bool {
        let texts = [&self.name, &self.about, self.about_zh.as_ref().unwrap_or(&self.about)];
        texts.into_iter().any(|text| text.to_lowercase().contains(word))
    }

    /// The last part of the name.
    fn alias(&self) -> &str {
        self.name.rsplit(['.', '/', ':']).next().unwrap_or(&self.name)
    }
}

impl Catalogue {
    /// Names, and schemas of tools.
    pub(crate) fn new(tools: &[ToolResource]) -> Self {
        let mut callables: Vec<Callable> = tools
            .iter()
            .map(|tool| Callable {
                name: tool.tool_name.clone(),
                about: tool.description.clone().unwrap_or_default(),
                about_zh: None,
                schema: Schema::new(tool.parameters.clone()),
                target: Target::Tool,
            })
            .collect();
        let cli = tools.iter().find(|tool| tool.tool_name == PROJECT_CLI);
        let methods = cli.and_then(|tool| tool.metadata.get("methods")).and_then(Value::as_array);
        for name in methods.into_iter().flatten().filter_map(Value::as_str) {
            // A tool takes precedence over a method of the same name.
            if callables.iter().all(|known| known.name != name) {
                callables.push(Callable {
                    name: name.to_owned(),
                    about: String::new(),
                    about_zh: None,
                    schema: Schema::new(Object::new()),
                    target: Target::Method,
                });
            }
        }
        callables.sort_by(|a, b| a.name.cmp(&b.name));
        Self { callables }
    }

    /// Adds the contracts of methods, which the run context lacks.
    pub(crate) async fn with_contracts(mut self, ctx: &RunCtx) -> Self {
        if self.callables.iter().all(|callable| callable.target == Target::Tool) {
            return self;
        }
        let detail = ctx.tools().get_detail(PROJECT_CLI).await;
        let contracts = detail.ok().and_then(|mut tool| tool.metadata.remove("contracts"));
        for callable in self.callables.iter_mut().filter(|one| one.target == Target::Method) {
            let Some(contract) = contracts.as_ref().and_then(|all| all.get(&callable.name)) else {
                continue;
            };
            callable.about = contract["description"].as_str().unwrap_or_default().to_owned();
            callable.about_zh = contract["descriptions"]["zh_Hans"].as_str().map(ToOwned::to_owned);
            callable.schema = Schema::from_contract(&contract["input_schema"]);
        }
        self
    }

    /// Everything to list; the project CLI is listed by its methods.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &Callable> {
        let has_methods = self.callables.iter().any(|one| one.target == Target::Method);
        self.callables.iter().filter(move |one| !(has_methods && one.name == PROJECT_CLI))
    }

    /// By exactly its name.
    pub(crate) fn exact(&self, name: &str) -> Option<&Callable> {
        self.callables.iter().find(|one| one.name == name)
    }

    /// By the full name, else by its last part, ignoring case.
    pub(crate) fn find(&self, name: &str) -> Lookup<'_> {
        let all = |is_it: &dyn Fn(&&Callable) -> bool| {
            self.callables.iter().filter(is_it).collect::<Vec<_>>()
        };
        let candidates = [
            all(&|one| one.name == name),
            all(&|one| one.name.eq_ignore_ascii_case(name)),
            all(&|one| one.alias().eq_ignore_ascii_case(name)),
        ];
        match candidates.into_iter().find(|found| !found.is_empty()).as_deref() {
            None => Lookup::Nothing,
            Some([one]) => Lookup::One(one),
            Some(several) => Lookup::Several(several.to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_sdk::json;

    fn catalogue() -> Catalogue {
        let tool = |name: &str| ToolResource { tool_name: name.to_owned(), ..Default::default() };
        let methods = json!(["calendar.read", "contacts.read", "calendar.create"]);
        let metadata = Object::from_iter([("methods".to_owned(), methods)]);
        let cli = ToolResource { metadata, ..tool(PROJECT_CLI) };
        Catalogue::new(&[tool("fs/Write"), cli, tool("create"), tool("forge.add")])
    }

    fn lookup(name: &str) -> Vec<String> {
        let names = |all: Vec<&Callable>| all.into_iter().map(|one| one.name.clone()).collect();
        match catalogue().find(name) {
            Lookup::Nothing => Vec::new(),
            Lookup::One(one) => vec![one.name.clone()],
            Lookup::Several(several) => names(several),
        }
    }

    #[test]
    fn a_full_name_takes_precedence_over_a_suffix() {
        for (name, expected) in [
            ("forge.add", vec!["forge.add"]),
            ("ADD", vec!["forge.add"]),
            ("write", vec!["fs/Write"]),
            ("create", vec!["create"]),
            ("calendar.create", vec!["calendar.create"]),
            ("read", vec!["calendar.read", "contacts.read"]),
            ("project_cli", vec!["project_cli"]),
            ("forge", vec![]),
            ("unknown", vec![]),
        ] {
            assert_eq!(lookup(name), expected, "{name}");
        }
    }

    #[test]
    fn a_method_is_a_call_of_the_project_cli() {
        let catalogue = catalogue();
        let Lookup::One(read) = catalogue.find("calendar.read") else { panic!("it is there") };
        let input = Object::from_iter([("mode".to_owned(), json!("day"))]);
        let (tool, parameters) = read.call(input);
        assert_eq!(tool, PROJECT_CLI);
        let expected = json!({"module": "calendar", "method": "read", "input": {"mode": "day"}});
        assert_eq!(Value::Object(parameters), expected);
        let listed: Vec<&str> = catalogue.listed().map(|one| one.name.as_str()).collect();
        let expected = [
            "calendar.create",
            "calendar.read",
            "contacts.read",
            "create",
            "forge.add",
            "fs/Write",
        ];
        assert_eq!(listed, expected);
    }
}
