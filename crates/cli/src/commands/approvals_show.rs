//! `greenroom approvals show`: one approval with its request, actor and outcome.

use crate::calls;
use crate::client::{Client, HostArgs};
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{self, plain};
use crate::reading::language_of;
use greenroom_protocol::Object;
use greenroom_protocol::api::platform::{ApprovalStatus, ApprovalView, OutcomeStatus};
use greenroom_tools::ui::Language;

/// Show one approval: action, target, payload and outcome
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  greenroom approvals show apr_0197…
  greenroom approvals show apr_0197… --json")]
pub struct Args {
    /// Id of the approval
    approval: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

pub async fn run(args: Args) -> Outcome {
    let client = Client::new(&args.host)?;
    let approval = load(&client, &args.approval).await?;
    match args.json {
        true => output::print_json(&approval)?,
        false => {
            let language = language_of("");
            output::print(&describe(&approval, language))?;
            if approval.status == ApprovalStatus::Pending {
                output::note(&calls::answers(&approval, language, &client.option()));
            }
        }
    }
    Ok(Exit::Ok)
}

/// An approval by the id that a user entered.
pub(super) async fn load(client: &Client, approval_id: &str) -> Result<ApprovalView, Failure> {
    let found = client.get(&["v1", "approvals", approval_id], &[]).await;
    found.map_err(|error| {
        Failure::from(error).or_hint("`greenroom approvals list --status all` lists them")
    })
}

fn describe(approval: &ApprovalView, language: Language) -> String {
    let json = |object: &Object| serde_json::to_string(object).unwrap_or_default();
    let mut target = approval.target.clone();
    // The arguments that the call asked for, if it was allowed with others.
    let asked = target.remove("asked_payload").map(|asked| asked.to_string());
    let request = calls::request(approval, language).0;
    let answered = approval.answered_at.as_ref().map(|at| {
        let by = approval.answered_by.as_ref().map_or(String::new(), |by| format!(" by {by}"));
        format!("{at}{by}")
    });
    let outcome = approval.outcome.as_ref().map(|outcome| {
        let status = match outcome.status {
            OutcomeStatus::Done => "done",
            OutcomeStatus::Failed => "failed",
            OutcomeStatus::Unknown => "unknown",
            OutcomeStatus::Queued => "queued",
        };
        let error = outcome.error.as_ref().map_or(String::new(), |error| format!(": {error}"));
        format!("{status}{error}")
    });
    let lines = [
        ("action", Some(approval.action.clone())),
        ("tool", Some(request).filter(|request| *request != approval.action)),
        ("about", calls::about(approval, language)),
        ("risk", calls::risk(approval)),
        ("target", Some(json(&target))),
        ("payload", Some(json(&approval.payload))),
        ("edited from", asked),
        ("agent", Some(format!("{} ({})", approval.agent, approval.runner_id))),
        ("run", Some(approval.run_id.clone())),
        ("conversation", approval.conversation_id.clone()),
        ("actor", calls::actor(approval)),
        ("asked", Some(approval.created_at.clone())),
        ("expires", Some(approval.expires_at.clone())),
        ("answered", answered),
        ("outcome", outcome),
    ];
    let head = format!("approval {} {}\n\n", approval.approval_id, approval.status.as_str());
    let lines = lines.into_iter().filter_map(|(name, value)| {
        let value = plain(&value?).replace('\n', " ");
        Some(format!("  {name:<12}  {value}\n"))
    });
    std::iter::once(head).chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_value, json};

    #[test]
    fn an_approval_is_shown_with_its_outcome() {
        let approval: ApprovalView = from_value(json!({
            "approval_id": "apr_1", "nonce": "n", "status": "allowed", "action": "message.send",
            "target": {"surface": "hook"}, "payload": {"text": "hi\u{1b}[2J"}, "agent": "helper",
            "runner_id": "plugin:acme/helper/default", "run_id": "run_1", "conversation_id": "c1",
            "actor": {"actor_type": "user", "actor_id": "u1"},
            "created_at": "2026-01-02T03:04:05.000Z", "expires_at": "2026-01-02T03:34:05.000Z",
            "answered_at": "2026-01-02T03:05:05.000Z", "answered_by": "admin",
            "outcome": {"status": "failed", "delivery_id": "dlv_1", "error": "it answered 404"},
        }))
        .unwrap();
        insta::assert_snapshot!(describe(&approval, Language::English), @r#"
        approval apr_1 allowed

          action        message.send
          target        {"surface":"hook"}
          payload       {"text":"hi\u001b[2J"}
          agent         helper (plugin:acme/helper/default)
          run           run_1
          conversation  c1
          actor         user u1
          asked         2026-01-02T03:04:05.000Z
          expires       2026-01-02T03:34:05.000Z
          answered      2026-01-02T03:05:05.000Z by admin
          outcome       failed: it answered 404
        "#);
    }
}
