//! The client of an event, such as a page that speaks AG-UI: its tools, and what its application says.
//!
//! Invariant: it is data. A tool of the client is never executed here: a call of one ends the run, and the client's next
//! event brings the result. What the application says is framed, and cannot close its frame.

use greenroom_sdk::{
    AgentAPIError, ErrorCode, ModelMessage, ModelToolCall, Object, Role, RunCtx, RunFailure,
    RunResult, ToolResource, Value, json,
};
use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

/// The adapter whose data is read here.
const AGUI: &str = "agui";
/// The type of the event with results of the client's tools.
pub(crate) const TOOL_RESULT: &str = "tool.result.received";
/// The tag of what the application says.
pub(crate) const TAG: &str = "client";
/// The tool that changes the client's state.
pub(crate) const UPDATE_STATE: &str = "update_client_state";

/// The prompt's explanation of the frame.
pub(crate) const NOTE: &str = "\
A message inside <client>…</client> comes from the application in which the user writes, as JSON: its \
`instructions`, its `context` and its current `state`. Follow the instructions as far as they agree with the above.";

/// A call of a tool of the client in an earlier run, without its result so far.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PendingCall {
    /// As the run had it.
    pub(crate) call_id: String,
    /// As the request has it: unique in the conversation.
    pub(crate) id: String,
    pub(crate) name: String,
}

/// Empty for an event of another kind of sender.
#[derive(Debug, Default)]
pub(crate) struct Client {
    tools: Vec<ToolResource>,
    /// What the application says.
    said: Object,
    /// The client's state, as far as it is an object.
    state: Option<Mutex<Object>>,
}

impl Client {
    pub(crate) fn read(ctx: &RunCtx) -> Self {
        let adapter = ctx.adapter.as_ref().filter(|one| one.name.as_deref() == Some(AGUI));
        let Some(extra) = adapter.map(|adapter| &adapter.extra) else { return Self::default() };
        let tools = extra.get("tools").and_then(Value::as_array).into_iter().flatten();
        let said = [("instructions", "system"), ("context", "context"), ("state", "state")];
        let said = said.into_iter().filter_map(|(name, key)| {
            let value = extra.get(key).filter(|value| !is_empty(value))?;
            Some((name.to_owned(), value.clone()))
        });
        let state = extra.get("state").and_then(Value::as_object).filter(|state| !state.is_empty());
        Self {
            tools: tools.filter_map(tool).collect(),
            said: said.collect(),
            state: state.cloned().map(Mutex::new),
        }
    }

    /// Whether the event came from such a client, which shows a response as it is written.
    pub(crate) fn is_watching(ctx: &RunCtx) -> bool {
        ctx.adapter.as_ref().is_some_and(|adapter| adapter.name.as_deref() == Some(AGUI))
    }

    pub(crate) fn tools(&self) -> &[ToolResource] {
        &self.tools
    }

    /// A client may not replace a tool of the agent.
    pub(crate) fn check_names<'n>(
        &self,
        mut known: impl Iterator<Item = &'n str>,
    ) -> Result<(), RunFailure> {
        let names: HashSet<&str> = self.tools.iter().map(|tool| tool.tool_name.as_str()).collect();
        match known.find(|name| names.contains(name)) {
            Some(name) => Err(RunFailure::new(
                "client.tool_clash",
                format!(
                    "the client's tool `{name}` has the name of a tool of the agent: rename it"
                ),
            )),
            None => Ok(()),
        }
    }

    /// Whether the client answers this call. Malformed arguments go back to the model.
    pub(crate) fn answers(&self, call: &ModelToolCall) -> bool {
        call.args.is_object()
            && call.args_error.is_none()
            && self.tools.iter().any(|tool| tool.tool_name == call.name)
    }

    /// What the application says, as a message.
    pub(crate) fn message(&self) -> Option<ModelMessage> {
        if self.said.is_empty() {
            return None;
        }
        // In JSON `<` occurs only in strings, so the frame cannot be closed from inside.
        let said = Value::Object(self.said.clone()).to_string().replace('<', "\\u003c");
        Some(ModelMessage::text(Role::User, format!("<{TAG}>\n{said}\n</{TAG}>")))
    }

    /// The tool that changes the client's state, if it sent one.
    pub(crate) fn state_tool(&self) -> Option<ToolResource> {
        self.state.as_ref()?;
        let parameters = json!({
            "type": "object",
            "properties": {"changes": {"type": "object", "description":
                "The new values of top-level keys of the state; null removes a key"}},
            "required": ["changes"],
            "additionalProperties": false
        });
        Some(ToolResource {
            tool_name: UPDATE_STATE.to_owned(),
            description: Some(
                "Changes the state of the application, which the user sees. Other keys stay as they are."
                    .to_owned(),
            ),
            parameters: parameters.as_object().cloned().unwrap_or_default(),
            ..ToolResource::default()
        })
    }

    /// Executes a call of [`UPDATE_STATE`].
    pub(crate) async fn update_state(
        &self,
        ctx: &RunCtx,
        args: &Object,
    ) -> Result<Value, AgentAPIError> {
        let changes = args.get("changes").and_then(Value::as_object);
        let (Some(changes), Some(state)) = (changes, &self.state) else {
            return Err(AgentAPIError::new(
                ErrorCode::InvalidArgument,
                "`changes` must be an object",
            ));
        };
        let patch = {
            let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
            changes.iter().filter_map(|(key, value)| operation(&mut state, key, value)).collect()
        };
        // A cancelled run sends nothing; the call's own result is refused then, too.
        let _ = ctx.emit(RunResult::client_state_patch(patch)).await;
        Ok(json!({"updated": changes.keys().collect::<Vec<_>>()}))
    }
}

/// One change of the state; none if it changes nothing.
fn operation(state: &mut Object, key: &str, value: &Value) -> Option<Value> {
    let path = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
    if value.is_null() {
        state.remove(key)?;
        return Some(json!({"op": "remove", "path": path}));
    }
    state.insert(key.to_owned(), value.clone());
    Some(json!({"op": "add", "path": path, "value": value}))
}

/// The result of a pending call among those that an event brings.
pub(crate) fn result_of(call: &PendingCall, results: &[Value]) -> Option<String> {
    let result = results.iter().find(|one| one["tool_call_id"] == call.call_id.as_str())?;
    if let Some(error) = result.get("error").filter(|error| !error.is_null()) {
        let error = json!({"code": "CLIENT_ERROR", "message": error});
        return Some(json!({"status": "failure", "error": error}).to_string());
    }
    Some(match &result["content"] {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    })
}

/// What the model gets if the client brought no result.
pub(crate) fn no_result() -> String {
    let error = json!({"code": "NO_RESULT", "message": "the client gave no result"});
    json!({"status": "failure", "error": error}).to_string()
}

fn tool(tool: &Value) -> Option<ToolResource> {
    let mut parameters = tool["parameters"].as_object().cloned().unwrap_or_default();
    // Providers need the type of the arguments.
    parameters.entry("type").or_insert_with(|| "object".into());
    Some(ToolResource {
        tool_name: tool["name"].as_str()?.to_owned(),
        description: tool["description"].as_str().map(str::to_owned),
        parameters,
        ..ToolResource::default()
    })
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_a_patch_that_applies() {
        let mut state = Object::from_iter([("a/b".to_owned(), json!(1))]);
        let replaced = operation(&mut state, "a/b", &json!(2));
        assert_eq!(replaced, Some(json!({"op": "add", "path": "/a~1b", "value": 2})));
        let removed = operation(&mut state, "a/b", &Value::Null);
        assert_eq!(removed, Some(json!({"op": "remove", "path": "/a~1b"})));
        assert_eq!(operation(&mut state, "a/b", &Value::Null), None);
    }

    #[test]
    fn a_result_belongs_to_its_call() {
        let call = PendingCall { call_id: "c1".into(), id: "c1-2".into(), name: "open".into() };
        let results = [
            json!({"tool_call_id": "c0", "content": "no"}),
            json!({"tool_call_id": "c1", "content": {"a": 1}}),
        ];
        assert_eq!(result_of(&call, &results), Some("{\"a\":1}".to_owned()));
        let failed = [json!({"tool_call_id": "c1", "content": "", "error": "stuck"})];
        let text = result_of(&call, &failed).unwrap();
        assert!(text.contains("stuck") && text.contains("failure"), "{text}");
        assert_eq!(result_of(&call, &[]), None);
    }
}
