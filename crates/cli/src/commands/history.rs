//! `greenroom history`: the transcript of a conversation.

use crate::client::{Client, HostArgs, Page};
use crate::failure::{Exit, Outcome};
use crate::output::{self, plain};
use crate::times;
use greenroom_protocol::Object;
use serde_json::Value;

/// The event type of plain messages.
const MESSAGE: &str = "message.received";

/// Show or search the transcript of a conversation
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
    /// Show the items that match this text, best first
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
    let indent = format!("\n{}", " ".repeat(head.len()));
    let shown = word("snippet").or(word("text")).or(word("content")).unwrap_or_default();
    let files = item.get("artifacts").and_then(Value::as_array).into_iter().flatten();
    let parts = kind(item).map(|kind| format!("[{kind}]")).into_iter();
    let parts = parts.chain([shown.to_owned()].into_iter().filter(|text| !text.is_empty()));
    let parts: Vec<String> = parts.chain(files.map(attachment)).collect();
    let text = plain(&parts.join("\n")).replace('\n', &indent);
    format!("{}\n", format!("{head}{text}").trim_end())
}

/// The kind of an item besides its role: the type of an event, or the name of a tool.
fn kind(item: &Object) -> Option<&str> {
    let metadata = item.get("metadata");
    let word = |key| metadata.and_then(|metadata| metadata.get(key)?.as_str());
    match item.get("role").and_then(Value::as_str)? {
        "tool" => word("tool_name"),
        _ => word("event_type").filter(|kind| *kind != MESSAGE),
    }
}

/// E.g. `+ photo.png, image/png, 12.3 KiB: art_0197…`.
fn attachment(file: &Value) -> String {
    let word = |key: &str| file.get(key).and_then(Value::as_str).map(str::to_owned);
    let size = file.get("size_bytes").and_then(Value::as_u64).map(output::bytes);
    let name = word("name").unwrap_or_else(|| "unnamed".to_owned());
    let facts = [Some(name), word("mime_type"), size];
    let facts: Vec<String> = facts.into_iter().flatten().collect();
    format!("+ {}: {}", facts.join(", "), word("artifact_id").unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(item: Value) -> String {
        let mut item = item.as_object().unwrap().clone();
        item.insert("created_at".to_owned(), "2026-01-02T03:04:05.000Z".into());
        lines(&item)
    }

    #[test]
    fn an_entry_tells_its_kind_and_its_attachments() {
        let event = json!({"role": "event", "text": "disk full",
            "metadata": {"event_type": "issue.opened"}, "artifacts": [
            {"artifact_id": "art_1", "name": "log.txt", "mime_type": "text/plain", "size_bytes": 12_595},
            {"artifact_id": "art_2"}]});
        insta::assert_snapshot!(shown(event), @r"
        2026-01-02 03:04:05  event      [issue.opened]
                                        disk full
                                        + log.txt, text/plain, 12.3 KiB: art_1
                                        + unnamed: art_2
        ");
        let message = json!({"role": "user", "text": "hi", "artifacts": [],
            "metadata": {"event_type": "message.received"}});
        assert_eq!(shown(message), "2026-01-02 03:04:05  user       hi\n");
        let tool =
            json!({"role": "tool", "content": "{}", "metadata": {"tool_name": "files.read"}});
        insta::assert_snapshot!(shown(tool), @r"
        2026-01-02 03:04:05  tool       [files.read]
                                        {}
        ");
    }
}
