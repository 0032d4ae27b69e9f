//! The tool search beside plain BM25 over the same text, on public sets:
//! `cargo run --release -p greenroom-tools --example tool_search_sets -- DIR…`.
//!
//! A DIR has `tools.jsonl` (`name`, `description`, `input_schema`) and `queries.jsonl` (`query`, `right`: names);
//! `bench/TOOLSEARCH.md` says where they come from.

#![expect(clippy::print_stdout, reason = "prints a table")]

use greenroom_tools::search::{ToolIndex, words_of};
use greenroom_tools::{Risk, Source, Tool};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const SATURATION: f64 = 1.2;
const LENGTH: f64 = 0.75;
/// Deepest nesting of a schema, as in the search.
const DEPTH: usize = 4;

struct Query {
    text: String,
    right: Vec<String>,
}

fn main() {
    println!(
        "| set | tools | questions | R@1 | BM25 | R@5 | BM25 |\n|---|---|---|---|---|---|---|"
    );
    for dir in std::env::args().skip(1) {
        let tools: Vec<Tool> = lines(&dir, "tools.jsonl").iter().map(tool).collect();
        let queries: Vec<Query> = lines(&dir, "queries.jsonl").iter().map(query).collect();
        let (index, plain) = (ToolIndex::new(&tools), Plain::new(&tools));
        let (own_1, own_5) = recall(&queries, |text| index.search(text, 5, |_| true));
        let (plain_1, plain_5) = recall(&queries, |text| plain.search(text));
        let (name, tools, count) =
            (dir.rsplit('/').next().unwrap_or(&dir), tools.len(), queries.len());
        println!(
            "| {name} | {tools} | {count} | {own_1:.3} | {plain_1:.3} | {own_5:.3} | {plain_5:.3} |"
        );
    }
}

/// The share of questions with a right tool first, and the share of the right tools among the first five.
fn recall(queries: &[Query], search: impl Fn(&str) -> Vec<String>) -> (f64, f64) {
    let (mut first, mut five) = (0.0, 0.0);
    for query in queries {
        let found = search(&query.text);
        let is_right = |name: &&String| query.right.contains(name);
        first += f64::from(u8::from(found.first().is_some_and(|name| is_right(&name))));
        let right = found.iter().take(5).filter(is_right).count();
        five += right as f64 / query.right.len().clamp(1, 5) as f64;
    }
    let count = queries.len().max(1) as f64;
    (first / count, five / count)
}

fn lines(dir: &str, file: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(format!("{dir}/{file}")).expect("a readable file");
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
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

fn query(value: &Value) -> Query {
    let right = value["right"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let text = value["query"].as_str().unwrap_or_default().to_owned();
    Query { text, right: right.map(str::to_owned).collect() }
}

/// BM25 over the whole text of a tool, with the same words.
struct Plain {
    names: Vec<String>,
    lengths: Vec<f64>,
    postings: BTreeMap<String, Vec<(usize, f64)>>,
}

impl Plain {
    fn new(tools: &[Tool]) -> Self {
        let mut plain = Self { names: Vec::new(), lengths: Vec::new(), postings: BTreeMap::new() };
        for (place, tool) in tools.iter().enumerate() {
            let mut text = format!("{} {}", tool.name, tool.description);
            parameters(&tool.input_schema, DEPTH, &mut text);
            let words = words_of(&text);
            plain.names.push(tool.name.clone());
            plain.lengths.push(words.len() as f64);
            let mut counts: BTreeMap<String, f64> = BTreeMap::new();
            for word in words {
                *counts.entry(word).or_default() += 1.0;
            }
            for (word, count) in counts {
                plain.postings.entry(word).or_default().push((place, count));
            }
        }
        plain
    }

    fn search(&self, text: &str) -> Vec<String> {
        let count = self.names.len() as f64;
        let mean = self.lengths.iter().sum::<f64>() / count.max(1.0);
        let mut scores = vec![0.0; self.names.len()];
        for word in words_of(text).into_iter().collect::<BTreeSet<String>>() {
            let Some(postings) = self.postings.get(&word) else { continue };
            let holding = postings.len() as f64;
            let rarity = (1.0 + (count - holding + 0.5) / (holding + 0.5)).ln();
            for (tool, often) in postings {
                let length = 1.0 - LENGTH + LENGTH * self.lengths[*tool] / mean;
                scores[*tool] +=
                    rarity * often * (SATURATION + 1.0) / (often + SATURATION * length);
            }
        }
        let mut found: Vec<usize> = (0..scores.len()).filter(|at| scores[*at] > 0.0).collect();
        found.sort_by(|a, b| {
            scores[*b].total_cmp(&scores[*a]).then_with(|| self.names[*a].cmp(&self.names[*b]))
        });
        found.into_iter().take(5).map(|at| self.names[at].clone()).collect()
    }
}

/// The text of parameters: names, descriptions and choices.
fn parameters(schema: &Value, depth: usize, text: &mut String) {
    if depth == 0 {
        return;
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let choices = property["enum"].as_array().into_iter().flatten();
        let parts = [Some(name.as_str()), property["description"].as_str()].into_iter().flatten();
        for part in parts.chain(choices.filter_map(Value::as_str)) {
            text.push(' ');
            text.push_str(part);
        }
        parameters(property, depth - 1, text);
        if let Some(items) = property.get("items") {
            parameters(items, depth - 1, text);
        }
    }
}
