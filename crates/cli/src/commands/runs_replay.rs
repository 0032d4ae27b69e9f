//! `greenroom runs replay`: the event of a run once more, marked as such and without delivery.

use crate::client::{Client, HostArgs};
use crate::failure::{Failure, Outcome};
use crate::reading::{Reading, language_of};
use greenroom_protocol::{EventAnswer, Object};
use serde_json::{Value, json};

/// The parts of a stored event that make it up; the rest is the host's.
const KEPT: [&str; 9] = [
    "event_type",
    "bot_id",
    "workspace_id",
    "conversation_id",
    "thread_id",
    "actor",
    "subject",
    "input",
    "data",
];

/// Send the event of a run again, to the same agent, without delivering the answer
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The new event carries `replay_of` in its metadata.

Examples:
  greenroom runs replay RUN --follow")]
pub struct Args {
    /// Id of the run
    run: String,
    /// Agent that shall take it [default: the one that took it]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    #[command(flatten)]
    watch: super::send::WatchArgs,
    #[command(flatten)]
    host: HostArgs,
}

pub async fn run(args: Args) -> Outcome {
    let client = Client::new(&args.host)?;
    let run = client.named_run(&args.run).await?;
    let event: Object = client.get(&["v1", "events", &run.event_id], &[]).await?;
    let agent = args.agent.unwrap_or(run.agent);
    let body = replay(&event, &run.event_id, &agent)
        .ok_or_else(|| Failure::new(format!("the event `{}` is no longer kept", run.event_id)))?;
    let answer: EventAnswer = client.post(&["v1", "events"], &body).await?;
    let reading = Reading::new(args.watch.json, language_of(""));
    super::send::finish(&client, &answer, &args.watch, reading).await
}

fn replay(event: &Object, event_id: &str, agent: &str) -> Option<Object> {
    let event = event.get("event")?.as_object()?;
    let kept = |key: &str| Some((key.to_owned(), event.get(key).filter(|v| !v.is_null())?.clone()));
    let mut body: Object = KEPT.into_iter().filter_map(kept).collect();
    body.get("input")?;
    let mut metadata = match event.get("metadata") {
        Some(Value::Object(metadata)) => metadata.clone(),
        _ => Object::new(),
    };
    metadata.insert("replay_of".to_owned(), json!(event_id));
    body.insert("metadata".to_owned(), metadata.into());
    body.insert("event_id".to_owned(), json!(uuid::Uuid::now_v7().to_string()));
    body.insert("agent".to_owned(), json!(agent));
    Some(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_keeps_the_event_and_leaves_out_what_the_host_added() {
        let event = json!({
            "event_id": "e1", "seq": 7, "created_at": "2026-01-01T00:00:00.000Z",
            "event": {
                "event_type": "message.received", "event_id": "e1", "conversation_id": "c1",
                "subject": null, "delivery": { "surface": "s" }, "input": { "text": "hi" },
                "metadata": { "lang": "en" },
            },
        });
        let mut body = replay(event.as_object().unwrap(), "e1", "triage").unwrap();
        assert!(body.remove("event_id").unwrap().as_str().unwrap().len() > 30);
        let expected = json!({
            "event_type": "message.received", "conversation_id": "c1", "input": { "text": "hi" },
            "agent": "triage", "metadata": { "lang": "en", "replay_of": "e1" },
        });
        assert_eq!(Value::Object(body), expected);
    }

    #[test]
    fn an_event_without_its_body_cannot_be_replayed() {
        let event = json!({ "event_id": "e1", "event_type": "message.received", "event": null });
        assert_eq!(replay(event.as_object().unwrap(), "e1", "triage"), None);
    }
}
