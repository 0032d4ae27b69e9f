//! One file per command.

pub mod approvals_answer;
pub mod approvals_list;
pub mod approvals_show;
pub mod artifacts_get;
pub mod artifacts_put;
pub mod artifacts_show;
pub mod audit;
pub mod backup_create;
pub mod backup_list;
pub mod backup_restore;
pub mod bench;
pub mod check;
pub mod completions;
pub mod deliveries_list;
pub mod deliveries_resolve;
pub mod dev_model_server;
pub mod doctor;
pub mod events_list;
pub mod events_show;
pub mod harness_add;
pub mod harness_list;
pub mod history;
pub mod init;
pub mod move_to;
pub mod open;
pub mod runner_add;
pub mod runner_list;
pub mod runner_new;
pub mod runner_process;
pub mod runner_test;
pub mod runs_answer;
pub mod runs_cancel;
pub mod runs_follow;
pub mod runs_list;
pub mod runs_replay;
pub mod runs_show;
pub mod send;
pub mod serve;
pub mod sign_in;
pub mod sign_out;
pub mod supervise;
pub mod tool;
pub mod workspace;

use crate::client::{Client, Error, Page};
use crate::failure::{Exit, Outcome};
use crate::output;
use serde::de::DeserializeOwned;

/// Default page size of the host.
const PAGE_MAX: usize = 200;

/// The options of every list.
#[derive(Debug, clap::Args)]
pub struct PageArgs {
    /// Most items to show
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    /// Continue where an earlier list ended
    #[arg(long, value_name = "CURSOR")]
    cursor: Option<String>,
}

impl PageArgs {
    /// Loads as many items as requested, page by page.
    async fn read<T: DeserializeOwned>(
        &self,
        client: &Client,
        path: &[&str],
        filters: Vec<(&'static str, String)>,
    ) -> Result<Page<T>, Error> {
        self.read_as(client, path, filters, |items, more| items.extend(more)).await
    }

    /// The same for a list that pages backward and has the oldest item first in each page.
    async fn read_backward<T: DeserializeOwned>(
        &self,
        client: &Client,
        path: &[&str],
    ) -> Result<Page<T>, Error> {
        let before = |items: &mut Vec<T>, older| drop(items.splice(0..0, older));
        self.read_as(client, path, Vec::new(), before).await
    }

    async fn read_as<T: DeserializeOwned>(
        &self,
        client: &Client,
        path: &[&str],
        filters: Vec<(&'static str, String)>,
        add: impl Fn(&mut Vec<T>, Vec<T>),
    ) -> Result<Page<T>, Error> {
        let wanted = self.limit as usize;
        let mut all = Page { items: Vec::new(), next_cursor: self.cursor.clone(), has_more: true };
        while all.has_more && all.items.len() < wanted {
            let limit = PAGE_MAX.min(wanted - all.items.len());
            let mut query = vec![("limit", limit.to_string())];
            query.extend(all.next_cursor.take().map(|cursor| ("cursor", cursor)));
            query.extend(filters.iter().cloned());
            let page: Page<T> = client.get(path, &query).await?;
            add(&mut all.items, page.items);
            all.has_more = page.has_more && page.next_cursor.is_some();
            all.next_cursor = page.next_cursor;
        }
        Ok(all)
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
