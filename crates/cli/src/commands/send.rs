//! `greenroom send`: one message in, and on request its answer as it comes.
//!
//! Invariant: the event has an id of ours before it is sent, so the same command line can be repeated safely
//! with `--event-id`. What is attached is kept before the event that names it is sent.

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

/// Send a message to an agent
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without `--follow` the run's id is printed; with it the answer, as it comes.
The answer alone is on standard output, everything else on standard error.

Examples:
  greenroom send \"hello\" --follow
  greenroom send \"what is new?\" --agent triage --conversation c1
  greenroom send \"what is in it?\" --attach photo.png --attach notes.pdf --follow
  git diff | greenroom send - --follow")]
pub struct Args {
    /// The message; `-` reads it from standard input
    text: String,
    /// Agent that shall take it; without it the bindings decide
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Conversation it belongs to
    #[arg(long, value_name = "ID", default_value = "cli")]
    conversation: String,
    /// Id of the sender
    #[arg(long, value_name = "ID", default_value = "cli")]
    actor: String,
    /// File that goes with the message, kept as an artifact; may be given several times
    #[arg(long, value_name = "FILE", conflicts_with = "event_id")]
    attach: Vec<PathBuf>,
    /// Id of the event; sending the same one again gives the first answer
    #[arg(long, value_name = "ID")]
    event_id: Option<String>,
    #[command(flatten)]
    watch: WatchArgs,
    #[command(flatten)]
    host: HostArgs,
}

/// How the answer is shown.
#[derive(Debug, clap::Args)]
pub(super) struct WatchArgs {
    /// Print the answer as it comes
    #[arg(long, short)]
    follow: bool,
    /// Print JSON: what the host answered, then every result on a line
    #[arg(long)]
    pub(super) json: bool,
}

pub async fn run(args: Args) -> Outcome {
    let piped = args.attach.iter().filter(|file| is_stdin(file)).count();
    if piped + usize::from(args.text == "-") > 1 {
        let failure = Failure::new("standard input can be read only once");
        return Err(failure.hint("name a file instead of one `-`").exit(Exit::Usage));
    }
    let text = match args.text.as_str() {
        "-" => stdin()?,
        text => text.to_owned(),
    };
    let client = Client::new(&args.host)?;
    let reading = Reading::new(args.watch.json, language_of(&text));
    let attachments = attachments(&client, &args).await?;
    let event = event(&args, AgentInput { text: Some(text), attachments, ..AgentInput::default() });
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

/// The agents there are, for whoever named one that does not exist.
async fn with_agents(client: &Client, failure: Failure) -> Failure {
    if failure.refusal().is_none_or(|refusal| refusal.code != ErrorCode::NotFound) {
        return failure;
    }
    let Ok(page) = client.get::<Page<Object>>(&["v1", "agents"], &[]).await else { return failure };
    let names = page.items.iter().filter_map(|agent| agent.get("name")?.as_str());
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    failure.or_hint(format!("there are {}", names.join(", ")))
}

/// Tells what became of an event, and follows its run if asked to.
pub(super) async fn finish(
    client: &Client,
    answer: &EventAnswer,
    watch: &WatchArgs,
    mut reading: Reading,
) -> Outcome {
    if watch.json {
        output::print_json(answer)?;
    }
    let Some(run_id) = &answer.run_id else {
        return Err(Failure::new(format!("no agent takes the event `{}`", answer.event_id))
            .exit(Exit::NotFound)
            .hint("name one with `--agent`, or add an agent that matches to the configuration"));
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
            return Err(Failure::new("interrupted; the run goes on").hint(format!(
                "`greenroom runs follow {run_id}` shows the rest, `greenroom runs cancel {run_id}` ends it"
            )));
        }
    };
    reading.end(&run)
}

/// Keeps what goes with the message, for its conversation.
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

fn event(args: &Args, input: AgentInput) -> NewEvent {
    NewEvent {
        event_type: "message.received".to_owned(),
        event_id: Some(args.event_id.clone().unwrap_or_else(|| uuid::Uuid::now_v7().to_string())),
        source: "api".to_owned(),
        event_time: None,
        bot_id: None,
        workspace_id: None,
        conversation_id: Some(args.conversation.clone()),
        thread_id: None,
        actor: Some(ActorContext {
            actor_type: "user".to_owned(),
            actor_id: Some(args.actor.clone()),
            ..ActorContext::default()
        }),
        subject: None,
        input,
        delivery: None,
        data: Object::new(),
        agent: args.agent.clone(),
        metadata: Object::new(),
    }
}

fn stdin() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text)?;
    Ok(text)
}
