//! Authorization: tokens by hash, sessions, roles, and what each role is allowed to do.
//!
//! Invariant: only the SHA-256 of a token is stored. A session is valid only in requests from the host's own
//! pages, because browsers attach its cookie to requests from any page.

pub(crate) mod actor;

use crate::accept::locale;
use crate::origin;
use crate::response::{ApiResult, Problem, ok};
use crate::router::App;
use crate::session::cookie;
use actor::Minted;
use axum::extract::FromRequestParts;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use greenroom_host::{ActorIds, Sender, SenderLimit};
use greenroom_protocol::TriggerSource;
use greenroom_store::reads::conversations::{Names, Own, Reach};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    Admin,
    /// Sends events, follows their runs and reads the conversations of its actors; limited to these agents,
    /// or unlimited if `None`.
    Sender {
        agents: Option<Arc<[String]>>,
        actors: Actors,
        conversations: Conversations,
    },
    /// Reads everything, changes nothing.
    Reader,
}

/// The conversations of a sender (decision 020).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conversations {
    /// Whether it reaches only those that it began and those in `named`.
    pub limited: bool,
    /// Those that its entry names.
    pub named: Names,
    /// Those that the entries of other tokens name.
    pub reserved: Names,
}

/// Which actors a sender may name, and so which conversations it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actors {
    /// Any actor of this token, in conversations that this token started. Equal ids of other tokens are other people.
    Own,
    /// This actor of this token only, in conversations that this token started.
    One(Arc<str>),
    /// Any actor of any source, in any conversation: a trusted bridge.
    Any,
}

#[derive(Debug, Clone)]
pub struct Token {
    pub hash: [u8; 32],
    pub role: Role,
    /// The name of its user in stored records: `admin` or `token:NAME`.
    pub name: String,
    /// May answer approvals.
    pub answers: bool,
}

/// All valid tokens.
#[derive(Debug, Clone, Default)]
pub struct Access {
    tokens: HashMap<[u8; 32], Caller>,
    /// Remote runners, by the hash of their token.
    runners: HashMap<[u8; 32], String>,
}

impl Access {
    pub fn new(tokens: Vec<Token>, runners: Vec<([u8; 32], String)>) -> Self {
        let tokens = tokens.into_iter().map(|Token { hash, role, name, answers }| {
            let named = match &role {
                Role::Sender { conversations, .. } => conversations.named.clone(),
                Role::Admin | Role::Reader => Names::default(),
            };
            let own = Arc::new(Own { begun_by: name.clone(), named });
            let name: Arc<str> = name.into();
            let people = match &role {
                Role::Sender { actors: Actors::Own | Actors::One(_), .. } => {
                    ActorIds::OfToken(Arc::clone(&name))
                }
                Role::Sender { actors: Actors::Any, .. } | Role::Admin | Role::Reader => {
                    ActorIds::OfSource
                }
            };
            let (token, session, minted, locale) = (hash, None, None, None);
            let caller =
                Caller { role, name, own, people, answers, token, session, minted, locale };
            (hash, caller)
        });
        Self { tokens: tokens.collect(), runners: runners.into_iter().collect() }
    }

    pub(crate) fn caller(&self, token: &[u8; 32]) -> Option<&Caller> {
        self.tokens.get(token)
    }

    /// The caller of the token with a name in stored records.
    pub(crate) fn named(&self, name: &str) -> Option<&Caller> {
        self.tokens.values().find(|caller| *caller.name == *name)
    }

    pub(crate) fn runner(&self, token: &str) -> Option<&String> {
        self.runners.get(&hash_token(token))
    }
}

pub fn hash_token(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// An authenticated caller.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    role: Role,
    name: Arc<str>,
    own: Arc<Own>,
    /// The people whom its actor ids name.
    people: ActorIds,
    answers: bool,
    /// Hash of the bearer token, or of the token that the session belongs to.
    token: [u8; 32],
    /// Hash of the session cookie's value, if the request was authenticated by session.
    session: Option<[u8; 32]>,
    /// How long a token of one actor is valid, and the hash of the token that minted it.
    minted: Option<Minted>,
    /// The language that the request asks for.
    locale: Option<Arc<str>>,
}

impl Caller {
    /// Requires permission to send events.
    pub(crate) fn require_sender(&self) -> Result<Sender, Problem> {
        let (agents, actor) = match &self.role {
            Role::Admin => (None, None),
            Role::Sender { agents, actors: Actors::One(actor), .. } => {
                (agents.clone(), Some(Arc::clone(actor)))
            }
            Role::Sender { agents, .. } => (agents.clone(), None),
            Role::Reader => return Err(Problem::forbidden("this token may only read")),
        };
        let name = Some(Arc::clone(&self.name));
        let limit = match &self.role {
            Role::Sender { conversations, .. } if conversations.limited => Some(SenderLimit {
                own: Arc::clone(&self.own),
                reserved: conversations.reserved.clone(),
            }),
            _ => None,
        };
        // Sessions are those of the host's own pages.
        let entrance = match self.session {
            Some(_) => TriggerSource::Webui,
            None => TriggerSource::Api,
        };
        Ok(Sender {
            entrance,
            name,
            actor,
            actors: self.people.clone(),
            agents,
            limit,
            continues: None,
            locale: self.locale.clone(),
            adapter: None,
            traceparent: None,
        })
    }

    /// The conversations that a limited caller reaches; none if it is not limited.
    pub(crate) fn limited(&self) -> Option<&Arc<Own>> {
        match &self.role {
            Role::Sender { conversations, .. } if conversations.limited => Some(&self.own),
            _ => None,
        }
    }

    /// A response in which a limited caller finds its conversations under the ids that it chose.
    pub(crate) fn ok(&self, value: impl Serialize) -> ApiResult {
        let Some(own) = self.limited() else { return ok(value) };
        let mut value = serde_json::to_value(value).map_err(|_| Problem::internal())?;
        rename_conversations(&mut value, own);
        ok(value)
    }

    /// The conversations that this caller may read.
    pub(crate) fn readable(&self) -> Reach {
        match &self.role {
            Role::Admin | Role::Reader | Role::Sender { actors: Actors::Any, .. } => Reach::All,
            Role::Sender { .. } => Reach::Own(Arc::clone(&self.own)),
        }
    }

    /// Requires permission to read a list over all conversations, or over the one given.
    pub(crate) fn require_reader_of(&self, conversation: Option<&str>) -> Result<(), Problem> {
        match conversation.is_some() || self.readable() == Reach::All {
            true => Ok(()),
            false => Err(Problem::forbidden(
                "this token reads its own conversations: name one with `conversation_id`",
            )),
        }
    }

    /// The actor of events that name none: the token itself, or its one actor.
    pub(crate) fn actor(&self) -> &str {
        match &self.role {
            Role::Sender { actors: Actors::One(actor), .. } => actor,
            _ => &self.name,
        }
    }

    pub(crate) fn require_reader(&self) -> Result<(), Problem> {
        match self.role {
            Role::Admin | Role::Reader => Ok(()),
            Role::Sender { .. } => Err(Problem::forbidden(
                "this token may only send events, follow their runs and read its own conversations",
            )),
        }
    }

    /// Requires access to an agent. A run of another agent is reported as missing.
    pub(crate) fn require_agent(&self, agent: &str) -> Result<(), Problem> {
        match &self.role {
            Role::Sender { agents: Some(agents), .. }
                if !agents.iter().any(|name| name == agent) =>
            {
                Err(Problem::not_found("run"))
            }
            _ => Ok(()),
        }
    }

    /// Whether artifacts of an agent's runs are visible. Artifacts without an agent need access to all agents.
    pub(crate) fn can_see_artifact(&self, agent: Option<&str>) -> bool {
        match &self.role {
            Role::Sender { agents: Some(agents), .. } => {
                agent.is_some_and(|agent| agents.iter().any(|name| name == agent))
            }
            Role::Admin | Role::Reader | Role::Sender { agents: None, .. } => true,
        }
    }

    pub(crate) fn require_approval_reader(&self) -> Result<(), Problem> {
        if self.answers { Ok(()) } else { self.require_reader() }
    }

    pub(crate) fn can_answer_approvals(&self) -> bool {
        self.answers
    }

    pub(crate) fn token(&self) -> &[u8; 32] {
        &self.token
    }

    pub(crate) fn session(&self) -> Option<&[u8; 32]> {
        self.session.as_ref()
    }

    /// The caller as shown by `GET /v1/session`.
    pub(crate) fn view(&self) -> Value {
        let (role, agents) = match &self.role {
            Role::Admin => ("admin", None),
            Role::Reader => ("reader", None),
            Role::Sender { agents, .. } => ("sender", agents.as_ref()),
        };
        let mut view = json!({"name": &*self.name, "role": role, "answers": self.answers});
        if let Some(agents) = agents {
            view["agents"] = json!(&**agents);
        }
        view
    }

    /// The name in stored records.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Requires permission to answer approvals; returns the name stored with the answer.
    pub(crate) fn require_approver(&self) -> Result<&str, Problem> {
        match self.answers {
            true => Ok(&self.name),
            false => {
                let message = "this token may not answer approvals: see `approvals.answer` in the configuration";
                Err(Problem::forbidden(message))
            }
        }
    }

    pub(crate) fn require_admin(&self) -> Result<(), Problem> {
        match self.role {
            Role::Admin => Ok(()),
            Role::Reader | Role::Sender { .. } => {
                Err(Problem::forbidden("this requires an admin token"))
            }
        }
    }

    pub(crate) fn require_cancel(&self) -> Result<(), Problem> {
        self.require_sender().map(drop)
    }
}

fn rename_conversations(value: &mut Value, own: &Own) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| rename_conversations(item, own)),
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::String(id) if name == "conversation_id" => {
                        *id = own.known_as(id).to_owned();
                    }
                    field => rename_conversations(field, own),
                }
            }
        }
        _ => {}
    }
}

pub(crate) fn bearer(parts: &Parts) -> Option<&str> {
    bearer_of(&parts.headers)
}

pub(crate) fn bearer_of(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        if !parts.headers.contains_key(AUTHORIZATION) {
            return session_caller(parts, app);
        }
        let token = bearer(parts).ok_or_else(Problem::unauthenticated)?;
        let access = app.access.load();
        let known = access.caller(&hash_token(token)).cloned();
        let caller = known.or_else(|| actor::caller(app, &access, token));
        let locale = locale(&parts.headers).map(Into::into);
        Ok(Caller { locale, ..caller.ok_or_else(Problem::unauthenticated)? })
    }
}

fn session_caller(parts: &Parts, app: &App) -> Result<Caller, Problem> {
    let mut candidates =
        cookie::values(&parts.headers, &app.options.cookie).map(hash_token).peekable();
    if candidates.peek().is_none() {
        return Err(Problem::unauthenticated());
    }
    origin::check_own_page(parts)?;
    let mut open = candidates
        .filter_map(|session| app.sessions.token_of(&session).map(|token| (session, token)));
    // Another site may have planted a second cookie: with two valid ones the request is rejected.
    let (Some((session, token)), None) = (open.next(), open.next()) else {
        return Err(Problem::unauthenticated());
    };
    let access = app.access.load();
    let caller = access.caller(&token).ok_or_else(Problem::unauthenticated)?;
    let locale = locale(&parts.headers).map(Into::into);
    Ok(Caller { session: Some(session), locale, ..caller.clone() })
}
