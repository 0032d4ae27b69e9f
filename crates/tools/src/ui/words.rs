//! The words of the templates, in every language.
//!
//! Invariant: every word exists in every language.

/// The language of a reader.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Language {
    #[default]
    English,
    Chinese,
}

impl Language {
    /// From a tag such as `zh-CN`; anything unknown is English.
    pub fn from_tag(tag: &str) -> Self {
        match tag.split(['-', '_']).next().map(str::to_ascii_lowercase).as_deref() {
            Some("zh") => Language::Chinese,
            _ => Language::English,
        }
    }

    pub(super) fn word(self, word: Word) -> &'static str {
        let (english, chinese) = word.both();
        match self {
            Language::English => english,
            Language::Chinese => chinese,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    Events,
    NoEvents,
    Created,
    Updated,
    Deleted,
    Shared,
    Invited,
    Accepted,
    Rejected,
    Pending,
    People,
    Accept,
    Decline,
    Delete,
    Details,
    Contacts,
    NoContacts,
    More,
    Remembered,
    Forgotten,
    PartlyDone,
    NothingChanged,
}

impl Word {
    fn both(self) -> (&'static str, &'static str) {
        match self {
            Word::Events => ("Events", "日程"),
            Word::NoEvents => ("No events", "没有日程"),
            Word::Created => ("Event created", "日程已创建"),
            Word::Updated => ("Event updated", "日程已更新"),
            Word::Deleted => ("Event deleted", "日程已删除"),
            Word::Shared => ("Invitations sent", "邀请已发送"),
            Word::Invited => ("You are invited", "你收到了邀请"),
            Word::Accepted => ("Accepted", "已接受"),
            Word::Rejected => ("Declined", "已拒绝"),
            Word::Pending => ("Pending", "待回复"),
            Word::People => ("People", "参与者"),
            Word::Accept => ("Accept", "接受"),
            Word::Decline => ("Decline", "拒绝"),
            Word::Delete => ("Delete", "删除"),
            Word::Details => ("Details", "详情"),
            Word::Contacts => ("Contacts", "联系人"),
            Word::NoContacts => ("No contacts", "没有联系人"),
            Word::More => ("There is more", "还有更多"),
            Word::Remembered => ("Remembered", "已记住"),
            Word::Forgotten => ("Forgotten", "已忘记"),
            Word::PartlyDone => ("Only partly done", "仅部分完成"),
            Word::NothingChanged => ("Nothing changed", "没有变化"),
        }
    }

    /// The word for a fact in a result.
    pub(super) fn of(fact: &str) -> Option<Self> {
        Some(match fact {
            "created" => Word::Created,
            "updated" => Word::Updated,
            "deleted" => Word::Deleted,
            "shared" => Word::Shared,
            "accepted" => Word::Accepted,
            "rejected" => Word::Rejected,
            "pending" => Word::Pending,
            "partial" => Word::PartlyDone,
            _ => return None,
        })
    }
}
