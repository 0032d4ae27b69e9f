//! Tools about the parties of a run's event, which the wire answers itself.
//!
//! Invariant: they read nothing but the event; a party that the event does not have has no tool.

use greenroom_protocol::context::{ActorContext, GroupRef, SubjectContext};
use greenroom_protocol::manifest::ToolPermission;
use greenroom_protocol::{AgentAPIError, AgentRunContext, ErrorCode, Object, ToolResource};
use serde_json::{Value, json};

/// The parties of an event.
#[derive(Debug)]
pub(crate) struct EventParties {
    actor: Option<ActorContext>,
    group: Option<Group>,
}

#[derive(Debug)]
struct Group {
    id: String,
    data: Object,
}

impl Group {
    fn of(group: GroupRef<'_>) -> Option<Self> {
        Some(Self { id: group.id?.to_owned(), data: group.data.cloned().unwrap_or_default() })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Party {
    Actor,
    Group,
    Member,
}

/// LangBot's names: of the tool, and of the same question to the platform.
const TOOLS: [(Party, &str, &str, &str); 3] = [
    (Party::Actor, "event_get_actor", "get_user_info", "Reads who caused this event."),
    (Party::Group, "event_get_group", "get_group_info", "Reads the group of this event."),
    (
        Party::Member,
        "event_get_group_member",
        "get_group_member_info",
        "Reads who caused this event, as a member of its group.",
    ),
];

impl EventParties {
    pub(super) fn of(context: &AgentRunContext) -> Self {
        let has_id = |actor: &&ActorContext| actor.actor_id.is_some();
        let group = context.subject.as_ref().and_then(SubjectContext::group);
        Self {
            actor: context.actor.as_ref().filter(has_id).cloned(),
            group: group.and_then(Group::of),
        }
    }

    /// The tools in the resources of the run.
    pub(super) fn tools(&self) -> Vec<ToolResource> {
        let present = TOOLS.iter().filter(|(party, ..)| self.read(*party).is_some());
        present.map(|(_, name, _, description)| tool(name, description)).collect()
    }

    /// The answer to an action that asks about a party.
    pub(super) fn answer(
        &self,
        action: &str,
        data: &Value,
    ) -> Option<Result<Value, AgentAPIError>> {
        let named = |tool: &&(Party, &str, &str, &str)| match action {
            "get_tool_detail" | "call_tool" => data["tool_name"] == tool.1,
            "call_platform_api" => data["action"] == tool.2,
            _ => false,
        };
        let (party, name, _, description) = TOOLS.iter().find(named)?;
        let Some(found) = self.read(*party) else {
            let message = format!("the event has nothing for `{name}` to read");
            return Some(Err(AgentAPIError::new(ErrorCode::NotFound, message)));
        };
        if action == "get_tool_detail" {
            let ToolResource { parameters, .. } = tool(name, description);
            let tool = json!({"name": name, "description": description, "parameters": parameters});
            return Some(Ok(json!({ "tool": tool })));
        }
        if action == "call_platform_api" && !self.is_about(&data["params"]) {
            let message = "a run may ask about the parties of its own event only";
            return Some(Err(AgentAPIError::new(ErrorCode::Unauthorized, message)));
        }
        Some(Ok(json!({ "result": found })))
    }

    /// Whether the parameters name no one but the parties of the event.
    fn is_about(&self, params: &Value) -> bool {
        let actor = self.actor.as_ref().and_then(|actor| actor.actor_id.as_deref());
        let group = self.group.as_ref().map(|group| group.id.as_str());
        let fits =
            |key: &str, own: Option<&str>| params[key].is_null() || params[key].as_str() == own;
        fits("user_id", actor) && fits("group_id", group)
    }

    fn read(&self, party: Party) -> Option<Value> {
        match party {
            Party::Actor => self.actor.as_ref().map(user),
            Party::Group => self.group.as_ref().map(group),
            Party::Member => {
                let (actor, of) = self.actor.as_ref().zip(self.group.as_ref())?;
                let role = actor.metadata.get("role").cloned();
                Some(json!({"user": user(actor), "group_id": of.id,
                    "role": role.unwrap_or_else(|| "member".into()),
                    "display_name": actor.actor_name}))
            }
        }
    }
}

fn user(actor: &ActorContext) -> Value {
    let mut user = json!({"id": actor.actor_id,
        "nickname": actor.actor_name.as_deref().unwrap_or_default(),
        "is_bot": actor.actor_type == "bot"});
    copy(&actor.metadata, &["avatar_url", "username", "remark"], &mut user);
    user
}

fn group(group: &Group) -> Value {
    let mut found = json!({"id": group.id, "name": ""});
    let keys = ["name", "description", "member_count", "avatar_url", "owner_id"];
    copy(&group.data, &keys, &mut found);
    found
}

fn copy(from: &Object, keys: &[&str], to: &mut Value) {
    for key in keys {
        if let Some(value) = from.get(*key).filter(|value| !value.is_null()) {
            to[*key] = value.clone();
        }
    }
}

fn tool(name: &str, description: &str) -> ToolResource {
    let parameters = json!({"type": "object", "properties": {}});
    ToolResource {
        tool_name: name.to_owned(),
        description: Some(description.to_owned()),
        parameters: parameters.as_object().cloned().unwrap_or_default(),
        operations: vec![ToolPermission::Detail, ToolPermission::Call],
        ..ToolResource::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parties() -> EventParties {
        EventParties {
            actor: serde_json::from_value(json!({"actor_type": "user", "actor_id": "u1",
                "actor_name": "Ann", "metadata": {"username": "ann", "secret": 1}}))
            .unwrap(),
            group: Some(Group {
                id: "g1".to_owned(),
                data: Object::from_iter([("name".to_owned(), "Team".into())]),
            }),
        }
    }

    #[test]
    fn each_party_is_read_by_its_tool_and_by_the_platform_call() {
        let parties = parties();
        let names: Vec<String> = parties.tools().into_iter().map(|tool| tool.tool_name).collect();
        assert_eq!(names, ["event_get_actor", "event_get_group", "event_get_group_member"]);
        let ask = |action: &str, data: Value| parties.answer(action, &data).unwrap();
        let user = json!({"id": "u1", "nickname": "Ann", "is_bot": false, "username": "ann"});
        assert_eq!(
            ask("call_tool", json!({"tool_name": "event_get_actor"})),
            Ok(json!({"result": user}))
        );
        assert_eq!(
            ask(
                "call_platform_api",
                json!({"action": "get_group_info", "params": {"group_id": "g1"}})
            ),
            Ok(json!({"result": {"id": "g1", "name": "Team"}}))
        );
        assert_eq!(
            ask("call_tool", json!({"tool_name": "event_get_group_member"})),
            Ok(
                json!({"result": {"user": user, "group_id": "g1", "role": "member", "display_name": "Ann"}})
            )
        );
    }

    #[test]
    fn no_one_else_is_read_and_nothing_that_the_event_lacks() {
        let other = json!({"action": "get_user_info", "params": {"user_id": "u2"}});
        let refused = parties().answer("call_platform_api", &other).unwrap().unwrap_err();
        assert_eq!(refused.code, ErrorCode::Unauthorized);
        let alone = EventParties { group: None, ..parties() };
        let names: Vec<String> = alone.tools().into_iter().map(|tool| tool.tool_name).collect();
        assert_eq!(names, ["event_get_actor"]);
        let missing = alone.answer("call_tool", &json!({"tool_name": "event_get_group"})).unwrap();
        assert_eq!(missing.unwrap_err().code, ErrorCode::NotFound);
        assert!(alone.answer("call_tool", &json!({"tool_name": "other"})).is_none());
    }
}
