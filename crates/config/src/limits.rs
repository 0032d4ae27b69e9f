//! Every limit, declared once: name, type, default, range, and whether a reload applies it.
//!
//! Invariant: a limit exists here or it does not exist; the host, the runtime and the server use this `Limits`
//! directly. The unit is the end of the key: a field `x` of type `Duration` has the key `x_s`, in seconds.

use super::reader::Reader;
use std::time::Duration;

/// One row of the table below, for `doctor`, the reference pages and reloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub name: &'static str,
    pub about: &'static str,
    pub default: u64,
    pub min: u64,
    pub max: u64,
    pub change: Change,
}

/// When a changed value takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    Reload,
    Restart,
}

/// A type that a limit may have.
trait Setting: Copy {
    fn from_number(number: u64) -> Self;
    fn to_number(self) -> u64;
}

macro_rules! integer_settings {
    ($($type:ty),+) => {
        $(impl Setting for $type {
            fn from_number(number: u64) -> Self {
                Self::try_from(number).unwrap_or(Self::MAX)
            }

            fn to_number(self) -> u64 {
                u64::try_from(self).unwrap_or(0)
            }
        })+
    };
}

integer_settings!(u64, usize, u32, i64);

impl Setting for Duration {
    fn from_number(number: u64) -> Self {
        Duration::from_secs(number)
    }

    fn to_number(self) -> u64 {
        self.as_secs()
    }
}

/// The key of a field in the file.
macro_rules! key {
    (Duration $name:ident) => {
        concat!(stringify!($name), "_s")
    };
    ($type:ident $name:ident) => {
        stringify!($name)
    };
}

macro_rules! limits {
    ($($(#[doc = $about:literal])+
        $name:ident: $type:ident = $default:expr, $min:expr, $max:expr, $change:ident;)+) => {
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Limits {
            $($(#[doc = $about])+ pub $name: $type,)+
        }

        impl Limits {
            pub const ALL: &'static [Limit] = &[$(Limit {
                name: key!($type $name),
                about: concat!($($about),+).trim_ascii(),
                default: $default,
                min: $min,
                max: $max,
                change: Change::$change,
            },)+];

            /// The values in force by key, in the order of `ALL`.
            pub fn values(&self) -> Vec<(&'static str, u64)> {
                vec![$((key!($type $name), self.$name.to_number()),)+]
            }

            pub(super) fn read(mut reader: Reader<'_>) -> Self {
                let mut number = |key, min, max, default| {
                    reader.get(key).and_then(|value| value.integer(min..=max)).unwrap_or(default)
                };
                let limits = Self {
                    $($name: Setting::from_number(
                        number(key!($type $name), $min, $max, $default)
                    ),)+
                };
                // A file of an earlier version stays valid; a warning says what to write instead.
                reader.knows(&REPLACED.map(|(old, _)| old));
                reader.finish();
                limits
            }
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: Setting::from_number($default),)+ }
            }
        }
    };
}

/// Limits of earlier versions, and what to do about them.
pub const REPLACED: [(&str, &str); 1] = [(
    "delivery_attempts",
    "has no effect: deliveries are retried for `limits.delivery_retry_s` seconds, set that instead",
)];

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const DAY_S: u64 = 86_400;

limits! {
    /// Largest event body.
    event_bytes: usize = MIB, KIB, 64 * MIB, Restart;
    /// Largest body of an AG-UI client, which sends its whole thread each time.
    agui_bytes: usize = 8 * MIB, KIB, 64 * MIB, Restart;
    /// Longest line or frame on a runner's wire.
    line_bytes: usize = 8 * MIB, 64 * KIB, 256 * MIB, Restart;
    /// Largest single result of a run.
    result_bytes: usize = MIB, KIB, 64 * MIB, Reload;
    /// Largest state value, as JSON text.
    state_value_bytes: usize = 256 * KIB, KIB, 256 * KIB, Reload;
    /// What the state of one owner, such as a conversation, takes together.
    state_owner_bytes: u64 = 16 * MIB, KIB, 16 * GIB, Reload;
    /// Largest storage value.
    storage_value_bytes: usize = 4 * MIB, KIB, 64 * MIB, Reload;
    /// What the storage of one plugin, or of one binding, takes together.
    storage_plugin_bytes: u64 = 256 * MIB, KIB, 1_024 * GIB, Reload;
    /// What all storage of one workspace takes together.
    storage_workspace_bytes: u64 = 2 * GIB, KIB, 1_024 * GIB, Reload;
    /// Largest artifact.
    artifact_bytes: u64 = 256 * MIB, KIB, 16 * GIB, Reload;
    /// Most bytes of an artifact that one `artifacts.read_range` answers with.
    read_range_bytes: u64 = MIB, KIB, 16 * MIB, Reload;
    /// Largest parameters of one call to the host.
    call_bytes: usize = 8 * MIB, KIB, 64 * MIB, Reload;
    /// Largest answer to one call.
    response_bytes: usize = 6 * MIB, KIB, 64 * MIB, Reload;
    /// Largest result of a tool that is handed on as it is; a larger one becomes an artifact.
    tool_result_bytes: usize = 256 * KIB, KIB, 4 * MIB, Reload;
    /// Calls that one run may make per second; a look-up counts as one, a search as a hundred.
    calls_per_s_run: u64 = 50_000, 1, 100_000_000, Reload;
    /// The same for all runs of one plugin together.
    calls_per_s_plugin: u64 = 200_000, 1, 100_000_000, Reload;
    /// Messages that wait to be pulled by one run; one more is answered with 429.
    steering_length: i64 = 100, 1, 100_000, Reload;
    /// Approvals of one run that nobody has answered.
    approvals_pending: i64 = 1_000, 1, 100_000, Reload;
    /// Most output of one run, all its results together.
    output_bytes: u64 = 256 * MIB, 64 * KIB, 16 * GIB, Restart;
    /// Results of one run that wait to be applied; a run over it fails with `runner.overflow`.
    run_buffer_bytes: usize = 32 * MIB, 64 * KIB, GIB, Restart;
    /// Batches of results a live reader may lag behind before it is cut off with a position to resume from.
    subscriber_buffer: usize = 1_024, 16, 1_000_000, Reload;
    /// Runs that wait in one conversation; one more is answered with 429.
    lane_length: i64 = 100, 1, 100_000, Reload;
    /// Runs that are queued or running in the whole host; one more is answered with 429.
    runs_open: usize = 20_000, 1, 1_000_000, Restart;
    /// Most items of one page.
    page_size: usize = 200, 1, 1_000, Reload;
    /// Time a run may take, unless its agent says otherwise.
    run_deadline: Duration = 600, 1, 7 * DAY_S, Reload;
    /// Time a cancelled run's process has before it is replaced.
    cancel_grace: Duration = 5, 0, 600, Restart;
    /// Time a runner process has to answer `initialize` and `list_agent_runners`.
    runner_start: Duration = 20, 1, 600, Restart;
    /// Longest pause between two starts of a runner that keeps failing.
    runner_backoff_max: Duration = 30, 1, DAY_S, Restart;
    /// Log lines of one runner or tool server per second; the rest is counted and dropped.
    stderr_lines_per_s: u32 = 100, 1, 100_000, Restart;
    /// The same in bytes, with half a minute's worth of them at once.
    stderr_bytes_per_s: u32 = 8 * KIB, KIB, 64 * MIB, Restart;
    /// Methods of the project CLI that run at once, others wait; 0: four for each processor, at least 8.
    tool_processes: usize = 0, 0, 10_000, Restart;
    /// Time in which a started HTTP request must have arrived.
    request_timeout: Duration = 30, 1, 600, Restart;
    /// HTTP connections that are open at once.
    connections_open: usize = 20_000, 8, 1_000_000, Restart;
    /// Time in which a sign-in code can be used.
    sign_in_code: Duration = 600, 1, DAY_S, Restart;
    /// Time after which a session in a browser ends when it is not used.
    session_idle: Duration = DAY_S / 2, 1, 90 * DAY_S, Restart;
    /// Time after which it ends however much it is used.
    session: Duration = 7 * DAY_S, 1, 90 * DAY_S, Restart;
    /// Sessions that are open at once; the oldest makes room for one more.
    sessions: usize = 1_000, 1, 100_000, Restart;
    /// Time for which a delivery is tried again when its surface does not take it; 0: it is tried once.
    delivery_retry: Duration = DAY_S, 0, 30 * DAY_S, Reload;
    /// Longest pause between two attempts of a delivery; pauses start with half a second and double.
    delivery_pause_max: Duration = 900, 1, DAY_S, Reload;
    /// Time in which runs may finish when the host is asked to stop.
    shutdown_grace: Duration = 10, 0, 600, Reload;
}
