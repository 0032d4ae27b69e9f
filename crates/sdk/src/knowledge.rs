//! Knowledge bases: `knowledge.*` (CONTRACT §4).
//!
//! Invariant: a knowledge base is one of `ctx.resources.knowledge_bases`.

use crate::{RunCtx, local};
use greenroom_protocol::api::knowledge::{
    KnowledgeBases, KnowledgeListParams, KnowledgePassage, KnowledgePassages,
    KnowledgeRetrieveParams,
};
use greenroom_protocol::manifest::KnowledgePermission;
use greenroom_protocol::{AgentAPIError, KnowledgeBaseResource};

/// The methods `knowledge.*`, for one run.
pub struct KnowledgeApi<'a>(pub(crate) &'a RunCtx);

impl KnowledgeApi<'_> {
    pub async fn list(&self) -> Result<Vec<KnowledgeBaseResource>, AgentAPIError> {
        let bases: KnowledgeBases = self.0.ask(&KnowledgeListParams {}).await?;
        Ok(bases.items)
    }

    /// The five best passages.
    pub async fn retrieve(
        &self,
        kb_id: impl Into<String>,
        query_text: impl Into<String>,
    ) -> Result<Vec<KnowledgePassage>, AgentAPIError> {
        self.retrieve_with(KnowledgeRetrieveParams::new(kb_id, query_text)).await
    }

    /// The best passages with the given parameters.
    pub async fn retrieve_with(
        &self,
        params: KnowledgeRetrieveParams,
    ) -> Result<Vec<KnowledgePassage>, AgentAPIError> {
        local::knowledge_base(self.0, &params.kb_id, KnowledgePermission::Retrieve)?;
        let result: KnowledgePassages = self.0.ask(&params).await?;
        Ok(result.items)
    }
}
