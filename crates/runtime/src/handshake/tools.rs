//! The tools that a process offers.
//!
//! Invariant: an invalid tool is left out, an invalid list offers no tools; neither affects a runner.

use crate::connection::NoResult;
use greenroom_protocol::wire::{METHOD_NOT_FOUND, PluginTool, TOOLS_MAX, method};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeSet;

/// How much of a plugin's text a warning quotes.
const QUOTE_CHARS: usize = 200;

/// The valid tools of a plugin's list.
#[derive(Debug, Default)]
pub(crate) struct Listed {
    pub(crate) tools: Vec<PluginTool>,
    pub(crate) warnings: Vec<String>,
}

/// Parses the answer to `list_tools`. A plugin that does not know the method offers none, and neither does
/// one that answers everything with an empty object.
pub(crate) fn read(answer: Result<Box<RawValue>, NoResult>) -> Listed {
    let answer = match answer {
        Ok(answer) => answer,
        Err(NoResult::Refused(error)) if error.code == METHOD_NOT_FOUND => {
            return Listed::default();
        }
        Err(refused @ NoResult::Refused(_)) => return none(&refused.about(method::LIST_TOOLS)),
        // The end of the connection is reported elsewhere.
        Err(NoResult::Gone(_)) => return Listed::default(),
    };
    #[derive(Default, Deserialize)]
    struct List<'a> {
        #[serde(default, borrow)]
        tools: Option<Vec<&'a RawValue>>,
    }
    let list = match serde_json::from_str::<Option<List<'_>>>(answer.get()) {
        Ok(list) => list.unwrap_or_default().tools.unwrap_or_default(),
        Err(error) => {
            return none(&format!("answered `list_tools` with something malformed: {error}"));
        }
    };
    if list.len() > TOOLS_MAX {
        let count = list.len();
        return none(&format!("offers {count} tools, and more than {TOOLS_MAX} are refused"));
    }
    let mut listed = Listed::default();
    let mut names = BTreeSet::new();
    for json in list {
        match PluginTool::parse(json.get()) {
            Ok(tool) if names.insert(tool.name.clone()) => listed.tools.push(tool),
            Ok(tool) => listed.warnings.push(format!("the tool `{}` is listed twice", tool.name)),
            Err(error) => listed.warnings.push(format!(
                "the tool {} was left out: {}",
                name_of(json),
                quote(&error.to_string())
            )),
        }
    }
    listed
}

/// No tools; `clause` says why.
pub(super) fn none(clause: &str) -> Listed {
    Listed { tools: Vec::new(), warnings: vec![format!("no tools: it {}", quote(clause))] }
}

fn name_of(json: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Named {
        #[serde(default)]
        name: serde_json::Value,
    }
    let name = serde_json::from_str::<Named>(json.get()).map(|named| named.name);
    quote(&name.unwrap_or_default().to_string())
}

fn quote(text: &str) -> String {
    text.chars().take(QUOTE_CHARS).collect()
}
