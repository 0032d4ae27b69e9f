//! Decides what a runner may see of the file system, and enforces it with Landlock.
//!
//! Invariant: a hidden folder or file is never beneath an allowed path. Where an allowed folder contains one,
//! the entries around it are allowed one by one instead of the folder.

use super::job::{Confine, Job, Network};
use super::reach::{Lift, Needed};
use super::user::Chosen;
use super::{cover, home, interpreter, system, user};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, LandlockStatus,
    NetPort, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope, path_beneath_rules,
};
use rustix::fs::Access;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The access rights that we know and have tested; an older kernel enforces those it knows.
const RIGHTS: ABI = ABI::V6;

const DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];
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
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The private folder in which a program without a folder of its own runs.
const HOME: &str = "home";
/// The isolation of a runner on a kernel that has none.
const UNAVAILABLE: &str = "unavailable";
/// Folders that contain much more than one script and its neighbours.
const BROAD: [&str; 7] = ["/", "/home", "/root", "/tmp", "/var", "/var/tmp", "/srv"];

/// Everything the second stage needs to become the runner.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    pub(super) dir: PathBuf,
    pub(super) env: BTreeMap<String, String>,
    pub(super) restrict: bool,
    pub(super) confine: Option<Confine>,
    /// The user that the second stage becomes, if it is another one.
    pub(super) user: Option<u32>,
    /// What makes the program reachable for that user.
    lift: Lift,
    /// The file to enter its cgroup with.
    pub(super) cgroup: Option<PathBuf>,
    pub(super) memory_mb: u64,
    /// The process that this one must not outlive.
    pub(super) supervisor: i32,
    pub(super) probe: bool,
    read: BTreeSet<PathBuf>,
    write: BTreeSet<PathBuf>,
    /// Folders with hidden content, of which `read` has only the entries.
    whole_read: BTreeSet<PathBuf>,
    /// The same for `write`.
    whole_write: BTreeSet<PathBuf>,
    /// What would have to be covered to open them as a whole.
    hidden: Vec<PathBuf>,
    #[serde(skip)]
    pub(super) isolation: String,
    #[serde(skip)]
    pub(super) warnings: Vec<String>,
}

pub(super) fn plan(job: &Job) -> Result<Plan, String> {
    let has_dir = !job.dir.as_os_str().is_empty();
    let dir = if has_dir { job.dir.as_path() } else { Path::new("/") };
    let dir = std::fs::canonicalize(dir).map_err(|error| {
        format!("cannot enter the runner's folder `{}`: {error}", job.dir.display())
    })?;
    let (command, args) = job.command.split_first().ok_or("the runner has no command")?;
    let inherited = std::env::var_os("PATH").and_then(|path| path.into_string().ok());
    let search = job.env.get("PATH").cloned().or(inherited).unwrap_or_else(|| PATH.to_owned());
    let found = interpreter::find(command, &dir, &search)?;
    let mut warnings = Vec::new();
    let needed = needed(job, &dir, &found.read);
    let (Chosen { user, lift }, home) = choose(job, needed, &mut warnings)?;
    let private = user::private_folder(job, user)
        .map_err(|error| format!("cannot create `{}`: {error}", job.private.display()))?;
    let home = home.unwrap_or_else(|| private.join(HOME));
    let dir = if has_dir { dir } else { home.clone() };
    let mut plan = Plan {
        program: found.program,
        args: args.to_vec(),
        env: environment(job, &found.search, &private, &home)?,
        restrict: job.sandbox,
        confine: job.confine.filter(|_| job.sandbox),
        user,
        lift,
        cgroup: None,
        memory_mb: job.memory_mb,
        supervisor: rustix::process::getpid().as_raw_pid(),
        probe: job.probe,
        read: BTreeSet::new(),
        write: BTreeSet::new(),
        whole_read: BTreeSet::new(),
        whole_write: BTreeSet::new(),
        hidden: Vec::new(),
        isolation: if job.sandbox { isolation_available() } else { "off".to_owned() },
        warnings,
        dir,
    };
    if plan.isolation == UNAVAILABLE {
        plan.warnings
            .push("the kernel has no Landlock: the runner sees what this user sees".to_owned());
    }
    if plan.restrict {
        allow(job, &mut plan, found.read)?;
        plan.write.insert(resolve(&home));
    }
    Ok(plan)
}

/// For `doctor`: the Landlock version that the kernel enforces, e.g. `landlock:7`, or `unavailable`.
pub(crate) fn isolation_available() -> String {
    // Landlock restricts the calling thread only, so a short-lived thread can try it.
    let asked = std::thread::spawn(|| {
        let ruleset = Ruleset::default().handle_access(AccessFs::Execute)?.create()?;
        Ok::<_, landlock::RulesetError>(ruleset.restrict_self()?.landlock)
    });
    match asked.join() {
        Ok(Ok(LandlockStatus::Available { effective_abi, kernel_abi })) => {
            format!("landlock:{}", kernel_abi.unwrap_or(effective_abi as i32))
        }
        _ => UNAVAILABLE.to_owned(),
    }
}

/// The parts of the program, and which of them are open as a whole.
fn needed(job: &Job, dir: &Path, programs: &BTreeSet<PathBuf>) -> Needed {
    let args = job.command.iter().skip(1);
    let scripts = args.clone().map(|word| dir.join(word)).filter(|path| path.is_file());
    let programs = std::iter::once(dir).chain(programs.iter().map(PathBuf::as_path));
    let executed = programs.clone().map(|path| (path.to_owned(), Access::EXEC_OK));
    let paths = executed.chain(scripts.map(|path| (path, Access::READ_OK))).collect();
    let folders = args.filter_map(|word| script_folder(dir, word));
    let given = job.paths.iter().cloned();
    Needed { paths, kept: programs.map(Path::to_owned).chain(folders).chain(given).collect() }
}

/// The user of the program, and its home if it keeps one. A home that the user cannot reach is not used: the
/// program gets a private one, and no other user for its sake.
fn choose(
    job: &Job,
    needed: Needed,
    warnings: &mut Vec<String>,
) -> Result<(Chosen, Option<PathBuf>), String> {
    let Some(home) = &job.home else {
        return Ok((user::choose(job, &needed, warnings), None));
    };
    let wanted = user::wanted(job);
    home::keep(home, wanted)
        .map_err(|error| format!("cannot create `{}`: {error}", home.display()))?;
    let home = resolve(home);
    let mut with_home = needed.clone();
    let all = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    with_home.paths.push((home.clone(), all));
    with_home.kept.insert(home.clone());
    let mut said = Vec::new();
    let chosen = user::choose(job, &with_home, &mut said);
    if chosen.user.is_some() || wanted == rustix::process::getuid().as_raw() {
        warnings.append(&mut said);
        return Ok((chosen, Some(home)));
    }
    Ok((user::choose(job, &needed, warnings), None))
}

/// Makes the parts of the program reachable for its user.
pub(super) fn lift(plan: &mut Plan) -> Result<(), String> {
    if plan.lift.closed.is_empty() {
        return Ok(());
    }
    let kept: Vec<&Path> = plan.read.iter().chain(&plan.write).map(PathBuf::as_path).collect();
    cover::lift(&plan.lift, &kept).map_err(|error| {
        format!("cannot cover what user {} cannot enter: {error}", user::NOBODY)
    })?;
    // What was in the covered folders is hidden already.
    plan.hidden.retain(|path| path.exists());
    Ok(())
}

/// Opens folders as a whole by covering what is hidden in them. Warns where it cannot.
pub(super) fn cover(plan: &mut Plan) -> Vec<String> {
    if plan.whole_read.is_empty() && plan.whole_write.is_empty() {
        return Vec::new();
    }
    let kept: Vec<&Path> = plan.read.iter().chain(&plan.write).map(PathBuf::as_path).collect();
    match cover::cover(&plan.hidden, &kept, plan.user.is_some()) {
        Ok(()) => {
            plan.read.append(&mut plan.whole_read);
            plan.write.append(&mut plan.whole_write);
            Vec::new()
        }
        Err(_) => plan.whole_read.iter().chain(&plan.whole_write).map(|path| format!(
            "`{}` contains what is kept from runners: it cannot be listed or added to as a whole, only its present entries are open; give this runner a folder of its own",
            path.display()
        )).collect(),
    }
}

/// Restricts this process for good. Returns whether ports are distinguished, as they are since Landlock ABI
/// 4.
pub(super) fn enforce(plan: &Plan) -> Result<bool, String> {
    let read = AccessFs::from_read(RIGHTS);
    let device: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
    // By its number: `/proc/self` is a link that differs for every process.
    let own = format!("/proc/{}", std::process::id());
    let proc = PROC_FILES.iter().map(|file| format!("/proc/{file}"));
    let network = plan.confine.map(|confine| confine.network);
    let enforced = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(RIGHTS))
        .and_then(|ruleset| match network {
            Some(Network::Off | Network::Port(_)) => {
                ruleset.handle_access(AccessNet::from_all(RIGHTS))
            }
            Some(Network::On) | None => Ok(ruleset),
        })
        .and_then(|ruleset| ruleset.scope(Scope::from_all(RIGHTS)))
        .and_then(|ruleset| ruleset.create())
        .and_then(|ruleset| match network {
            Some(Network::Port(port)) => {
                ruleset.add_rule(NetPort::new(port, AccessNet::ConnectTcp))
            }
            _ => Ok(ruleset),
        })
        .and_then(|ruleset| ruleset.add_rules(path_beneath_rules(&plan.read, read)))
        .and_then(|ruleset| {
            ruleset.add_rules(path_beneath_rules(&plan.write, AccessFs::from_all(RIGHTS)))
        })
        .and_then(|ruleset| ruleset.add_rules(path_beneath_rules(DEVICES, device)))
        .and_then(|ruleset| {
            let readable = AccessFs::ReadFile | AccessFs::ReadDir;
            ruleset.add_rules(path_beneath_rules(proc.chain([own]), readable))
        })
        .and_then(|ruleset| ruleset.restrict_self())
        .map_err(|error| format!("cannot enter the sandbox: {error}"))?;
    match (enforced.ruleset, enforced.landlock) {
        (RulesetStatus::NotEnforced, LandlockStatus::Available { .. }) => {
            Err("the kernel did not enforce the sandbox".to_owned())
        }
        (_, LandlockStatus::Available { effective_abi, .. }) => Ok(effective_abi >= ABI::V4),
        _ => Ok(false),
    }
}

fn environment(
    job: &Job,
    search: &BTreeSet<PathBuf>,
    private: &Path,
    home: &Path,
) -> Result<BTreeMap<String, String>, String> {
    let mut env = BTreeMap::from([("LANG".to_owned(), "C.UTF-8".to_owned())]);
    for (name, path) in [("HOME", home), ("TMPDIR", &private.join("tmp"))] {
        std::fs::create_dir_all(path)
            .map_err(|error| format!("cannot create `{}`: {error}", path.display()))?;
        env.insert(name.to_owned(), path.to_string_lossy().into_owned());
    }
    let found = search.iter().map(|folder| folder.to_string_lossy().into_owned());
    let path: Vec<String> = found.chain([PATH.to_owned()]).collect();
    env.insert("PATH".to_owned(), path.join(":"));
    env.extend(job.env.clone());
    Ok(env)
}

fn allow(job: &Job, plan: &mut Plan, interpreters: BTreeSet<PathBuf>) -> Result<(), String> {
    let hidden: Vec<PathBuf> = job.hidden.iter().map(|path| resolve(path)).collect();
    let scripts = job.command[1..].iter().filter_map(|argument| script_folder(&plan.dir, argument));
    let read = system::paths().into_iter().chain(interpreters).chain(scripts);
    for path in read {
        plan.read.extend(without_hidden(&resolve(&path), &hidden));
    }
    let given = std::iter::once(&job.dir).chain(&job.paths);
    for path in given.filter(|path| !path.as_os_str().is_empty()) {
        let path = resolve(path);
        if hidden.contains(&path) {
            return Err(format!(
                "`{}` is kept from runners: give this one a folder of its own",
                path.display()
            ));
        }
        if !path.exists() {
            plan.warnings.push(format!("`{}` in `paths` does not exist", path.display()));
        }
        let is_read_only = path == plan.dir && !job.owns_dir;
        let (open, whole) = match is_read_only {
            true => (&mut plan.read, &mut plan.whole_read),
            false => (&mut plan.write, &mut plan.whole_write),
        };
        open.extend(without_hidden(&path, &hidden));
        let within: Vec<&PathBuf> =
            hidden.iter().filter(|secret| secret.starts_with(&path)).collect();
        if !within.is_empty() {
            plan.hidden.extend(within.into_iter().filter(|secret| secret.exists()).cloned());
            whole.insert(path);
        }
    }
    plan.write.insert(resolve(&job.private));
    Ok(())
}

/// The folder of a script named in the command, or the script alone where the folder is a common one.
pub(crate) fn script_folder(dir: &Path, argument: &str) -> Option<PathBuf> {
    let file = std::fs::canonicalize(dir.join(argument)).ok().filter(|file| file.is_file())?;
    let folder = file.parent()?;
    let is_home = folder.parent() == Some(Path::new("/home"));
    let is_broad = is_home || BROAD.iter().any(|broad| folder == Path::new(broad));
    Some(if is_broad { file } else { folder.to_owned() })
}

/// The path itself, or the entries around what is hidden beneath it.
fn without_hidden(path: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
    if hidden.iter().any(|secret| path == secret) {
        return Vec::new();
    }
    if !hidden.iter().any(|secret| secret.starts_with(path)) {
        return vec![path.to_owned()];
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    // The target of a link needs its own permission.
    let entries = entries.filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
    entries.flat_map(|entry| without_hidden(&entry.path(), hidden)).collect()
}

/// Symbolic links resolved as far as the path exists.
pub(crate) fn resolve(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::without_hidden;
    use std::fs::create_dir_all;

    #[test]
    fn a_folder_around_a_hidden_one_is_allowed_entry_by_entry() {
        let root = tempfile::tempdir().unwrap();
        let path = |name: &str| root.path().join(name);
        for name in ["data/run", "other/a", "other/b", "own"] {
            create_dir_all(path(name)).unwrap();
        }
        let hidden = [path("data"), path("other/b")];
        let mut allowed = without_hidden(root.path(), &hidden);
        allowed.sort();
        assert_eq!(allowed, [path("other/a"), path("own")]);
        assert_eq!(without_hidden(&path("own"), &hidden), [path("own")]);
        assert_eq!(without_hidden(&path("data/run"), &hidden), [path("data/run")]);
    }
}
