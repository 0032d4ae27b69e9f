//! Profiles: what is special about each harness, as data.
//!
//! Invariant: all differences between harnesses are in `profiles/*.toml`; the code has no name of one.

use serde::Deserialize;
use std::collections::BTreeMap;

const BUILT_IN: [&str; 6] = [
    include_str!("profiles/claude.toml"),
    include_str!("profiles/codex.toml"),
    include_str!("profiles/gemini.toml"),
    include_str!("profiles/goose.toml"),
    include_str!("profiles/kimi.toml"),
    include_str!("profiles/opencode.toml"),
];

/// The folder of skills that programs of several makers read, in the home.
pub(crate) const SKILLS: &str = ".agents/skills";

/// One harness.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    pub name: String,
    /// The name that people know.
    pub title: String,
    /// What starts it as a server of the Agent Client Protocol.
    pub command: Vec<String>,
    /// The npm packages that contain it.
    pub packages: Vec<String>,
    /// A program besides the command that it needs, such as a newer `node`.
    #[serde(default)]
    pub needs: Option<String>,
    /// The wire of its model requests; none: it cannot be pointed at another server.
    #[serde(default)]
    pub provider: Option<Provider>,
    /// The variable with the key of its provider, for `keys = "own"`.
    #[serde(default)]
    pub key_variable: Option<String>,
    /// Servers that it reaches with keys of its own.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Environment; `@home@`, `@work@`, `@base_url@`, `@model@` and `@key@` are replaced, and an entry whose value is
    /// unknown is left out.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Files of its home, in the same way.
    #[serde(default)]
    pub files: Vec<ProfileFile>,
    /// The mode in which it asks before it changes anything.
    #[serde(default)]
    pub mode: Option<String>,
    /// The authentication method to choose before a session, if it needs one.
    #[serde(default)]
    pub auth_method: Option<String>,
    /// The folder in its home that it reads skills from.
    #[serde(default)]
    pub skills: Option<String>,
    /// What is odd about it, for the guide and for `greenroom harness list`.
    #[serde(default)]
    pub quirks: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileFile {
    /// In the home of the session.
    pub path: String,
    pub text: String,
}

/// The wire of a provider, as it is named in the host's model gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Provider {
    Openai,
    Anthropic,
    Gemini,
}

impl Provider {
    pub fn as_str(self) -> &'static str {
        match self {
            Provider::Openai => "openai",
            Provider::Anthropic => "anthropic",
            Provider::Gemini => "gemini",
        }
    }
}

/// The built-in profiles, by name.
pub fn all() -> Vec<Profile> {
    let read = |text: &&str| toml::from_str(text).expect("a test reads every built-in profile");
    BUILT_IN.iter().map(read).collect()
}

pub fn find(name: &str) -> Option<Profile> {
    all().into_iter().find(|profile| profile.name == name)
}

/// Values for the variables of a profile.
#[derive(Debug, Clone, Default)]
pub(crate) struct Values(pub(crate) BTreeMap<&'static str, String>);

/// How a value is written where it is inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quoting {
    Plain,
    /// Inside a string of JSON or TOML.
    InString,
}

impl Values {
    /// The text with all variables replaced; none if one is unknown.
    pub(crate) fn fill(&self, text: &str, quoting: Quoting) -> Option<String> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('@') {
            filled.push_str(before);
            let variable = after.split_once('@').filter(|(name, _)| is_variable(name));
            let Some((name, after)) = variable else {
                filled.push('@');
                rest = after;
                continue;
            };
            let value = self.0.get(name)?;
            match quoting {
                Quoting::Plain => filled.push_str(value),
                Quoting::InString => {
                    let quoted = serde_json::Value::from(value.as_str()).to_string();
                    filled.push_str(&quoted[1..quoted.len() - 1]);
                }
            }
            rest = after;
        }
        filled.push_str(rest);
        Some(filled)
    }
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_profile_is_complete() {
        let names: Vec<String> = all().into_iter().map(|profile| profile.name).collect();
        assert_eq!(names, ["claude", "codex", "gemini", "goose", "kimi", "opencode"]);
        for profile in all() {
            assert!(!profile.command.is_empty() && !profile.packages.is_empty(), "{profile:?}");
            assert!(profile.provider.is_some() && !profile.hosts.is_empty(), "{profile:?}");
        }
    }

    #[test]
    fn a_text_with_an_unknown_variable_is_left_out() {
        let values =
            Values(BTreeMap::from([("home", "/h".to_owned()), ("model", "a\"b".to_owned())]));
        let fill = |text| values.fill(text, Quoting::InString);
        assert_eq!(fill("x=@home@/y me@example.com").as_deref(), Some("x=/h/y me@example.com"));
        assert_eq!(fill("m = \"@model@\"").as_deref(), Some(r#"m = "a\"b""#));
        assert_eq!(fill("@base_url@"), None);
        assert_eq!(values.fill("@model@", Quoting::Plain).as_deref(), Some("a\"b"));
    }
}
