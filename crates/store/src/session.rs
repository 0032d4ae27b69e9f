//! Sessions: a bot and a thread within a conversation (decision 026).
//!
//! Invariant: this is the only place that makes the key; the key of a conversation without either is empty, which is
//! what rows of earlier versions have. The workspace and the conversation are columns of their own.

/// Between the bot and the thread: ids contain no control characters.
const UNIT: char = '\u{1f}';

/// The key of a session within its conversation.
pub fn session_key(bot_id: Option<&str>, thread_id: Option<&str>) -> String {
    match (bot_id.unwrap_or_default(), thread_id.unwrap_or_default()) {
        ("", "") => String::new(),
        (bot, thread) => format!("{bot}{UNIT}{thread}"),
    }
}

/// The thread in a key.
pub(crate) fn thread_of(session: &str) -> Option<&str> {
    session.split_once(UNIT).map(|(_, thread)| thread).filter(|thread| !thread.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_bot_and_thread_and_no_two_sessions_share_one() {
        assert_eq!(session_key(None, None), "");
        assert_eq!(session_key(Some("b"), None), "b\u{1f}");
        assert_eq!(session_key(None, Some("b")), "\u{1f}b");
        assert_eq!(session_key(Some("b"), Some("t")), "b\u{1f}t");
        let threads = ["", "b\u{1f}", "\u{1f}t"].map(thread_of);
        assert_eq!(threads, [None, None, Some("t")]);
    }
}
