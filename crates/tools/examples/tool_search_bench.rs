//! Quality and speed of the tool search with the tools of real MCP servers:
//! `cargo run --release -p greenroom-tools --example tool_search_bench -- TOOLS.json [wrong]`.
//!
//! `bench/tools/collect.sh` makes the file, `bench/tools/queries.tsv` has the queries. With `wrong`, the failed
//! queries of the half for tuning are listed; those of the other half are only counted.

use greenroom_tools::search::ToolIndex;
use greenroom_tools::{Risk, Source, Tool};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const QUERIES: &str = include_str!("../../../bench/tools/queries.tsv");
const TOP: usize = 5;
/// Repetitions of all queries when the time is measured.
const ROUNDS: usize = 20;

/// One line of `queries.tsv`.
struct Query {
    half: &'static str,
    language: &'static str,
    text: &'static str,
    /// Any of these is correct.
    right: Vec<&'static str>,
}

fn main() {
    let path = std::env::args().nth(1).expect("the file of the tools");
    let lists_wrong = std::env::args().nth(2).is_some_and(|word| word == "wrong");
    let text = std::fs::read_to_string(path).expect("a readable file");
    let listed: Vec<Value> = serde_json::from_str(&text).expect("a list of tools");
    let tools: Vec<Tool> = listed.iter().map(tool).collect();
    let names: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let servers: BTreeSet<&str> = names.iter().filter_map(|name| name.split('.').next()).collect();
    let (known, unknown): (Vec<Query>, Vec<Query>) =
        queries().partition(|query| query.right.iter().any(|name| names.contains(name)));
    for query in &unknown {
        eprintln!("not asked, its tool is not there: {} ({})", query.text, query.right.join(" "));
    }
    eprintln!("{} tools of {} servers, {} questions", tools.len(), servers.len(), known.len());
    let some = chosen(&tools, &known, 500);
    for tools in [&some, &tools] {
        eprintln!("\nanswers among {} tools", tools.len());
        quality(&ToolIndex::new(tools), &known, lists_wrong);
    }
    eprintln!(
        "\nload average {}",
        std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim()
    );
    for tools in [some, repeated(&tools, 2000)] {
        speed(&tools, &known);
    }
}

fn queries() -> impl Iterator<Item = Query> {
    let lines = QUERIES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| {
        let mut fields = line.split('\t');
        let mut field = || fields.next().expect("four fields");
        let (half, language, text) = (field(), field(), field());
        Query { half, language, text, right: field().split(' ').collect() }
    })
}

fn tool(value: &Value) -> Tool {
    let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
    Tool {
        name: text("name"),
        description: text("description"),
        input_schema: value["input_schema"].clone(),
        output_schema: None,
        source: Source::Mcp(String::new()),
        risk: Risk::Read,
        timeout: Duration::from_secs(1),
    }
}

/// This many tools: the expected ones, and others from all over the list.
fn chosen(tools: &[Tool], queries: &[Query], count: usize) -> Vec<Tool> {
    let asked: BTreeSet<&str> = queries.iter().flat_map(|query| query.right.clone()).collect();
    let (asked, others): (Vec<&Tool>, Vec<&Tool>) =
        tools.iter().partition(|tool| asked.contains(tool.name.as_str()));
    let wanted = count.saturating_sub(asked.len()).min(others.len());
    let spread = (0..wanted).map(|at| others[at * others.len() / wanted]);
    asked.into_iter().chain(spread).cloned().collect()
}

/// The same tools under other servers until there are this many.
fn repeated(tools: &[Tool], count: usize) -> Vec<Tool> {
    let again = |at: usize| {
        let tool = tools[at % tools.len()].clone();
        match at / tools.len() {
            0 => tool,
            round => Tool { name: format!("again{round}{}", tool.name), ..tool },
        }
    };
    (0..count).map(again).collect()
}

fn quality(index: &ToolIndex, queries: &[Query], lists_wrong: bool) {
    for (half, language) in [("tune", "en"), ("tune", "zh"), ("held", "en"), ("held", "zh")] {
        let asked: Vec<&Query> = queries
            .iter()
            .filter(|query| query.half == half && query.language == language)
            .collect();
        let (mut first, mut among, mut reciprocal) = (0, 0, 0.0);
        for query in &asked {
            let found = index.search(query.text, 100, |_| true);
            let rank = found.iter().position(|name| query.right.contains(&name.as_str()));
            first += usize::from(rank == Some(0));
            among += usize::from(rank.is_some_and(|rank| rank < TOP));
            reciprocal += rank.map_or(0.0, |rank| 1.0 / (rank + 1) as f64);
            if lists_wrong && half == "tune" && rank.is_none_or(|rank| rank >= TOP) {
                let instead = &found[..found.len().min(TOP)];
                eprintln!("  {} ({}): {rank:?} {instead:?}", query.text, query.right.join(" "));
            }
        }
        let share = |count: f64| count / asked.len().max(1) as f64;
        eprintln!(
            "| {half} | {language} | {} | {:.2} | {:.2} | {:.2} |",
            asked.len(),
            share(first as f64),
            share(among as f64),
            share(reciprocal)
        );
    }
}

fn speed(tools: &[Tool], queries: &[Query]) {
    let started = Instant::now();
    let index = ToolIndex::new(tools);
    let built = started.elapsed();
    let allowed: BTreeSet<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let mut times: Vec<Duration> = Vec::new();
    for query in std::iter::repeat_n(queries, ROUNDS).flatten() {
        let started = Instant::now();
        let found = index.search(query.text, TOP, |name| allowed.contains(name));
        times.push(started.elapsed());
        drop(found);
    }
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    eprintln!(
        "{} tools: index built in {built:.1?}, a query p50 {:.0?}, p99 {:.0?}",
        tools.len(),
        at(0.5),
        at(0.99)
    );
}
