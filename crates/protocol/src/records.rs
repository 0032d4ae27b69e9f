//! Records of project modules: the API for module processes (`POST /v1/tool-runtime/records`).
//!
//! Invariant: the owner of records follows from the caller's credential, never from the request.

use crate::Object;
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// One operation on the records of a module.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum RecordOp {
    /// Own records and shared ones that were not rejected, by start time.
    List {
        module: String,
        #[serde(
            default,
            deserialize_with = "crate::number::whole",
            skip_serializing_if = "Option::is_none"
        )]
        from: Option<i64>,
        #[serde(
            default,
            deserialize_with = "crate::number::whole",
            skip_serializing_if = "Option::is_none"
        )]
        to: Option<i64>,
        #[serde(default, deserialize_with = "limit", skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    },
    Get {
        module: String,
        id: String,
    },
    /// Without `id`: a new record.
    Put {
        module: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The expected current version; 0 if it must be missing.
        #[serde(
            default,
            deserialize_with = "crate::number::whole",
            skip_serializing_if = "Option::is_none"
        )]
        if_version: Option<i64>,
        #[serde(
            default,
            deserialize_with = "crate::number::whole",
            skip_serializing_if = "Option::is_none"
        )]
        starts_at: Option<i64>,
        #[serde(
            default,
            deserialize_with = "crate::number::whole",
            skip_serializing_if = "Option::is_none"
        )]
        ends_at: Option<i64>,
        body: Object,
    },
    Delete {
        module: String,
        id: String,
        #[serde(
            default,
            deserialize_with = "crate::number::whole",
            skip_serializing_if = "Option::is_none"
        )]
        if_version: Option<i64>,
    },
    /// Only the owner can share a record.
    Share {
        module: String,
        id: String,
        with: Vec<String>,
    },
    /// Only an actor that it was shared with can answer.
    Answer {
        module: String,
        id: String,
        status: RecordLinkStatus,
    },
}

/// Like every whole number, `3` or `3.0`.
fn limit<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let limit = crate::number::whole(from)?.map(u32::try_from).transpose();
    limit.map_err(|_| D::Error::custom("`limit` is a number from 0 to 4294967295"))
}

impl RecordOp {
    pub fn module(&self) -> &str {
        match self {
            RecordOp::List { module, .. }
            | RecordOp::Get { module, .. }
            | RecordOp::Put { module, .. }
            | RecordOp::Delete { module, .. }
            | RecordOp::Share { module, .. }
            | RecordOp::Answer { module, .. } => module,
        }
    }
}

/// A record as the module sees it; `starts_at` and `ends_at` are Unix milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordView {
    pub id: String,
    pub owner: String,
    pub version: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<i64>,
    pub body: Object,
    /// RFC 3339.
    pub updated_at: String,
    /// The reader's answer, if it was shared with them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link_status: Option<RecordLinkStatus>,
}

/// An actor that a record is shared with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordLink {
    pub actor: String,
    pub status: RecordLinkStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecordLinkStatus {
    Pending,
    Accepted,
    Rejected,
}

impl RecordLinkStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            RecordLinkStatus::Pending => "pending",
            RecordLinkStatus::Accepted => "accepted",
            RecordLinkStatus::Rejected => "rejected",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Pending, Self::Accepted, Self::Rejected]
            .into_iter()
            .find(|status| status.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_whole_number_may_be_written_with_a_point() {
        let list: RecordOp = serde_json::from_value(json!({"op": "list", "module": "m",
            "from": -9.0, "limit": 3.0}))
        .unwrap();
        let expected = RecordOp::List {
            module: "m".to_owned(),
            from: Some(-9),
            to: None,
            limit: Some(3),
            cursor: None,
        };
        assert_eq!(list, expected);
        let text = r#"{"op": "delete", "module": "m", "id": "i", "if_version": 2.0}"#;
        let delete: RecordOp = serde_json::from_str(text).unwrap();
        let RecordOp::Delete { if_version, .. } = delete else { panic!("{delete:?}") };
        assert_eq!(if_version, Some(2));
        let half = text.replace("2.0", "2.5");
        assert!(serde_json::from_str::<RecordOp>(&half).is_err());
    }
}
