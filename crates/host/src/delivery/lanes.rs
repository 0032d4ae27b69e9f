//! Which lanes are served now, which wait for a free slot, and which for the time of their next attempt; pure.
//!
//! Invariant: a target is served by one task at a time, and a surface by a bounded number of them; a lane that
//! waits for its next attempt holds no slot.

use greenroom_store::reads::deliveries::Lane;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use tokio::time::Instant;

/// Targets of one surface that are served at the same time; a surface that is down keeps no other waiting.
pub(super) const LANES_PER_SURFACE: usize = 64;
/// Lanes that are known at the same time; more are found in the outbox once there is room.
pub(super) const LANES_MAX: usize = 100_000;

/// How a lane is left by the task that served it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Left {
    /// Nothing waits for the target.
    Empty,
    /// Its next delivery is tried again at that time.
    Waiting { due: Instant, pause: Pause },
}

/// Whether a pause may end early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    /// It ends when there is a sign that the surface is back.
    Own,
    /// The receiver asked for it, or the store does not answer.
    Firm,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    Busy { again: Again },
    Waiting { due: Instant, pause: Pause },
}

/// What came while a lane was being served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Again {
    Nothing,
    Work,
    Hurry,
}

#[derive(Debug)]
struct Entry {
    surface: String,
    state: State,
    /// Its pause was cut short once; the next one is not, until an attempt was made in its time.
    was_early: bool,
}

#[derive(Debug, Default)]
struct Surface {
    busy: usize,
    ready: VecDeque<String>,
    /// Lanes whose pause ends when the surface takes something.
    hopeful: BTreeSet<String>,
}

/// All lanes with deliveries that are not settled.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    by_target: HashMap<String, Entry>,
    /// By name, so that the same facts give the same order of service.
    surfaces: BTreeMap<String, Surface>,
    due: BTreeSet<(Instant, String)>,
}

impl Lanes {
    /// A lane that was found in the outbox.
    pub(super) fn found(&mut self, lane: Lane) {
        match self.by_target.get_mut(&lane.target).map(|entry| &mut entry.state) {
            Some(State::Busy { again }) => *again = Again::Work.max(*again),
            Some(State::Ready | State::Waiting { .. }) => {}
            None => self.add(lane),
        }
    }

    /// A lane has a new delivery. If it waits, it is tried once before its time: somebody is active there.
    pub(super) fn has_work(&mut self, lane: Lane) {
        match self.by_target.get(&lane.target).map(|entry| (entry.state, entry.was_early)) {
            Some((State::Waiting { pause: Pause::Own, .. }, false)) => self.wake(&lane.target),
            _ => self.found(lane),
        }
    }

    /// A lane is to be served now.
    pub(super) fn hurry(&mut self, lane: Lane) {
        match self.by_target.get_mut(&lane.target).map(|entry| &mut entry.state) {
            Some(State::Busy { again }) => *again = Again::Hurry,
            Some(State::Waiting { .. }) => self.wake(&lane.target),
            Some(State::Ready) => {}
            None => self.add(lane),
        }
    }

    pub(super) fn hurry_all(&mut self) {
        let waiting: Vec<String> = self.due.iter().map(|(_, target)| target.clone()).collect();
        waiting.iter().for_each(|target| self.wake(target));
    }

    /// A delivery of this lane was taken: the others that wait for its surface are tried.
    pub(super) fn delivered(&mut self, lane: &Lane) {
        if let Some(entry) = self.by_target.get_mut(&lane.target) {
            entry.was_early = false;
        }
        let Some(surface) = self.surfaces.get_mut(&lane.surface) else { return };
        let hopeful = std::mem::take(&mut surface.hopeful);
        hopeful.iter().for_each(|target| self.wake(target));
    }

    /// The lanes to serve from now on.
    pub(super) fn start(&mut self, now: Instant) -> Vec<Lane> {
        while let Some((_, target)) = self.due.first().filter(|(due, _)| *due <= now).cloned() {
            self.wake(&target);
            if let Some(entry) = self.by_target.get_mut(&target) {
                entry.was_early = false;
            }
        }
        let mut started = Vec::new();
        for (name, surface) in &mut self.surfaces {
            while surface.busy < LANES_PER_SURFACE {
                let Some(target) = surface.ready.pop_front() else { break };
                if let Some(entry) = self.by_target.get_mut(&target) {
                    entry.state = State::Busy { again: Again::Nothing };
                    surface.busy += 1;
                    started.push(Lane { surface: name.clone(), target });
                }
            }
        }
        started
    }

    /// A lane is no longer served.
    pub(super) fn left(&mut self, target: &str, left: Left) {
        let Some(entry) = self.by_target.get_mut(target) else { return };
        let State::Busy { again } = entry.state else { return };
        let surface = self.surfaces.entry(entry.surface.clone()).or_default();
        surface.busy = surface.busy.saturating_sub(1);
        match (left, again) {
            (Left::Empty, Again::Nothing) => {
                self.by_target.remove(target);
            }
            (Left::Empty, _) | (Left::Waiting { .. }, Again::Hurry) => {
                entry.state = State::Ready;
                surface.ready.push_back(target.to_owned());
            }
            (Left::Waiting { due, pause }, _) => {
                entry.state = State::Waiting { due, pause };
                self.due.insert((due, target.to_owned()));
                if pause == Pause::Own && !entry.was_early {
                    surface.hopeful.insert(target.to_owned());
                }
            }
        }
    }

    /// When the next pause is over.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.due.first().map(|(due, _)| *due)
    }

    pub(super) fn is_full(&self) -> bool {
        self.by_target.len() >= LANES_MAX
    }

    /// Lanes that wait for their next attempt.
    pub(super) fn waiting(&self) -> usize {
        self.due.len()
    }

    fn add(&mut self, lane: Lane) {
        if self.is_full() {
            return;
        }
        let surface = self.surfaces.entry(lane.surface.clone()).or_default();
        surface.ready.push_back(lane.target.clone());
        let entry = Entry { surface: lane.surface, state: State::Ready, was_early: false };
        self.by_target.insert(lane.target, entry);
    }

    /// Ends the pause of a lane, early unless the caller says otherwise.
    fn wake(&mut self, target: &str) {
        let Some(entry) = self.by_target.get_mut(target) else { return };
        let State::Waiting { due, .. } = entry.state else { return };
        self.due.remove(&(due, target.to_owned()));
        entry.state = State::Ready;
        entry.was_early = true;
        let surface = self.surfaces.entry(entry.surface.clone()).or_default();
        surface.hopeful.remove(target);
        surface.ready.push_back(target.to_owned());
    }
}

#[cfg(test)]
mod tests;
