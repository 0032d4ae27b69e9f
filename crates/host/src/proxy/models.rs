//! `models.*`: granted models, called within the run's time and budget.
//!
//! Invariant: usage is committed before the answer is sent, also when the caller goes away; a call that would
//! exceed a budget is not made, and ends its run.

mod failure;
mod input;
pub(super) mod spending;
mod usage;

use super::call::{Answer, Call, answer, not_found, refuse};
use super::resources::granted;
use failure::report;
use greenroom_models::{Fold, Kind, Model, ModelError, ModelRequest};
use greenroom_protocol::api::Method;
use greenroom_protocol::api::models::{
    CountTokensParams, EmbedResult, ModelEmbedParams, ModelInvokeParams, ModelRerankParams,
    ModelStreamItem, ModelStreamParams, ProviderResponse, RerankResult, TokenCount,
};
use greenroom_protocol::{AgentAPIError, ErrorCode, Object};
use serde_json::Value;
use serde_json::value::to_raw_value;
use spending::{Size, Spending};
use std::sync::Arc;
use tokio::time::Instant;

/// Whether the caller gets the answer item by item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Delivery {
    Whole,
    Streamed,
}

pub(super) async fn serve(call: &mut Call<'_>, method: Method) -> Answer {
    match method {
        Method::ModelsInvoke => {
            let params: ModelInvokeParams = call.params()?;
            generate(call, params, Delivery::Whole).await
        }
        Method::ModelsStream => {
            let ModelStreamParams(params) = call.params()?;
            generate(call, params, Delivery::Streamed).await
        }
        Method::ModelsRerank => rerank(call).await,
        Method::ModelsEmbed => embed(call).await,
        _ => count_tokens(call).await,
    }
}

async fn generate(call: &mut Call<'_>, params: ModelInvokeParams, delivery: Delivery) -> Answer {
    let model = model(call, &params.model_id, Kind::Chat)?;
    let size = Size {
        input_bytes: input::text_bytes(call.params.get().len(), &params.messages),
        output_tokens_max: most_out(&model, params.extra_args.as_ref()),
    };
    let request = input::request(call, params).await?;
    let mut spending = Spending::begin(call, &model, size).await?;
    let answered = converse(call, &model, request, delivery, &mut spending).await;
    match answered {
        Ok(mut response) => {
            spending.done(&response).await?;
            tell_cost(&model, &mut response);
            answer(&response)
        }
        Err(error) => {
            spending.failed(&error).await;
            Err(error)
        }
    }
}

/// Adds the cost to the usage, so that a runner can keep to a limit of its own.
fn tell_cost(model: &Model, response: &mut ProviderResponse) {
    if let Some(Value::Object(usage)) = response.metadata.get_mut("usage")
        && let Some(cost) = usage::cost(model, usage)
    {
        usage.insert("cost_usd".to_owned(), (cost as f64 / 1e6).into());
    }
}

/// The answer, streamed to the caller if it wants that.
async fn converse(
    call: &mut Call<'_>,
    model: &Model,
    request: ModelRequest,
    delivery: Delivery,
    spending: &mut Spending,
) -> Result<ProviderResponse, AgentAPIError> {
    let mut stream = match model.stream(request, deadline(call)).await {
        Ok(stream) => stream,
        Err(error) => return Err(report(call, model, &error).await),
    };
    let mut fold = Fold::new();
    while let Some(item) = stream.next().await {
        let mut item = match item {
            Ok(item) => item,
            Err(error) => return Err(report(call, model, &error).await),
        };
        spending.saw(&item);
        if let ModelStreamItem::Media { segment } = &mut item {
            input::keep_media(call, segment).await?;
        }
        if delivery == Delivery::Streamed {
            // Nothing is read from the provider before the runner has room for it.
            call.sink.room().await;
            let raw = to_raw_value(&item)
                .map_err(|error| refuse(ErrorCode::RuntimeError, error.to_string()))?;
            let sent = call.sink.send(&raw).await;
            sent.map_err(|error| refuse(ErrorCode::RuntimeError, error.to_string()))?;
        }
        fold.push(&item);
    }
    Ok(fold.finish(stream.metadata()))
}

async fn rerank(call: &mut Call<'_>) -> Answer {
    let params: ModelRerankParams = call.params()?;
    let model = model(call, &params.model_id, Kind::Rerank)?;
    let bytes = params.query.len() + params.documents.iter().map(String::len).sum::<usize>();
    let mut spending = Spending::begin(call, &model, Size::of_input(bytes)).await?;
    let results = model.rerank(&params, deadline(call)).await;
    let (results, usage) = taken(call, &model, results, &mut spending).await?;
    spending.counted(usage).await?;
    answer(&RerankResult { results })
}

async fn embed(call: &mut Call<'_>) -> Answer {
    let params: ModelEmbedParams = call.params()?;
    let model = model(call, &params.model_id, Kind::Embedding)?;
    let bytes = params.inputs.iter().map(String::len).sum::<usize>();
    let mut spending = Spending::begin(call, &model, Size::of_input(bytes)).await?;
    let vectors = model.embed(&params, deadline(call)).await;
    let (vectors, usage) = taken(call, &model, vectors, &mut spending).await?;
    spending.counted(usage).await?;
    answer(&EmbedResult { vectors })
}

async fn taken<T>(
    call: &Call<'_>,
    model: &Model,
    answered: Result<T, ModelError>,
    spending: &mut Spending,
) -> Result<T, AgentAPIError> {
    match answered {
        Ok(answered) => Ok(answered),
        Err(error) => {
            let error = report(call, model, &error).await;
            spending.failed(&error).await;
            Err(error)
        }
    }
}

async fn count_tokens(call: &mut Call<'_>) -> Answer {
    let params: CountTokensParams = call.params()?;
    let model = granted_model(call, &params.model_id)?;
    match model.count_tokens(&params, deadline(call)).await {
        Ok(tokens) => answer(&TokenCount { tokens }),
        Err(error) => Err(report(call, &model, &error).await),
    }
}

/// A granted model of the kind that the method needs.
fn model(call: &mut Call<'_>, model_id: &str, wanted: Kind) -> Result<Arc<Model>, AgentAPIError> {
    let model = granted_model(call, model_id)?;
    let kind = model.settings().kind;
    if kind == wanted {
        return Ok(model);
    }
    let message = format!(
        "`{}` takes a model of kind `{}`, and `{model_id}` is of kind `{}`",
        call.method,
        wanted.as_str(),
        kind.as_str()
    );
    Err(refuse(ErrorCode::InvalidArgument, message).detail("reason", "kind"))
}

/// A granted model, as configured when the run began.
fn granted_model(call: &mut Call<'_>, model_id: &str) -> Result<Arc<Model>, AgentAPIError> {
    granted(call, "model", model_id, |grant, name| grant.models.names.contains(name))?;
    call.rights.resources.models.get(model_id).ok_or_else(|| not_found("model"))
}

/// The limit on output tokens, by the caller or the configuration.
fn most_out(model: &Model, options: Option<&Object>) -> Option<u64> {
    let settings = model.settings();
    let asked = options.and_then(|options| options.get("max_tokens"));
    let asked = asked.or_else(|| settings.options.get("max_tokens")).and_then(Value::as_u64);
    asked.into_iter().chain(settings.max_output_tokens).min()
}

fn deadline(call: &Call<'_>) -> Instant {
    Instant::now() + call.live.deadline.left()
}
