//! From the list of a server to our tools.
//!
//! Invariant: a tool is accepted unchanged or refused with a warning; only schemas of older drafts are rewritten. Names
//! are plain, so that they mean the same wherever they are shown, matched or logged.

use super::settings::McpSettings;
use crate::project_cli::close_matches;
use crate::schema::{Schema, modern};
use crate::{Risk, Tool};
use rmcp::model::{PaginatedRequestParams, Tool as Listed, ToolAnnotations};
use rmcp::{Peer, RoleClient, ServiceError};
use serde_json::Value;
use std::collections::BTreeMap;

/// Longest name of a tool.
const NAME_CHARS_MAX: usize = 128;
/// Warnings kept per list.
const WARNINGS_MAX: usize = 50;

#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) tools: Vec<Tool>,
    pub(super) warnings: Vec<String>,
}

/// Fetches all pages of the list.
pub(super) async fn fetch(
    peer: &Peer<RoleClient>,
    settings: &McpSettings,
) -> Result<Listing, ServiceError> {
    let limits = &settings.limits;
    let mut listed: Vec<Listed> = Vec::new();
    let mut cursor = None;
    for _ in 0..limits.pages_max {
        let params = PaginatedRequestParams::default().with_cursor(cursor.take());
        let page = peer.list_tools(Some(params)).await?;
        listed.extend(page.tools);
        cursor = page.next_cursor;
        if cursor.is_none() || listed.len() > limits.tools_max {
            break;
        }
    }
    let mut listing = take(listed, settings);
    if cursor.is_some() {
        let (pages, tools) = (limits.pages_max, limits.tools_max);
        let warning =
            format!("the list goes on after {pages} pages or {tools} tools: the rest is left out");
        listing.warnings.push(warning);
    }
    Ok(listing)
}

/// Accepts or refuses each tool.
fn take(listed: Vec<Listed>, settings: &McpSettings) -> Listing {
    let limits = &settings.limits;
    let mut taken: BTreeMap<String, Tool> = BTreeMap::new();
    let mut warnings = unknown(&listed, settings);
    let mut schemas_bytes = 0;
    for tool in listed {
        if !settings.offers(&tool.name) {
            continue;
        }
        let name = tool.name.escape_debug().to_string();
        let name: String = name.chars().take(NAME_CHARS_MAX).collect();
        let refusal = match accept(tool, settings) {
            Err(reason) => Some(reason),
            Ok(_) if taken.len() >= limits.tools_max => {
                Some(format!("there are more than {} tools", limits.tools_max))
            }
            Ok(tool) if taken.contains_key(&tool.name) => {
                Some("the server lists it twice".to_owned())
            }
            Ok(tool) => {
                schemas_bytes += size(&tool.input_schema);
                schemas_bytes += tool.output_schema.as_ref().map_or(0, size);
                if schemas_bytes > limits.schemas_bytes_max {
                    Some(format!("the schemas take more than {} bytes", limits.schemas_bytes_max))
                } else {
                    taken.insert(tool.name.clone(), tool);
                    None
                }
            }
        };
        let warning = refusal.map(|reason| format!("the tool `{name}` is not taken: {reason}"));
        warnings.extend(warning.filter(|_| warnings.len() < WARNINGS_MAX));
    }
    Listing { tools: taken.into_values().collect(), warnings }
}

/// Names in the configuration that the server does not list, each with the nearest listed one.
fn unknown(listed: &[Listed], settings: &McpSettings) -> Vec<String> {
    let names: Vec<String> = listed.iter().map(|tool| tool.name.to_string()).collect();
    let is_there = |wanted: &&String| match wanted.strip_suffix('*') {
        Some(beginning) => names.iter().any(|name| name.starts_with(beginning)),
        None => names.contains(wanted),
    };
    let allowed = settings.allow.iter().flatten().map(|wanted| ("allow", wanted));
    let risks = settings.risk.keys().filter(|name| *name != "*").map(|wanted| ("risk", wanted));
    let unknown = allowed.chain(risks).filter(|(_, wanted)| !is_there(wanted));
    let warnings = unknown.map(|(key, wanted)| {
        let near = close_matches(wanted, &names).into_iter().find(|near| is_plain(near));
        let hint = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        format!("`{key}` names `{wanted}`, which the server does not have{hint}")
    });
    warnings.take(WARNINGS_MAX).collect()
}

fn accept(listed: Listed, settings: &McpSettings) -> Result<Tool, String> {
    if !is_plain(&listed.name) {
        return Err(
            "its name is not made of letters, digits, `_`, `-`, `.` and `/` only, or it is a path"
                .to_owned(),
        );
    }
    let input_schema = modern(Value::Object((*listed.input_schema).clone()));
    Schema::compile(&input_schema).map_err(|error| error.to_string())?;
    let output_schema = listed.output_schema.map(|schema| modern(Value::Object((*schema).clone())));
    if let Some(schema) = &output_schema {
        Schema::compile(schema).map_err(|error| format!("of its output, {error}"))?;
    }
    let description = listed.description.as_deref().or(listed.title.as_deref()).unwrap_or_default();
    let risk = settings
        .risk_of(&listed.name)
        .unwrap_or_else(|| risk_by_hints(listed.annotations.as_ref()));
    Ok(Tool {
        name: settings.full_name(&listed.name),
        description: shown(description, settings.limits.description_bytes_max),
        input_schema,
        output_schema,
        source: settings.source(),
        risk,
        timeout: settings.timeout,
    })
}

/// The risk that the server declares; the worst case where it declares none, as the protocol defines.
fn risk_by_hints(hints: Option<&ToolAnnotations>) -> Risk {
    let Some(hints) = hints else { return Risk::External };
    match (hints.read_only_hint, hints.destructive_hint, hints.open_world_hint) {
        (Some(true), _, _) => Risk::Read,
        (_, Some(true), _) => Risk::Destructive,
        (_, Some(false), Some(false)) => Risk::Write,
        (_, None, Some(false)) => Risk::Destructive,
        _ => Risk::External,
    }
}

/// No control characters, no spaces, and no segment that leads elsewhere.
fn is_plain(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let leads_nowhere = |segment: &str| {
        segment.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && !segment.contains("..")
    };
    name.len() <= NAME_CHARS_MAX
        && name.chars().all(is_allowed)
        && name.split('/').all(leads_nowhere)
}

/// Without control characters other than line ends, and of limited length.
fn shown(text: &str, bytes_max: usize) -> String {
    let is_shown = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    let mut shown: String = text.chars().filter(is_shown).collect();
    if shown.len() > bytes_max {
        shown.truncate(shown.floor_char_boundary(bytes_max));
    }
    shown
}

fn size(schema: &Value) -> usize {
    schema.to_string().len()
}

#[cfg(test)]
mod tests {
    use super::super::settings::McpTransport;
    use super::*;
    use serde_json::json;

    fn settings() -> McpSettings {
        McpSettings::new("s", McpTransport::Stdio(Box::default()))
    }

    fn listed(tools: Value) -> Vec<Listed> {
        serde_json::from_value(tools).unwrap()
    }

    #[test]
    fn ambiguous_names_are_refused() {
        for name in ["read", "read_file", "a.b", "ns/tool-1", "_x"] {
            assert!(is_plain(name), "{name}");
        }
        let long = "x".repeat(129);
        for name in [
            "",
            "../x",
            "a/../b",
            "/etc/passwd",
            "a//b",
            ".hidden",
            "a b",
            "a\nb",
            "a\u{202e}b",
            "é",
            "*",
            &long,
        ] {
            assert!(!is_plain(name), "{name:?}");
        }
    }

    #[test]
    fn hints_become_risks_and_the_configuration_overrides_them() {
        let schema = json!({"type": "object"});
        let hints = [
            ("plain", json!(null), Risk::External),
            ("read", json!({"readOnlyHint": true}), Risk::Read),
            ("destroy", json!({"destructiveHint": true}), Risk::Destructive),
            ("write", json!({"destructiveHint": false, "openWorldHint": false}), Risk::Write),
            ("closed", json!({"openWorldHint": false}), Risk::Destructive),
            ("open", json!({"destructiveHint": false, "openWorldHint": true}), Risk::External),
        ];
        let tools: Vec<Value> = hints
            .iter()
            .map(|(name, hints, _)| json!({"name": name, "inputSchema": schema, "annotations": hints}))
            .collect();
        let mut settings = settings();
        let seen = |settings: &McpSettings| {
            let tools = take(listed(json!(tools)), settings).tools;
            tools.into_iter().map(|tool| (tool.name, tool.risk)).collect::<BTreeMap<_, _>>()
        };
        let expected = hints.iter().map(|(name, _, risk)| (format!("s.{name}"), *risk));
        assert_eq!(seen(&settings), expected.collect());
        settings.risk = [("read".to_owned(), Risk::Write), ("*".to_owned(), Risk::Read)].into();
        assert_eq!(seen(&settings)["s.read"], Risk::Write);
        assert_eq!(seen(&settings)["s.destroy"], Risk::Read);
    }

    #[test]
    fn tools_with_external_or_expensive_schemas_are_refused() {
        let mut bomb = json!({"type": "object"});
        for _ in 0..100 {
            bomb = json!({"type": "object", "properties": {"x": bomb}});
        }
        let tools = json!([
            {"name": "good", "inputSchema": {"type": "object", "$defs": {"a": {"type": "string"}}, "properties": {"a": {"$ref": "#/$defs/a"}}}},
            {"name": "remote", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "http://10.0.0.1/schema.json"}}}},
            {"name": "output", "inputSchema": {"type": "object"}, "outputSchema": {"$ref": "file:///etc/passwd"}},
            {"name": "deep", "inputSchema": bomb},
            {"name": "large", "inputSchema": {"type": "object", "description": "x".repeat(1 << 20)}},
            {"name": "good", "inputSchema": {"type": "object"}},
        ]);
        let listing = take(listed(tools), &settings());
        let names: Vec<&str> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["s.good"]);
        assert_eq!(listing.warnings.len(), 5, "{:#?}", listing.warnings);
        assert!(listing.warnings[0].contains("`http://10.0.0.1/schema.json`"));
    }

    #[test]
    fn only_allowed_tools_are_accepted() {
        let tools = ["read", "read_all", "write"]
            .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
        let mut settings = settings();
        settings.allow = Some(vec!["read*".to_owned()]);
        let names: Vec<String> =
            take(listed(json!(tools)), &settings).tools.into_iter().map(|tool| tool.name).collect();
        assert_eq!(names, ["s.read", "s.read_all"]);
        settings.allow = Some(vec!["write".to_owned()]);
        assert_eq!(take(listed(json!(tools)), &settings).tools.len(), 1);
    }

    #[test]
    fn a_misspelt_name_in_the_configuration_is_reported_with_the_nearest_one() {
        let tools = ["read_file", "write_file"]
            .map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
        let mut settings = settings();
        settings.allow = Some(["raed_file", "write*", "zzz*"].map(str::to_owned).to_vec());
        settings.risk =
            [("wirte_file".to_owned(), Risk::Write), ("*".to_owned(), Risk::Read)].into();
        let listing = take(listed(json!(tools)), &settings);
        let expected = [
            "`allow` names `raed_file`, which the server does not have; did you mean `read_file`?",
            "`allow` names `zzz*`, which the server does not have",
            "`risk` names `wirte_file`, which the server does not have; did you mean `write_file`?",
        ];
        assert_eq!(listing.warnings, expected);
    }
}
