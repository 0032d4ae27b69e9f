//! Which lanes are served, wait for a slot, or wait for their next attempt; pure.
//!
//! Invariant: one task serves a target at a time, and a bounded number of tasks a surface; a lane that waits for
//! its next attempt holds no slot.

use greenroom_store::reads::deliveries::Lane;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use tokio::time::Instant;

/// Targets of one surface that are served at the same time, so that a surface that is down delays no other.
pub(super) const LANES_PER_SURFACE: usize = 64;
/// Lanes in memory; further ones are read from the outbox once there is room.
pub(super) const LANES_MAX: usize = 100_000;

/// The state of a lane when its task ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Released {
    /// No delivery waits.
    Empty,
    /// The next delivery is tried again at `due`.
    Waiting { due: Instant, pause: Pause },
}

/// Whether a pause may end early.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pause {
    /// Our own backoff: a success of the same surface ends it.
    Backoff,
    /// Requested by the receiver, or the store is unavailable.
    Fixed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    Busy { again: Again },
    Waiting { due: Instant, pause: Pause },
}

/// What arrived while a lane was being served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Again {
    Nothing,
    Work,
    Now,
}

#[derive(Debug)]
struct Entry {
    surface: String,
    state: State,
    /// Its pause was ended early; the next one is not, until an attempt was made on time.
    ended_early: bool,
}

#[derive(Debug, Default)]
struct Surface {
    busy: usize,
    ready: VecDeque<String>,
    /// Lanes whose pause ends with the next success of the surface.
    wake_on_success: BTreeSet<String>,
}

/// All lanes with deliveries that are not settled.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    by_target: HashMap<String, Entry>,
    /// Sorted by name: the same input gives the same order of service.
    surfaces: BTreeMap<String, Surface>,
    due: BTreeSet<(Instant, String)>,
}

impl Lanes {
    /// A lane was read from the outbox.
    pub(super) fn found(&mut self, lane: Lane) {
        match self.by_target.get_mut(&lane.target).map(|entry| &mut entry.state) {
            Some(State::Busy { again }) => *again = Again::Work.max(*again),
            Some(State::Ready | State::Waiting { .. }) => {}
            None => self.add(lane),
        }
    }

    /// A lane has a new delivery. If it waits, it is tried once before it is due.
    pub(super) fn has_work(&mut self, lane: Lane) {
        match self.by_target.get(&lane.target).map(|entry| (entry.state, entry.ended_early)) {
            Some((State::Waiting { pause: Pause::Backoff, .. }, false)) => self.wake(&lane.target),
            _ => self.found(lane),
        }
    }

    /// Ends every pause of a lane.
    pub(super) fn serve_now(&mut self, lane: Lane) {
        match self.by_target.get_mut(&lane.target).map(|entry| &mut entry.state) {
            Some(State::Busy { again }) => *again = Again::Now,
            Some(State::Waiting { .. }) => self.wake(&lane.target),
            Some(State::Ready) => {}
            None => self.add(lane),
        }
    }

    pub(super) fn serve_all_now(&mut self) {
        let waiting: Vec<String> = self.due.iter().map(|(_, target)| target.clone()).collect();
        waiting.iter().for_each(|target| self.wake(target));
    }

    /// A delivery of this lane succeeded: the lanes that wait for its surface are tried.
    pub(super) fn delivered(&mut self, lane: &Lane) {
        if let Some(entry) = self.by_target.get_mut(&lane.target) {
            entry.ended_early = false;
        }
        let Some(surface) = self.surfaces.get_mut(&lane.surface) else { return };
        let wake_on_success = std::mem::take(&mut surface.wake_on_success);
        wake_on_success.iter().for_each(|target| self.wake(target));
    }

    /// The lanes to start serving now.
    pub(super) fn start(&mut self, now: Instant) -> Vec<Lane> {
        while let Some((_, target)) = self.due.first().filter(|(due, _)| *due <= now).cloned() {
            self.wake(&target);
            if let Some(entry) = self.by_target.get_mut(&target) {
                entry.ended_early = false;
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

    /// A lane's task has ended.
    pub(super) fn released(&mut self, target: &str, released: Released) {
        let Some(entry) = self.by_target.get_mut(target) else { return };
        let State::Busy { again } = entry.state else { return };
        let surface = self.surfaces.entry(entry.surface.clone()).or_default();
        surface.busy = surface.busy.saturating_sub(1);
        match (released, again) {
            (Released::Empty, Again::Nothing) => {
                self.by_target.remove(target);
            }
            (Released::Empty, _) | (Released::Waiting { .. }, Again::Now) => {
                entry.state = State::Ready;
                surface.ready.push_back(target.to_owned());
            }
            (Released::Waiting { due, pause }, _) => {
                entry.state = State::Waiting { due, pause };
                self.due.insert((due, target.to_owned()));
                if pause == Pause::Backoff && !entry.ended_early {
                    surface.wake_on_success.insert(target.to_owned());
                }
            }
        }
    }

    /// When the next pause ends.
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
        let entry = Entry { surface: lane.surface, state: State::Ready, ended_early: false };
        self.by_target.insert(lane.target, entry);
    }

    /// Ends the pause of a lane early.
    fn wake(&mut self, target: &str) {
        let Some(entry) = self.by_target.get_mut(target) else { return };
        let State::Waiting { due, .. } = entry.state else { return };
        self.due.remove(&(due, target.to_owned()));
        entry.state = State::Ready;
        entry.ended_early = true;
        let surface = self.surfaces.entry(entry.surface.clone()).or_default();
        surface.wake_on_success.remove(target);
        surface.ready.push_back(target.to_owned());
    }
}

#[cfg(test)]
mod tests;
