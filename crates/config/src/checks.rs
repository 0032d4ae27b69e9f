//! Checks across sections, once all of them are read.
//!
//! Invariant: an identity (a pinned plugin, a token) belongs to one entry only; a reference names an entry of the
//! right kind.

use super::reader::Context;
use super::{Config, Launch, ModelKind, find};
use std::collections::BTreeMap;
use std::path::Path;
use toml::de::DeTable;

pub(super) fn check(cx: &Context<'_>, config: &Config, root: &DeTable<'_>) {
    check_tool_search(cx, config, root);
    check_granted_files(cx, config, root);
    let pins = config.runners.iter().filter_map(|(name, runner)| {
        Some((["runners", name, "plugin"], runner.plugin.as_deref()?))
    });
    for (key, first) in repeated(pins) {
        let message =
            format!("`{}` is pinned to the same plugin as `{}`", dotted(&key), dotted(&first));
        let hint = "two processes cannot offer the same runners".to_owned();
        cx.report(find(root, &key).unwrap_or(0..0), message, Some(hint));
    }
    let of_runners = config.runners.iter().filter_map(|(name, runner)| match &runner.launch {
        Launch::Connect { token } => Some((["runners", name, "token"], token.expose())),
        Launch::Process(_) => None,
    });
    let of_senders =
        config.tokens.iter().map(|(name, token)| (["tokens", name, "token"], token.token.expose()));
    for (key, first) in repeated(of_runners.chain(of_senders)) {
        let message = format!("`{}` is the same secret as `{}`", dotted(&key), dotted(&first));
        let hint = "a token identifies its owner, so each needs its own".to_owned();
        cx.report(find(root, &key).unwrap_or(0..0), message, Some(hint));
    }
}

/// Neither the configuration nor a file with a secret is granted to anyone.
fn check_granted_files(cx: &Context<'_>, config: &Config, root: &DeTable<'_>) {
    let keys = config.server.tls.iter().map(|tls| tls.key.as_path());
    let secrets: Vec<&Path> =
        config.secrets.iter().filter_map(|secret| secret.file()).chain(keys).collect();
    let is_same = |one: &Path, other: &Path| {
        one == other
            || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|it| it == one))
    };
    for (agent, settings) in &config.agents {
        for file in &settings.grant.files {
            let what = match &*file.path {
                path if is_same(path, &cx.file) => "the configuration itself",
                path if secrets.iter().any(|secret| is_same(path, secret)) => {
                    "a file with a secret"
                }
                _ => continue,
            };
            let message = format!("`{}` is {what}", super::clean(&file.name));
            let hint = "a runner cannot be granted it".to_owned();
            let at = find(root, &["agents", agent, "grant", "files"]).unwrap_or(0..0);
            cx.report(at, message, Some(hint));
        }
    }
}

/// Tool search needs an embedding model.
fn check_tool_search(cx: &Context<'_>, config: &Config, root: &DeTable<'_>) {
    let Some(name) = &config.search_model else { return };
    let Some(model) = config.model(name).filter(|model| model.kind != ModelKind::Embedding) else {
        return;
    };
    let message = format!(
        "`tool_search.model` takes a model of kind `embedding`, and `{name}` is of kind `{}`",
        model.kind.as_str()
    );
    let hint = format!("if it makes vectors, add `kind = \"embedding\"` to `[models.{name}]`");
    cx.report(find(root, &["tool_search", "model"]).unwrap_or(0..0), message, Some(hint));
}

type Key<'c> = [&'c str; 3];

/// Keys with the value of an earlier key, each with that key.
fn repeated<'c>(items: impl Iterator<Item = (Key<'c>, &'c str)>) -> Vec<(Key<'c>, Key<'c>)> {
    let mut first: BTreeMap<&str, Key<'c>> = BTreeMap::new();
    let mut repeated = Vec::new();
    for (key, value) in items {
        match first.get(value) {
            Some(earlier) => repeated.push((key, *earlier)),
            None => drop(first.insert(value, key)),
        }
    }
    repeated
}

fn dotted(key: &Key<'_>) -> String {
    key[..2].join(".")
}
