//! `[tools.NAME]`: where tools come from: MCP servers, modules of your own, folders of skills.
//!
//! Invariant: an MCP server has a command or a URL, never both.

mod oauth;

pub use oauth::{OAuth, OAuthGrant};

use super::Secret;
use super::reader::{Reader, Value};
use super::runner::Process;
use greenroom_protocol::wire::ToolRisk as Risk;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq)]
pub enum ToolSource {
    Mcp(Box<McpServer>),
    /// A manifest of methods (`docs/guides/tools.md`).
    Module {
        manifest: PathBuf,
        /// The configuration file, which is hidden from its methods.
        configuration: PathBuf,
    },
    /// A folder with one folder per skill.
    Skills {
        dir: PathBuf,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct McpServer {
    pub reach: McpReach,
    /// The tools to use; `None`: all.
    pub allow: Option<Vec<String>>,
    /// The risk of its tools, over what the server says: by tool, `*` for all.
    pub risk: BTreeMap<String, Risk>,
    pub timeout: Duration,
}

#[derive(Debug, Clone, PartialEq)]
pub enum McpReach {
    /// The host starts it and uses its standard input and output.
    Command(Process),
    /// It runs elsewhere, behind streamable HTTP.
    Url { url: String, headers: BTreeMap<String, Secret>, allow_private: bool, oauth: Box<OAuth> },
}

#[derive(Clone, Copy)]
enum Kind {
    Mcp,
    Module,
    Skills,
}

const KINDS: [(&str, Kind); 3] =
    [("mcp", Kind::Mcp), ("module", Kind::Module), ("skills", Kind::Skills)];

impl ToolSource {
    pub(super) fn read(mut reader: Reader<'_>) -> Option<Self> {
        let kind = reader.get("kind").map_or(Some(Kind::Mcp), |value| value.choice(&KINDS));
        let source = match kind? {
            Kind::Mcp => mcp(&mut reader).map(Box::new).map(ToolSource::Mcp),
            Kind::Module => {
                let manifest = reader.require("manifest").and_then(|value| value.path());
                let configuration = reader.cx.file.clone();
                manifest.map(|manifest| ToolSource::Module { manifest, configuration })
            }
            Kind::Skills => {
                let dir = reader.require("dir").and_then(|value| value.path());
                dir.map(|dir| ToolSource::Skills { dir })
            }
        };
        reader.finish();
        source
    }
}

fn mcp(reader: &mut Reader<'_>) -> Option<McpServer> {
    let allow = reader.get("allow").and_then(|value| value.texts());
    let risk = reader.get("risk").and_then(|value| risks(&value)).unwrap_or_default();
    let timeout_s = reader.get("timeout_s").and_then(|value| value.integer(1..=86_400));
    let (command, url) = (reader.get("command"), reader.get("url"));
    let reach = match (command, url) {
        (Some(command), None) => McpReach::Command(Process::read(reader, &command)?),
        (None, Some(url)) => McpReach::Url {
            headers: reader.get("headers").and_then(|value| value.headers()).unwrap_or_default(),
            allow_private: reader
                .get("allow_private")
                .and_then(|value| value.boolean())
                .unwrap_or(false),
            oauth: match reader.get("oauth") {
                Some(table) => Box::new(OAuth::read(table.table()?)?),
                None => Box::default(),
            },
            url: super::surface::web_address(&url)?,
        },
        _ => {
            reader.knows(&["headers", "allow_private", "oauth"]);
            reader.knows(&super::runner::PROCESS_KEYS);
            return reader.fail(
                format!("`{}` needs either `command` or `url`", reader.path),
                "add `command` to have the server started, or `url` to reach one over HTTP",
            );
        }
    };
    let timeout = Duration::from_secs(timeout_s.unwrap_or(60));
    Some(McpServer { reach, allow, risk, timeout })
}

fn risks(value: &Value<'_>) -> Option<BTreeMap<String, Risk>> {
    let words = Risk::ALL.map(|risk| (risk.as_str(), risk));
    if !value.is_table() {
        return Some(BTreeMap::from([("*".to_owned(), value.choice(&words)?)]));
    }
    let entries = value.table()?.entries();
    let pairs = entries
        .into_iter()
        .filter_map(|(name, _, value)| Some((name.to_owned(), value.choice(&words)?)));
    Some(pairs.collect())
}
