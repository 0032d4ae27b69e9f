//! Random commands against a model written by hand: lanes, terminals and counters agree after every step.
//!
//! Invariant: a sequence is given by its seed alone; a failure prints it. `GREENROOM_SEED=n` plays one again.

use super::support::*;
use greenroom_protocol::RunStatus;
use greenroom_store::commands::{Accepted, Applied, CancelQueued, CancelRequest};
use greenroom_store::types::Queue;
use greenroom_store::{Store, reads};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

const STEPS: usize = 60;
const TIME_MAX: Duration = Duration::from_secs(2);
const LANE_MAX: usize = 3;
const CONVERSATIONS: u64 = 3;

/// SplitMix64: small, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % sides
    }
}

#[derive(Debug, Clone, PartialEq)]
struct ModelRun {
    place: i64,
    queue: Queue,
    status: RunStatus,
    marked: bool,
}

/// One conversation: its runs in the order of their events.
#[derive(Debug, Default)]
struct Conversation {
    events: i64,
    items: i64,
    runs: BTreeMap<String, ModelRun>,
}

impl Conversation {
    fn with(&self, status: RunStatus) -> impl Iterator<Item = (&String, &ModelRun)> {
        self.runs.iter().filter(move |(_, run)| run.status == status)
    }

    /// None: the lane is full.
    fn accept(&mut self, run_id: &str, queue: Queue) -> Option<RunStatus> {
        let serial_runs =
            self.with(RunStatus::Running).any(|(_, run)| run.queue != Queue::Parallel);
        let any_runs = self.with(RunStatus::Running).next().is_some();
        let waiting = self.with(RunStatus::Queued).count();
        let waits = match queue {
            Queue::Parallel => false,
            Queue::Replace => any_runs,
            Queue::Serial | Queue::Steer => serial_runs || waiting > 0,
        };
        if queue == Queue::Serial && waits && waiting >= LANE_MAX {
            return None;
        }
        if queue == Queue::Replace {
            for run in self.runs.values_mut() {
                match run.status {
                    RunStatus::Queued => run.status = RunStatus::Cancelled,
                    RunStatus::Running => run.marked = true,
                    _ => {}
                }
            }
        }
        self.events += 1;
        self.items += 1;
        let status = if waits { RunStatus::Queued } else { RunStatus::Running };
        let run = ModelRun { place: self.events, queue, status, marked: false };
        self.runs.insert(run_id.to_owned(), run);
        Some(status)
    }

    /// The oldest queued run starts if nothing it waits for still runs.
    fn start_next(&mut self) -> Option<String> {
        let (next, place, queue) = self
            .with(RunStatus::Queued)
            .min_by_key(|(_, run)| run.place)
            .map(|(id, run)| (id.clone(), run.place, run.queue))?;
        let blocked = self.with(RunStatus::Running).any(|(_, run)| {
            run.queue != Queue::Parallel || (queue == Queue::Replace && run.place < place)
        });
        if blocked {
            return None;
        }
        self.set(&next, RunStatus::Running);
        Some(next)
    }

    fn set(&mut self, run_id: &str, status: RunStatus) {
        self.runs.get_mut(run_id).unwrap().status = status;
    }
}

struct Play {
    dice: Dice,
    seed: u64,
    accepted: usize,
    model: BTreeMap<String, Conversation>,
}

impl Play {
    fn new(seed: u64) -> Play {
        Play { dice: Dice(seed), seed, accepted: 0, model: BTreeMap::new() }
    }

    /// Names carry the seed: several plays share a database.
    async fn step(&mut self, store: &Store) {
        let conversation = format!("s{}-c{}", self.seed, self.dice.roll(CONVERSATIONS));
        match self.dice.roll(10) {
            0..=4 => self.accept(store, &conversation).await,
            5..=7 => self.end(store, &conversation).await,
            _ => self.cancel(store, &conversation).await,
        }
        self.compare(store, &conversation).await;
    }

    async fn accept(&mut self, store: &Store, conversation: &str) {
        let queue = [Queue::Serial, Queue::Serial, Queue::Serial, Queue::Parallel, Queue::Replace]
            [usize::try_from(self.dice.roll(5)).unwrap()];
        self.accepted += 1;
        let name = format!("s{}-{:04}", self.seed, self.accepted);
        let command = with_lane_max(event(conversation, &name), LANE_MAX.try_into().unwrap());
        let model = self.model.entry(conversation.to_owned()).or_default();
        let expected = model.accept(&format!("run-{name}"), queue);
        match store.commit(with_queue(command, queue)).await.unwrap() {
            Accepted::New { run: Some(run), .. } => assert_eq!(Some(run.status), expected),
            Accepted::LaneFull => assert_eq!(expected, None),
            other => panic!("{other:?}"),
        }
    }

    fn pick(&mut self, conversation: &str) -> Option<(String, RunStatus)> {
        let runs = &self.model.get(conversation)?.runs;
        let index = usize::try_from(self.dice.roll(runs.len().max(1) as u64)).unwrap();
        runs.iter().nth(index).map(|(id, run)| (id.clone(), run.status))
    }

    /// Ends a run that runs; on any other run the same command must be stale.
    async fn end(&mut self, store: &Store, conversation: &str) {
        let Some((run_id, status)) = self.pick(conversation) else { return };
        let row = run(store, &run_id).await;
        let answer = store.commit(completed(&row, row.last_seq + 1)).await.unwrap();
        if status != RunStatus::Running {
            assert_eq!(answer, Applied::Stale, "{run_id}");
            return;
        }
        let model = self.model.get_mut(conversation).unwrap();
        model.set(&run_id, RunStatus::Completed);
        let Applied::Done { next, .. } = answer else { panic!("{run_id} was stale") };
        assert_eq!(next.map(|run| run.run_id), model.start_next());
    }

    async fn cancel(&mut self, store: &Store, conversation: &str) {
        let Some((run_id, status)) = self.pick(conversation) else { return };
        let (workspace_id, id) = (W.to_owned(), run_id.clone());
        let command = CancelQueued { workspace_id, run_id: id, epoch_now: 1, now_ms: 3_000 };
        let model = self.model.get_mut(conversation).unwrap();
        match (store.commit(command).await.unwrap(), status) {
            (CancelRequest::Cancelled { next, .. }, RunStatus::Queued) => {
                model.set(&run_id, RunStatus::Cancelled);
                assert_eq!(next.map(|run| run.run_id), model.start_next());
            }
            (CancelRequest::Running, RunStatus::Running) => {
                model.runs.get_mut(&run_id).unwrap().marked = true;
            }
            (CancelRequest::Ended(found), expected) => assert_eq!(found, expected),
            (answer, expected) => panic!("{run_id}: {answer:?}, expected {expected:?}"),
        }
    }

    async fn compare(&self, store: &Store, conversation: &str) {
        let Some(model) = self.model.get(conversation) else { return };
        let id = conversation.to_owned();
        let read = move |tx: &mut dyn greenroom_store::sql::Tx| {
            let conversation_id = Some(id.clone());
            let filter = reads::runs::RunFilter { conversation_id, ..Default::default() };
            let runs = reads::runs::page(tx, W, &filter, None, 1_000)?;
            Ok((reads::conversations::get(tx, W, &id)?, runs))
        };
        let (row, runs) = store.read(read).await.unwrap();
        let row = row.map_or((0, 0), |row| (row.event_seq, row.transcript_seq));
        assert_eq!(row, (model.events, model.items), "counters of {conversation}");
        let found: BTreeMap<_, _> = runs
            .into_iter()
            .map(|run| {
                let (place, marked) = (run.conversation_seq.unwrap(), run.cancel_requested);
                (run.run_id, ModelRun { place, queue: run.queue, status: run.status, marked })
            })
            .collect();
        assert_eq!(found, model.runs, "runs of {conversation}");
    }
}

/// Prints the seed if the play does not come to its end.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("play it again with GREENROOM_SEED={}", self.0);
        }
    }
}

pub(crate) async fn random_commands_agree_with_the_model(ground: Ground) {
    let store = ground.open();
    #[expect(clippy::disallowed_methods, reason = "a seed is played again by hand")]
    let asked = std::env::var("GREENROOM_SEED").ok().and_then(|seed| seed.parse::<u64>().ok());
    let moment = std::time::UNIX_EPOCH.elapsed().unwrap();
    let first = asked.unwrap_or(u64::from(moment.subsec_nanos()) + moment.as_secs() * 1_000_003);
    let started = Instant::now();
    for seed in first.. {
        let _seed = Seed(seed);
        let mut play = Play::new(seed);
        for _ in 0..STEPS {
            play.step(&store).await;
        }
        if asked.is_some() || started.elapsed() > TIME_MAX {
            break;
        }
    }
}
