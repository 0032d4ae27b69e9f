//! `knowledge.*`: listing and searching granted knowledge bases.
//!
//! Invariant: a knowledge base is identified as in `ctx.resources.knowledge_bases`.

use super::fields::{check_name, check_query, fixed, limit};
use super::{Method, Params, TOP_K_MAX};
use crate::{KnowledgeBaseResource, Object};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The parameters of `knowledge.list`: none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeListParams {}

impl Params for KnowledgeListParams {
    const METHOD: Method = Method::KnowledgeList;
}

/// The result of `knowledge.list`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeBases {
    pub items: Vec<KnowledgeBaseResource>,
}

/// The parameters of `knowledge.retrieve`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgeRetrieveParams {
    pub kb_id: String,
    pub query_text: String,
    /// At least 1, capped at 100.
    #[serde(default = "fixed::<5>", deserialize_with = "limit::<_, 5, TOP_K_MAX>")]
    #[schemars(with = "Option<u32>", range(min = 1))]
    pub top_k: u32,
    /// Filters on the passages' metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filters: Option<Object>,
}

impl KnowledgeRetrieveParams {
    /// The five best passages without filters.
    pub fn new(kb_id: impl Into<String>, query_text: impl Into<String>) -> Self {
        Self { kb_id: kb_id.into(), query_text: query_text.into(), top_k: 5, filters: None }
    }
}

impl Params for KnowledgeRetrieveParams {
    const METHOD: Method = Method::KnowledgeRetrieve;

    fn check(&self) -> Result<(), String> {
        check_name("kb_id", &self.kb_id)?;
        check_query("query_text", &self.query_text)
    }
}

/// The result of `knowledge.retrieve`, best first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgePassages {
    pub items: Vec<KnowledgePassage>,
}

/// One passage of a knowledge base.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KnowledgePassage {
    pub content: String,
    pub score: f64,
    #[serde(default)]
    pub metadata: Object,
}
