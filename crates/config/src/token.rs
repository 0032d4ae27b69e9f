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
    },
    Reader,
}

/// The actors a sender acts for, and so whose conversations it reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Actors {
    /// Any actor, in conversations that it started.
    #[default]
    Own,
    /// This actor only, in conversations that it started.
    One(String),
    /// Any actor in any conversation.
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
        let token = reader.require("token").and_then(|value| value.secret());
        reader.finish();
        let role = match word? {
            Word::Sender => {
                let agents = match agents {
                    Some(value) => Some(named(&value)?),
                    None => None,
                };
                let actors = match actors {
                    Some(value) => read_actors(&value)?,
                    None => Actors::Own,
                };
                Role::Sender { agents, actors }
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
            Word::Admin => Role::Admin,
            Word::Reader => Role::Reader,
        };
        Some(Self { role, token: token? })
    }
}

fn named(value: &Value<'_>) -> Option<Vec<String>> {
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
