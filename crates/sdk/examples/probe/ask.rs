//! One call of each method, with fixed arguments; the result is sent as JSON.

use greenroom_sdk::{
    ArtifactOptions, CountTokensParams, Direction, EventPageParams, HistoryFilters,
    HistoryPageParams, HistorySearchParams, KnowledgeRetrieveParams, Method, ModelInvokeParams,
    ModelMessage, ModelRerankParams, Moment, Object, Role, RunCtx, RunFailure, SetOptions,
    StateDeleteParams, StateListParams, StateScope, SteeringPullParams, StorageArea,
    StorageListParams, ToolCallParams, ToolSearchParams, TranscriptRole, Value, json,
};

pub(crate) async fn ask(ctx: &RunCtx) -> Result<(), RunFailure> {
    let name = ctx.config("method").and_then(Value::as_str).unwrap_or_default();
    let method = Method::parse(name).ok_or_else(|| RunFailure::error("no such method"))?;
    let to_json = match method.as_str().split_once('.').map(|(family, _)| family) {
        Some("models") => models(ctx, method).await?,
        Some("tools" | "knowledge") => tools(ctx, method).await?,
        Some("history" | "events") => facts(ctx, method).await?,
        Some("artifacts") => artifacts(ctx, method).await?,
        Some("state" | "storage") => kept(ctx, method).await?,
        _ => others(ctx, method).await?,
    };
    ctx.message(to_json.to_string()).await
}

fn object(value: Value) -> Object {
    value.as_object().cloned().unwrap_or_default()
}

fn to_json(value: impl serde::Serialize) -> Result<Value, RunFailure> {
    Ok(serde_json::to_value(value)?)
}

async fn models(ctx: &RunCtx, method: Method) -> Result<Value, RunFailure> {
    let models = ctx.models();
    let messages = vec![ModelMessage::text(Role::User, "hi")];
    let invoke = ModelInvokeParams::new("m", messages.clone());
    match method {
        Method::ModelsInvoke => to_json(models.invoke(invoke).await?),
        Method::ModelsStream => {
            let mut stream = models.stream(invoke).await?;
            let mut items = Vec::new();
            while let Some(item) = stream.next().await {
                items.push(item?);
            }
            Ok(json!({ "items": items, "response": stream.response() }))
        }
        Method::ModelsRerank => {
            let documents = vec!["a".to_owned(), "b".to_owned()];
            let (model_id, query) = ("m".to_owned(), "q".to_owned());
            let params = ModelRerankParams { model_id, query, documents, top_k: Some(1) };
            to_json(models.rerank(params).await?)
        }
        Method::ModelsEmbed => to_json(models.embed("m", vec!["a".to_owned()]).await?),
        _ => {
            let text = Some("hi".to_owned());
            let params = CountTokensParams { model_id: "m".to_owned(), messages: None, text };
            to_json(models.count_tokens(params).await?)
        }
    }
}

async fn tools(ctx: &RunCtx, method: Method) -> Result<Value, RunFailure> {
    match method {
        Method::ToolsGetDetail => to_json(ctx.tools().get_detail("t").await?),
        Method::ToolsSearch => {
            let params = ToolSearchParams { top_k: 2, ..ToolSearchParams::new("sum") };
            to_json(ctx.tools().search_with(params).await?)
        }
        Method::ToolsCall => {
            let call = ToolCallParams {
                tool_call_id: Some("c1".to_owned()),
                ..ToolCallParams::new("t", object(json!({ "a": 1 })))
            };
            to_json(ctx.tools().call_with(call).await?)
        }
        Method::KnowledgeList => to_json(ctx.knowledge().list().await?),
        _ => {
            let params =
                KnowledgeRetrieveParams { top_k: 3, ..KnowledgeRetrieveParams::new("k", "年假") };
            to_json(ctx.knowledge().retrieve_with(params).await?)
        }
    }
}

async fn facts(ctx: &RunCtx, method: Method) -> Result<Value, RunFailure> {
    match method {
        Method::HistoryPage => {
            let params = HistoryPageParams {
                after_cursor: Some("cur".to_owned()),
                limit: 20,
                direction: Direction::Forward,
                include_artifacts: true,
                ..Default::default()
            };
            to_json(ctx.history().page(params).await?)
        }
        Method::HistorySearch => {
            let filters = HistoryFilters {
                roles: vec![TranscriptRole::User],
                after: Some(Moment { unix_ms: 1_700_000_000_000 }),
                ..Default::default()
            };
            let params = HistorySearchParams { filters, ..HistorySearchParams::new("数据库") };
            to_json(ctx.history().search_with(params).await?)
        }
        Method::EventsGet => to_json(ctx.events().get("e1").await?),
        _ => {
            let event_types = vec!["tool.call.completed".to_owned()];
            to_json(ctx.events().page(EventPageParams { event_types, ..Default::default() }).await?)
        }
    }
}

async fn artifacts(ctx: &RunCtx, method: Method) -> Result<Value, RunFailure> {
    let artifacts = ctx.artifacts();
    match method {
        Method::ArtifactsMetadata => to_json(artifacts.metadata("a1").await?),
        Method::ArtifactsReadRange => {
            let range = artifacts.read_range("a1", 5, 100).await?;
            let text = String::from_utf8_lossy(&range.bytes).into_owned();
            Ok(json!({ "text": text, "offset": range.offset, "eof": range.eof }))
        }
        Method::ArtifactsOpenStream => {
            let mut stream = artifacts.open_stream("a1").await?;
            let mut pieces = Vec::new();
            while let Some(piece) = stream.next().await {
                pieces.push(String::from_utf8_lossy(&piece?).into_owned());
            }
            Ok(json!({ "pieces": pieces, "offset": stream.offset() }))
        }
        _ => {
            let options = ArtifactOptions {
                name: Some("报告.txt".to_owned()),
                mime_type: Some("text/plain".to_owned()),
                expires_in_s: Some(60),
                ..Default::default()
            };
            to_json(artifacts.create(b"hello", options).await?)
        }
    }
}

async fn kept(ctx: &RunCtx, method: Method) -> Result<Value, RunFailure> {
    let (state, scope) = (ctx.state(), StateScope::Actor);
    let (storage, area) = (ctx.storage(), StorageArea::Plugin);
    let (prefix, cursor, limit) = (Some("k".to_owned()), Some("cur".to_owned()), Some(2));
    match method {
        Method::StateGet => to_json(state.get(scope, "k").await?),
        Method::StateSet => {
            let options = SetOptions { if_version: Some(0), ttl_s: Some(60) };
            to_json(state.set_with(scope, "k", json!({ "n": 1 }), options).await?)
        }
        Method::StateDelete => {
            let params = StateDeleteParams { scope, key: "k".to_owned(), if_version: Some(3) };
            to_json(state.delete_with(params).await?)
        }
        Method::StateList => {
            to_json(state.list_with(StateListParams { scope, prefix, cursor, limit }).await?)
        }
        Method::StorageGet => to_json(storage.get(area, "k").await?),
        Method::StorageSet => to_json(storage.set(area, "k/1", b"hello").await?),
        Method::StorageDelete => to_json(storage.delete(area, "k").await?),
        _ => to_json(storage.list_with(StorageListParams { area, prefix, cursor, limit }).await?),
    }
}

async fn others(ctx: &RunCtx, method: Method) -> Result<Value, RunFailure> {
    match method {
        Method::SteeringPull => {
            to_json(ctx.steering().pull_with(SteeringPullParams { limit: Some(7) }).await?)
        }
        _ => {
            let target = object(json!({ "message_id": "m1" }));
            let payload = object(json!({ "emoji": "👍" }));
            to_json(ctx.platform().request_action("message.react", target, payload).await?)
        }
    }
}
