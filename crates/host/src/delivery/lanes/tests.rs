//! Slots, order, pauses, and pauses that end early.

use super::*;
use std::time::Duration;

fn lane(surface: &str, target: usize) -> Lane {
    Lane { surface: surface.to_owned(), target: format!("{surface} {target}") }
}

fn waiting(due: Instant) -> Released {
    Released::Waiting { due, pause: Pause::Backoff }
}

fn targets(lanes: Vec<Lane>) -> Vec<String> {
    lanes.into_iter().map(|lane| lane.target).collect()
}

/// A lane whose attempt failed and that waits until `due`.
fn failed(lanes: &mut Lanes, lane: Lane, now: Instant, due: Instant) {
    let target = lane.target.clone();
    lanes.found(lane);
    assert_eq!(targets(lanes.start(now)), [target.as_str()]);
    lanes.released(&target, waiting(due));
}

#[test]
fn a_surface_with_many_targets_keeps_no_other_waiting() {
    let now = Instant::now();
    let mut lanes = Lanes::default();
    (0..1000).for_each(|target| lanes.found(lane("down", target)));
    assert_eq!(lanes.start(now).len(), LANES_PER_SURFACE);
    lanes.found(lane("up", 0));
    assert_eq!(targets(lanes.start(now)), ["up 0"]);
    lanes.found(lane("up", 0));
    assert_eq!(lanes.start(now), [], "one at a time per target");
    lanes.released("down 0", Released::Empty);
    assert_eq!(targets(lanes.start(now)), ["down 64"]);
}

#[test]
fn a_lane_that_waits_holds_no_slot() {
    let now = Instant::now();
    let later = now + Duration::from_secs(900);
    let mut lanes = Lanes::default();
    (0..1000).for_each(|target| lanes.found(lane("down", target)));
    let mut failed = 0;
    loop {
        let started = lanes.start(now);
        if started.is_empty() {
            break;
        }
        failed += started.len();
        started.iter().for_each(|lane| lanes.released(&lane.target, waiting(later)));
    }
    assert_eq!((failed, lanes.waiting()), (1000, 1000), "each was tried once");
    assert_eq!(lanes.next_due(), Some(later));
    assert_eq!(lanes.start(later).len(), LANES_PER_SURFACE);
}

#[test]
fn one_success_wakes_the_other_lanes_of_its_surface_once() {
    let now = Instant::now();
    let later = now + Duration::from_secs(900);
    let mut lanes = Lanes::default();
    failed(&mut lanes, lane("hook", 1), now, later);
    failed(&mut lanes, lane("hook", 2), now, later);
    failed(&mut lanes, lane("other", 3), now, later);
    assert_eq!(lanes.start(now), []);
    lanes.delivered(&lane("hook", 9));
    assert_eq!(targets(lanes.start(now)), ["hook 1", "hook 2"]);
    lanes.released("hook 1", waiting(later));
    lanes.delivered(&lane("hook", 9));
    assert_eq!(lanes.start(now), [], "failed before: not woken again in this pause");
    assert_eq!(targets(lanes.start(later)), ["hook 1", "other 3"].map(str::to_owned).to_vec());
    lanes.released("hook 1", waiting(later + Duration::from_secs(900)));
    lanes.delivered(&lane("hook", 9));
    assert_eq!(targets(lanes.start(later)), ["hook 1"], "it was failed on time since");
}

#[test]
fn a_pause_that_the_receiver_asked_for_is_kept() {
    let now = Instant::now();
    let due = now + Duration::from_secs(60);
    let mut lanes = Lanes::default();
    lanes.found(lane("hook", 1));
    lanes.start(now);
    lanes.released("hook 1", Released::Waiting { due, pause: Pause::Fixed });
    lanes.delivered(&lane("hook", 9));
    lanes.has_work(lane("hook", 1));
    assert_eq!(lanes.start(now), []);
    assert_eq!(targets(lanes.start(due)), ["hook 1"]);
}

#[test]
fn a_new_message_tries_a_waiting_lane_once_before_it_is_due() {
    let now = Instant::now();
    let later = now + Duration::from_secs(900);
    let mut lanes = Lanes::default();
    failed(&mut lanes, lane("hook", 1), now, later);
    lanes.found(lane("hook", 1));
    assert_eq!(lanes.start(now), [], "a scan of the outbox ends no pause");
    lanes.has_work(lane("hook", 1));
    assert_eq!(targets(lanes.start(now)), ["hook 1"]);
    lanes.released("hook 1", waiting(later));
    lanes.has_work(lane("hook", 1));
    assert_eq!(lanes.start(now), []);
}

#[test]
fn work_that_comes_while_a_lane_is_served_is_not_missed() {
    let now = Instant::now();
    let later = now + Duration::from_secs(900);
    let mut lanes = Lanes::default();
    lanes.has_work(lane("hook", 1));
    lanes.start(now);
    lanes.has_work(lane("hook", 1));
    lanes.released("hook 1", Released::Empty);
    assert_eq!(targets(lanes.start(now)), ["hook 1"]);
    lanes.released("hook 1", Released::Empty);
    assert_eq!(lanes.start(now), []);
    // A user retries an earlier delivery while the attempt of a later one fails.
    lanes.has_work(lane("hook", 1));
    lanes.start(now);
    lanes.serve_now(lane("hook", 1));
    lanes.released("hook 1", waiting(later));
    assert_eq!(targets(lanes.start(now)), ["hook 1"]);
}

#[test]
fn a_user_request_and_a_reload_end_every_pause() {
    let now = Instant::now();
    let later = now + Duration::from_secs(900);
    let mut lanes = Lanes::default();
    failed(&mut lanes, lane("hook", 1), now, later);
    for _ in 0..3 {
        lanes.serve_now(lane("hook", 1));
        assert_eq!(targets(lanes.start(now)), ["hook 1"]);
        lanes.released("hook 1", waiting(later));
        lanes.serve_all_now();
        assert_eq!(targets(lanes.start(now)), ["hook 1"]);
        lanes.released("hook 1", waiting(later));
    }
}
