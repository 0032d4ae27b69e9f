//! The host is killed at random moments, again and again, under load.
//!
//! `GREENROOM_KILLS` says how often (two times 150 with short lives unless set, 10,000 in `make soak`),
//! `GREENROOM_SEED` repeats the choices of a failure.

use crate::facts::{self, Agent, OnInterrupt, Queue};
use crate::senders::{Ids, Log, Sender};
use crate::{PROGRAM, setting};
use greenroom_testkit::host::TestHost;
use greenroom_testkit::postgres::Database;
use greenroom_testkit::random::Random;
use greenroom_testkit::reader::SeenResults;
use greenroom_testkit::wait::wait_for;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;

const KILLS: u64 = 150;
/// Kills of one data folder; after that the facts are checked, and the next folder begins empty.
const KILLS_PER_FOLDER: u64 = 500;
const KILLS_ON_POSTGRESQL: u64 = 5;
const STOPS: u64 = 4;
/// Most milliseconds that a ready host lives.
const LIFE_MS_MAX: u64 = 700;
const SHORT_LIFE_MS_MAX: u64 = 300;
const SHORTEST_LIFE_MS_MAX: u64 = 60;
/// Most milliseconds that a host lives which is killed while it starts.
const START_MS_MAX: u64 = 150;

const CONFIG: &str = r#"
[agents.failing]
runner = "plugin:greenroom/echo/default"
events = []
config = { mode = "count", n = 12, delay_ms = 10 }

[agents.retrying]
runner = "plugin:greenroom/echo/default"
events = []
on_interrupt = "retry"
config = { mode = "count", n = 12, delay_ms = 10 }

[agents.parallel]
runner = "plugin:greenroom/echo/default"
events = []
queue = "parallel"
on_interrupt = "retry"
config = { mode = "count", n = 12, delay_ms = 10 }

[agents.replacing]
runner = "plugin:greenroom/echo/default"
events = []
queue = "replace"
config = { mode = "count", n = 12, delay_ms = 10 }
"#;

fn agents() -> [Agent; 4] {
    use OnInterrupt::{Fail, Retry};
    use Queue::{Parallel, Replace, Serial};
    let agents = [
        ("failing", Serial, Fail),
        ("retrying", Serial, Retry),
        ("parallel", Parallel, Retry),
        ("replacing", Replace, Fail),
    ];
    agents.map(|(name, queue, on_interrupt)| {
        let answer = "1 2 3 4 5 6 7 8 9 10 11 12 ".to_owned();
        Agent { name, queue, on_interrupt, answer }
    })
}

/// Two conversations per agent, in each of them one sender of either kind; and one that nobody listens to.
fn senders() -> Vec<Sender> {
    let mut senders = Vec::new();
    for (agent, place) in agents().iter().flat_map(|agent| [(agent.name, 1), (agent.name, 2)]) {
        for (ids, kind) in [(Ids::Own, "own"), (Ids::None, "none")] {
            senders.push(Sender {
                name: format!("{agent}-{place}-{kind}"),
                agent: Some(agent),
                conversation: format!("{agent}-{place}"),
                ids,
            });
        }
    }
    let conversation = "nobody".to_owned();
    senders.push(Sender { name: "caller".to_owned(), agent: None, conversation, ids: Ids::Own });
    senders
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_when_the_host_is_killed_at_random_moments() {
    let Some(kills) = setting("GREENROOM_KILLS") else {
        return survive(CONFIG, KILLS, SHORT_LIFE_MS_MAX, kill_and_start).await;
    };
    let mut killed = 0;
    while killed < kills {
        let rounds = KILLS_PER_FOLDER.min(kills - killed);
        survive(CONFIG, rounds, LIFE_MS_MAX, kill_and_start).await;
        killed += rounds;
        eprintln!("{killed} of {kills} kills survived");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_when_the_host_is_killed_soon_after_its_start() {
    survive(CONFIG, KILLS, SHORTEST_LIFE_MS_MAX, kill_and_start).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_when_the_host_is_asked_to_stop() {
    let config = format!("limits.shutdown_grace_s = 0\n{CONFIG}");
    survive(&config, STOPS, LIFE_MS_MAX, async |host, _| stop_and_start(host).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_or_doubled_when_a_host_on_postgresql_is_killed() {
    let database = tokio::task::spawn_blocking(Database::fresh).await.unwrap();
    let config = format!("store.url = \"{}\"\n{CONFIG}", database.url);
    survive(&config, KILLS_ON_POSTGRESQL, LIFE_MS_MAX, kill_and_start).await;
}

async fn survive(
    config: &str,
    rounds: u64,
    life_ms_max: u64,
    mut end_and_start: impl AsyncFnMut(&mut TestHost, &mut Random),
) {
    let now = std::time::UNIX_EPOCH.elapsed().unwrap();
    let seed = setting("GREENROOM_SEED").unwrap_or(now.as_secs());
    eprintln!("GREENROOM_SEED={seed}, {rounds} rounds");
    let mut random = Random::from_seed(seed);
    let mut host = TestHost::start(PROGRAM, config).await;
    let (seen, (stop, stopped)) = (SeenResults::default(), watch::channel(false));
    let mut work = JoinSet::new();
    for sender in senders() {
        let seen = seen.clone();
        work.spawn(sender.work(host.api(), seen, random.fork(), stopped.clone()));
    }
    for _ in 0..rounds {
        // The moment is what the seed decides; nothing is waited for.
        tokio::time::sleep(Duration::from_millis(random.below(life_ms_max))).await;
        end_and_start(&mut host, &mut random).await;
        assert_eq!(host.leftovers(), [""; 0], "runners of an earlier host live on");
    }
    stop.send_replace(true);
    let mut log = Log::default();
    for part in work.join_all().await {
        log.extend(part);
    }
    let stories = facts::check(&host.api(), &agents(), &log, &seen).await;
    check_coverage(&log, stories.len());
    assert!(host.stop().await.success(), "{}", host.log());
    wait_for("the end of every runner", Duration::from_secs(10), async || {
        host.leftovers().is_empty().then_some(())
    })
    .await;
}

/// Kills a host at work and, now and then, the next one while it starts.
async fn kill_and_start(host: &mut TestHost, random: &mut Random) {
    host.kill();
    while random.one_in(4) {
        host.spawn();
        tokio::time::sleep(Duration::from_millis(random.below(START_MS_MAX))).await;
        host.kill();
    }
    host.start_again().await;
}

async fn stop_and_start(host: &mut TestHost) {
    assert!(host.stop().await.success(), "{}", host.log());
    host.start_again().await;
}

/// The test would prove little if the kills had hit nothing.
fn check_coverage(log: &Log, runs: usize) {
    let resumed = log.readings.iter().filter(|reading| reading.connections > 1).count();
    let restarted = log.readings.iter().filter(|reading| !reading.fold.restarts.is_empty()).count();
    let (sent, doubtful) = (log.sent.len(), log.doubtful.len());
    eprintln!(
        "{sent} events acknowledged, {doubtful} in doubt, {runs} runs; of {} readers {resumed} \
         came back and {restarted} saw a new attempt",
        log.readings.len()
    );
    assert!(runs > 0 && resumed > 0 && restarted > 0);
}
