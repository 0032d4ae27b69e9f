//! `greenroom send`: sends one event, usually a message, and optionally follows its answer.
//!
//! Invariant: the event has an id before it is sent, so the command can be repeated safely with `--event-id`.
//! Attachments are uploaded before the event that refers to them is sent.

mod json;

use super::artifacts_put::{body_of, is_stdin, name_of};
use crate::client::{Client, HostArgs, Page, follow};
use crate::failure::{Exit, Failure, Outcome};
use crate::output;
use crate::reading::{Reading, language_of};
use greenroom_protocol::{
    ActorContext, AgentInput, ArtifactRef, ErrorCode, EventAnswer, NewEvent, Object,
};
use std::io::Read;
use std::path::PathBuf;

/// The event type of plain messages.
const MESSAGE: &str = "message.received";

/// Send a message or another event to an agent
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without `--follow`, prints the id of the run; with it, the answer while it is produced.
Standard output has the answer only, standard error everything else.

Examples:
  greenroom send \"hello\" --follow
  greenroom send \"what is new?\" --agent triage --conversation c1
  greenroom send \"what is in it?\" --attach photo.png --attach notes.pdf --follow
  git diff | greenroom send - --follow
  greenroom send --type issue.opened --agent echo --data '{\"severity\":\"high\"}'
  greenroom send \"disk full\" --type alert.raised --data @alert.json --source monitor
  jq .issue hook.json | greenroom send --type issue.opened --data -")]
pub struct Args {
    /// The message; `-` reads it from standard input. Optional for events of another type
    text: Option<String>,
    /// Type of the event
    #[arg(long = "type", value_name = "TYPE", default_value = MESSAGE)]
    event_type: String,
    /// `data` of the event, a JSON object: `{…}`, `@FILE`, or `-` for standard input. Any other value is the
    /// data folder of the host, as for other commands [default: ./greenroom-data, or `GREENROOM_URL` with
    /// `GREENROOM_TOKEN`]
    #[arg(long, value_name = "JSON|DIR")]
    data: Vec<String>,
    /// Agent for the event [default: decided by the bindings]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Conversation of the event
    #[arg(long, value_name = "ID", default_value = "cli")]
    conversation: String,
    /// Thread of the conversation
    #[arg(long, value_name = "ID")]
    thread: Option<String>,
    /// Source of the event; event ids are unique per source
    #[arg(long, value_name = "NAME", default_value = "api")]
    source: String,
    /// Subject of the event, a JSON object with `subject_type`, `subject_id` and `data`
    #[arg(long, value_name = "JSON")]
    subject: Option<String>,
    /// Id of the sender
    #[arg(long, value_name = "ID", default_value = "cli")]
    actor: String,
    /// File to attach, stored as an artifact; may be given several times
    #[arg(long, value_name = "FILE", conflicts_with = "event_id")]
    attach: Vec<PathBuf>,
    /// Id of the event; sending the same id again returns the first answer
    #[arg(long, value_name = "ID")]
    event_id: Option<String>,
    #[command(flatten)]
    watch: WatchArgs,
}

/// The two meanings of `--data`.
struct Data {
    json: Option<String>,
    host: HostArgs,
}

impl Data {
    /// JSON, `@FILE` and `-` are data of the event; any other value is a folder.
    fn of(values: &[String]) -> Result<Self, Failure> {
        let is_json = |value: &&String| value.starts_with(['{', '[', '"', '@']) || *value == "-";
        let (json, folders): (Vec<&String>, Vec<&String>) = values.iter().partition(is_json);
        if json.len() > 1 || folders.len() > 1 {
            let failure = Failure::new("`--data` is given twice with the same meaning");
            let hint = "JSON, `@FILE` or `-` is the data of the event, any other value the data folder of the host";
            return Err(failure.hint(hint).exit(Exit::Usage));
        }
        let data = folders.first().map(PathBuf::from);
        Ok(Self { json: json.first().map(|json| (*json).clone()), host: HostArgs { data } })
    }
}

/// How the answer is shown.
#[derive(Debug, clap::Args)]
pub(super) struct WatchArgs {
    /// Print the answer while it is produced
    #[arg(long, short)]
    follow: bool,
    /// Print JSON: the response of the host, then every result on a line
    #[arg(long)]
    pub(super) json: bool,
}

pub async fn run(args: Args) -> Outcome {
    let data = Data::of(&args.data)?;
    check(&args, &data)?;
    let text = match args.text.as_deref() {
        Some("-") => Some(stdin()?),
        text => text.map(str::to_owned),
    };
    let mut event = event(&args, &data)?;
    let client = Client::new(&data.host)?;
    let reading = Reading::new(args.watch.json, language_of(text.as_deref().unwrap_or_default()));
    let attachments = attachments(&client, &args).await?;
    event.input = AgentInput { text, attachments, ..AgentInput::default() };
    let answer = client.post(&["v1", "events"], &event).await;
    let answer: EventAnswer = match answer {
        Ok(answer) => answer,
        Err(error) if args.agent.is_some() => {
            return Err(with_agents(&client, error.into()).await);
        }
        Err(error) => return Err(error.into()),
    };
    finish(&client, &answer, &args.watch, reading).await
}

/// Refuses invalid combinations of arguments.
fn check(args: &Args, data: &Data) -> Result<(), Failure> {
    let words = [&args.text, &data.json, &args.subject].into_iter().flatten();
    let piped = words.filter(|word| *word == "-").count();
    if piped + args.attach.iter().filter(|file| is_stdin(file)).count() > 1 {
        let failure = Failure::new("standard input can be read only once");
        return Err(failure.hint("use a file instead of one `-`").exit(Exit::Usage));
    }
    if args.event_type == MESSAGE && args.text.is_none() && args.attach.is_empty() {
        let failure = Failure::new("the message is missing");
        let hint = "write it after `send`, or choose another event type with `--type`";
        return Err(failure.hint(hint).exit(Exit::Usage));
    }
    Ok(())
}

/// Adds the existing agents to an error about an unknown one.
async fn with_agents(client: &Client, failure: Failure) -> Failure {
    if failure.refusal().is_none_or(|refusal| refusal.code != ErrorCode::NotFound) {
        return failure;
    }
    let Ok(page) = client.get::<Page<Object>>(&["v1", "agents"], &[]).await else { return failure };
    let names = page.items.iter().filter_map(|agent| agent.get("name")?.as_str());
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    failure.or_hint(format!("available: {}", names.join(", ")))
}

/// Prints the response to an event, and follows its run if requested.
pub(super) async fn finish(
    client: &Client,
    answer: &EventAnswer,
    watch: &WatchArgs,
    mut reading: Reading,
) -> Outcome {
    if watch.json {
        output::print_json(answer)?;
    }
    for warning in &answer.warnings {
        output::note(&format!("warning: {}", output::plain(warning)));
    }
    let Some(run_id) = &answer.run_id else {
        return Err(Failure::new(format!(
            "event `{}` was stored, but no agent matches it",
            answer.event_id
        ))
        .exit(Exit::NotFound)
        .hint("choose one with `--agent`, or configure an agent that matches"));
    };
    if !watch.follow {
        if !watch.json {
            output::print(&format!("{run_id}\n"))?;
            output::note(&format!(
                "{}; `greenroom runs follow {run_id}` shows the answer",
                answer.status
            ));
        }
        return Ok(Exit::Ok);
    }
    let run = tokio::select! {
        run = follow(client, run_id, 0, &mut reading) => run?,
        _ = tokio::signal::ctrl_c() => {
            return Err(Failure::new("interrupted; the run continues").hint(format!(
                "`greenroom runs follow {run_id}` shows the rest, `greenroom runs cancel {run_id}` cancels it"
            )));
        }
    };
    reading.end(&run)
}

/// Uploads the attachments.
async fn attachments(client: &Client, args: &Args) -> Result<Vec<ArtifactRef>, Failure> {
    let mut kept = Vec::new();
    for file in &args.attach {
        let mut query = vec![("conversation_id", args.conversation.clone())];
        query.extend(name_of(file).map(|name| ("name", name)));
        let artifact = client.upload(&query, None, body_of(file).await?).await?;
        kept.push(ArtifactRef {
            artifact_id: artifact.artifact_id,
            name: artifact.name,
            mime_type: Some(artifact.mime_type),
            size_bytes: Some(artifact.size_bytes),
            ..ArtifactRef::default()
        });
    }
    Ok(kept)
}

fn event(args: &Args, data: &Data) -> Result<NewEvent, Failure> {
    let data = data.json.as_deref().map(|value| json::object("--data", value)).transpose()?;
    let subject = args.subject.as_deref().map(|value| json::object("--subject", value));
    let subject = subject.transpose()?.map(|subject| serde_json::from_value(subject.into()));
    let subject = subject.transpose().map_err(|error| {
        Failure::new(format!("`--subject` is not a subject: {error}"))
            .hint("it needs a `subject_type`, and may have a `subject_id` and `data`")
            .exit(Exit::Usage)
    })?;
    Ok(NewEvent {
        event_type: args.event_type.clone(),
        event_id: Some(args.event_id.clone().unwrap_or_else(|| uuid::Uuid::now_v7().to_string())),
        source: args.source.clone(),
        event_time: None,
        source_event_type: None,
        locale: None,
        bot_id: None,
        workspace_id: None,
        conversation_id: Some(args.conversation.clone()),
        thread_id: args.thread.clone(),
        actor: Some(ActorContext {
            actor_type: "user".to_owned(),
            actor_id: Some(args.actor.clone()),
            ..ActorContext::default()
        }),
        subject,
        input: AgentInput::default(),
        delivery: None,
        data: data.unwrap_or_default(),
        agent: args.agent.clone(),
        metadata: Object::new(),
    })
}

fn stdin() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    Ok(text)
}
