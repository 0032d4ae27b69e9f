//! Lists over a whole workspace: state, artifacts, and search in all conversations.
//!
//! Invariant: a page scans a bounded number of rows and says where to continue, even if few of them match.

use super::{Page, hit_view};
use crate::artifacts::view as artifact_view;
use crate::host::Host;
use crate::ids::{now_ms, rfc3339};
use greenroom_protocol::api::artifacts::ArtifactView;
use greenroom_protocol::payload::StateScope;
use greenroom_store::StoreError;
use greenroom_store::reads::artifacts::{
    ArtifactFilter, ArtifactPosition, ArtifactSpan, Mime, floor, page as artifact_page,
};
use greenroom_store::reads::search::{SearchQuery, search};
use greenroom_store::reads::state::{StateKey, StateKeys, beginning, keys};
use greenroom_store::sql::Tx;
use greenroom_tools::ui::Language;
use serde_json::{Value, json};

/// Rows that one page scans.
const LOOKED_AT_MAX: i64 = 10_000;
/// Keys that are read at once.
const KEYS_AT_ONCE: i64 = 500;
/// Of a larger value of state only the beginning is shown.
const VALUE_BYTES_MAX: i64 = 64 * 1024;
const PREVIEW_CHARS: i64 = 2_000;
/// Sorts after every owner.
const END: &str = "\u{10ffff}";

/// Filters of a list of state.
#[derive(Debug, Clone, Default)]
pub struct StateQuery {
    pub scope: Option<StateScope>,
    pub agent: Option<String>,
    pub conversation_id: Option<String>,
    pub actor_id: Option<String>,
    pub prefix: String,
}

impl Host {
    /// State of all owners; none if the cursor does not belong to this list.
    pub async fn state(
        &self,
        workspace: &str,
        query: StateQuery,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Option<Page<Value>>, StoreError> {
        let query_text = format!("{query:?}");
        let domain = ["state", workspace, &query_text];
        let Ok(position) = self.position(&domain, cursor) else { return Ok(None) };
        let after = position.and_then(|text| serde_json::from_str(&text).ok());
        let owner = workspace.to_owned();
        let read = move |tx: &mut dyn Tx| state_page(tx, &owner, &query, after.clone(), limit);
        let (mut items, next) = self.store().read(read).await?;
        items.iter_mut().for_each(|item| self.redactor().value(item));
        let next = next.map(|next| json!(next).to_string());
        let has_more = next.is_some();
        Ok(Some(self.page(&domain, items, next, has_more)))
    }

    /// Artifacts, newest first; none if the cursor does not belong to this list.
    pub async fn artifact_list(
        &self,
        workspace: &str,
        filter: ArtifactFilter,
        cursor: Option<&str>,
        limit: usize,
    ) -> Result<Option<Page<ArtifactView>>, StoreError> {
        let filter_text = format!("{filter:?}");
        let domain = ["artifacts", workspace, &filter_text];
        let Ok(position) = self.position(&domain, cursor) else { return Ok(None) };
        let before = position.and_then(|text| {
            let (created_at, artifact_id) = text.split_once(' ')?;
            let created_at = created_at.parse().ok()?;
            Some(ArtifactPosition { created_at, artifact_id: artifact_id.to_owned() })
        });
        let owner = workspace.to_owned();
        let read = move |tx: &mut dyn Tx| {
            let mut span = ArtifactSpan::whole(limit as i64 + 1, now_ms());
            span.before = before.clone().unwrap_or(span.before);
            let narrow = filter.run_id.is_some() || filter.conversation_id.is_some();
            let seen = match filter.mime.is_some() && !narrow {
                true => floor(tx, &owner, &span.before, LOOKED_AT_MAX)?,
                false => None,
            };
            span.floor = seen.clone().unwrap_or(span.floor);
            Ok((artifact_page(tx, &owner, &filter, &span)?, seen))
        };
        let (rows, seen) = self.store().read(read).await?;
        let (rows, cut_short) = super::cut(rows, limit);
        let last = rows.last().map(|row| format!("{} {}", row.created_at, row.artifact_id));
        let seen = seen.map(|seen| format!("{} {}", seen.created_at, seen.artifact_id));
        let next = if cut_short { last } else { seen };
        let has_more = next.is_some();
        let items = rows.iter().map(artifact_view).collect();
        Ok(Some(self.page(&domain, items, next, has_more)))
    }

    /// Items that match a search, in all conversations of a workspace, the best first.
    pub async fn search_all(
        &self,
        query: SearchQuery,
        language: Language,
    ) -> Result<Page<Value>, StoreError> {
        let hits = self.store().read(move |tx| search(tx, &query)).await?;
        let items = hits.into_iter().map(|hit| hit_view(hit, language)).collect();
        Ok(Page { items, next_cursor: None, has_more: false })
    }
}

/// `image/*` matches a family of types.
pub fn mime(text: &str) -> Mime {
    match text.strip_suffix("/*") {
        Some(family) => Mime::Family(family.to_owned()),
        None => Mime::Exactly(text.to_owned()),
    }
}

/// The owner of state, parsed.
#[derive(Debug, Default, PartialEq, Eq)]
struct Owner {
    scope: String,
    agent: Option<String>,
    runner_id: Option<String>,
    party: Option<String>,
}

impl Owner {
    fn parse(text: &str) -> Option<Self> {
        // The key of a session follows the parts.
        let mut parts = serde_json::Deserializer::from_str(text).into_iter::<Vec<String>>();
        let mut parts = parts.next()?.ok()?.into_iter();
        let scope = parts.next()?;
        Some(match scope.as_str() {
            "runner" => Owner { scope, runner_id: parts.next(), ..Owner::default() },
            "binding" => Owner { scope, agent: parts.next(), ..Owner::default() },
            _ => {
                let (agent, runner_id) = (parts.next(), parts.next());
                Owner { scope, agent, runner_id, party: parts.next() }
            }
        })
    }

    /// The conversation, if the owner is one.
    fn conversation(&self) -> Option<&str> {
        self.party.as_deref().filter(|_| self.scope == StateScope::Conversation.as_str())
    }

    /// Type and id of an actor or a subject.
    fn person(&self, scope: StateScope) -> Option<(String, String)> {
        let party = self.party.as_deref().filter(|_| self.scope == scope.as_str())?;
        serde_json::from_str(party).ok()
    }
}

impl StateQuery {
    fn fits(&self, owner: &Owner, name: &str) -> bool {
        let actor = || owner.person(StateScope::Actor).map(|(_, id)| id);
        self.scope.is_none_or(|scope| scope.as_str() == owner.scope)
            && self.agent.as_ref().is_none_or(|agent| owner.agent.as_ref() == Some(agent))
            && self.conversation_id.as_deref().is_none_or(|id| owner.conversation() == Some(id))
            && self.actor_id.as_ref().is_none_or(|id| actor().as_ref() == Some(id))
            && name.starts_with(&self.prefix)
    }

    /// The prefix of the owners that match.
    fn owners(&self) -> String {
        let scope = match (&self.conversation_id, &self.actor_id) {
            (Some(_), _) => Some(StateScope::Conversation),
            (None, Some(_)) => Some(StateScope::Actor),
            (None, None) => None,
        };
        let Some(scope) = self.scope.or(scope) else { return String::new() };
        let agent = self.agent.as_deref().filter(|_| scope != StateScope::Runner);
        let parts: Vec<&str> = [scope.as_str()].into_iter().chain(agent).collect();
        let text = crate::context::owner(&parts);
        text.trim_end_matches(']').to_owned()
    }
}

/// Owner and name.
type StatePosition = (String, String);

fn state_page(
    tx: &mut dyn Tx,
    workspace: &str,
    query: &StateQuery,
    after: Option<StatePosition>,
    limit: usize,
) -> Result<(Vec<Value>, Option<StatePosition>), StoreError> {
    let first = query.owners();
    let now_ms = now_ms();
    let mut span = StateKeys {
        after: after.unwrap_or((first.clone(), String::new())),
        owner_end: format!("{first}{END}"),
        limit: KEYS_AT_ONCE,
    };
    let mut items = Vec::new();
    for _ in 0..LOOKED_AT_MAX / KEYS_AT_ONCE {
        let keys = keys(tx, workspace, &span, now_ms)?;
        let is_last = i64::try_from(keys.len()).is_ok_and(|count| count < KEYS_AT_ONCE);
        for key in keys {
            let owner = Owner::parse(&key.owner).unwrap_or_default();
            if query.fits(&owner, &key.name) {
                if items.len() == limit {
                    return Ok((items, Some(span.after)));
                }
                items.push(state_view(tx, workspace, &owner, &key)?);
            }
            span.after = (key.owner, key.name);
        }
        if is_last {
            return Ok((items, None));
        }
    }
    Ok((items, Some(span.after)))
}

fn state_view(
    tx: &mut dyn Tx,
    workspace: &str,
    owner: &Owner,
    key: &StateKey,
) -> Result<Value, StoreError> {
    let size = key.size - i64::try_from(key.name.len()).unwrap_or(0);
    let is_large = size > VALUE_BYTES_MAX;
    let chars = if is_large { PREVIEW_CHARS } else { VALUE_BYTES_MAX };
    let text = beginning(tx, workspace, key, chars)?.unwrap_or_default();
    let value: Option<Value> = (!is_large).then(|| serde_json::from_str(&text).ok()).flatten();
    let person = |scope| owner.person(scope).map(|(kind, id)| json!({"type": kind, "id": id}));
    Ok(json!({
        "scope": owner.scope, "agent": owner.agent, "runner_id": owner.runner_id,
        "conversation_id": owner.conversation(), "actor": person(StateScope::Actor),
        "subject": person(StateScope::Subject), "key": key.name, "value": value,
        "value_truncated": is_large, "preview": is_large.then_some(text), "size_bytes": size,
        "version": key.version, "updated_at": rfc3339(key.updated_at),
        "expires_at": key.expires_at.map(rfc3339),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::owner;

    #[test]
    fn an_owner_is_taken_apart_as_it_was_put_together() {
        let actor = owner(&["user", "u\"1"]);
        let text = owner(&["actor", "support", "plugin:a/b/c", &actor]);
        let parsed = Owner::parse(&text).unwrap();
        assert_eq!(parsed.agent.as_deref(), Some("support"));
        let person = ("user".to_owned(), "u\"1".to_owned());
        assert_eq!(parsed.person(StateScope::Actor), Some(person));
        assert_eq!((parsed.person(StateScope::Subject), parsed.conversation()), (None, None));
        let runner = Owner::parse(&owner(&["runner", "plugin:a/b/c"])).unwrap();
        assert_eq!((runner.agent, runner.runner_id.as_deref()), (None, Some("plugin:a/b/c")));
        assert_eq!(Owner::parse("no list"), None);
    }

    #[test]
    fn owners_are_found_by_what_they_begin_with() {
        let query = |scope, agent: Option<&str>| StateQuery {
            scope,
            agent: agent.map(str::to_owned),
            ..StateQuery::default()
        };
        let binding = query(Some(StateScope::Binding), Some("a"));
        assert!(owner(&["binding", "a"]).starts_with(&binding.owners()));
        assert!(!owner(&["binding", "ab"]).starts_with(&binding.owners()));
        let runner = query(Some(StateScope::Runner), Some("a"));
        assert!(owner(&["runner", "plugin:a/b/c"]).starts_with(&runner.owners()));
        assert_eq!(query(None, Some("a")).owners(), "");
    }
}
