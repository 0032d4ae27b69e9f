//! `RunAgentInput` of an AG-UI client, and the event built from it.
//!
//! Invariant: the event is a pressed button, or built from the newest message only; earlier messages and their
//! metadata are not trusted, and everything else is passed to the runner as client-supplied. A message that was
//! answered is not answered again.

mod action;
mod content;

use crate::id::Id;
use crate::response::Problem;
use greenroom_protocol::interaction::{INTERACTION, InteractionSubmission};
use greenroom_protocol::{AdapterContext, NESTING_MAX, NewEvent, Object, nesting_depth};
use serde::Deserialize;
use serde_json::{Value, json};

/// The source of these events.
pub(crate) const SOURCE: &str = "agui";
const ROLES: [&str; 7] =
    ["developer", "system", "assistant", "user", "tool", "activity", "reasoning"];

/// `RunAgentInput`.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RunInput {
    pub(crate) thread_id: String,
    pub(crate) run_id: String,
    #[serde(default)]
    protocol_version: Option<String>,
    #[serde(default)]
    parent_run_id: Option<String>,
    /// As sent, to be returned in snapshots.
    pub(crate) messages: Vec<Value>,
    #[serde(default)]
    pub(crate) state: Value,
    #[serde(default)]
    tools: Option<Vec<Object>>,
    #[serde(default)]
    context: Option<Vec<Object>>,
    #[serde(default)]
    forwarded_props: Value,
    #[serde(default)]
    resume: Option<Vec<ResumeEntry>>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ResumeEntry {
    pub(crate) interrupt_id: String,
    pub(crate) status: ResumeStatus,
    #[serde(default)]
    pub(crate) payload: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResumeStatus {
    Resolved,
    Cancelled,
}

/// The protocol version of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Profile {
    /// 1.0 or later.
    One,
    /// Unspecified: only events that every version accepts are sent.
    Legacy,
}

impl RunInput {
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Problem> {
        if nesting_depth(body) > NESTING_MAX {
            let message = format!("the body is nested deeper than {NESTING_MAX} levels");
            return Err(Problem::invalid(message));
        }
        let invalid =
            |error| Problem::invalid(format!("the body is not a `RunAgentInput`: {error}"));
        let value: Value = serde_json::from_slice(body).map_err(invalid)?;
        if !value.is_object() {
            return Err(Problem::invalid("the body is not a `RunAgentInput`: expected an object"));
        }
        let resume = value["resume"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !resume.iter().all(Value::is_object) {
            return Err(Problem::invalid(
                "the body is not a `RunAgentInput`: `resume` must contain objects",
            ));
        }
        let input: Self = serde_json::from_value(value).map_err(invalid)?;
        for id in [&input.thread_id, &input.run_id] {
            Id::parse(id.clone())?;
        }
        for message in &input.messages {
            check_message(message)?;
        }
        Ok(input)
    }

    pub(crate) fn profile(&self) -> Profile {
        match self.protocol_version {
            Some(_) => Profile::One,
            None => Profile::Legacy,
        }
    }

    /// An answer to a question of a run: the run, and the answer.
    pub(crate) fn interaction(&self) -> Result<Option<(String, InteractionSubmission)>, Problem> {
        #[derive(Deserialize)]
        struct Answer {
            run_id: String,
            interaction_id: String,
            #[serde(default)]
            action_id: Option<String>,
            #[serde(default)]
            values: Object,
        }
        let Some(given) = self.forwarded_props.get(INTERACTION).filter(|given| !given.is_null())
        else {
            return Ok(None);
        };
        let answer = serde_json::from_value::<Answer>(given.clone()).map_err(|error| {
            Problem::invalid(format!("`forwardedProps.interaction` is not an answer: {error}"))
        })?;
        let Answer { run_id, interaction_id, action_id, values } = answer;
        Ok(Some((run_id, InteractionSubmission { interaction_id, action_id, values })))
    }

    /// The id of the catalogue that the client's cards use.
    pub(crate) fn catalogue(&self) -> &'static str {
        action::catalogue(&self.forwarded_props, self.profile() == Profile::Legacy)
    }

    pub(crate) fn resume(&self) -> &[ResumeEntry] {
        self.resume.as_deref().unwrap_or_default()
    }

    /// The event of this input. `forwardedProps.actor` names its actor; the default is the token's name.
    pub(crate) fn event(
        &self,
        workspace: &str,
        agent: &str,
        token: &str,
    ) -> Result<NewEvent, Problem> {
        let actor = match self.forwarded_props.get("actor") {
            Some(Value::Object(actor)) => {
                let mut actor = actor.clone();
                actor.entry("actor_type").or_insert_with(|| "user".into());
                Value::Object(actor)
            }
            _ => json!({"actor_type": "user", "actor_id": token}),
        };
        let mut event = json!({"event_id": self.run_id, "source": SOURCE,
            "conversation_id": self.thread_id, "workspace_id": workspace, "agent": agent,
            "actor": actor});
        if let Some(data) = action::pressed(&self.forwarded_props)? {
            event["event_type"] = action::EVENT_TYPE.into();
            event["data"] = data;
            return parse(&event);
        }
        let is_shown_only =
            |message: &&Value| matches!(message["role"].as_str(), Some("activity" | "reasoning"));
        match self.messages.iter().rev().find(|message| !is_shown_only(message)) {
            Some(message) if message["role"] == "assistant" => {
                let message = "`messages` ends with an answer: there is nothing new to answer";
                return Err(Problem::invalid(message));
            }
            Some(message) if message["role"] == "tool" => {
                event["event_type"] = "tool.result.received".into();
                event["data"] = json!({"results": self.tool_results()});
            }
            Some(message) => {
                event["event_type"] = "message.received".into();
                event["input"] = content::input(&message["content"])?;
                event["metadata"] = json!({"message_id": message["id"]});
            }
            None => return Err(Problem::invalid("`messages` contains no message to answer")),
        }
        parse(&event)
    }

    /// Text, data and adapter context may be as large as an event; media are stored as artifacts.
    pub(crate) fn check_size(&self, event: &NewEvent, bytes_max: usize) -> Result<(), Problem> {
        let text = event.input.text.as_deref().unwrap_or_default().len();
        let rest = json!([event.data, self.adapter().extra]).to_string().len();
        match text + rest > bytes_max {
            true => Err(Problem::too_large(bytes_max)),
            false => Ok(()),
        }
    }

    /// Results of client-side tools: the tool messages at the end.
    fn tool_results(&self) -> Vec<Value> {
        let last = self.messages.iter().rev().take_while(|message| message["role"] == "tool");
        let mut results: Vec<Value> = last
            .map(|message| {
                let mut result = json!({"tool_call_id": message["toolCallId"],
                    "content": message["content"]});
                if let Some(error) = message.get("error") {
                    result["error"] = error.clone();
                }
                result
            })
            .collect();
        results.reverse();
        results
    }

    /// Everything else, for the runner.
    pub(crate) fn adapter(&self) -> AdapterContext {
        let mut extra = Object::new();
        let tools = self.tools.clone().unwrap_or_default();
        let context = self.context.clone().unwrap_or_default();
        for (name, value) in [
            ("state", self.state.clone()),
            ("context", json!(context)),
            ("forwardedProps", self.forwarded_props.clone()),
            ("tools", json!(tools)),
            ("parentRunId", json!(self.parent_run_id)),
        ] {
            if !value.is_null() {
                extra.insert(name.to_owned(), value);
            }
        }
        AdapterContext { name: Some(SOURCE.to_owned()), extra }
    }
}

fn parse(event: &Value) -> Result<NewEvent, Problem> {
    NewEvent::parse(event.to_string().as_bytes())
        .map_err(|error| Problem::invalid(error.to_string()))
}

/// Checks the fields that are used here or returned.
fn check_message(message: &Value) -> Result<(), Problem> {
    let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
    if !ROLES.contains(&role) {
        return Err(Problem::invalid("`messages`: a message has no valid `role`"));
    }
    if message.get("id").and_then(Value::as_str).is_none_or(str::is_empty) {
        return Err(Problem::invalid("`messages`: a message has no `id`"));
    }
    if role == "tool" && !message["toolCallId"].is_string() {
        return Err(Problem::invalid("`messages`: a tool message has no `toolCallId`"));
    }
    match role {
        "user" | "developer" | "system" => content::input(&message["content"]).map(drop),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
