//! `greenroom history`: what was said in a conversation.

use crate::client::{Client, HostArgs, Page};
use crate::failure::{Exit, Outcome};
use crate::output::{self, plain};
use crate::times;
use greenroom_protocol::Object;
use serde_json::Value;

/// Show what was said in a conversation, or look for something in it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom history cli
  greenroom history c1 --limit 100 --json
  greenroom history c1 --search 'database password'
  greenroom history c1 --search 数据库连接信息")]
pub struct Args {
    /// Id of the conversation
    conversation: String,
    /// Show the items that hold this, the best first
    #[arg(long, value_name = "TEXT", conflicts_with = "cursor")]
    search: Option<String>,
    #[command(flatten)]
    page: super::PageArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

pub async fn run(args: Args) -> Outcome {
    let client = Client::new(&args.host)?;
    let path = |view| ["v1", "conversations", &args.conversation, view];
    let page: Page<Object> = match &args.search {
        Some(text) => {
            let query = vec![("q", text.clone())];
            args.page.read(&client, &path("search"), query).await?
        }
        None => args.page.read_backward(&client, &path("history")).await?,
    };
    if args.json {
        output::print_json(&page)?;
        return Ok(Exit::Ok);
    }
    for item in &page.items {
        output::print(&lines(item))?;
    }
    super::print_more(page.items.len(), &page.next_cursor);
    Ok(Exit::Ok)
}

fn lines(item: &Object) -> String {
    let word = |key| item.get(key).and_then(Value::as_str);
    let role = word("role").unwrap_or_default();
    let head = format!("{}  {role:<9}  ", times::short(word("created_at").unwrap_or_default()));
    let shown = word("snippet").or(word("text")).or(word("content"));
    let text = plain(shown.unwrap_or_default());
    let text = text.replace('\n', &format!("\n{}", " ".repeat(head.len())));
    format!("{}\n", format!("{head}{text}").trim_end())
}
