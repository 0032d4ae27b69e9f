//! The plugin `yard`: tools that take notes, wait at gates and for each other, and as many others as wanted.

use crate::scene::Scene;
use crate::stage::{PATIENCE, runners};
use greenroom_testkit::wait::wait_for;

/// Its folder, beside the configuration.
pub(crate) const FOLDER: (&str, &str) = ("yard/wire.log", "");

/// Its table in the configuration, with so many tools of no use.
pub(crate) fn yard(many: usize) -> String {
    let program = runners().join("yard.py");
    format!(
        "[runners.yard]\ncommand = [\"python3\", \"{}\"]\ndir = \"yard\"\nenv = {{ MANY = \"{many}\" }}\n",
        program.display()
    )
}

/// What its tools have noted.
pub(crate) fn notes(scene: &Scene) -> Vec<String> {
    let log = std::fs::read_to_string(scene.stage.host.folder().join("yard/wire.log")).unwrap();
    log.lines().filter(|line| *line != "start").map(str::to_owned).collect()
}

/// Waits until a call of `yard.gate` stands at a gate.
pub(crate) async fn at_gate(scene: &Scene, name: &str) {
    let mark = scene.stage.host.folder().join(format!("yard/at-{name}"));
    wait_for("a call at the gate", PATIENCE, async || mark.exists().then_some(())).await;
}

pub(crate) fn open_gate(scene: &Scene, name: &str) {
    std::fs::write(scene.stage.host.folder().join(format!("yard/open-{name}")), "").unwrap();
}
