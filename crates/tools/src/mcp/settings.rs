//! The configuration of an MCP server, and its limits.
//!
//! Invariant: every limit of this module is a field of `McpLimits`, with its default here.

use super::oauth::OAuthSettings;
use crate::Risk;
use greenroom_runtime::ChildSpec;
use std::collections::BTreeMap;
use std::time::Duration;

/// One `[tools.NAME]` of kind `mcp`.
#[derive(Debug, Clone, PartialEq)]
pub struct McpSettings {
    /// Letters, digits, `_` and `-`: with a dot it could collide with another server's names.
    pub name: String,
    pub transport: McpTransport,
    /// The tools to offer, by the server's names; a trailing `*` matches any ending.
    pub allow: Option<Vec<String>>,
    /// The risk of calls, by the server's names or `*`; overrides what the server declares.
    pub risk: BTreeMap<String, Risk>,
    /// How long a call may be silent: until its answer or its next progress.
    pub timeout: Duration,
    pub limits: McpLimits,
}

#[derive(Debug, Clone, PartialEq)]
pub enum McpTransport {
    /// A program that we start. Most such servers are clients of an API, so it has network access unless the
    /// configuration says `network = false`.
    Stdio(Box<ChildSpec>),
    Http {
        url: String,
        headers: BTreeMap<String, String>,
        /// Whether it may be on this machine or in a private network.
        allow_private: bool,
        /// How access is granted, if `headers` have no `Authorization`.
        oauth: Box<OAuthSettings>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpLimits {
    /// One message from the server, and so one result. A longer one closes the connection.
    pub message_bytes_max: usize,
    /// Lines on stdout that are not MCP, from programs that log there, before the connection is closed.
    pub foreign_lines_max: u32,
    /// Messages that are not answers; a server that sends more is read more slowly.
    pub notices_per_s: u32,
    pub notices_burst: u32,
    pub tools_max: usize,
    pub pages_max: usize,
    pub description_bytes_max: usize,
    /// All schemas of the server together.
    pub schemas_bytes_max: usize,
    /// Attachments of one result, in bytes.
    pub attachments_max: usize,
    /// Linked resources that are read with a result.
    pub links_read_max: usize,
    /// From the start to the list of tools; a package manager may have to fetch the server first.
    pub start_timeout: Duration,
    /// For the answer of a server over HTTP to the newest handshake, before the older one is tried.
    pub discover_timeout: Duration,
    /// For one message to be accepted by the server.
    pub write_timeout: Duration,
    /// How long a call waits for a server that is not connected.
    pub reconnect_wait: Duration,
    /// Between two lists of tools, however often the server reports changes.
    pub refresh_min: Duration,
    pub backoff_min: Duration,
    pub backoff_max: Duration,
    /// A connection that lasted this long resets the back-off.
    pub healthy_after: Duration,
}

impl Default for McpLimits {
    fn default() -> Self {
        const MIB: usize = 1024 * 1024;
        Self {
            message_bytes_max: 32 * MIB,
            foreign_lines_max: 1000,
            notices_per_s: 500,
            notices_burst: 1000,
            tools_max: 10_000,
            pages_max: 200,
            description_bytes_max: 16 * 1024,
            schemas_bytes_max: 16 * MIB,
            attachments_max: 64,
            links_read_max: 8,
            start_timeout: Duration::from_secs(60),
            discover_timeout: Duration::from_secs(15),
            write_timeout: Duration::from_secs(30),
            reconnect_wait: Duration::from_secs(10),
            refresh_min: Duration::from_secs(1),
            backoff_min: Duration::from_millis(500),
            backoff_max: Duration::from_secs(60),
            healthy_after: Duration::from_secs(60),
        }
    }
}

impl McpSettings {
    pub fn new(name: impl Into<String>, transport: McpTransport) -> Self {
        Self {
            name: name.into(),
            transport,
            allow: None,
            risk: BTreeMap::new(),
            timeout: Duration::from_secs(120),
            limits: McpLimits::default(),
        }
    }

    /// Checks them without connecting.
    pub fn check(&self) -> Result<(), String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if self.name.is_empty() || !self.name.chars().all(is_plain) {
            return Err(format!(
                "`{}` is no name for a server: letters, digits, `_` and `-` are",
                self.name
            ));
        }
        match &self.transport {
            McpTransport::Stdio(spec) if spec.command.is_empty() => {
                Err("the server has no command".to_owned())
            }
            McpTransport::Stdio(_) => Ok(()),
            McpTransport::Http { url, headers, allow_private, .. } => {
                super::http::check(url, headers, *allow_private).map(|_| ())
            }
        }
    }

    pub(super) fn offers(&self, tool: &str) -> bool {
        let fits = |pattern: &String| match pattern.strip_suffix('*') {
            Some(beginning) => tool.starts_with(beginning),
            None => tool == pattern,
        };
        self.allow.as_ref().is_none_or(|allow| allow.iter().any(fits))
    }
}
