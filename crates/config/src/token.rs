//! `[tokens.NAME]`: tokens that may call the host, besides the admin token of the data folder.
//!
//! Invariant: only a sender is limited to agents, and only to agents that exist; only a sender acts for actors.

use super::Secret;
use super::reader::{Reader, Value};
use greenroom_protocol::event::EVENT_ID_BYTES_MAX;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub role: Role,
    pub token: Secret,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    Admin,
    /// Sends events to these agents only; `None`: to all.
    Sender {
        agents: Option<Vec<String>>,
        actors: Actors,
        conversations: Conversations,
    },
    Reader,
}

/// The conversations of a sender (decision 020).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversations {
    /// Whether it reaches only those that it began and those in `named`: its entry has `agents` or `actors`.
    pub limited: bool,
    /// Ids, or prefixes that end with `*`. No other limited sender begins them.
    pub named: Vec<String>,
}

/// The actors a sender acts for, and so whose conversations it reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Actors {
    /// Actors of its own, in conversations that it started: equal ids of other senders are other people.
    #[default]
    Own,
    /// This one of its own actors only, in conversations that it started.
    One(String),
    /// Any actor of any source, in any conversation.
    Any,
}

#[derive(Clone, Copy)]
enum Word {
    Admin,
    Sender,
    Reader,
}

impl Token {
    pub(super) fn read(mut reader: Reader<'_>) -> Option<Self> {
        let words = [("admin", Word::Admin), ("sender", Word::Sender), ("reader", Word::Reader)];
        let word = reader.require("role").and_then(|value| value.choice(&words));
        let agents = reader.get("agents");
        let actors = reader.get("actors");
        let conversations = reader.get("conversations");
        let token = reader.require("token").and_then(|value| value.secret());
        reader.finish();
        let role = match word? {
            Word::Sender => {
                let has_limits = agents.is_some() || actors.is_some();
                let named = match conversations {
                    Some(value) => read_conversations(&value)?,
                    None => Vec::new(),
                };
                let agents = match agents {
                    Some(value) => Some(named_agents(&value)?),
                    None => None,
                };
                let actors = match actors {
                    Some(value) => read_actors(&value)?,
                    None => Actors::Own,
                };
                let limited = has_limits && actors != Actors::Any;
                Role::Sender { agents, actors, conversations: Conversations { limited, named } }
            }
            _ if agents.is_some() => {
                return agents?.fail(
                    "only a `sender` can be limited to agents",
                    "remove `agents`, or make it a `sender`",
                );
            }
            _ if actors.is_some() => {
                return actors?.fail(
                    "only a `sender` acts for actors",
                    "remove `actors`, or make it a `sender`",
                );
            }
            _ if conversations.is_some() => {
                return conversations?.fail(
                    "only a `sender` has conversations of its own",
                    "remove `conversations`, or make it a `sender`",
                );
            }
            Word::Admin => Role::Admin,
            Word::Reader => Role::Reader,
        };
        Some(Self { role, token: token? })
    }
}

fn named_agents(value: &Value<'_>) -> Option<Vec<String>> {
    let agents = value.list(|item| item.reference("agent", &item.cx.agents))?;
    match agents.is_empty() {
        true => value.fail(
            format!("`{}` is empty, so nothing could be sent", value.path),
            "leave it out to allow every agent",
        ),
        false => Some(agents),
    }
}

fn read_actors(value: &Value<'_>) -> Option<Actors> {
    Some(match value.filled_text()? {
        "own" => Actors::Own,
        "any" => Actors::Any,
        actor if actor.len() > EVENT_ID_BYTES_MAX || actor.contains(char::is_control) => {
            return value.fail(
                format!("`{}` is not the id of an actor", value.path),
                "write `own`, `any` or one actor id",
            );
        }
        actor => Actors::One(actor.to_owned()),
    })
}

fn read_conversations(value: &Value<'_>) -> Option<Vec<String>> {
    value.list(|item| match item.filled_text()? {
        name if name.strip_suffix('*').unwrap_or(name).contains('*') => item.fail(
            format!("`{}`: `{name}` has a `*` that is not its last character", value.path),
            "write an id, or the beginning of ids followed by `*`",
        ),
        name => Some(name.to_owned()),
    })
}
