//! Tools of a plugin: `list_tools` and `call_tool` (CONTRACT §3).
//!
//! Invariant: a parsed tool has a valid name, an object schema and a bounded size.

use crate::{NESTING_MAX, Object, nesting, object};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::time::Duration;

/// Maximum number of tools per plugin.
pub const TOOLS_MAX: usize = 500;
pub const TOOL_NAME_BYTES_MAX: usize = 128;
/// One tool as JSON, including schemas and description.
pub const TOOL_BYTES_MAX: usize = 64 * 1024;
/// A day.
pub const TOOL_TIMEOUT_S_MAX: u32 = 86_400;

/// The result of `list_tools`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ListToolsResult {
    pub tools: Vec<PluginTool>,
}

/// A tool as its plugin describes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PluginTool {
    /// Letters, digits, `_`, `.` and `-`; the host prepends the runner's name and a dot.
    #[schemars(length(min = 1, max = 128), regex(pattern = "^[A-Za-z0-9_.-]+$"))]
    pub name: String,
    /// Description for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// JSON Schema of the parameters, of type `object`.
    pub input_schema: Object,
    /// JSON Schema of the result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Object>,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<ToolRisk>")]
    pub risk: ToolRisk,
    /// Timeout of a call in seconds; default: the host's own limit.
    #[serde(default, deserialize_with = "seconds", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86_400))]
    pub timeout_s: Option<u32>,
    /// Unknown fields, preserved.
    #[serde(flatten)]
    pub extra: Object,
}

/// The risk of a call; default: the highest.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ToolRisk {
    /// Changes nothing.
    Read,
    Write,
    /// Its changes cannot be undone.
    Destructive,
    /// Affects people or systems outside.
    #[default]
    External,
}

impl ToolRisk {
    pub const ALL: [ToolRisk; 4] =
        [ToolRisk::Read, ToolRisk::Write, ToolRisk::Destructive, ToolRisk::External];

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|risk| risk.as_str() == text)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            ToolRisk::Read => "read",
            ToolRisk::Write => "write",
            ToolRisk::Destructive => "destructive",
            ToolRisk::External => "external",
        }
    }
}

/// Why a tool is invalid. Only this tool is skipped, not the others of its plugin.
#[derive(Debug, thiserror::Error)]
pub enum InvalidTool {
    #[error("it has {bytes} bytes, at most {TOOL_BYTES_MAX} are allowed")]
    TooLarge { bytes: usize },
    #[error("it is nested deeper than {NESTING_MAX} levels")]
    TooDeep,
    #[error("it does not follow the protocol: {reason}")]
    Shape { reason: serde_json::Error },
    #[error("its name must have 1 to {TOOL_NAME_BYTES_MAX} of the characters A-Z a-z 0-9 _ . -")]
    Name,
    #[error("`{field}` must be a JSON Schema of the type `object`")]
    Schema { field: &'static str },
}

impl PluginTool {
    /// Parses one tool of a `list_tools` result.
    pub fn parse(json: &str) -> Result<Self, InvalidTool> {
        if json.len() > TOOL_BYTES_MAX {
            return Err(InvalidTool::TooLarge { bytes: json.len() });
        }
        if nesting::depth(json.as_bytes()) > NESTING_MAX {
            return Err(InvalidTool::TooDeep);
        }
        let tool: Self = object::from_str(json).map_err(|reason| InvalidTool::Shape { reason })?;
        if !is_tool_name(&tool.name) {
            return Err(InvalidTool::Name);
        }
        match tool.input_schema.get("type") {
            None => Ok(tool),
            Some(kind) if kind == "object" => Ok(tool),
            Some(_) => Err(InvalidTool::Schema { field: "input_schema" }),
        }
    }

    pub fn timeout(&self) -> Option<Duration> {
        self.timeout_s.map(|seconds| Duration::from_secs(seconds.into()))
    }
}

pub fn is_tool_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=TOOL_NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(fits)
}

/// The parameters of `call_tool`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallToolParams {
    /// The plugin's name of the tool.
    pub tool_name: String,
    #[serde(default, deserialize_with = "or_default")]
    #[schemars(with = "Option<Object>")]
    pub parameters: Object,
    pub tool_call_id: String,
    /// The run that the call is made for; for the record, it grants nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// Milliseconds until the host cancels the call.
    #[serde(
        default,
        deserialize_with = "crate::number::size",
        skip_serializing_if = "Option::is_none"
    )]
    pub deadline_ms: Option<u64>,
}

/// The result of `call_tool`. A call that the plugin rejects is a JSON-RPC error.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallToolResult {
    #[serde(default)]
    pub result: Value,
    /// The result as text, for the model; default: the JSON text of `result`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The tool's error, usually `{code, message}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Value>,
}

impl CallToolResult {
    pub fn parse(json: &str) -> serde_json::Result<Self> {
        object::from_str(json)
    }
}

fn or_default<'de, T: Deserialize<'de> + Default, D: Deserializer<'de>>(
    from: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let number = crate::number::whole(from)?;
    let fits = |number: i64| {
        u32::try_from(number).ok().filter(|seconds| (1..=TOOL_TIMEOUT_S_MAX).contains(seconds))
    };
    number
        .map(|number| {
            fits(number).ok_or_else(|| {
                let wrong = serde::de::Unexpected::Signed(number);
                serde::de::Error::invalid_value(wrong, &"seconds, from 1 up to a day")
            })
        })
        .transpose()
}
