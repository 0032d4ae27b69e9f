//! What is served when: slots, order, pauses and their early ends.

use super::*;
use std::time::Duration;

fn lane(surface: &str, target: usize) -> Lane {
    Lane { surface: surface.to_owned(), target: format!("{surface} {target}") }
}

fn waiting(due: Instant) -> Left {
    Left::Waiting { due, pause: Pause::Own }
}

fn targets(lanes: Vec<Lane>) -> Vec<String> {
    lanes.into_iter().map(|lane| lane.target).collect()
}

/// A lane that was tried in vain and waits until `due`.
fn tried(lanes: &mut Lanes, lane: Lane, now: Instant, due: Instant) {
    let target = lane.target.clone();
    lanes.found(lane);
    assert_eq!(targets(lanes.start(now)), [target.as_str()]);
    lanes.left(&target, waiting(due));
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
    lanes.left("down 0", Left::Empty);
    assert_eq!(targets(lanes.start(now)), ["down 64"]);
}

#[test]
fn a_lane_that_waits_holds_no_slot() {
    let now = Instant::now();
    let later = now + Duration::from_secs(900);
    let mut lanes = Lanes::default();
    (0..1000).for_each(|target| lanes.found(lane("down", target)));
    let mut tried = 0;
    loop {
        let started = lanes.start(now);
        if started.is_empty() {
            break;
        }
        tried += started.len();
        started.iter().for_each(|lane| lanes.left(&lane.target, waiting(later)));
    }
    assert_eq!((tried, lanes.waiting()), (1000, 1000), "each was tried once");
    assert_eq!(lanes.next_due(), Some(later));
    assert_eq!(lanes.start(later).len(), LANES_PER_SURFACE);
}

#[test]
fn one_success_wakes_the_other_lanes_of_its_surface_once() {
    let now = Instant::now();
    let later = now + Duration::from_secs(900);
    let mut lanes = Lanes::default();
    tried(&mut lanes, lane("hook", 1), now, later);
    tried(&mut lanes, lane("hook", 2), now, later);
    tried(&mut lanes, lane("other", 3), now, later);
    assert_eq!(lanes.start(now), []);
    lanes.delivered(&lane("hook", 9));
    assert_eq!(targets(lanes.start(now)), ["hook 1", "hook 2"]);
    lanes.left("hook 1", waiting(later));
    lanes.delivered(&lane("hook", 9));
    assert_eq!(lanes.start(now), [], "in vain before: not woken again in this pause");
    assert_eq!(targets(lanes.start(later)), ["hook 1", "other 3"].map(str::to_owned).to_vec());
    lanes.left("hook 1", waiting(later + Duration::from_secs(900)));
    lanes.delivered(&lane("hook", 9));
    assert_eq!(targets(lanes.start(later)), ["hook 1"], "it was tried in its time since");
}

#[test]
fn a_pause_that_the_receiver_asked_for_is_kept() {
    let now = Instant::now();
    let due = now + Duration::from_secs(60);
    let mut lanes = Lanes::default();
    lanes.found(lane("hook", 1));
    lanes.start(now);
    lanes.left("hook 1", Left::Waiting { due, pause: Pause::Firm });
    lanes.delivered(&lane("hook", 9));
    lanes.has_work(lane("hook", 1));
    assert_eq!(lanes.start(now), []);
    assert_eq!(targets(lanes.start(due)), ["hook 1"]);
}

#[test]
fn a_new_message_tries_a_waiting_lane_once_before_its_time() {
    let now = Instant::now();
    let later = now + Duration::from_secs(900);
    let mut lanes = Lanes::default();
    tried(&mut lanes, lane("hook", 1), now, later);
    lanes.found(lane("hook", 1));
    assert_eq!(lanes.start(now), [], "a look into the outbox is no reason");
    lanes.has_work(lane("hook", 1));
    assert_eq!(targets(lanes.start(now)), ["hook 1"]);
    lanes.left("hook 1", waiting(later));
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
    lanes.left("hook 1", Left::Empty);
    assert_eq!(targets(lanes.start(now)), ["hook 1"]);
    lanes.left("hook 1", Left::Empty);
    assert_eq!(lanes.start(now), []);
    // Somebody sends an earlier delivery again while a later one is tried in vain.
    lanes.has_work(lane("hook", 1));
    lanes.start(now);
    lanes.hurry(lane("hook", 1));
    lanes.left("hook 1", waiting(later));
    assert_eq!(targets(lanes.start(now)), ["hook 1"]);
}

#[test]
fn somebody_who_asks_and_a_reload_end_every_pause() {
    let now = Instant::now();
    let later = now + Duration::from_secs(900);
    let mut lanes = Lanes::default();
    tried(&mut lanes, lane("hook", 1), now, later);
    for _ in 0..3 {
        lanes.hurry(lane("hook", 1));
        assert_eq!(targets(lanes.start(now)), ["hook 1"]);
        lanes.left("hook 1", waiting(later));
        lanes.hurry_all();
        assert_eq!(targets(lanes.start(now)), ["hook 1"]);
        lanes.left("hook 1", waiting(later));
    }
}
