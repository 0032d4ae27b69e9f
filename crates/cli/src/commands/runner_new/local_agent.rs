//! The sources of the local agent, embedded in this program.
//!
//! Invariant: complete; a test compares the list with the folder.

macro_rules! source {
    ($path:literal) => {
        (
            concat!("src/", $path),
            include_str!(concat!("../../../../../runners/local-agent/src/", $path)),
        )
    };
}

/// Paths in the new folder, and their contents.
pub(super) const SOURCES: &[(&str, &str)] = &[
    ("rustfmt.toml", include_str!("../../../../../rustfmt.toml")),
    source!("agent.rs"),
    source!("commands.rs"),
    source!("client.rs"),
    source!("commands/arguments.rs"),
    source!("commands/catalogue.rs"),
    source!("commands/help.rs"),
    source!("commands/line.rs"),
    source!("commands/own.rs"),
    source!("commands/readable.rs"),
    source!("commands/schema.rs"),
    source!("commands/schema/tests.rs"),
    source!("commands/sentence.rs"),
    source!("compaction.rs"),
    source!("config.rs"),
    source!("config/keys.rs"),
    source!("context.rs"),
    source!("event.rs"),
    source!("history.rs"),
    source!("history/exchange.rs"),
    source!("history/exchange/tests.rs"),
    source!("knowledge.rs"),
    source!("lib.rs"),
    source!("limits.rs"),
    source!("manifest.rs"),
    source!("manifest/form.rs"),
    source!("media.rs"),
    source!("model.rs"),
    source!("prompted.rs"),
    source!("prompted/lead.rs"),
    source!("prompted/parse.rs"),
    source!("prompted/screen.rs"),
    source!("reading.rs"),
    source!("record.rs"),
    source!("results.rs"),
    source!("retrieval.rs"),
    source!("steering.rs"),
    source!("stream.rs"),
    source!("texts.rs"),
    source!("tokens.rs"),
    source!("tools.rs"),
    source!("turn.rs"),
];
