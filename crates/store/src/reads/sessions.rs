//! Sessions within a conversation.

use crate::sql::Tx;
use crate::{StoreError, params};

/// Any item before an event, with one more condition.
macro_rules! exists_before {
    ($and:literal) => {
        concat!(
            "SELECT 1 FROM transcript
             WHERE workspace_id = ?1 AND conversation_id = ?2 AND event_seq < ?3 ",
            $and,
            " ORDER BY event_seq LIMIT 1"
        )
    };
}

/// Whether a session has an item before an event.
pub fn has_before(
    tx: &mut dyn Tx,
    workspace: &str,
    conversation: &str,
    session: Option<&str>,
    event_seq: i64,
) -> Result<bool, StoreError> {
    let mut params = params![workspace, conversation, event_seq].to_vec();
    params.extend(session.filter(|key| !key.is_empty()).map(crate::sql::Value::from));
    let sql = match session {
        None => exists_before!(""),
        Some("") => exists_before!("AND session = ''"),
        Some(_) => exists_before!("AND session <> '' AND session = ?4"),
    };
    Ok(tx.query_opt(sql, &params)?.is_some())
}
