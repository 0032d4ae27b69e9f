//! `greenroom runs answer`: shows the question of a run and answers it.

use crate::client::{Client, HostArgs, Page, follow};
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{self, plain};
use crate::reading::{Reading, form_lines, language_of};
use greenroom_protocol::interaction::{InteractionField, InteractionFieldKind};
use greenroom_protocol::{EventAnswer, InteractionRequest, InteractionSubmission, Object};
use serde::Deserialize;
use serde_json::Value;

/// Answer a question of a run, or show it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without an action and fields, shows the question.

Examples:
  greenroom runs answer run_0197…
  greenroom runs answer run_0197… --action approve
  greenroom runs answer run_0197… --action order --set size=large --set count=2 --follow")]
pub struct Args {
    /// Id of the run that asks
    run: String,
    /// Id of the question, if the run has several
    #[arg(long, value_name = "ID")]
    interaction: Option<String>,
    /// The button to press
    #[arg(long, value_name = "ID")]
    action: Option<String>,
    /// The value of a field; values of a list are separated by commas
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    values: Vec<String>,
    /// Print what follows from the answer
    #[arg(long)]
    follow: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

#[derive(Debug, Deserialize)]
struct Interaction {
    interaction_id: String,
    status: String,
    request: InteractionRequest,
}

pub async fn run(args: Args) -> Outcome {
    let client = Client::new(&args.host)?;
    client.named_run(&args.run).await?;
    let path = ["v1", "runs", &args.run, "interactions"];
    let page: Page<Interaction> = client.get(&path, &[]).await?;
    let question = choose(&args, page.items)?;
    if args.action.is_none() && args.values.is_empty() {
        let lines = form_lines(&question.request, &args.run, language_of(""));
        output::print(&format!(
            "{}\n{}\n",
            plain(&question.request.fallback_text),
            lines.join("\n")
        ))?;
        output::note(&format!("this question is {}", plain(&question.status)));
        return Ok(Exit::Ok);
    }
    let answer = InteractionSubmission {
        interaction_id: question.interaction_id,
        action_id: args.action.clone(),
        values: values(&args.values, &question.request)?,
    };
    let answered: EventAnswer = client.post(&path, &serde_json::json!(answer)).await?;
    let Some(run_id) = answered.run_id.clone().filter(|_| args.follow) else {
        match args.json {
            true => output::print_json(&answered)?,
            false => output::note(&format!(
                "run `{}` got the answer",
                plain(answered.run_id.as_deref().unwrap_or_default())
            )),
        }
        return Ok(Exit::Ok);
    };
    let mut reading = Reading::new(args.json, language_of(""));
    let run = follow(&client, &run_id, 0, &mut reading).await?;
    reading.end(&run)
}

/// The question that is named, or the only one that is open.
fn choose(args: &Args, mut questions: Vec<Interaction>) -> Result<Interaction, Failure> {
    if let Some(id) = &args.interaction {
        questions.retain(|question| question.interaction_id == *id);
    } else if questions.len() > 1 {
        questions.retain(|question| question.status == "pending");
    }
    match questions.len() {
        1 => Ok(questions.remove(0)),
        0 => {
            Err(Failure::new(format!("run `{}` asks no such question", args.run)).exit(Exit::Usage))
        }
        _ => {
            let ids: Vec<&str> =
                questions.iter().map(|question| question.interaction_id.as_str()).collect();
            let message = format!("run `{}` asks several questions", args.run);
            let hint = format!("name one with `--interaction`: {}", ids.join(", "));
            Err(Failure::new(message).exit(Exit::Usage).hint(plain(&hint)))
        }
    }
}

/// Values as their fields want them; what does not fit is refused by the host.
fn values(given: &[String], request: &InteractionRequest) -> Result<Object, Failure> {
    let value = |pair: &String| {
        let Some((id, text)) = pair.split_once('=') else {
            let message = format!("`{pair}` is not of the form FIELD=VALUE");
            return Err(Failure::new(message).exit(Exit::Usage));
        };
        let field = request.fields.iter().find(|field| field.id == id);
        Ok((id.to_owned(), field.map_or(text.into(), |field| typed(field, text))))
    };
    given.iter().map(value).collect()
}

fn typed(field: &InteractionField, text: &str) -> Value {
    match field.kind {
        InteractionFieldKind::Number | InteractionFieldKind::Boolean => {
            serde_json::from_str(text).unwrap_or_else(|_| text.into())
        }
        InteractionFieldKind::Multiselect => {
            let items = text.split(',').map(str::trim).filter(|item| !item.is_empty());
            items.map(Value::from).collect()
        }
        _ => text.into(),
    }
}
