//! The numbers, beside their budgets and baselines, as text, Markdown and JSON.
//!
//! Invariant: a verdict follows from the numbers in its row.

use super::machine::Machine;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
pub(super) enum Budget {
    AtMost(f64),
    AtLeast(f64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Unit {
    Milliseconds,
    Microseconds,
    PerSecond,
    Megabytes,
}

#[derive(Debug, Serialize)]
pub(super) struct Measure {
    /// The row of the table of budgets.
    pub row: u8,
    pub what: String,
    pub unit: Unit,
    pub budget: Budget,
    pub measured: f64,
    pub baseline: Option<Baseline>,
    pub detail: String,
}

/// What the same work costs without the host, in the same unit.
#[derive(Debug, Serialize)]
pub(super) struct Baseline {
    pub what: &'static str,
    pub value: f64,
}

#[derive(Debug, Serialize)]
pub struct Report {
    pub(super) machine: Machine,
    pub(super) load_before: String,
    pub(super) load_after: String,
    pub(super) measures: Vec<Measure>,
}

const HEAD: [&str; 8] =
    ["ROW", "WHAT", "BUDGET", "MEASURED", "BASELINE", "RATIO", "VERDICT", "DETAIL"];

impl Measure {
    pub(super) fn verdict(&self) -> &'static str {
        let met = match self.budget {
            Budget::AtMost(most) => self.measured <= most,
            Budget::AtLeast(least) => self.measured >= least,
        };
        if met { "met" } else { "missed" }
    }

    fn cells(&self) -> [String; 8] {
        let shown = |value| self.unit.show(value);
        [
            self.row.to_string(),
            self.what.clone(),
            match self.budget {
                Budget::AtMost(most) => format!("≤ {}", shown(most)),
                Budget::AtLeast(least) => format!("≥ {}", shown(least)),
            },
            shown(self.measured),
            self.baseline.as_ref().map_or("-".to_owned(), |baseline| {
                format!("{} ({})", shown(baseline.value), baseline.what)
            }),
            self.baseline.as_ref().map_or("-".to_owned(), |baseline| {
                format!("{:.2}", self.measured / baseline.value)
            }),
            self.verdict().to_owned(),
            self.detail.clone(),
        ]
    }
}

impl Unit {
    fn show(self, value: f64) -> String {
        match self {
            Unit::Milliseconds => format!("{value:.3} ms"),
            Unit::Microseconds => format!("{value:.1} µs"),
            Unit::PerSecond => format!("{}/s", grouped(value)),
            Unit::Megabytes => format!("{value:.1} MB"),
        }
    }
}

/// A whole number with its thousands apart.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

impl Report {
    fn rows(&self) -> Vec<Vec<String>> {
        let head = HEAD.map(str::to_owned).to_vec();
        let rows = self.measures.iter().map(|measure| measure.cells().to_vec());
        std::iter::once(head).chain(rows).collect()
    }

    /// For a terminal: without the details, which are too wide.
    pub fn table(&self) -> Vec<Vec<String>> {
        let mut rows = self.rows();
        rows.iter_mut().for_each(|row| row.truncate(HEAD.len() - 1));
        rows
    }

    /// What follows the table on a terminal: details, machine and load.
    pub fn notes(&self) -> String {
        let details = self.measures.iter().filter(|measure| !measure.detail.is_empty());
        let details = details.map(|measure| format!("{}: {}\n", measure.what, measure.detail));
        let details: Vec<String> = details.collect();
        let before = if details.is_empty() { "" } else { "\n" };
        format!(
            "{before}{}\n{}load average before {}, after {}\n",
            details.concat(),
            self.machine.markdown().replace("- ", ""),
            self.load_before,
            self.load_after
        )
    }

    /// Everything, with the verdicts.
    pub fn json(&self) -> serde_json::Value {
        let mut report = serde_json::json!(self);
        for (index, measure) in self.measures.iter().enumerate() {
            report["measures"][index]["verdict"] = measure.verdict().into();
        }
        report
    }

    /// The page that is kept in the repository.
    pub fn markdown(&self) -> String {
        let mut rows = self.rows();
        rows.insert(1, vec!["---".to_owned(); HEAD.len()]);
        let table: Vec<String> =
            rows.iter().map(|row| format!("| {} |", row.join(" | "))).collect();
        format!(
            "# Measured\n\n\
             Written by `greenroom bench --write bench/RESULTS.md` of a release build; \
             what is measured and how is in [README.md](README.md).\n\n\
             {}\n\
             Load average before: {}; after: {}.\n\n{}\n",
            self.machine.markdown(),
            self.load_before,
            self.load_after,
            table.join("\n")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(unit: Unit, budget: Budget, measured: f64) -> Measure {
        let baseline = Some(Baseline { what: "bare pipe", value: 0.5 });
        let (what, detail) = ("a run".to_owned(), String::new());
        Measure { row: 1, what, unit, budget, measured, baseline, detail }
    }

    #[test]
    fn a_verdict_follows_from_budget_and_number() {
        let verdict = |budget, measured| measure(Unit::PerSecond, budget, measured).verdict();
        assert_eq!(verdict(Budget::AtMost(2.0), 2.0), "met");
        assert_eq!(verdict(Budget::AtMost(2.0), 2.1), "missed");
        assert_eq!(verdict(Budget::AtLeast(2.0), 2.0), "met");
        assert_eq!(verdict(Budget::AtLeast(2.0), 1.9), "missed");
    }

    #[test]
    fn a_row_shows_budget_number_baseline_and_ratio_in_one_unit() {
        let cells = measure(Unit::Milliseconds, Budget::AtMost(2.0), 1.25).cells();
        let expected =
            ["1", "a run", "≤ 2.000 ms", "1.250 ms", "0.500 ms (bare pipe)", "2.50", "met", ""];
        assert_eq!(cells, expected);
        let cells = measure(Unit::PerSecond, Budget::AtLeast(200_000.0), 1_234_567.8).cells();
        assert_eq!(cells[2..4], ["≥ 200,000/s", "1,234,568/s"]);
    }
}
