//! Decides what a process may use: its program, folders, environment and user.
//!
//! Invariant: a hidden folder or file is never open. In a view of the file system of its own it is covered;
//! without one, the entries around it are open one by one instead of the folder.

use super::claim::{self, Given, Writable};
use super::domain::{Domain, Sandbox, Without};
use super::job::{Job, Network};
use super::landlock::{self, Version};
use super::user::{Chosen, InView, Needed};
use super::view::{self, View};
use super::{home, installation, interpreter, system, user};
use rustix::fs::Access;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The private folder in which a program without a folder of its own runs.
const HOME: &str = "home";
const TEMPORARY: &str = "tmp";
/// How a process sees the file system.
pub(super) enum Files {
    /// In a view of its own.
    View,
    /// As it is, because of this.
    Shared(String),
}

/// Everything the second stage needs to become the program.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Plan {
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
    pub(super) dir: PathBuf,
    pub(super) env: BTreeMap<String, String>,
    pub(super) sandbox: Sandbox,
    pub(super) network: Network,
    /// Whether the supervisor sees the descriptors of the process, and with them the memory they hold.
    pub(super) counts_held: bool,
    /// The user that the second stage becomes, if it is another one.
    pub(super) user: Option<u32>,
    pub(super) view: Option<View>,
    /// Whether `/proc` is to show the processes of the tree.
    pub(super) own_processes: bool,
    /// Whether its sessions are to be apart from each other.
    pub(super) sessions_apart: bool,
    /// The file to enter its cgroup with.
    pub(super) cgroup: Option<PathBuf>,
    pub(super) memory_mb: u64,
    /// The process that this one must not outlive.
    pub(super) supervisor: i32,
    pub(super) probe: bool,
    pub(super) without: Without,
    pub(super) read: BTreeSet<PathBuf>,
    pub(super) write: BTreeSet<PathBuf>,
    /// Guarantees that are known to be missing.
    pub(super) missing: Vec<String>,
    #[serde(skip)]
    pub(super) warnings: Vec<String>,
    /// Contains its temporary folder, and its home unless it keeps one.
    #[serde(skip)]
    pub(super) private: PathBuf,
    /// What the second stage inherits.
    #[serde(skip)]
    chosen: Chosen,
}

/// What is open to a process, resolved.
#[derive(Default)]
struct Open {
    /// Readable for every program.
    system: BTreeSet<PathBuf>,
    /// The program and what belongs to it.
    program: BTreeSet<PathBuf>,
    /// Files named in its command.
    scripts: Vec<PathBuf>,
    /// Its own folder if it may only read there.
    dir: Option<PathBuf>,
    write: BTreeSet<PathBuf>,
    hidden: Vec<PathBuf>,
    /// Every path as it is written.
    named: BTreeSet<PathBuf>,
    writable: Writable,
}

pub(super) fn plan(job: &Job, files: Files) -> Result<Plan, String> {
    let has_dir = !job.dir.as_os_str().is_empty();
    let (dir, writable, given) = folders(job)?;
    let (command, args) = job.command.split_first().ok_or("the runner has no command")?;
    let inherited = std::env::var_os("PATH").and_then(|path| path.into_string().ok());
    let search = job.env.get("PATH").cloned().or(inherited).unwrap_or_else(|| PATH.to_owned());
    let hidden: Vec<PathBuf> = job.hidden.iter().map(|path| resolve(path)).collect();
    let place =
        interpreter::Place { dir: &dir, path: &search, writable: &writable, hidden: &hidden };
    let found = interpreter::find(command, &place)?;
    let mut warnings = Vec::new();
    let is_on = job.sandbox != Sandbox::Off;
    let mut open = Open::default();
    if is_on {
        open = Open { hidden, writable, ..Open::default() };
        warnings.extend(found.warnings.iter().cloned());
        open.add_command(job, &dir, &found);
        open.add_given(job, &dir, given, &mut warnings)?;
    }
    let in_view = match files {
        Files::View if is_on => InView::Yes,
        Files::View | Files::Shared(_) => InView::No,
    };
    let needed = needed(&open);
    let chosen = match in_view {
        _ if !is_on => Chosen::default(),
        InView::Yes => user::choose_in_view(job, &needed),
        InView::No => user::choose(job, &needed),
    };
    let private = user::private_folder(job, &chosen, in_view)
        .map_err(|error| format!("cannot create `{}`: {error}", job.private.display()))?;
    let private = resolve(&private);
    let home = home(job, &chosen, in_view)?.unwrap_or_else(|| private.join(HOME));
    let dir = if has_dir { dir } else { home.clone() };
    let mut plan = Plan {
        args: args.to_vec(),
        env: environment(job, &found.search, &private, &home)?,
        sandbox: job.sandbox,
        network: job.network.clone(),
        counts_held: !is_this_program(&found.program) && (chosen.user.is_none() || may_trace()),
        program: found.program,
        private: private.clone(),
        user: chosen.user,
        view: None,
        own_processes: job.own_processes,
        sessions_apart: job.sessions_apart && is_on,
        cgroup: None,
        memory_mb: job.memory_mb,
        supervisor: rustix::process::getpid().as_raw_pid(),
        probe: job.probe,
        without: job.without,
        read: BTreeSet::new(),
        write: BTreeSet::new(),
        missing: chosen.missing.iter().cloned().collect(),
        warnings,
        dir,
        chosen,
    };
    if is_on {
        open.write.extend([private.clone(), resolve(&home)]);
        open.apply(&mut plan, files, private);
    }
    Ok(plan)
}

/// The folder of a process, resolved, and what it can write.
fn folders(job: &Job) -> Result<(PathBuf, Writable, Vec<Given>), String> {
    let has_dir = !job.dir.as_os_str().is_empty();
    let dir = if has_dir { job.dir.as_path() } else { Path::new("/") };
    let cannot_enter = |why: &dyn std::fmt::Display| {
        format!("cannot enter the runner's folder `{}`: {why}", job.dir.display())
    };
    let dir = claim::resolve(&claim::absolute(dir)).map_err(|error| cannot_enter(&error))?;
    let (writable, given) = Writable::of(job, &dir).ok_or_else(|| {
        cannot_enter(&"the process can write around it, and it links out of that")
    })?;
    Ok((dir.path, writable, given))
}

/// For `doctor`: the Landlock version that the kernel enforces, e.g. `landlock:7`, or `unavailable`.
pub(crate) fn isolation_available() -> String {
    match landlock::available(Without::default()) {
        Version(0) => "unavailable".to_owned(),
        Version(version) => format!("landlock:{version}"),
    }
}

/// Whether a program is the host's own, which hides its credential from other processes of its user, and with it its
/// descriptors.
fn is_this_program(program: &Path) -> bool {
    std::env::current_exe().is_ok_and(|this| resolve(&this) == resolve(program))
}

/// Whether this process sees into processes of other users.
fn may_trace() -> bool {
    let own = rustix::thread::capabilities(None);
    own.is_ok_and(|own| own.effective.contains(rustix::thread::CapabilitySet::SYS_PTRACE))
}

/// What the user of the process must be able to use.
fn needed(open: &Open) -> Vec<Needed> {
    let scripts = open.scripts.iter().map(|path| (path.clone(), Access::READ_OK));
    let is_system = |path: &&PathBuf| open.system.iter().any(|system| path.starts_with(system));
    let programs = open.program.iter().filter(|path| !is_system(path));
    let programs = programs.chain(&open.dir).map(|path| (path.clone(), Access::EXEC_OK));
    let all = Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK;
    let existing = open.write.iter().filter(|path| path.exists());
    let written = existing.map(|path| {
        let access = if path.is_dir() { all } else { Access::READ_OK | Access::WRITE_OK };
        (path.clone(), access)
    });
    written.chain(programs).chain(scripts).collect()
}

/// The home of the program, if it keeps one and its user can reach it.
fn home(job: &Job, chosen: &Chosen, in_view: InView) -> Result<Option<PathBuf>, String> {
    let Some(home) = &job.home else { return Ok(None) };
    let own = rustix::process::getuid().as_raw();
    home::keep(home, chosen.user.unwrap_or(own))
        .map_err(|error| format!("cannot create `{}`: {error}", home.display()))?;
    let home = resolve(home);
    let is_reachable = match (in_view, chosen.user) {
        (InView::No, Some(user)) => user::as_user(user, || home.is_dir()).unwrap_or(false),
        _ => true,
    };
    Ok(is_reachable.then_some(home))
}

impl Open {
    /// What every program may read, and what belongs to the command.
    fn add_command(&mut self, job: &Job, dir: &Path, found: &interpreter::Program) {
        let is_open = |path: &PathBuf| !self.hidden.contains(path);
        let system = system::paths();
        self.system = system.iter().map(|path| resolve(path)).filter(is_open).collect();
        self.program = found.read.iter().filter(|path| is_open(path)).cloned().collect();
        self.named.extend(system.into_iter().chain(found.named.iter().cloned()));
        for word in &job.command[1..] {
            let named = dir.join(word);
            let Ok(script) = claim::resolve(&named) else { continue };
            let is_own = self.writable.contains(&script.path);
            if !is_own && self.writable.claims(&script) {
                continue;
            }
            self.named.insert(named);
            if !script.path.is_file() {
                continue;
            }
            // What is in a folder that it can write is there already.
            let folder = script_folder(&script.path);
            if !is_own && !self.hidden.contains(&folder) {
                self.program.insert(folder);
            }
            self.scripts.push(script.path);
        }
    }

    /// What the operator gave it.
    fn add_given(
        &mut self,
        job: &Job,
        dir: &Path,
        given: Vec<Given>,
        warnings: &mut Vec<String>,
    ) -> Result<(), String> {
        for named in &job.read {
            let Ok(found) = claim::resolve(&claim::absolute(named)) else { continue };
            if !self.hidden.contains(&found.path) && !self.writable.claims(&found) {
                self.named.insert(named.clone());
                self.program.insert(found.path);
            }
        }
        let own = Given { named: job.dir.clone(), exists: true, path: Some(dir.to_owned()) };
        let own = Some(own).filter(|own| !own.named.as_os_str().is_empty());
        for Given { named, exists, path } in own.into_iter().chain(given) {
            let Some(path) = path else {
                let why = match exists {
                    true => {
                        "is inside a folder that the process can write, and links out of it: it stays closed"
                    }
                    false => "in `paths` does not exist",
                };
                warnings.push(format!("`{}` {why}", named.display()));
                continue;
            };
            if self.hidden.contains(&path) {
                return Err(format!(
                    "`{}` is kept from runners: give this one a folder of its own",
                    path.display()
                ));
            }
            self.named.insert(named);
            match path == dir && !job.owns_dir {
                true => self.dir = Some(path),
                false => drop(self.write.insert(path)),
            }
        }
        Ok(())
    }

    /// Opens all of it, in a view or entry by entry.
    fn apply(self, plan: &mut Plan, files: Files, private: PathBuf) {
        let read = || self.system.iter().chain(&self.program).chain(&self.dir);
        let why = match files {
            Files::View => {
                let mut open: BTreeMap<PathBuf, (view::Access, Option<i32>)> = BTreeMap::new();
                let read = read().map(|path| (path, view::Access::Read));
                let write = self.write.iter().map(|path| (path, view::Access::Write));
                for (path, access) in read.chain(write).filter(|(path, _)| path.exists()) {
                    let map = plan.chosen.maps.get(path).copied();
                    open.insert(path.clone(), (access, map));
                }
                let hidden: Vec<PathBuf> =
                    self.hidden.iter().filter(|path| path.exists()).cloned().collect();
                let mut view =
                    View::new(private.clone(), &open, &hidden, &self.named, &self.writable);
                view.temporary(&private.join(TEMPORARY));
                if plan.own_processes {
                    // A session writes there which user it is. For root the settings of the kernel are there too.
                    let is_root = plan.user.unwrap_or(rustix::process::getuid().as_raw()) == 0;
                    let writable = plan.sessions_apart && !is_root;
                    view.entries.insert("/proc".into(), view::Entry::Processes { writable });
                }
                plan.view = Some(view);
                plan.read.extend(self.system.into_iter().chain(self.program).chain(self.dir));
                plan.write.extend(self.write);
                return;
            }
            Files::Shared(why) => why,
        };
        plan.missing.push(format!(
            "no file view of its own: chmod, chown, utime, extended attributes, inotify and Unix sockets \
             are refused everywhere instead, since {why}"
        ));
        plan.read.extend(read().flat_map(|path| without_hidden(path, &self.hidden)));
        plan.write.extend(self.write.iter().flat_map(|path| without_hidden(path, &self.hidden)));
        let contains_hidden =
            |path: &&PathBuf| self.hidden.iter().any(|secret| secret.starts_with(path));
        for path in self.write.iter().chain(&self.dir).filter(contains_hidden) {
            plan.warnings.push(format!(
                "`{}` contains what is kept from runners: it cannot be listed or added to as a whole, only its present entries are open; give this runner a folder of its own",
                path.display()
            ));
        }
    }
}

impl Plan {
    /// The part of a plan that Landlock enforces, for a session.
    pub(super) fn of_session(
        read: BTreeSet<PathBuf>,
        write: BTreeSet<PathBuf>,
        network: Network,
    ) -> Self {
        Self { read, write, network, own_processes: true, ..Self::default() }
    }

    /// The domain without a sandbox, if there is to be none.
    pub(super) fn unconfined(&self) -> Option<Domain> {
        (self.sandbox == Sandbox::Off).then(Domain::off)
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

/// The folder of a script, or the script alone where the folder is a common one.
fn script_folder(file: &Path) -> PathBuf {
    let folder = file.parent().filter(|folder| !installation::is_broad(folder));
    folder.unwrap_or(file).to_owned()
}

/// The path itself, or the entries around what is hidden beneath it.
pub(super) fn without_hidden(path: &Path, hidden: &[PathBuf]) -> Vec<PathBuf> {
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
