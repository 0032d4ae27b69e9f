//! The transcript: `history.*` (CONTRACT §4).
//!
//! Invariant: no state between calls; a page contains the cursors of its neighbours.

use crate::RunCtx;
use greenroom_protocol::AgentAPIError;
use greenroom_protocol::api::history::{
    HistoryPage, HistoryPageParams, HistorySearchParams, HistorySearchResult, SearchHit,
};

/// The methods `history.*`, for one run.
pub struct HistoryApi<'a>(pub(crate) &'a RunCtx);

impl HistoryApi<'_> {
    /// One page of the conversation, oldest item first. The default is the last 50 items before the run's
    /// own event.
    ///
    /// ```
    /// # use greenroom_sdk::{HistoryPageParams, RunCtx, RunFailure};
    /// # async fn example(ctx: &RunCtx) -> Result<(), RunFailure> {
    /// let mut params = HistoryPageParams { limit: 20, ..Default::default() };
    /// loop {
    ///     let page = ctx.history().page(params.clone()).await?;
    ///     for item in &page.items {
    ///         println!("{:?}: {}", item.role, item.text.as_deref().unwrap_or_default());
    ///     }
    ///     match page.next_cursor.filter(|_| page.has_more) {
    ///         Some(cursor) => params.before_cursor = Some(cursor),
    ///         None => break,
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn page(&self, params: HistoryPageParams) -> Result<HistoryPage, AgentAPIError> {
        self.0.ask(&params).await
    }

    /// The ten best hits in the conversation.
    pub async fn search(&self, query: impl Into<String>) -> Result<Vec<SearchHit>, AgentAPIError> {
        self.search_with(HistorySearchParams::new(query)).await
    }

    /// The best hits that pass the filters.
    pub async fn search_with(
        &self,
        params: HistorySearchParams,
    ) -> Result<Vec<SearchHit>, AgentAPIError> {
        let result: HistorySearchResult = self.0.ask(&params).await?;
        Ok(result.items)
    }
}
