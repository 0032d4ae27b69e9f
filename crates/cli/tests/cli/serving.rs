//! A host of this program's own, and what other commands say about it.

use crate::{greenroom, told};
use greenroom_testkit::wait::wait_for;
use std::fs::File;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// A running host; ends with the test.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

async fn serve(dir: &Path) -> Serving {
    let mut command = greenroom(dir, &["serve", "--listen", "127.0.0.1:0"]);
    let log = File::create(dir.join("log")).unwrap();
    let child = Serving(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
    let file = dir.join("greenroom-data/host.json");
    wait_for("the host", PATIENCE, async || file.exists().then_some(())).await;
    child
}

async fn until_told(dir: &Path, args: &[&str], text: &str) {
    wait_for(text, PATIENCE, async || told(dir, args).contains(text).then_some(())).await;
}

async fn until_logged(dir: &Path, text: &str) {
    let log = || std::fs::read_to_string(dir.join("log")).unwrap();
    wait_for(text, PATIENCE, async || log().contains(text).then_some(())).await;
}

#[tokio::test]
async fn a_configuration_that_appears_later_is_used_and_doctor_knows() {
    let dir = tempfile::tempdir().unwrap();
    let _host = serve(dir.path()).await;
    until_told(dir.path(), &["doctor"], "the running host has none either").await;
    until_told(dir.path(), &["doctor"], "the host reads it").await;
    let agent = "[agents.mine]\nrunner = \"plugin:greenroom/echo/default\"\nevents = []\n";
    std::fs::write(dir.path().join("greenroom.toml"), agent).unwrap();
    until_told(dir.path(), &["doctor"], "the running host uses it").await;
    until_told(dir.path(), &["send", "hello", "--agent", "mine"], "exit 0").await;
    until_logged(dir.path(), "found `greenroom.toml`").await;
    until_told(dir.path(), &["doctor", "--json"], "\"what\":\"runner greenroom-echo\"").await;
    let moved = format!("{agent}[server]\nlisten = \"127.0.0.1:9\"\n");
    std::fs::write(dir.path().join("greenroom.toml"), moved).unwrap();
    until_logged(dir.path(), "`server.listen` changed: takes effect at the next start").await;
}

#[tokio::test]
async fn a_second_host_on_the_same_folder_is_told_where_the_first_one_is() {
    let dir = tempfile::tempdir().unwrap();
    let host = serve(dir.path()).await;
    let told = told(dir.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert!(told.contains("error: another host uses the data folder"), "{told}");
    assert!(told.contains("hint: it listens on http://127.0.0.1:"), "{told}");
    assert!(told.contains(&format!("(pid {})", host.0.id())), "{told}");
}
