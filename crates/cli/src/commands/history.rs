//! `greenroom history`: what was said in a conversation.

use crate::client::{Client, HostArgs, Page};
use crate::failure::{Exit, Outcome};
use crate::output::{self, plain};
use crate::times;
use greenroom_protocol::Object;
use serde_json::Value;

/// Show what was said in a conversation, oldest first
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom history cli
  greenroom history c1 --limit 100 --json")]
pub struct Args {
    /// Id of the conversation
    conversation: String,
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
    let path = ["v1", "conversations", &args.conversation, "history"];
    let mut page: Page<Object> = args.page.read(&client, &path, Vec::new()).await?;
    if args.json {
        output::print_json(&page)?;
        return Ok(Exit::Ok);
    }
    page.items.sort_by_key(|item| item.get("seq").and_then(Value::as_i64));
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
    let text = plain(word("text").or(word("content")).unwrap_or_default());
    let text = text.replace('\n', &format!("\n{}", " ".repeat(head.len())));
    format!("{}\n", format!("{head}{text}").trim_end())
}
