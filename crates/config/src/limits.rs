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
    /// All state of one owner, such as a conversation.
    state_owner_bytes: u64 = 16 * MIB, KIB, 16 * GIB, Reload;
    /// Largest storage value.
    storage_value_bytes: usize = 4 * MIB, KIB, 64 * MIB, Reload;
    /// All storage of one plugin, or of one binding.
    storage_plugin_bytes: u64 = 256 * MIB, KIB, 1_024 * GIB, Reload;
    /// All storage of one workspace.
    storage_workspace_bytes: u64 = 2 * GIB, KIB, 1_024 * GIB, Reload;
    /// Largest artifact.
    artifact_bytes: u64 = 256 * MIB, KIB, 16 * GIB, Reload;
    /// Most bytes of an artifact in one response of `artifacts.read_range`.
    read_range_bytes: u64 = MIB, KIB, 16 * MIB, Reload;
    /// Largest parameters of one call to the host.
    call_bytes: usize = 8 * MIB, KIB, 64 * MIB, Reload;
    /// Largest response to one call.
    response_bytes: usize = 6 * MIB, KIB, 64 * MIB, Reload;
    /// Largest tool result that is passed inline; a larger one becomes an artifact.
    tool_result_bytes: usize = 256 * KIB, KIB, 4 * MIB, Reload;
    /// Cost of the calls of one run per second; a lookup costs 1, a search 100.
    calls_per_s_run: u64 = 50_000, 1, 100_000_000, Reload;
    /// The same for all runs of one plugin.
    calls_per_s_plugin: u64 = 200_000, 1, 100_000_000, Reload;
    /// Steering messages that wait for one run; another is refused with 429.
    steering_length: i64 = 100, 1, 100_000, Reload;
    /// Pending approvals of one run.
    approvals_pending: i64 = 1_000, 1, 100_000, Reload;
    /// All results of one run.
    output_bytes: u64 = 256 * MIB, 64 * KIB, 16 * GIB, Restart;
    /// Results of one run that wait to be applied; a run above it fails with `runner.overflow`.
    run_buffer_bytes: usize = 32 * MIB, 64 * KIB, GIB, Restart;
    /// Batches of results that a subscriber may lag behind before its stream is closed; it can resume.
    subscriber_buffer: usize = 1_024, 16, 1_000_000, Reload;
    /// Queued runs of one conversation; another is refused with 429.
    lane_length: i64 = 100, 1, 100_000, Reload;
    /// Queued and running runs of the whole host; another is refused with 429.
    runs_open: usize = 20_000, 1, 1_000_000, Restart;
    /// Most items per page.
    page_size: usize = 200, 1, 1_000, Reload;
    /// Deadline of a run, unless its agent sets one.
    run_deadline: Duration = 600, 1, 7 * DAY_S, Reload;
    /// Time for a run to end after its cancel; then its process is replaced.
    cancel_grace: Duration = 5, 0, 600, Restart;
    /// Time for a runner process to answer `initialize` and `list_agent_runners`.
    runner_start: Duration = 20, 1, 600, Restart;
    /// Longest pause between two starts of a failing runner.
    runner_backoff_max: Duration = 30, 1, DAY_S, Restart;
    /// Log lines per second of one runner or tool server; more are dropped and counted.
    stderr_lines_per_s: u32 = 100, 1, 100_000, Restart;
    /// The same in bytes, with bursts of 32 seconds.
    stderr_bytes_per_s: u32 = 8 * KIB, KIB, 64 * MIB, Restart;
    /// Concurrent methods of the project CLI, others wait; 0: four per processor, at least 8.
    tool_processes: usize = 0, 0, 10_000, Restart;
    /// Time for an HTTP request to arrive completely.
    request_timeout: Duration = 30, 1, 600, Restart;
    /// Open HTTP connections.
    connections_open: usize = 20_000, 8, 1_000_000, Restart;
    /// Lifetime of a sign-in code.
    sign_in_code: Duration = 600, 1, DAY_S, Restart;
    /// Time after which an unused browser session ends.
    session_idle: Duration = DAY_S / 2, 1, 90 * DAY_S, Restart;
    /// Time after which every browser session ends.
    session: Duration = 7 * DAY_S, 1, 90 * DAY_S, Restart;
    /// Open sessions; another replaces the oldest.
    sessions: usize = 1_000, 1, 100_000, Restart;
    /// Time for which a failing delivery is retried; 0: no retries.
    delivery_retry: Duration = DAY_S, 0, 30 * DAY_S, Reload;
    /// Longest pause between two attempts of a delivery; pauses start at half a second and double.
    delivery_pause_max: Duration = 900, 1, DAY_S, Reload;
    /// Time for runs to finish when the host stops.
    shutdown_grace: Duration = 10, 0, 600, Reload;
}
