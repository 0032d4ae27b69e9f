//! Which changes of a configuration a running host cannot take over.
//!
//! Invariant: names every key that is read at the start alone; all others are in force after a reload.

use crate::config::{Config, Limits};

/// Limits that the server or the runtime are started with.
const LIMITS: [&str; 18] = [
    "event_bytes",
    "agui_bytes",
    "line_bytes",
    "output_bytes",
    "run_buffer_bytes",
    "runs_open",
    "cancel_grace_s",
    "runner_start_s",
    "runner_backoff_max_s",
    "stderr_lines_per_s",
    "stderr_bytes_per_s",
    "tool_processes",
    "request_timeout_s",
    "connections_open",
    "sign_in_code_s",
    "session_idle_s",
    "session_s",
    "sessions",
];

/// The keys that differ and wait for the next start.
pub(crate) fn keys(before: &Config, now: &Config) -> Vec<String> {
    let sections = [
        ("server.listen", before.server.listen != now.server.listen),
        ("server.base_path", before.server.base_path != now.server.base_path),
        ("server.tls", before.server.tls.is_some() != now.server.tls.is_some()),
        ("store.url", before.store.url != now.store.url),
        ("store.sync", before.store.sync != now.store.sync),
    ];
    let keys = sections.iter().filter(|(_, differs)| *differs).map(|(key, _)| (*key).to_owned());
    keys.chain(limits(&before.limits, &now.limits)).collect()
}

fn limits(before: &Limits, now: &Limits) -> Vec<String> {
    let pairs = before.values().into_iter().zip(now.values());
    pairs
        .filter(|((name, before), (_, now))| before != now && LIMITS.contains(name))
        .map(|((name, _), _)| format!("limits.{name}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_host_was_started_with_waits_for_the_next_start() {
        let before = Config::default();
        assert_eq!(keys(&before, &before), [""; 0]);
        let mut now = before.clone();
        now.server.listen.set_port(9000);
        now.limits.connections_open = 10;
        now.limits.lane_length = 10;
        assert_eq!(keys(&before, &now), ["server.listen", "limits.connections_open"]);
        for name in LIMITS {
            assert!(Limits::ALL.iter().any(|limit| limit.name == name), "{name}");
        }
    }
}
