//! The methods: each with its risk and its contract.
//!
//! Invariant: exactly the methods of seed 004 §7. The contract describes the strict input of the handler; a test
//! compares the two.

use crate::Risk;
use greenroom_protocol::Object;
use serde_json::Value;

/// One method.
#[derive(Debug, PartialEq, Eq)]
pub struct MethodSpec {
    pub module: &'static str,
    pub method: &'static str,
    pub risk: Risk,
    pub about: &'static str,
    /// The description in Chinese.
    pub about_zh: &'static str,
    pub action: Action,
    /// The fields of the input with their descriptions.
    pub fields: &'static [(&'static str, &'static str)],
}

/// The handler of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    CalendarRead,
    CalendarCreate,
    CalendarUpdate,
    CalendarDelete,
    CalendarShare,
    CalendarAcceptInvite,
    CalendarRejectInvite,
    ContactsRead,
    MemoryRead,
    MemoryUpdate,
}

impl MethodSpec {
    /// `module.method`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.module, self.method)
    }

    /// The fields as errors show them, for people and models (seed 004 §8).
    pub fn contract(&self) -> Value {
        let field = |(name, takes): &(&str, &str)| ((*name).to_owned(), Value::from(*takes));
        Value::Object(self.fields.iter().map(field).collect::<Object>())
    }
}

/// Every method, in the order of display.
pub fn specs() -> &'static [MethodSpec] {
    TABLE
}

pub fn find(module: &str, method: &str) -> Option<&'static MethodSpec> {
    TABLE.iter().find(|spec| spec.module == module && spec.method == method)
}

const EVENT_ID: (&str, &str) = ("event_id", "string, id of the event");
const IF_VERSION: (&str, &str) =
    ("if_version", "integer, optional: only if the event still has this version");

const TABLE: &[MethodSpec] = &[
    MethodSpec {
        module: "calendar",
        method: "read",
        risk: Risk::Read,
        about: "Events of a day or of a range of time, or one event",
        about_zh: "查看日历：某天或某段时间的日程，或某一个日程",
        action: Action::CalendarRead,
        fields: &[
            ("mode", "string enum(day|range|event)"),
            ("date", "string date YYYY-MM-DD, required with mode=day, else absent"),
            (
                "timezone",
                "string IANA time zone, e.g. Asia/Shanghai, required with mode=day, else absent",
            ),
            (
                "start_at",
                "string RFC 3339 time with zone, e.g. 2026-04-21T00:00:00+08:00, required with mode=range, else absent",
            ),
            (
                "end_at",
                "string RFC 3339 time with zone, after start_at, required with mode=range, else absent",
            ),
            ("event_id", "string, id of the event, required with mode=event, else absent"),
        ],
    },
    MethodSpec {
        module: "calendar",
        method: "create",
        risk: Risk::Write,
        about: "Add an event",
        about_zh: "在日历中新建日程",
        action: Action::CalendarCreate,
        fields: &[
            ("title", "string, 1 to 200 characters"),
            ("start_at", "string RFC 3339 time with zone, e.g. 2026-04-21T10:00:00+08:00"),
            ("end_at", "string RFC 3339 time with zone, after start_at"),
            ("timezone", "string IANA time zone, optional: in which the event is shown"),
            ("location", "string, optional, up to 500 characters"),
            ("notes", "string, optional, up to 10000 characters"),
        ],
    },
    MethodSpec {
        module: "calendar",
        method: "update",
        risk: Risk::Write,
        about: "Change some fields of an event",
        about_zh: "修改日历中的日程",
        action: Action::CalendarUpdate,
        fields: &[
            EVENT_ID,
            ("title", "string, optional, 1 to 200 characters"),
            ("start_at", "string RFC 3339 time with zone, optional"),
            ("end_at", "string RFC 3339 time with zone, optional, after start_at"),
            ("timezone", "string IANA time zone or null, optional"),
            ("location", "string or null, optional"),
            ("notes", "string or null, optional"),
            IF_VERSION,
        ],
    },
    MethodSpec {
        module: "calendar",
        method: "delete",
        risk: Risk::Destructive,
        about: "Remove an event",
        about_zh: "删除日历中的日程",
        action: Action::CalendarDelete,
        fields: &[EVENT_ID, IF_VERSION],
    },
    MethodSpec {
        module: "calendar",
        method: "share",
        risk: Risk::External,
        about: "Invite people to an event",
        about_zh: "邀请他人参加日历中的日程",
        action: Action::CalendarShare,
        fields: &[
            EVENT_ID,
            ("with", "array of 1 to 50 strings: actor ids of the people to invite"),
        ],
    },
    MethodSpec {
        module: "calendar",
        method: "accept_invite",
        risk: Risk::Write,
        about: "Accept an invitation to an event",
        about_zh: "接受日历中的日程邀请",
        action: Action::CalendarAcceptInvite,
        fields: &[EVENT_ID],
    },
    MethodSpec {
        module: "calendar",
        method: "reject_invite",
        risk: Risk::Write,
        about: "Reject an invitation to an event",
        about_zh: "拒绝日历中的日程邀请",
        action: Action::CalendarRejectInvite,
        fields: &[EVENT_ID],
    },
    MethodSpec {
        module: "contacts",
        method: "read",
        risk: Risk::Read,
        about: "Contacts by id, by words, or all of them",
        about_zh: "查看联系人：按编号、按关键词，或全部",
        action: Action::ContactsRead,
        fields: &[
            ("contact_id", "string, optional: this contact; not together with the others"),
            ("query", "string, optional: contacts that hold all of these words"),
            ("limit", "integer 1 to 100, optional, default 20"),
            ("cursor", "string, optional: next_cursor of an earlier page"),
        ],
    },
    MethodSpec {
        module: "memory",
        method: "read",
        risk: Risk::Read,
        about: "Facts that are remembered, by key, by words, or all of them",
        about_zh: "查看记住的内容：按名称、按关键词，或全部",
        action: Action::MemoryRead,
        fields: &[
            ("keys", "array of 1 to 50 strings, optional: these facts; not together with query"),
            ("query", "string, optional: facts that hold all of these words"),
        ],
    },
    MethodSpec {
        module: "memory",
        method: "update",
        risk: Risk::Write,
        about: "Remember facts, forget others",
        about_zh: "记住或忘记一些内容",
        action: Action::MemoryUpdate,
        fields: &[
            (
                "set",
                "object of key: value, optional: facts to remember; a value is JSON of up to 4096 bytes, not null",
            ),
            (
                "delete",
                "array of strings, optional: keys to forget; set and delete together name 1 to 50 keys",
            ),
        ],
    },
];
