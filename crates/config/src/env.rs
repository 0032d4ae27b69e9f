//! The environment variables that the program reads, and the one place that reads them.
//!
//! Invariant: nothing else calls `std::env::var`.

/// Address of the host, for commands that call it.
pub const URL: &str = "GREENROOM_URL";
/// Token of those commands.
pub const TOKEN: &str = "GREENROOM_TOKEN";
/// The configuration file of `serve`, `check`, `doctor`, `tool`, `backup` and `move`.
pub const CONFIG: &str = "GREENROOM_CONFIG";
/// The data folder.
pub const DATA: &str = "GREENROOM_DATA";
/// What is logged, e.g. `info` or `greenroom_host=debug`.
pub const LOG: &str = "GREENROOM_LOG";
/// Where the host crashes in tests; read only by builds with the feature `faults`.
pub const FAULT: &str = "GREENROOM_FAULT";
/// Parts of the kernel to do without in tests, e.g. `namespaces,landlock:3`; read only by builds with the
/// feature `faults`.
pub const WITHOUT: &str = "GREENROOM_WITHOUT";
/// The model to use if none is configured, as `provider/model`.
pub const MODEL: &str = "GREENROOM_MODEL";
/// Credential of a method that the host starts, for one call; never the user's.
pub const CREDENTIAL: &str = "GREENROOM_CREDENTIAL";
/// The methods that such a call may use, separated by commas.
pub const METHODS: &str = "GREENROOM_METHODS";
/// The language of the terminal: the first that is set.
pub const LOCALE: [&str; 3] = ["LC_ALL", "LC_MESSAGES", "LANG"];
/// The time zone of the machine.
pub const TZ: &str = "TZ";
/// The stream of the system journal, as `device:inode`; set by systemd.
pub const JOURNAL_STREAM: &str = "JOURNAL_STREAM";
/// When set and not empty, output has no colours.
pub const NO_COLOR: &str = "NO_COLOR";

/// The variables that `greenroom help` lists.
pub const ALL: &[(&str, &str)] = &[
    (URL, "address of the host, e.g. http://127.0.0.1:8700"),
    (TOKEN, "token for that host"),
    (CONFIG, "configuration file of `serve`, `check`, `doctor`, `tool`, `backup` and `move`"),
    (DATA, "data folder"),
    (LOG, "what is logged, e.g. `info` or `greenroom_host=debug`"),
    (MODEL, "model to use if none is configured, as `provider/model`"),
    (NO_COLOR, "when set, output has no colours"),
];

/// The value of a variable; `None` when it is unset or not UTF-8.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
pub fn get(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
