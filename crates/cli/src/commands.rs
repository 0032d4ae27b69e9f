//! One file per command.

pub mod bench;
pub mod check;
pub mod completions;
pub mod doctor;
pub mod events_list;
pub mod events_show;
pub mod history;
pub mod init;
pub mod runner_list;
pub mod runner_new;
pub mod runner_process;
pub mod runner_test;
pub mod runs_cancel;
pub mod runs_follow;
pub mod runs_list;
pub mod runs_replay;
pub mod runs_show;
pub mod send;
pub mod serve;
pub mod supervise;

use crate::failure::{Exit, Outcome};
use crate::output;

/// The options of every list.
#[derive(Debug, clap::Args)]
pub struct PageArgs {
    /// Most items to show
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    /// Continue where an earlier list ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

impl PageArgs {
    fn query(&self) -> Vec<(&'static str, String)> {
        let limit = ("limit", self.limit.to_string());
        [limit].into_iter().chain(self.cursor.clone().map(|cursor| ("cursor", cursor))).collect()
    }
}

fn print_page(head: Vec<String>, rows: Vec<Vec<String>>, next: &Option<String>) -> Outcome {
    let count = rows.len();
    if count > 0 {
        output::print(&output::table(&[vec![head], rows].concat()))?;
    }
    print_more(count, next);
    Ok(Exit::Ok)
}

fn print_more(count: usize, next: &Option<String>) {
    if count == 0 {
        output::note("nothing found");
    }
    if let Some(cursor) = next {
        output::note(&format!("hint: there is more: `--cursor {cursor}`"));
    }
}
