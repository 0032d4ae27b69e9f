//! Which tools a process offers, and whether a host would take them.

use super::Plan;
use super::peer::Peer;
use super::report::Verdict;
use greenroom_protocol::wire::{METHOD_NOT_FOUND, PluginTool, TOOLS_MAX};
use greenroom_tools::schema::Schema;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Names to show.
const NAMES_SHOWN: usize = 8;

/// What was found, and how many tools there are.
pub(super) struct Tools {
    pub verdict: Verdict,
    pub detail: String,
    pub count: usize,
}

pub(super) async fn list(peer: &mut Peer, plan: &Plan) -> Tools {
    let none = |verdict, detail: &str| Tools { verdict, detail: detail.to_owned(), count: 0 };
    let answer = match peer.call("list_tools", json!({}), plan.timeout).await {
        Ok(answer) => answer,
        Err(silence) => return none(Verdict::Fail, &silence.to_string()),
    };
    if answer["error"]["code"] == METHOD_NOT_FOUND {
        return none(Verdict::Ok, "none");
    }
    if let Some(error) = answer.get("error") {
        return none(Verdict::Fail, &format!("answered with the error {error}"));
    }
    let Some(tools) = answer["result"]["tools"].as_array() else {
        return none(Verdict::Warn, "none: answered without a list of `tools`");
    };
    match names(tools) {
        Ok(names) if names.is_empty() => none(Verdict::Ok, "none"),
        Ok(names) => {
            let shown: Vec<&str> = names.iter().take(NAMES_SHOWN).map(String::as_str).collect();
            let rest = if names.len() > NAMES_SHOWN { ", …" } else { "" };
            let detail = format!("{}: {}{rest}", names.len(), shown.join(", "));
            Tools { verdict: Verdict::Ok, detail, count: names.len() }
        }
        Err(why) => Tools { verdict: Verdict::Fail, detail: why, count: tools.len() },
    }
}

/// Every tool must be right: the host would leave a wrong one out.
fn names(tools: &[Value]) -> Result<BTreeSet<String>, String> {
    if tools.len() > TOOLS_MAX {
        return Err(format!("{} tools are more than the {TOOLS_MAX} a host takes", tools.len()));
    }
    let mut names = BTreeSet::new();
    for (index, tool) in tools.iter().enumerate() {
        let number = index + 1;
        let tool = PluginTool::parse(&tool.to_string())
            .map_err(|error| format!("tool {number} {}: {error}", tool["name"]))?;
        let schemas = [
            ("input_schema", Some(&tool.input_schema)),
            ("output_schema", tool.output_schema.as_ref()),
        ];
        for (field, schema) in schemas {
            let Some(schema) = schema else { continue };
            Schema::compile(&Value::Object(schema.clone()))
                .map_err(|error| format!("tool `{}`: `{field}`: {error}", tool.name))?;
        }
        if !names.insert(tool.name.clone()) {
            return Err(format!("`{}` is listed twice", tool.name));
        }
    }
    Ok(names)
}
