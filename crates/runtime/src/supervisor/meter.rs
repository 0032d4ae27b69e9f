//! Measures a process tree against its limits: processes, threads, memory, disk.
//!
//! Invariant: each kind of measuring takes at most one part in `PAUSE_PER_MEASURE` of a processor. A limit that is
//! exceeded is named with its key in the configuration.

use super::held::{self, Devices, Held};
use super::job::Job;
use super::tree::{self, ProcessStat};
use super::usage::{Count, DEPTH_MAX, Progress, Usage};
use rustix::process::Pid;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Measuring may take one part in this many of a processor.
const PAUSE_PER_MEASURE: u32 = 40;
/// Open descriptors of the whole tree: reading them is what limits how fast memory behind them is seen.
const DESCRIPTORS_MAX: usize = 32_768;
/// For the folders, in each measure.
const COUNT_SLICE: Duration = Duration::from_millis(2);
/// Between two counts of the folders: with the slice it bounds how long a small folder can exceed its quota.
const COUNT_PAUSE: Duration = Duration::from_millis(200);
/// The same for a tree that used no processor time: one call can reserve much space in no time.
const COUNT_PAUSE_IDLE: Duration = Duration::from_secs(2);
/// Measures in a row after which a process that cannot be measured is stopped: one that ends looks the same.
const UNSEEN_MAX: u32 = 3;
const MIB: u64 = 1024 * 1024;

/// What is known of a tree.
pub(super) struct Meter {
    folders: Vec<PathBuf>,
    devices: Devices,
    held: Held,
    held_again: Instant,
    unseen: u32,
    count: Option<Count>,
    usage: Usage,
    count_again: Instant,
    /// Processor time of the tree when its folders were counted last.
    counted_at: Option<u64>,
    /// Whether the descriptors of the tree can be read.
    sees_descriptors: bool,
    /// How long the last look at the processes took.
    pub(super) looked_for: Duration,
}

impl Meter {
    pub(super) fn new(job: &Job, folders: Vec<PathBuf>, sees_descriptors: bool) -> Self {
        let now = Instant::now();
        let own = Some(job.dir.clone()).filter(|dir| job.owns_dir && !dir.as_os_str().is_empty());
        Self {
            // Counted from the last on: the own folder may be large, and must not delay the others.
            folders: own.into_iter().chain(folders).chain(job.home.clone()).collect(),
            devices: Devices::default(),
            held: Held::default(),
            held_again: now,
            unseen: 0,
            count: None,
            usage: Usage::default(),
            count_again: now + COUNT_PAUSE,
            counted_at: None,
            sees_descriptors,
            looked_for: Duration::ZERO,
        }
    }

    /// The limit that the tree exceeds, as a clause about it.
    pub(super) fn exceeded(&mut self, job: &Job) -> Option<String> {
        let began = Instant::now();
        let Some(tree) = tree::descendants_within(job.processes as usize) else {
            return Some(stopped(
                &format!("it had more than {} processes", job.processes),
                "processes",
            ));
        };
        let tree: Vec<Pid> = tree.into_iter().map(tree::living).collect();
        let stats: Vec<ProcessStat> = tree.iter().filter_map(|pid| tree::stat(*pid)).collect();
        self.looked_for = began.elapsed();
        let threads: u64 = stats.iter().map(|stat| stat.threads).sum();
        if threads > job.threads {
            return Some(stopped(&format!("it had more than {} threads", job.threads), "threads"));
        }
        self.exceeded_memory(job, &tree, &stats).or_else(|| self.exceeded_disk(job, &stats))
    }

    fn exceeded_memory(
        &mut self,
        job: &Job,
        tree: &[Pid],
        stats: &[ProcessStat],
    ) -> Option<String> {
        let now = Instant::now();
        if self.sees_descriptors && now >= self.held_again {
            self.held = self.devices.held_by(tree, DESCRIPTORS_MAX);
            self.held_again = Instant::now() + now.elapsed() * PAUSE_PER_MEASURE;
            if self.held.descriptors > DESCRIPTORS_MAX {
                let clause = format!("was stopped: it had more than {DESCRIPTORS_MAX} open files");
                return Some(clause);
            }
            self.unseen = if self.has_hidden() { self.unseen + 1 } else { 0 };
            if self.unseen >= UNSEEN_MAX {
                let clause = "was stopped: one of its processes hides its open files, so its memory \
                              cannot be measured";
                return Some(clause.to_owned());
            }
        }
        let resident: u64 = stats.iter().map(|stat| stat.resident_bytes).sum();
        // What is mapped and open counts twice here: enough to know that it is little.
        let most = resident + self.held.memory_bytes();
        let tables: u64 = tree.iter().map(|pid| tree::page_table_bytes(*pid)).sum();
        let is_over = |bytes: u64| bytes + tables > job.memory_mb.saturating_mul(MIB);
        (is_over(most) && is_over(self.exact_bytes(tree))).then(|| out_of_memory(job))
    }

    /// Whether a living process does not show its descriptors. Looks again: it may have ended since.
    fn has_hidden(&self) -> bool {
        self.held.unseen.iter().any(|pid| tree::stat(*pid).is_some_and(|stat| !stat.has_ended))
    }

    /// What the tree has in memory: shared pages once, and files without a name whether mapped or not.
    fn exact_bytes(&self, tree: &[Pid]) -> u64 {
        let (mut all, mut of_held) = (0, 0);
        for pid in tree {
            let share = held::proportional_bytes(*pid, &self.held);
            let resident = || tree::stat(*pid).map_or(0, |stat| stat.resident_bytes);
            let (bytes, mapped) = share.unwrap_or_else(|| (resident(), 0));
            all += bytes;
            of_held += mapped;
        }
        all + self.held.memory_bytes().saturating_sub(of_held)
    }

    fn exceeded_disk(&mut self, job: &Job, stats: &[ProcessStat]) -> Option<String> {
        let ticks: u64 = stats.iter().map(|stat| stat.cpu_ticks).sum();
        if self.count.is_none() && Instant::now() >= self.count_again {
            // A tree that did nothing wrote little.
            let is_idle =
                self.counted_at == Some(ticks) && self.count_again.elapsed() < COUNT_PAUSE_IDLE;
            self.count = (!is_idle).then(|| Count::of(self.folders.clone()));
            self.counted_at = Some(ticks);
        }
        if let Some(count) = &mut self.count {
            let (usage, progress) = count.proceed(COUNT_SLICE);
            // What was counted so far may be too much already.
            self.usage = Usage {
                bytes: self.usage.bytes.max(usage.bytes),
                files: self.usage.files.max(usage.files),
                is_too_deep: usage.is_too_deep,
            };
            if progress == Progress::Complete {
                self.usage = usage;
                self.count = None;
                self.count_again = Instant::now() + COUNT_PAUSE;
            }
        }
        let bytes = self.usage.bytes + self.held.disk_bytes;
        if bytes > job.disk_mb.saturating_mul(MIB) {
            let clause = format!("its folders have more than {} MB", job.disk_mb);
            return Some(stopped(&clause, "disk_mb"));
        }
        if self.usage.files > job.files {
            let clause = format!("its folders have more than {} files", job.files);
            return Some(stopped(&clause, "files"));
        }
        self.usage
            .is_too_deep
            .then(|| format!("was stopped: its folders are nested more than {DEPTH_MAX} deep"))
    }
}

pub(super) fn out_of_memory(job: &Job) -> String {
    stopped(&format!("it used more than {} MB of memory", job.memory_mb), "memory_mb")
}

fn stopped(clause: &str, key: &str) -> String {
    format!("was stopped: {clause} (`{key}`)")
}
