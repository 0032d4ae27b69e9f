//! Which artifacts a run sees.
//!
//! Invariant: pure. An artifact out of reach looks like one that does not exist.

use crate::context::Identity;
use crate::settings::Reach;
use greenroom_store::types::ArtifactRow;

/// Whether an artifact is within a run's reach.
pub(crate) fn is_within(row: &ArtifactRow, identity: &Identity, reach: Reach) -> bool {
    if row.workspace_id != identity.workspace_id {
        return false;
    }
    let same_run = row.run_id.as_ref() == Some(&identity.run_id);
    let is_own = identity.is_own(row.conversation_id.as_deref(), &row.session);
    match reach {
        Reach::None => false,
        Reach::Conversation => same_run || is_own,
        Reach::Workspace => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(workspace: &str, conversation: Option<&str>, run: Option<&str>) -> ArtifactRow {
        ArtifactRow {
            workspace_id: workspace.to_owned(),
            artifact_id: "art_1".to_owned(),
            sha256: String::new(),
            size: 0,
            name: None,
            mime_type: String::new(),
            conversation_id: conversation.map(str::to_owned),
            session: String::new(),
            run_id: run.map(str::to_owned),
            agent: None,
            metadata: "{}".to_owned(),
            created_at: 0,
            expires_at: None,
        }
    }

    fn run(conversation: Option<&str>) -> Identity {
        Identity {
            workspace_id: "w".to_owned(),
            run_id: "r".to_owned(),
            conversation_id: conversation.map(str::to_owned),
            ..Identity::default()
        }
    }

    #[test]
    fn a_run_sees_its_conversation_and_itself_or_its_workspace() {
        let cases = [
            (row("w", Some("c"), None), Some("c"), [false, true, true]),
            (row("w", Some("d"), None), Some("c"), [false, false, true]),
            (row("w", Some("d"), Some("r")), Some("c"), [false, true, true]),
            (row("w", None, Some("r")), None, [false, true, true]),
            (row("w", None, Some("s")), None, [false, false, true]),
            // Two runs without a conversation have none in common.
            (row("w", None, None), None, [false, false, true]),
            (row("x", Some("c"), Some("r")), Some("c"), [false, false, false]),
        ];
        for (row, conversation, expected) in cases {
            let reaches = [Reach::None, Reach::Conversation, Reach::Workspace];
            let within = reaches.map(|reach| is_within(&row, &run(conversation), reach));
            assert_eq!(within, expected, "{row:?}");
        }
    }
}
