//! `testing::Host`, for tests of runners that call the host.

use greenroom_sdk::testing::{Host, Reply};
use greenroom_sdk::{
    AgentAPIError, ErrorCode, HistoryPageParams, Manifest, Method, ModelInvokeParams, ModelMessage,
    ModelStreamItem, Plugin, Role, RunCtx, RunFailure, Runner, StateScope, StorageArea, json,
};

/// Does what the text says.
struct Caller;

impl Runner for Caller {
    fn manifest(&self) -> Manifest {
        Manifest::new("default")
    }

    async fn run(&self, ctx: RunCtx) -> Result<(), RunFailure> {
        match ctx.text() {
            "remember" => remember(&ctx).await,
            "think" => think(&ctx).await,
            "copy" => copy(&ctx).await,
            "large state" => {
                let value = "x".repeat(256 * 1024);
                ctx.state().set(StateScope::Actor, "k", value).await.map(drop)?;
                Ok(())
            }
            "large storage" => {
                let bytes = vec![0; 8 * 1024 * 1024];
                Ok(ctx.storage().set(StorageArea::Plugin, "k", &bytes).await?)
            }
            "wrong key" => Ok(ctx.storage().set(StorageArea::Plugin, "../k", b"").await?),
            "wrong call" => Ok(ctx.call("state.get", json!(["k"])).await?),
            "history" => {
                let page = ctx.history().page(HistoryPageParams::default()).await?;
                ctx.message(format!("{} items", page.items.len())).await
            }
            other => Err(RunFailure::error(other)),
        }
    }
}

async fn remember(ctx: &RunCtx) -> Result<(), RunFailure> {
    let count = ctx.state().get(StateScope::Actor, "count").await?;
    let next = count.value.as_i64().unwrap_or(0) + 1;
    let version = ctx.state().set(StateScope::Actor, "count", next).await?;
    ctx.message(format!("{next} in version {version}")).await
}

async fn think(ctx: &RunCtx) -> Result<(), RunFailure> {
    let messages = vec![ModelMessage::text(Role::User, ctx.text())];
    let mut answer = ctx.models().stream(ModelInvokeParams::new("m", messages)).await?;
    while let Some(item) = answer.next().await {
        if let ModelStreamItem::TextDelta { text } = item? {
            ctx.delta(&text).await?;
        }
    }
    ctx.message(answer.response().map(|response| response.text()).unwrap_or_default()).await
}

/// Reads slower than the host sends.
async fn copy(ctx: &RunCtx) -> Result<(), RunFailure> {
    let mut pieces = ctx.artifacts().open_stream("a1").await?;
    // The host responds to this after all the pieces, which it sends at once.
    ctx.state().get(StateScope::Actor, "k").await?;
    let (mut count, mut bytes) = (0, 0);
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        assert!(piece.iter().all(|byte| *byte == b'a'));
        (count, bytes) = (count + 1, bytes + piece.len());
    }
    ctx.message(format!("{bytes} bytes in {count} pieces")).await
}

fn plugin() -> Plugin {
    Plugin::new("me", "caller").runner(Caller)
}

fn with_model(context: &mut serde_json::Value) {
    context["resources"]["models"] = json!([{ "model_id": "m", "operations": ["stream"] }]);
}

#[tokio::test]
async fn a_fake_host_responds_and_records_calls() {
    let host = Host::new()
        .on(Method::StateGet, |_| Reply::ok(json!({ "value": 41, "version": 5 })))
        .on(Method::StateSet, |params| {
            assert_eq!(params["value"], 42);
            Reply::ok(json!({ "version": 6 }))
        });
    let ran = host.run(plugin(), "remember").await.unwrap();
    assert_eq!(ran.results[0].data["message"]["content"], "42 in version 6");
    let methods: Vec<_> = ran.requests.iter().map(|request| request.method.as_str()).collect();
    assert_eq!(methods, ["state.get", "state.set"]);
    assert_eq!(
        ran.requests[0].params,
        json!({ "run_id": "run-1", "scope": "actor", "key": "count" })
    );
}

#[tokio::test]
async fn a_fake_host_streams() {
    let answer = json!({ "segments": [{ "type": "text", "text": "ab" }], "metadata": {} });
    let items = ["a", "b"].map(|text| json!({ "type": "text_delta", "text": text }));
    let host = Host::new()
        .context(with_model)
        .on(Method::ModelsStream, move |_| Reply::ok(answer.clone()).after(items.clone()));
    let ran = host.run(plugin(), "think").await.unwrap();
    let kinds: Vec<_> = ran.results.iter().map(|result| result.kind.as_str()).collect();
    assert_eq!(kinds, ["message.delta", "message.delta", "message.completed", "run.completed"]);
    assert_eq!(ran.results[2].data["message"]["content"], "ab");
}

#[tokio::test]
async fn a_fake_host_rejects_and_a_call_without_response_ends_at_the_deadline() {
    let refusal = AgentAPIError::new(ErrorCode::RateLimited, "slow down");
    let host = Host::new().on(Method::StateGet, move |_| Reply::refused(refusal.clone()));
    let ran = host.run(plugin(), "remember").await.unwrap();
    assert_eq!(ran.results[0].data["code"], "rate_limited");
    assert_eq!(ran.results[0].data["retryable"], true);

    let host = Host::new()
        .context(|context| context["runtime"]["metadata"]["remaining_ms"] = json!(30))
        .on(Method::StateGet, |_| Reply::none());
    let ran = host.run(plugin(), "remember").await.unwrap();
    assert_eq!(ran.results[0].data["code"], "deadline_exceeded");
    assert_eq!(ran.given_up, 1);

    let ran = Host::new().run(plugin(), "history").await.unwrap();
    assert_eq!(ran.results[0].data["code"], "unauthorized");
    assert_eq!(ran.requests, []);
}

#[tokio::test]
async fn oversized_and_invalid_calls_are_not_sent() {
    let cases = [
        ("large state", "payload_too_large", "a state value has at most 262144 bytes, not 262146"),
        (
            "large storage",
            "payload_too_large",
            "`storage.set` takes at most 6225920 bytes, not 8388608",
        ),
        ("wrong key", "invalid_argument", "`key` must not have an empty part, `.` or `..`"),
        ("wrong call", "invalid_argument", "the parameters of `state.get` are not an object"),
    ];
    for (text, code, message) in cases {
        let host = Host::new()
            .on(Method::StateSet, |_| Reply::none())
            .on(Method::StorageSet, |_| Reply::none())
            .context(|context| context["resources"]["storage"] = json!({ "plugin": true }));
        let ran = host.run(plugin(), text).await.unwrap();
        assert_eq!(
            (&ran.results[0].data["code"], &ran.results[0].data["message"]),
            (&json!(code), &json!(message))
        );
        assert_eq!(ran.requests, []);
    }
}

#[tokio::test]
async fn a_slow_reader_gets_every_byte_with_bounded_memory() {
    const SIZE: usize = 12 * 1024 * 1024;
    const PIECE: usize = 192 * 1024;
    let pieces = |from: usize| {
        (from..SIZE).step_by(PIECE).map(|offset| {
            let length = PIECE.min(SIZE - offset);
            json!({ "offset": offset, "data_base64": "YWFh".repeat(length / 3) })
        })
    };
    let host = Host::new()
        .on(Method::StateGet, |_| Reply::ok(json!({ "value": null, "version": 0 })))
        .on(Method::ArtifactsOpenStream, move |params| {
            let from = params["offset"].as_u64().unwrap() as usize;
            Reply::ok(json!({ "size_bytes": SIZE, "sha256": "00" })).after(pieces(from))
        });
    let ran = host.run(plugin(), "copy").await.unwrap();
    assert_eq!(ran.results[0].data["message"]["content"], "12582912 bytes in 64 pieces");
    assert!(ran.given_up >= 1, "the first stream was given up when its buffer was full");
    let from = ran.requests.iter().filter(|request| request.method == "artifacts.open_stream");
    let from: Vec<_> = from.map(|request| request.params["offset"].as_u64().unwrap()).collect();
    assert!(from.len() >= 2 && from.is_sorted() && from[0] == 0, "{from:?}");
}
