//! Who may do what: tokens by hash, sessions that stand for them, roles, and the one table of what a role may.
//!
//! Invariant: a token's text is never kept, only its SHA-256. A session counts only where the request comes
//! from a page of the host's own, because browsers add its cookie to whatever any page has them send.

use crate::answer::Problem;
use crate::origin;
use crate::router::App;
use crate::session::cookie;
use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use greenroom_host::Sender;
use greenroom_protocol::TriggerSource;
use greenroom_store::reads::conversations::Reach;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    Admin,
    /// Hands events in, follows their runs and reads the conversations of its actors; limited to these agents,
    /// or to none if nothing.
    Sender {
        agents: Option<Arc<[String]>>,
        actors: Actors,
    },
    /// Reads everything, changes nothing.
    Reader,
}

/// For whom a sender speaks, and so whose conversations it reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Actors {
    /// For anyone, in the conversations that it begins.
    Own,
    /// For this actor alone, in the conversations that it begins.
    One(Arc<str>),
    /// For anyone in any conversation: a trusted bridge.
    Any,
}

#[derive(Debug, Clone)]
pub struct Token {
    pub hash: [u8; 32],
    pub role: Role,
    /// How facts name whoever uses it: `admin` or `token:NAME`.
    pub name: String,
    /// May answer approvals.
    pub answers: bool,
}

/// All tokens that are valid now.
#[derive(Debug, Clone, Default)]
pub struct Access {
    tokens: HashMap<[u8; 32], Caller>,
    /// Runners that connect from elsewhere, by the hash of their token.
    runners: HashMap<[u8; 32], String>,
}

impl Access {
    pub fn new(tokens: Vec<Token>, runners: Vec<([u8; 32], String)>) -> Self {
        let tokens = tokens.into_iter().map(|Token { hash, role, name, answers }| {
            (hash, Caller { role, name: name.into(), answers, token: hash, session: None })
        });
        Self { tokens: tokens.collect(), runners: runners.into_iter().collect() }
    }

    /// Whoever has the token with this hash.
    pub(crate) fn caller(&self, token: &[u8; 32]) -> Option<&Caller> {
        self.tokens.get(token)
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
    answers: bool,
    /// Hash of the token that was shown, or that the session stands for.
    token: [u8; 32],
    /// Hash of what the cookie holds, where that was shown.
    session: Option<[u8; 32]>,
}

impl Caller {
    /// May hand events in.
    pub(crate) fn sender(&self) -> Result<Sender, Problem> {
        let (agents, actor) = match &self.role {
            Role::Admin => (None, None),
            Role::Sender { agents, actors: Actors::One(actor) } => {
                (agents.clone(), Some(Arc::clone(actor)))
            }
            Role::Sender { agents, .. } => (agents.clone(), None),
            Role::Reader => return Err(Problem::forbidden("this token may only read")),
        };
        let name = Some(Arc::clone(&self.name));
        Ok(Sender { entrance: TriggerSource::Api, name, actor, agents, adapter: None })
    }

    /// The conversations that it may read.
    pub(crate) fn reach(&self) -> Reach {
        match &self.role {
            Role::Admin | Role::Reader | Role::Sender { actors: Actors::Any, .. } => Reach::All,
            Role::Sender { .. } => Reach::BegunBy((*self.name).to_owned()),
        }
    }

    /// May read a list over all conversations, or the part of it that belongs to one of its own.
    pub(crate) fn reader_of(&self, conversation: Option<&str>) -> Result<(), Problem> {
        match conversation.is_some() || self.reach() == Reach::All {
            true => Ok(()),
            false => Err(Problem::forbidden(
                "this token reads its own conversations: name one with `conversation_id`",
            )),
        }
    }

    /// Whose its events are where they do not say: its own, or its actor's.
    pub(crate) fn actor(&self) -> &str {
        match &self.role {
            Role::Sender { actors: Actors::One(actor), .. } => actor,
            _ => &self.name,
        }
    }

    /// May read everything.
    pub(crate) fn reader(&self) -> Result<(), Problem> {
        match self.role {
            Role::Admin | Role::Reader => Ok(()),
            Role::Sender { .. } => Err(Problem::forbidden(
                "this token may only send events, follow their runs and read its own conversations",
            )),
        }
    }

    /// May see the runs of an agent. A run out of reach looks like one that does not exist.
    pub(crate) fn sees(&self, agent: &str) -> Result<(), Problem> {
        match &self.role {
            Role::Sender { agents: Some(agents), .. }
                if !agents.iter().any(|name| name == agent) =>
            {
                Err(Problem::not_found("run"))
            }
            _ => Ok(()),
        }
    }

    /// May see what an agent's runs made or were given. What no agent has yet is for those who may reach all.
    pub(crate) fn sees_artifact(&self, agent: Option<&str>) -> bool {
        match &self.role {
            Role::Sender { agents: Some(agents), .. } => {
                agent.is_some_and(|agent| agents.iter().any(|name| name == agent))
            }
            Role::Admin | Role::Reader | Role::Sender { agents: None, .. } => true,
        }
    }

    /// May see what actions are asked about.
    pub(crate) fn sees_approvals(&self) -> Result<(), Problem> {
        if self.answers { Ok(()) } else { self.reader() }
    }

    pub(crate) fn answers(&self) -> bool {
        self.answers
    }

    pub(crate) fn token(&self) -> &[u8; 32] {
        &self.token
    }

    pub(crate) fn session(&self) -> Option<&[u8; 32]> {
        self.session.as_ref()
    }

    /// What it is told about itself.
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

    /// How facts name it.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// May answer approvals; gives the name that is kept with the answer.
    pub(crate) fn answerer(&self) -> Result<&str, Problem> {
        match self.answers {
            true => Ok(&self.name),
            false => {
                let message = "this token may not answer approvals: see `approvals.answer` in the configuration";
                Err(Problem::forbidden(message))
            }
        }
    }

    /// May do everything.
    pub(crate) fn admin(&self) -> Result<(), Problem> {
        match self.role {
            Role::Admin => Ok(()),
            Role::Reader | Role::Sender { .. } => {
                Err(Problem::forbidden("this takes the token of an admin"))
            }
        }
    }

    /// May end runs.
    pub(crate) fn may_cancel(&self) -> Result<(), Problem> {
        self.sender().map(drop)
    }
}

pub(crate) fn bearer(parts: &Parts) -> Option<&str> {
    let value = parts.headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        if !parts.headers.contains_key(AUTHORIZATION) {
            return by_session(parts, app);
        }
        let token = bearer(parts).ok_or_else(Problem::unauthenticated)?;
        let access = app.access.load();
        let caller = access.caller(&hash_token(token)).ok_or_else(Problem::unauthenticated)?;
        Ok(caller.clone())
    }
}

fn by_session(parts: &Parts, app: &App) -> Result<Caller, Problem> {
    let mut shown = cookie::values(&parts.headers, &app.options.cookie).map(hash_token).peekable();
    if shown.peek().is_none() {
        return Err(Problem::unauthenticated());
    }
    origin::check_own_page(parts)?;
    let mut open =
        shown.filter_map(|session| app.sessions.token_of(&session).map(|token| (session, token)));
    // With two of them somebody else may have put one there: nobody can tell who is meant.
    let (Some((session, token)), None) = (open.next(), open.next()) else {
        return Err(Problem::unauthenticated());
    };
    let access = app.access.load();
    let caller = access.caller(&token).ok_or_else(Problem::unauthenticated)?;
    Ok(Caller { session: Some(session), ..caller.clone() })
}
