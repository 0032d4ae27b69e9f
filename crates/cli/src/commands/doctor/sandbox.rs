//! The sandbox that processes get on this machine: the parts in force, and what falls away with a missing one.

use super::finding;
use crate::wiring;
use greenroom_config::Config;
use greenroom_runtime::{ChildSpec, Children, Confinement, Network, Settings};
use serde_json::{Value, json};
use std::path::Path;

/// Enters the sandbox with a process that does nothing, and reports what confined it.
pub(super) async fn look() -> Vec<Value> {
    let folder = std::env::temp_dir().join(format!("greenroom-doctor-{}", uuid::Uuid::now_v7()));
    let probed = probe(&folder).await;
    // The system clears the temporary folder.
    let _ = std::fs::remove_dir_all(&folder);
    match probed {
        Ok(confinement) => describe(&confinement),
        Err(error) => vec![finding("sandbox", false, &format!("does not start: {error}"))],
    }
}

async fn probe(folder: &Path) -> anyhow::Result<Confinement> {
    let program = std::env::current_exe()?.to_string_lossy().into_owned();
    let own = folder.join("own");
    std::fs::create_dir_all(&own)?;
    let settings = Settings {
        run_dir: folder.join("run"),
        ..wiring::runtime(&Config::default(), &program, folder)
    };
    let spec = ChildSpec {
        name: "doctor".to_owned(),
        command: vec![program],
        dir: own,
        owns_dir: true,
        // Any address: only whether it can have a network of its own matters.
        network: Network::host(([127, 0, 0, 1], 8700).into()),
        ..ChildSpec::default()
    };
    Ok(Children::new(settings).probe(&spec).await?)
}

fn describe(Confinement { domain, warnings }: &Confinement) -> Vec<Value> {
    let parts: Vec<String> = domain.parts.iter().map(|part| meaning(part)).collect();
    let mut found = finding("sandbox", true, &parts.join(", "));
    found["domain"] = json!({"parts": domain.parts, "missing": domain.missing});
    let missing = domain.missing.iter().chain(warnings);
    let missing = missing.map(|text| finding("sandbox", false, text));
    std::iter::once(found).chain(missing).collect()
}

/// A part of a domain in words.
fn meaning(part: &str) -> String {
    match part.split_once(':') {
        Some(("landlock", version)) => format!("Landlock {version}"),
        Some(("uid", user)) => format!("user {user}"),
        Some(("netns", _)) => "a network of its own".to_owned(),
        Some(("sessions", "view")) => "a file view of its own for each session".to_owned(),
        Some(("sessions", _)) => "Landlock between its sessions".to_owned(),
        Some(("net", reach)) => format!("network {reach}"),
        None if part == "view" => "a file view of its own".to_owned(),
        None if part == "cgroup" => "memory limited by a cgroup".to_owned(),
        None if part == "rlimit" => "memory limited for each process and measured".to_owned(),
        _ => part.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_runtime::Domain;

    #[test]
    fn parts_are_shown_in_words_and_missing_guarantees_are_problems() {
        let parts = ["landlock:3", "seccomp", "net:on", "rlimit", "uid:7"].map(str::to_owned);
        let missing = vec!["no file view of its own: x".to_owned()];
        let domain = Domain { parts: parts.to_vec(), missing };
        let found = describe(&Confinement { domain, warnings: Vec::new() });
        let words =
            "Landlock 3, seccomp, network on, memory limited for each process and measured, user 7";
        assert_eq!(
            found,
            [
                json!({"what": "sandbox", "ok": true, "found": words, "domain": {
                    "parts": ["landlock:3", "seccomp", "net:on", "rlimit", "uid:7"],
                    "missing": ["no file view of its own: x"],
                }}),
                json!({"what": "sandbox", "ok": false, "found": "no file view of its own: x"}),
            ]
        );
    }
}
