//! Tokens of one actor: minted by an application's server for its front ends (decision 028).
//!
//! Invariant: such a token speaks for its actor only, in conversations that it began, and reaches no more agents than
//! its minter. It expires, and it is void once the token of its minter is removed or changed.

use super::{Access, Actors, Caller, Conversations, Role, hash_token};
use crate::events::{check_type, read_body};
use crate::query::Params;
use crate::response::{ApiResult, Problem};
use crate::router::App;
use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::IntoResponse;
use greenroom_host::ids::{now_ms, rfc3339};
use greenroom_host::{ActorClaims, ActorIds};
use greenroom_store::reads::conversations::{Names, Own};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// Seconds for which a token is valid.
const EXPIRES_IN_S: f64 = 900.0;
const EXPIRES_IN_S_MAX: f64 = 3600.0;
/// Longest name of a token of one actor: ids of conversations that are kept apart contain it.
const NAME_BYTES_MAX: usize = 384;
/// The source of events that name none.
const SOURCE: &str = "api";

/// How long a token of one actor is valid, and the hash of the token that minted it.
#[derive(Debug, Clone)]
pub(super) struct Minted {
    by: [u8; 32],
    until_ms: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MintBody {
    actor_id: String,
    source: Option<String>,
    agents: Option<Vec<String>>,
    #[serde(default)]
    answers: bool,
    /// Whole seconds, `60` or `60.0`.
    expires_in_s: Option<f64>,
}

pub(crate) async fn mint(
    State(app): State<App>,
    caller: Caller,
    params: Params,
    request: Request,
) -> ApiResult {
    params.only(&[])?;
    check_type(request.headers())?;
    let body = read_body(&app, request.into_body()).await?;
    let body: MintBody = serde_json::from_slice(&body).map_err(|error| {
        Problem::invalid(format!("the body must be `{{\"actor_id\", …}}`: {error}"))
    })?;
    caller.require_minter(&body.actor_id)?;
    let claims = claims(&app, &caller, body)?;
    let token = app.host.seal_actor_token(&claims, &caller.token);
    let minted = json!({"token": token, "actor_id": claims.actor, "source": claims.source,
        "expires_at": rfc3339(claims.until_ms)});
    Ok((StatusCode::CREATED, [(CACHE_CONTROL, "no-store")], Json(minted)).into_response())
}

fn claims(app: &App, caller: &Caller, body: MintBody) -> Result<ActorClaims, Problem> {
    let MintBody { actor_id: actor, source, agents, answers, expires_in_s } = body;
    let source = source.unwrap_or_else(|| SOURCE.to_owned());
    let is_id = |text: &str| !text.is_empty() && !text.contains(char::is_control);
    if !is_id(&actor) || !is_id(&source) || source.contains('/') {
        let message =
            "`actor_id` and `source` are not empty and have one line; `source` has no `/`";
        return Err(Problem::invalid(message));
    }
    if name(&caller.name, &source, &actor).len() > NAME_BYTES_MAX {
        return Err(Problem::invalid("`actor_id` and `source` are too long for a token"));
    }
    let expires_in_s = expires_in_s.unwrap_or(EXPIRES_IN_S);
    if !(1.0..=EXPIRES_IN_S_MAX).contains(&expires_in_s) || expires_in_s.fract() != 0.0 {
        let message = format!("`expires_in_s` is a whole number from 1 to {EXPIRES_IN_S_MAX}");
        return Err(Problem::invalid(message));
    }
    let settings = app.host.settings();
    for agent in agents.iter().flatten() {
        let exists = settings.agents.iter().any(|known| known.name == *agent);
        if !exists || caller.require_agent(agent).is_err() {
            return Err(Problem::forbidden(format!("this token may not send to agent `{agent}`")));
        }
    }
    if answers && !caller.answers {
        return Err(Problem::forbidden("this token may not answer approvals"));
    }
    let until_ms = now_ms() + expires_in_s as i64 * 1000;
    Ok(ActorClaims { by: caller.name.to_string(), actor, source, agents, answers, until_ms })
}

/// The caller that holds a valid token of one actor.
pub(super) fn caller(app: &App, access: &Access, token: &str) -> Option<Caller> {
    let hash_of = |name: &str| access.named(name).map(|minter| minter.token);
    let claims = app.host.open_actor_token(token, hash_of)?;
    Some(access.named(&claims.by)?.for_actor(claims, hash_token(token)))
}

impl Access {
    /// Whether the caller of an earlier request is still valid.
    pub(crate) fn is_valid(&self, caller: &Caller) -> bool {
        match &caller.minted {
            Some(minted) => self.caller(&minted.by).is_some() && now_ms() < minted.until_ms,
            None => self.caller(&caller.token).is_some(),
        }
    }
}

impl Caller {
    /// Requires permission to mint a token for an actor.
    fn require_minter(&self, actor: &str) -> Result<(), Problem> {
        if self.minted.is_some() || self.session.is_some() {
            let message = "a session or a token of one actor cannot mint tokens: use the token of the application";
            return Err(Problem::forbidden(message));
        }
        match &self.role {
            Role::Reader => Err(Problem::forbidden("this token may only read")),
            Role::Sender { actors: Actors::One(own), .. } if **own != *actor => {
                Err(Problem::forbidden(format!("this token may not send for actor `{actor}`")))
            }
            Role::Admin | Role::Sender { .. } => Ok(()),
        }
    }

    /// The caller that holds a token with these claims, minted by this caller.
    fn for_actor(&self, claims: ActorClaims, token: [u8; 32]) -> Self {
        let ActorClaims { actor, source, agents, answers, until_ms, .. } = claims;
        let (own_agents, reserved) = match &self.role {
            Role::Sender { agents, conversations, .. } => {
                let Conversations { named, reserved, .. } = conversations;
                (agents.clone(), [named.0.clone(), reserved.0.clone()].concat())
            }
            Role::Admin | Role::Reader => (None, Vec::new()),
        };
        let name = name(&self.name, &source, &actor);
        let agents = agents.map(Into::into).or(own_agents);
        let conversations =
            Conversations { limited: true, named: Names::default(), reserved: Names(reserved) };
        Self {
            role: Role::Sender { agents, actors: Actors::One(actor.into()), conversations },
            own: Arc::new(Own { begun_by: name.clone(), named: Names::default() }),
            name: name.into(),
            people: ActorIds::Of(self.people.of(&source).into()),
            answers: answers && self.answers,
            token,
            session: None,
            locale: None,
            minted: Some(Minted { by: self.token, until_ms }),
        }
    }
}

/// The name of an actor's token in stored records: it stays the same when another one is minted for the actor.
fn name(minter: &str, source: &str, actor: &str) -> String {
    format!("token:{}/{source}/{actor}", minter.strip_prefix("token:").unwrap_or_default())
}
