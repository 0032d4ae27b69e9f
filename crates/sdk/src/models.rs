//! Models: `models.*` (CONTRACT §4).
//!
//! Invariant: a model is one of `ctx.resources.models`; its provider and key stay with the host.

use crate::ctx::read;
use crate::items::{Event, Items};
use crate::{RunCtx, local};
use futures_util::{Stream, StreamExt};
use greenroom_protocol::api::models::{
    CountTokensParams, EmbedResult, ModelEmbedParams, ModelInvokeParams, ModelRerankParams,
    ModelStreamItem, ModelStreamParams, ProviderResponse, RankedDocument, RerankResult, TokenCount,
};
use greenroom_protocol::api::{Method, Params};
use greenroom_protocol::manifest::ModelPermission;
use greenroom_protocol::{AgentAPIError, ErrorCode};
use serde_json::value::RawValue;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The methods `models.*`, for one run.
pub struct ModelsApi<'a>(pub(crate) &'a RunCtx);

impl ModelsApi<'_> {
    /// The complete response of a model.
    pub async fn invoke(
        &self,
        params: ModelInvokeParams,
    ) -> Result<ProviderResponse, AgentAPIError> {
        local::model(self.0, &params.model_id, ModelPermission::Invoke)?;
        self.0.ask(&params).await
    }

    /// The response of a model as a stream.
    ///
    /// ```
    /// # use greenroom_sdk::{RunCtx, RunFailure};
    /// use greenroom_sdk::{ModelInvokeParams, ModelMessage, ModelStreamItem, Role};
    ///
    /// # async fn example(ctx: &RunCtx) -> Result<(), RunFailure> {
    /// let messages = vec![ModelMessage::text(Role::User, ctx.text())];
    /// let mut stream = ctx.models().stream(ModelInvokeParams::new("main", messages)).await?;
    /// while let Some(item) = stream.next().await {
    ///     if let ModelStreamItem::TextDelta { text } = item? {
    ///         ctx.delta(&text).await?;
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub async fn stream(&self, params: ModelInvokeParams) -> Result<ModelStream, AgentAPIError> {
        local::model(self.0, &params.model_id, ModelPermission::Stream)?;
        let params = ModelStreamParams(params);
        self.0.check(&params)?;
        self.0.room().await?;
        Ok(ModelStream { items: Some(Items::open(self.0, &params)?), response: None })
    }

    /// The documents by relevance to the query, best first.
    pub async fn rerank(
        &self,
        params: ModelRerankParams,
    ) -> Result<Vec<RankedDocument>, AgentAPIError> {
        local::model(self.0, &params.model_id, ModelPermission::Rerank)?;
        let ranked: RerankResult = self.0.ask(&params).await?;
        Ok(ranked.results)
    }

    /// One vector per input, in input order.
    pub async fn embed(
        &self,
        model_id: impl Into<String>,
        inputs: Vec<String>,
    ) -> Result<Vec<Vec<f32>>, AgentAPIError> {
        let params = ModelEmbedParams { model_id: model_id.into(), inputs };
        local::model(self.0, &params.model_id, ModelPermission::Embed)?;
        let embedded: EmbedResult = self.0.ask(&params).await?;
        Ok(embedded.vectors)
    }

    /// The number of tokens of messages or a text.
    pub async fn count_tokens(&self, params: CountTokensParams) -> Result<u64, AgentAPIError> {
        local::model(self.0, &params.model_id, ModelPermission::Invoke)?;
        let count: TokenCount = self.0.ask(&params).await?;
        Ok(count.tokens)
    }
}

/// The items of a model's response. Dropping it cancels the call.
pub struct ModelStream {
    /// `None` after the end.
    items: Option<Items>,
    response: Option<ProviderResponse>,
}

impl ModelStream {
    /// The next item; `None` after the end.
    pub async fn next(&mut self) -> Option<Result<ModelStreamItem, AgentAPIError>> {
        StreamExt::next(self).await
    }

    /// The complete response, once the stream has ended successfully.
    pub fn response(&self) -> Option<&ProviderResponse> {
        self.response.as_ref()
    }

    fn end(&mut self, answer: &RawValue) -> Option<Result<ModelStreamItem, AgentAPIError>> {
        match read(ModelStreamParams::METHOD.as_str(), answer) {
            Ok(response) => {
                self.response = Some(response);
                None
            }
            Err(error) => Some(Err(error)),
        }
    }
}

impl Stream for ModelStream {
    type Item = Result<ModelStreamItem, AgentAPIError>;

    /// Nothing follows an error.
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(items) = &mut self.items else { return Poll::Ready(None) };
        let item = match std::task::ready!(items.poll_next(cx)) {
            Event::Item(item) => Some(read(ModelStreamParams::METHOD.as_str(), &item)),
            Event::Answer(answer) => self.end(&answer),
            Event::Overflowed => Some(Err(overflowed())),
            Event::Failed(error) => Some(Err(error)),
        };
        if !matches!(item, Some(Ok(_))) {
            self.items = None;
        }
        Poll::Ready(item)
    }
}

fn overflowed() -> AgentAPIError {
    let text = format!("the items of `{}` were not read in time", Method::ModelsStream);
    AgentAPIError::new(ErrorCode::RuntimeError, text)
}
