//! Permission requests of the harness: the host decides.
//!
//! Invariant: only options that hold once are chosen, by their kind; whatever fails is a refusal.

use crate::tool_calls::ToolCall;
use greenroom_sdk::{HarnessDecision, HarnessPermissionParams, Object, RunCtx, Value, json};

/// Largest input of a question beyond its command, paths and changes.
const INPUT_BYTES_MAX: usize = 48 * 1024;
/// Most bytes of changed text in a question.
const CHANGES_BYTES_MAX: usize = 96 * 1024;

/// Asks the host; the result is the answer for the harness.
pub(crate) async fn ask(ctx: &RunCtx, call: &ToolCall, options: &Value) -> Value {
    let decision = match ctx.harness().permission(&params(call)).await {
        Ok(permission) => permission.decision,
        Err(error) => {
            eprintln!("the host did not decide about a permission: {error}");
            HarnessDecision::Deny
        }
    };
    outcome(decision, options)
}

fn params(call: &ToolCall) -> HarnessPermissionParams {
    let mut left = CHANGES_BYTES_MAX;
    let mut changes = call.changes();
    changes.retain(|change| {
        let bytes = change.new_text.len() + change.old_text.as_ref().map_or(0, String::len);
        let fits = bytes <= left;
        left -= if fits { bytes } else { 0 };
        fits
    });
    // What is shown as command, path and change is not shown twice.
    let input = call
        .input()
        .filter(|input| changes.is_empty() && json!(input).to_string().len() <= INPUT_BYTES_MAX);
    let mut input: Object = input.cloned().map(Object::from_iter).unwrap_or_default();
    // Some say in words what they are about to do.
    let words = call.words();
    if input.is_empty() && call.command().is_none() && changes.is_empty() && !words.is_empty() {
        input.insert("text".to_owned(), words.into());
    }
    HarnessPermissionParams {
        kind: call.kind(),
        title: call.title(),
        tool_call_id: Some(call.id.chars().take(200).collect()),
        command: call.command(),
        paths: call.paths(),
        changes,
        input,
    }
}

/// The option for this one call. Without one, the question is cancelled, which refuses it.
fn outcome(decision: HarnessDecision, options: &Value) -> Value {
    let wanted = match decision {
        HarnessDecision::Allow => "allow_once",
        HarnessDecision::Deny => "reject_once",
    };
    let options = options.as_array().into_iter().flatten();
    let mut chosen = options.filter(|option| option["kind"] == wanted);
    match chosen.next().and_then(|option| option["optionId"].as_str()) {
        Some(id) => json!({"outcome": {"outcome": "selected", "optionId": id}}),
        None => json!({"outcome": {"outcome": "cancelled"}}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_harness_says_in_words_is_shown() {
        let mut call = ToolCall::new("1");
        let content = json!([{"type": "content", "content": {"type": "text", "text": "run `ls`"}}]);
        call.update(&json!({"title": "Bash", "kind": "execute", "content": content}));
        assert_eq!(json!(params(&call).input), json!({"text": "run `ls`"}));
        call.update(&json!({"rawInput": {"command": "ls"}}));
        assert_eq!(json!(params(&call).input), json!({"command": "ls"}));
    }

    #[test]
    fn the_option_is_chosen_by_its_kind_and_holds_once() {
        let options = json!([
            {"optionId": "always", "kind": "allow_always"}, {"optionId": "yes", "kind": "allow_once"},
            {"optionId": "never", "kind": "reject_always"}, {"optionId": "no", "kind": "reject_once"}]);
        let chosen = |decision, options| outcome(decision, options)["outcome"]["optionId"].clone();
        assert_eq!(chosen(HarnessDecision::Allow, &options), "yes");
        assert_eq!(chosen(HarnessDecision::Deny, &options), "no");
        let only_always = json!([{"optionId": "always", "kind": "allow_always"}]);
        let refused = outcome(HarnessDecision::Allow, &only_always);
        assert_eq!(refused, json!({"outcome": {"outcome": "cancelled"}}));
    }
}
