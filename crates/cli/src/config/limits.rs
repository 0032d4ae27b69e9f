//! Every limit of the host, by name, with its default and the range it may be set to.
//!
//! Invariant: a limit exists here or it does not exist; units stand last in the name.

use super::reader::Reader;

/// One row of the table below, for `doctor` and the reference pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    pub name: &'static str,
    pub about: &'static str,
    pub default: u64,
    pub min: u64,
    pub max: u64,
}

macro_rules! limits {
    ($($(#[doc = $about:literal])+ $name:ident = $default:expr, $min:expr, $max:expr;)+) => {
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Limits {
            $($(#[doc = $about])+ pub $name: u64,)+
        }

        impl Limits {
            pub const ALL: &'static [Limit] = &[$(Limit {
                name: stringify!($name),
                about: concat!($($about),+).trim_ascii(),
                default: $default,
                min: $min,
                max: $max,
            },)+];

            /// The limits by name, as they are in force.
            pub fn values(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name),)+]
            }

            pub(super) fn read(mut reader: Reader<'_>) -> Self {
                let limits = Self {
                    $($name: reader
                        .get(stringify!($name))
                        .and_then(|value| value.integer($min..=$max))
                        .unwrap_or($default),)+
                };
                // A file of an earlier version stays valid; a warning says what to write instead.
                reader.knows(&REPLACED.map(|(old, _)| old));
                reader.finish();
                limits
            }
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }
    };
}

/// Limits of earlier versions, and what to do about them.
pub(super) const REPLACED: [(&str, &str); 1] = [(
    "delivery_attempts",
    "has no effect: deliveries are retried for `limits.delivery_retry_s` seconds, set that instead",
)];

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const DAY_S: u64 = 86_400;

limits! {
    /// Largest event body.
    event_bytes = MIB, KIB, 64 * MIB;
    /// Largest body of an AG-UI client, which sends its whole thread each time.
    agui_bytes = 8 * MIB, KIB, 64 * MIB;
    /// Longest line or frame on a runner's wire.
    line_bytes = 8 * MIB, 64 * KIB, 256 * MIB;
    /// Largest single result of a run.
    result_bytes = MIB, KIB, 64 * MIB;
    /// Largest state value, as JSON text.
    state_value_bytes = 256 * KIB, KIB, 256 * KIB;
    /// What the state of one owner, such as a conversation, takes together.
    state_owner_bytes = 16 * MIB, KIB, 16 * GIB;
    /// Largest storage value.
    storage_value_bytes = 4 * MIB, KIB, 64 * MIB;
    /// What the storage of one plugin, or of one binding, takes together.
    storage_plugin_bytes = 256 * MIB, KIB, 1_024 * GIB;
    /// What all storage of one workspace takes together.
    storage_workspace_bytes = 2 * GIB, KIB, 1_024 * GIB;
    /// Largest artifact.
    artifact_bytes = 256 * MIB, KIB, 16 * GIB;
    /// Most bytes of an artifact that one `artifacts.read_range` answers with.
    read_range_bytes = MIB, KIB, 16 * MIB;
    /// Largest parameters of one call to the host.
    call_bytes = 8 * MIB, KIB, 64 * MIB;
    /// Largest answer to one call.
    response_bytes = 6 * MIB, KIB, 64 * MIB;
    /// Largest result of a tool that is handed on as it is; a larger one becomes an artifact.
    tool_result_bytes = 256 * KIB, KIB, 4 * MIB;
    /// Calls that one run may make per second; a look-up counts as one, a search as a hundred.
    calls_per_s_run = 50_000, 1, 100_000_000;
    /// The same for all runs of one plugin together.
    calls_per_s_plugin = 200_000, 1, 100_000_000;
    /// Messages that wait to be pulled by one run; one more is answered with 429.
    steering_length = 100, 1, 100_000;
    /// Approvals of one run that nobody has answered.
    approvals_pending = 1_000, 1, 100_000;
    /// Most output of one run, all its results together.
    output_bytes = 256 * MIB, 64 * KIB, 16 * GIB;
    /// Results of one run that wait to be applied; a run over it fails with `runner.overflow`.
    run_buffer_bytes = 32 * MIB, 64 * KIB, GIB;
    /// Batches of results a live reader may lag behind before it is cut off with a position to resume from.
    subscriber_buffer = 1_024, 16, 1_000_000;
    /// Runs that wait in one conversation; one more is answered with 429.
    lane_length = 100, 1, 100_000;
    /// Runs that are queued or running in the whole host; one more is answered with 429.
    runs_open = 20_000, 1, 1_000_000;
    /// Most items of one page.
    page_size = 200, 1, 1_000;
    /// Time a run may take, unless its agent says otherwise.
    run_deadline_s = 600, 1, 7 * DAY_S;
    /// Time a cancelled run's process has before it is replaced.
    cancel_grace_s = 5, 0, 600;
    /// Time a runner process has to answer `initialize` and `list_agent_runners`.
    runner_start_s = 20, 1, 600;
    /// Longest pause between two starts of a runner that keeps failing.
    runner_backoff_max_s = 30, 1, DAY_S;
    /// Log lines of one runner or tool server per second; the rest is counted and dropped.
    stderr_lines_per_s = 100, 1, 100_000;
    /// The same in bytes, with half a minute's worth of them at once.
    stderr_bytes_per_s = 8 * KIB, KIB, 64 * MIB;
    /// Methods of the project CLI that run at once, others wait; 0: four for each processor, at least 8.
    tool_processes = 0, 0, 10_000;
    /// Time in which a started HTTP request must have arrived.
    request_timeout_s = 30, 1, 600;
    /// HTTP connections that are open at once.
    connections_open = 20_000, 8, 1_000_000;
    /// Time in which a sign-in code can be used.
    sign_in_code_s = 600, 1, DAY_S;
    /// Time after which a session in a browser ends when it is not used.
    session_idle_s = DAY_S / 2, 1, 90 * DAY_S;
    /// Time after which it ends however much it is used.
    session_s = 7 * DAY_S, 1, 90 * DAY_S;
    /// Sessions that are open at once; the oldest makes room for one more.
    sessions = 1_000, 1, 100_000;
    /// Time for which a delivery is tried again when its surface does not take it; 0: it is tried once.
    delivery_retry_s = DAY_S, 0, 30 * DAY_S;
    /// Longest pause between two attempts of a delivery; pauses start with half a second and double.
    delivery_pause_max_s = 900, 1, DAY_S;
    /// Time in which runs may finish when the host is asked to stop.
    shutdown_grace_s = 10, 0, 600;
}
