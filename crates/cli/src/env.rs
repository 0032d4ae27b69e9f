//! The environment: every variable the program knows, and the one place that reads them.
//!
//! Invariant: nothing else in the program calls `std::env::var`.

/// Where the host is, for the commands that talk to one.
pub const URL: &str = "GREENROOM_URL";
/// The token those commands present.
pub const TOKEN: &str = "GREENROOM_TOKEN";
/// The configuration file of `serve`, `check`, `doctor`, `tool`, `backup` and `move`.
pub const CONFIG: &str = "GREENROOM_CONFIG";
/// The data folder.
pub const DATA: &str = "GREENROOM_DATA";
/// What is logged, e.g. `info` or `greenroom_host=debug`.
pub const LOG: &str = "GREENROOM_LOG";
/// Where tests let the host die; read only by builds with the feature `faults`.
pub const FAULT: &str = "GREENROOM_FAULT";
/// The model that is used where none is configured, as `provider/model`.
pub const MODEL: &str = "GREENROOM_MODEL";
/// What a method that the host starts may use for its one call; never the user's.
pub const CREDENTIAL: &str = "GREENROOM_CREDENTIAL";
/// The methods that such a call may use, with commas between them.
pub const METHODS: &str = "GREENROOM_METHODS";
/// The language of the terminal, the first that is set; as everywhere on the system.
pub const LOCALE: [&str; 3] = ["LC_ALL", "LC_MESSAGES", "LANG"];
/// The time zone of the machine; as everywhere on the system.
pub const TZ: &str = "TZ";
/// The stream that leads to the system's journal, as `device:inode`; set by systemd.
pub const JOURNAL_STREAM: &str = "JOURNAL_STREAM";
/// When set and not empty, nothing is coloured.
pub const NO_COLOR: &str = "NO_COLOR";

/// Every variable with what it is for, as `greenroom help` tells it.
pub const ALL: &[(&str, &str)] = &[
    (URL, "address of the host to talk to, e.g. http://127.0.0.1:8700"),
    (TOKEN, "token to present to that host"),
    (CONFIG, "configuration file of `serve`, `check`, `doctor`, `tool`, `backup` and `move`"),
    (DATA, "data folder"),
    (LOG, "what is logged, e.g. `info` or `greenroom_host=debug`"),
    (MODEL, "model to use where none is configured, as `provider/model`"),
    (NO_COLOR, "when set, nothing is coloured"),
];

/// The value of a variable; `None` when it is unset or not UTF-8.
#[expect(clippy::disallowed_methods, reason = "this is the one place that reads the environment")]
pub fn get(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
