//! Landlock: the second wall around files, and the scope of signals and abstract sockets.
//!
//! Invariant: once enforced it holds for this process and all that it starts; an older kernel enforces the
//! rights that it knows, and the version in use is reported.

use super::domain::Without;
use super::job::Network;
use super::mounts::hides_processes;
use super::netns::Link;
use super::sandbox::Plan;
use super::view::DEVICES;
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus,
    NetPort, PathBeneath, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus,
    Scope, path_beneath_rules,
};
use rustix::fs::FileType;
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// The access rights that we know and have tested.
const NEWEST: u8 = 6;
const PROC_FILES: [&str; 17] = [
    "cpuinfo",
    "filesystems",
    "loadavg",
    "meminfo",
    "stat",
    "uptime",
    "version",
    "sys/kernel/cap_last_cap",
    "sys/kernel/hostname",
    "sys/kernel/osrelease",
    "sys/kernel/ostype",
    "sys/kernel/pid_max",
    "sys/kernel/random",
    "sys/kernel/threads-max",
    "sys/kernel/version",
    "sys/net/core/somaxconn",
    "sys/vm/overcommit_memory",
];

/// The version that is enforced; 0 for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version(pub(super) i32);

impl Version {
    /// Whether ports are distinguished.
    pub(super) fn knows_ports(self) -> bool {
        self.0 >= 4
    }

    /// Whether signals and abstract sockets of other processes are out of reach.
    pub(super) fn knows_scopes(self) -> bool {
        self.0 >= 6
    }
}

/// The version of the kernel, as far as it is to be used.
pub(super) fn available(without: Without) -> Version {
    // Landlock restricts the calling thread only, so a short-lived thread can try it.
    let asked = std::thread::spawn(|| {
        let ruleset = Ruleset::default().handle_access(AccessFs::Execute)?.create()?;
        Ok::<_, landlock::RulesetError>(ruleset.restrict_self()?.landlock)
    });
    let version = match asked.join() {
        Ok(Ok(LandlockStatus::Available { effective_abi, kernel_abi })) => {
            kernel_abi.unwrap_or(effective_abi as i32)
        }
        _ => 0,
    };
    Version(without.landlock_above.map_or(version, |newest| version.min(newest.into())))
}

/// Restricts this process for good.
pub(super) fn enforce(plan: &Plan, link: &Link) -> Result<Version, String> {
    let rights = rights(plan.without);
    if plan.without.landlock_above == Some(0) {
        return Ok(Version(0));
    }
    let read = AccessFs::from_read(rights);
    let device: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    let device = device & AccessFs::from_all(rights);
    // By its number: `/proc/self` is a link that differs for every process.
    let own = format!("/proc/{}", std::process::id());
    let proc = PROC_FILES.iter().map(|file| format!("/proc/{file}"));
    let scopes = Scope::from_all(rights);
    // A network of its own has no port of anyone else.
    // Sessions have limits of their own, which include the listener that the runner makes for each.
    let limits_ports = plan.network != Network::On
        && !plan.sessions_apart
        && !link.is_isolated
        && !AccessNet::from_all(rights).is_empty();
    let enforced = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(rights))
        .and_then(|ruleset| match limits_ports {
            true => ruleset.handle_access(AccessNet::from_all(rights)),
            false => Ok(ruleset),
        })
        .and_then(|ruleset| match scopes.is_empty() {
            true => Ok(ruleset),
            false => ruleset.scope(scopes),
        })
        .and_then(|ruleset| ruleset.create())
        .and_then(|ruleset| {
            let ports = link.ports.iter().filter(|_| limits_ports);
            let rule = |port: &u16| NetPort::new(*port, AccessNet::ConnectTcp);
            ruleset.add_rules(ports.map(|port| Ok::<_, landlock::RulesetError>(rule(port))))
        })
        .and_then(|ruleset| ruleset.add_rules(beneath(&plan.read, read)))
        .and_then(|ruleset| ruleset.add_rules(beneath(&plan.write, AccessFs::from_all(rights))))
        .and_then(|ruleset| ruleset.add_rules(path_beneath_rules(DEVICES, device)))
        .and_then(|ruleset| {
            let readable = AccessFs::ReadFile | AccessFs::ReadDir;
            // What it does not show, nobody can read.
            let all = (plan.own_processes && hides_processes()).then(|| "/proc".to_owned());
            ruleset.add_rules(path_beneath_rules(proc.chain([own]).chain(all), readable))
        })
        .and_then(|ruleset| ruleset.restrict_self())
        .map_err(|error| format!("cannot enter the sandbox: {error}"))?;
    match (enforced.ruleset, enforced.landlock) {
        (RulesetStatus::NotEnforced, LandlockStatus::Available { .. }) => {
            Err("the kernel did not enforce the sandbox".to_owned())
        }
        (_, LandlockStatus::Available { effective_abi, kernel_abi }) => {
            let version = kernel_abi.unwrap_or(effective_abi as i32);
            let newest = plan.without.landlock_above.map_or(i32::MAX, i32::from);
            Ok(Version(version.min(newest)))
        }
        _ => Ok(Version(0)),
    }
}

/// Rules for resolved paths. A link that has taken the place of one opens nothing.
fn beneath(
    paths: &BTreeSet<PathBuf>,
    access: BitFlags<AccessFs>,
) -> impl Iterator<Item = Result<PathBeneath<OwnedFd>, RulesetError>> {
    let places = paths.iter().filter_map(|path| greenroom_config::open_plain(path).ok());
    places.map(move |place| {
        let is_folder = rustix::fs::fstat(&place)
            .is_ok_and(|found| FileType::from_raw_mode(found.st_mode).is_dir());
        let of_file = AccessFs::from_file(ABI::V6);
        Ok(PathBeneath::new(place, if is_folder { access } else { access & of_file }))
    })
}

/// What to ask of the kernel.
fn rights(without: Without) -> ABI {
    match without.landlock_above.unwrap_or(NEWEST) {
        0 | 1 => ABI::V1,
        2 => ABI::V2,
        3 => ABI::V3,
        4 => ABI::V4,
        5 => ABI::V5,
        _ => ABI::V6,
    }
}
