//! How fast a page of history and a search are among many items:
//! `cargo run --release -p greenroom-store --example search_bench -- [ITEMS [sqlite:PATH|postgres://…]]`.
//!
//! Texts are made of Chinese and English words that occur as often as words do (the n-th word once for n
//! times the first). Without a place both databases are measured, each in a fresh one; a place that holds
//! items already is measured as it is, with the same questions.

use greenroom_store::reads::Direction::{Backward, Forward};
use greenroom_store::reads::conversations::{Position, Span, history};
use greenroom_store::reads::search::{SearchQuery, search};
use greenroom_store::{Location, Options, Store, Sync};
use greenroom_testkit::postgres::Database;
use greenroom_testkit::random::Random;
use std::time::{Duration, Instant};

const W: &str = "default";
const CONVERSATIONS: u64 = 2000;
const SEARCHES: usize = 400;
const BATCH: usize = 1000;
/// Items that are indexed at once.
const STEP: i64 = 256;

fn main() {
    let items = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    if let Some(place) = std::env::args().nth(2) {
        let location = match place.strip_prefix("sqlite:") {
            Some(path) => Location::Sqlite(path.into()),
            None => Location::Postgres(place),
        };
        return runtime.block_on(measure(location, items));
    }
    let folder = tempfile::tempdir().expect("a folder");
    runtime.block_on(measure(Location::Sqlite(folder.path().join("bench.db")), items));
    let database = Database::fresh();
    runtime.block_on(measure(Location::Postgres(database.url.clone()), items));
}

async fn measure(location: Location, items: usize) {
    let store = Store::open(&Options { location: location.clone(), sync: Sync::Normal });
    let store = store.expect("an open store");
    let words = Words::new();
    eprintln!("{}", if matches!(location, Location::Sqlite(_)) { "SQLite" } else { "PostgreSQL" });
    let newest = store.read(|tx| {
        tx.query("SELECT id FROM transcript ORDER BY id DESC LIMIT 1", &[]).map(|rows| rows.len())
    });
    if newest.await.expect("a count") == 0 {
        let started = Instant::now();
        std::thread::scope(|scope| {
            scope.spawn(|| fill(&location, items, &words, &mut Random::from_seed(1)));
        });
        eprintln!("  {items} items written in {:.1?}", started.elapsed());
    }
    index(&store).await;
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    eprintln!("  load average {}", load.trim());
    pages(&store, &mut Random::from_seed(3)).await;
    searches(&store, &words, &mut Random::from_seed(4)).await;
    store.close();
}

async fn index(store: &Store) {
    let started = Instant::now();
    let mut steps = Vec::new();
    let mut left = store.index_some(STEP).await.expect("indexed items");
    let items = left;
    while left > 0 {
        let step = Instant::now();
        left = store.index_some(STEP).await.expect("indexed items");
        steps.push(step.elapsed());
    }
    if steps.is_empty() {
        return;
    }
    let rate = items as f64 / started.elapsed().as_secs_f64();
    eprintln!("  indexed in {:.1?}, {rate:.0} items/s", started.elapsed());
    report("step of the index", &mut steps);
}

async fn pages(store: &Store, random: &mut Random) {
    let mut times = Vec::new();
    for n in 0..2000 {
        let event_seq = random.below(300_000) as i64;
        let mut span = Span::whole(if n % 2 == 0 { Backward } else { Forward }, 51);
        match span.direction {
            Backward => span.before = Position::before_event(event_seq),
            Forward => span.after = Position::before_event(event_seq),
        }
        let conversation = if n % 4 == 0 { random.below(CONVERSATIONS) } else { 0 };
        let started = Instant::now();
        let name = format!("c{conversation}");
        store.read(move |tx| history(tx, W, &name, &span)).await.expect("a page");
        times.push(started.elapsed());
    }
    report("page of 50", &mut times);
}

async fn searches(store: &Store, words: &Words, random: &mut Random) {
    let mut all = Vec::new();
    for kind in [
        "Chinese substring",
        "English words",
        "common word",
        "rare pair",
        "nothing",
        "one conversation",
        "filtered",
    ] {
        let (mut times, mut slowest) = (Vec::new(), (Duration::ZERO, String::new()));
        for _ in 0..SEARCHES {
            let query = query(kind, words, random);
            let text = query.text.clone();
            let started = Instant::now();
            let found = store.read(move |tx| search(tx, &query)).await;
            let took = started.elapsed();
            drop(found.expect("hits"));
            times.push(took);
            slowest = slowest.max((took, text));
        }
        all.extend_from_slice(&times);
        report(kind, &mut times);
        eprintln!("    slowest: {}", slowest.1);
    }
    report("search, all kinds", &mut all);
}

fn query(kind: &str, words: &Words, random: &mut Random) -> SearchQuery {
    let mut query = SearchQuery { workspace: W.to_owned(), top_k: 10, ..SearchQuery::default() };
    query.text = match kind {
        "Chinese substring" => {
            let text: Vec<char> = words.chinese(random).chars().filter(|c| *c != ',').collect();
            let start = random.below(text.len() as u64 / 2) as usize;
            text.iter().skip(start).take(3 + random.below(6) as usize).collect()
        }
        "English words" => {
            let text = words.english(random);
            let take = 1 + random.below(3) as usize;
            text.split(' ').skip(2).take(take).collect::<Vec<_>>().join(" ")
        }
        "common word" => words.pick(&words.dense[..60], random).to_owned(),
        "rare pair" => {
            let rare = &words.dense[words.dense.len() / 2..];
            format!(
                "{} {}",
                rare[random.below(rare.len() as u64) as usize],
                words.pick(&words.latin, random)
            )
        }
        "nothing" => "甲骨龘靐齉 zzyzx qwertz".to_owned(),
        _ => words.pick(&words.dense, random).to_owned(),
    };
    if kind == "one conversation" {
        query.conversation = Some(format!("c{}", random.below(CONVERSATIONS)));
    }
    if kind == "filtered" {
        query.roles = vec!["assistant".to_owned()];
        let day = random.below(900) as i64;
        query.after_ms = Some(day * 86_400_000);
        query.before_ms = Some((day + 30) * 86_400_000);
    }
    query
}

fn report(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    let (p50, p99, max) = (at(0.5), at(0.99), at(1.0));
    eprintln!("  {what:<20} p50 {p50:7.2} ms   p99 {p99:7.2} ms   max {max:7.2} ms");
}

/// Words, the most frequent first.
struct Words {
    dense: Vec<String>,
    latin: Vec<String>,
}

impl Words {
    fn new() -> Words {
        let mut random = Random::from_seed(2);
        let common = "的 是 了 我 在 不 有 这 个 数据 数据库 连接 信息 请 问题 系统 用户 服务 可以 什么 \
            怎么 今天 明天 时间 文件 配置 错误 日志 网络 更新 测试 部署 环境 生产 客户 订单 会议 项目 需求";
        let mut dense: Vec<String> = common.split_whitespace().map(str::to_owned).collect();
        while dense.len() < 30_000 {
            let length = [2, 2, 2, 3, 1, 4][random.below(6) as usize];
            // Characters too are of very different frequency.
            let c = |random: &mut Random| {
                let rank = skewed(3500, random);
                char::from_u32(0x4e00 + (rank as u32 * 5) % 20_000).unwrap_or('字')
            };
            dense.push((0..length).map(|_| c(&mut random)).collect());
        }
        let common = "the to of and a in is it you that for on with this be are have not can we \
            database connection error server please deploy config file user update test log";
        let mut latin: Vec<String> = common.split_whitespace().map(str::to_owned).collect();
        while latin.len() < 20_000 {
            let letter = |random: &mut Random| char::from(b'a' + skewed(26, random) as u8);
            let length = 4 + random.below(6);
            latin.push((0..length).map(|_| letter(&mut random)).collect());
        }
        Words { dense, latin }
    }

    fn pick<'a>(&self, words: &'a [String], random: &mut Random) -> &'a str {
        &words[skewed(words.len() as u64, random) as usize]
    }

    fn chinese(&self, random: &mut Random) -> String {
        let mut text = String::new();
        for n in 0..8 + random.below(20) {
            text.push_str(if n % 7 == 6 { "," } else { "" });
            text.push_str(self.pick(&self.dense, random));
        }
        text
    }

    fn english(&self, random: &mut Random) -> String {
        let words = (0..6 + random.below(20)).map(|_| self.pick(&self.latin, random));
        words.collect::<Vec<_>>().join(" ")
    }

    fn text(&self, random: &mut Random) -> String {
        match random.below(4) {
            0 => self.english(random),
            1 => format!("{} {}", self.chinese(random), self.pick(&self.latin, random)),
            _ => self.chinese(random),
        }
    }
}

/// A rank below a bound, each as likely as words of that rank are.
fn skewed(bound: u64, random: &mut Random) -> u64 {
    let share = random.below(1 << 30) as f64 / f64::from(1 << 30);
    (((bound as f64 + 1.0).ln() * share).exp() - 1.0) as u64 % bound
}

/// Writes items behind the store's back.
fn fill(location: &Location, items: usize, words: &Words, random: &mut Random) {
    let mut rows = Vec::with_capacity(BATCH);
    let mut write: Box<dyn FnMut(&str)> = match location {
        Location::Sqlite(path) => {
            let connection = rusqlite::Connection::open(path).expect("a database");
            Box::new(move |sql| connection.execute_batch(sql).expect("written items"))
        }
        Location::Postgres(url) => {
            let mut client = postgres::Client::connect(url, postgres::NoTls).expect("a server");
            Box::new(move |sql| client.batch_execute(sql).expect("written items"))
        }
    };
    for n in 0..items {
        // A third in one conversation, over a thousand days.
        let conversation = if n % 3 == 0 { 0 } else { random.below(CONVERSATIONS) };
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        let at = n as u64 * 86_400_000 * 1000 / items as u64;
        rows.push(format!(
            "('{W}','c{conversation}',{n},{n},'item-{n:030}','{role}','message.received','u{}','{}',
              '{{\"metadata\":{{\"event_type\":\"message.received\"}}}}',{at})",
            random.below(500),
            words.text(random),
        ));
        if rows.len() == BATCH || n + 1 == items {
            write(&format!(
                "INSERT INTO transcript (workspace_id, conversation_id, event_seq, seq, item_id,
                     role, event_type, actor_id, text, body, created_at) VALUES {}",
                rows.join(",")
            ));
            rows.clear();
        }
    }
    write(
        "INSERT INTO conversations (workspace_id, conversation_id, bucket, event_seq, transcript_seq,
             created_at, updated_at)
         SELECT workspace_id, conversation_id, 0, MAX(event_seq), COUNT(*), MIN(created_at),
             MAX(created_at) FROM transcript GROUP BY workspace_id, conversation_id",
    );
}
