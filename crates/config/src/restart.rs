//! Which changed keys take effect at the next start only.
//!
//! Invariant: every key that is read at the start only is listed here or is a limit declared `Restart`; a reload
//! applies all others.

use super::{Change, Config, Limits};

impl Config {
    /// The keys that differ in `new` and that a running host cannot apply.
    pub fn keys_for_restart(&self, new: &Self) -> Vec<String> {
        let (old_server, server) = (&self.server, &new.server);
        let sections = [
            ("server.listen", old_server.listen != server.listen),
            ("server.base_path", old_server.base_path != server.base_path),
            ("server.tls", old_server.tls.is_some() != server.tls.is_some()),
            ("store.url", self.store.url != new.store.url),
            ("store.sync", self.store.sync != new.store.sync),
        ];
        let sections = sections.into_iter().filter(|(_, differs)| *differs);
        let sections = sections.map(|(key, _)| key.to_owned());
        sections.chain(self.limits.keys_for_restart(&new.limits)).collect()
    }
}

impl Limits {
    fn keys_for_restart(&self, new: &Self) -> Vec<String> {
        let values = self.values().into_iter().zip(new.values());
        let changed = Self::ALL.iter().zip(values).filter(|(_, (old, new))| old != new);
        let waiting = changed.filter(|(limit, _)| limit.change == Change::Restart);
        waiting.map(|(limit, _)| format!("limits.{}", limit.name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_change_of_what_the_host_was_started_with_waits_for_the_next_start() {
        let before = Config::default();
        assert_eq!(before.keys_for_restart(&before), [""; 0]);
        let mut now = before.clone();
        now.server.listen.set_port(9000);
        now.limits.connections_open = 10;
        now.limits.cancel_grace = Duration::from_secs(1);
        now.limits.lane_length = 10;
        let keys = ["server.listen", "limits.cancel_grace_s", "limits.connections_open"];
        assert_eq!(before.keys_for_restart(&now), keys);
    }
}
