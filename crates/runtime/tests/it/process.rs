//! The tree of a runner ends with its host, however that ends.

use crate::kit::{Kit, WIRE, eventually, processes_of, request, script};
use greenroom_runtime::wait_for_orphans;
use std::time::Duration;

/// A host does not outlive its test.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_host_leaves_no_process_and_recovery_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir_all(data.join("runner")).unwrap();
    let request = serde_json::to_vec(&request(WIRE, "r", "children")).unwrap();
    std::fs::write(data.join("request.json"), request).unwrap();
    #[expect(clippy::disallowed_methods, reason = "the test starts the host that it kills")]
    let host = std::process::Command::new(env!("CARGO_BIN_EXE_runtime-fixture"))
        .arg("host")
        .args([data.as_os_str(), script("wire.py").as_ref()])
        .spawn();
    let mut host = Killed(host.unwrap());
    eventually("a run with children", || data.join("ready").exists().then_some(())).await;
    // The host, its runner and three detached children; supervisors do not name the folder.
    eventually("five processes", || (processes_of(folder.path()).len() == 5).then_some(())).await;
    assert_eq!(wait_for_orphans(&data.join("run"), Duration::ZERO).await, 1);
    host.0.kill().unwrap();
    host.0.wait().unwrap();
    assert_eq!(wait_for_orphans(&data.join("run"), Duration::from_secs(10)).await, 0);
    assert_eq!(processes_of(folder.path()), Vec::<u32>::new());
    assert_eq!(std::fs::read_dir(data.join("run")).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_stops_while_a_runner_starts_leaves_nothing() {
    // A start takes some milliseconds: one of these moments is before the first report of its supervisor.
    for moment in [0, 1, 2, 4, 8, 16, 32] {
        let kit = Kit::new();
        kit.runtime.apply(vec![kit.spec()]).await;
        tokio::time::sleep(Duration::from_millis(moment)).await;
        kit.runtime.shutdown(Duration::ZERO).await;
        let left = wait_for_orphans(&kit.path("data/run"), Duration::ZERO).await;
        assert_eq!(left, 0, "after {moment} ms");
        assert_eq!(processes_of(kit.folder.path()), Vec::<u32>::new(), "after {moment} ms");
    }
}
