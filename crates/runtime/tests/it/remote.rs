//! Runners that connect from elsewhere.

use crate::kit::{Kit, WAIT, call_tool, finish, request, texts, tool_call};
use bytes::Bytes;
use futures_util::{Sink, Stream};
use greenroom_protocol::RunnerId;
use greenroom_runtime::{
    AttachError, PluginToolCall, PluginToolError, RunEnd, RunnerSpec, RunnerStatus,
};
use serde_json::{Value, json};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

const ID: &str = "plugin:test/remote/main";

/// The host's end of a connection in memory.
struct Transport {
    incoming: mpsc::Receiver<Bytes>,
    outgoing: mpsc::Sender<Bytes>,
}

impl Stream for Transport {
    type Item = Result<Bytes, Infallible>;
    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.incoming.poll_recv(cx).map(|frame| frame.map(Ok))
    }
}

impl Sink<Bytes> for Transport {
    type Error = &'static str;
    fn poll_ready(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }
    fn start_send(self: Pin<&mut Self>, frame: Bytes) -> Result<(), Self::Error> {
        self.outgoing.try_send(frame).map_err(|_| "closed")
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }
    fn poll_close(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }
}

/// The runner's end.
struct Peer {
    outgoing: mpsc::Sender<Bytes>,
    incoming: mpsc::Receiver<Bytes>,
}

fn connect() -> (Transport, Peer) {
    let (to_host, from_peer) = mpsc::channel(64);
    let (to_peer, from_host) = mpsc::channel(64);
    let host = Transport { incoming: from_peer, outgoing: to_peer };
    (host, Peer { outgoing: to_host, incoming: from_host })
}

impl Peer {
    async fn receive(&mut self) -> Value {
        let frame = tokio::time::timeout(WAIT, self.incoming.recv()).await.unwrap().unwrap();
        serde_json::from_slice(&frame).unwrap()
    }

    async fn send(&self, message: Value) {
        self.outgoing.send(message.to_string().into()).await.unwrap();
    }

    async fn introduce(&mut self) {
        let plugin = json!({"author": "test", "name": "remote", "version": "1"});
        let manifest = json!({"id": ID, "name": "main", "label": {"en_US": "Remote"}});
        let tool = json!({"name": "far.tool", "input_schema": {"type": "object"}});
        for (method, result) in [
            ("initialize", json!({"protocol_version": "1", "plugin": plugin})),
            ("list_agent_runners", json!({"runners": [manifest]})),
            ("list_tools", json!({"tools": [tool]})),
        ] {
            let asked = self.receive().await;
            assert_eq!(asked["method"], method);
            self.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": result})).await;
        }
    }
}

fn spec() -> RunnerSpec {
    RunnerSpec { name: "far".into(), ..RunnerSpec::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_runner_serves_runs_until_it_is_gone() {
    let kit = Kit::new();
    kit.runtime.apply(vec![spec()]).await;
    assert_eq!(kit.runtime.runners()[0].status, RunnerStatus::Disconnected);
    let (transport, mut peer) = connect();
    let runtime = kit.runtime.clone();
    let mut served = std::pin::pin!(runtime.attach("far", transport));
    let id = RunnerId::parse(ID).unwrap();
    let runner = async {
        peer.introduce().await;
        let found = kit.runtime.ready(&id, WAIT).await.unwrap();
        assert_eq!(&*found.isolation, "remote");
        let refused = kit.runtime.attach("far", connect().0).await;
        assert_eq!(refused, Err(AttachError::Connected("far".into())));
        let first = kit.runtime.start_run(request(ID, "r1", "x")).await.unwrap();
        let asked = peer.receive().await;
        assert_eq!(asked["params"]["context"]["run_id"], "r1");
        let chunk = json!({"chunk": {"role": "assistant", "content": "far"}});
        let result = json!({"run_id": "r1", "type": "message.delta", "data": chunk});
        peer.send(json!({"jsonrpc": "2.0", "method": "run.result", "params": result})).await;
        peer.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}})).await;
        let (results, end) = finish(first).await;
        assert_eq!((texts(&results), end), (vec!["far".to_owned()], RunEnd::Finished));
        let second = kit.runtime.start_run(request(ID, "r2", "x")).await.unwrap();
        assert_eq!(peer.receive().await["params"]["context"]["run_id"], "r2");
        drop(peer);
        let (_, end) = finish(second).await;
        assert_eq!(end, RunEnd::Crashed { message: "runner `far` closed its connection".into() });
    };
    let (outcome, ()) = tokio::join!(&mut served, runner);
    assert_eq!(outcome, Ok(()));
    assert_eq!(kit.runtime.runners()[0].status, RunnerStatus::Disconnected);
    // The name is free again.
    let (transport, mut peer) = connect();
    let again = async {
        peer.introduce().await;
        kit.runtime.ready(&id, WAIT).await.unwrap();
        drop(peer);
    };
    let (outcome, ()) = tokio::join!(kit.runtime.attach("far", transport), again);
    assert_eq!(outcome, Ok(()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_plugin_serves_tools_until_it_is_gone() {
    let kit = Kit::new();
    kit.runtime.apply(vec![spec()]).await;
    let (transport, mut peer) = connect();
    let runtime = kit.runtime.clone();
    let id = RunnerId::parse(ID).unwrap();
    let plugin = async {
        peer.introduce().await;
        kit.runtime.ready(&id, WAIT).await.unwrap();
        let answering = async {
            let asked = peer.receive().await;
            let params = json!({"tool_name": "far.tool", "parameters": {"n": 1}, "tool_call_id": "c1", "run_id": "r1"});
            let mut told = asked["params"].clone();
            let left = told.as_object_mut().unwrap().remove("deadline_ms").unwrap();
            assert!((1..=30_000).contains(&left.as_u64().unwrap()));
            assert_eq!((&asked["method"], told), (&json!("call_tool"), params));
            peer.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"result": 2}})).await;
            assert_eq!(peer.receive().await["params"]["tool_call_id"], "c2");
            drop(peer);
        };
        let calling = async {
            let first = call_tool(&kit.runtime, "far", "far.tool", json!({"n": 1})).await.unwrap();
            assert_eq!(first.result, 2);
            let second =
                PluginToolCall { tool_call_id: "c2".into(), ..tool_call("far.tool", json!({})) };
            let lost = kit.runtime.call_tool("far", second, Default::default()).await;
            let message = "runner `far` closed its connection".into();
            assert_eq!(lost, Err(PluginToolError::Crashed { message }));
        };
        tokio::join!(answering, calling);
    };
    let (outcome, ()) = tokio::join!(runtime.attach("far", transport), plugin);
    assert_eq!(outcome, Ok(()));
    // It is known, and not there.
    assert_eq!(kit.runtime.tools()[0].runner, "far");
    let message = "runner `far` is not connected".into();
    assert_eq!(
        call_tool(&kit.runtime, "far", "far.tool", json!({})).await,
        Err(PluginToolError::Unavailable { message })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn only_remote_runners_of_the_configuration_may_connect() {
    let kit = Kit::new();
    kit.runtime.apply(vec![kit.spec()]).await;
    for name in ["wire", "nobody"] {
        let refused = kit.runtime.attach(name, connect().0).await;
        assert_eq!(refused, Err(AttachError::Unknown(name.into())));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_remote_runner_that_is_not_the_pinned_plugin_is_refused() {
    let kit = Kit::new();
    kit.runtime.apply(vec![RunnerSpec { plugin: Some("acme/far".into()), ..spec() }]).await;
    let (transport, mut peer) = connect();
    let introduced = async {
        let asked = peer.receive().await;
        let plugin = json!({"author": "test", "name": "remote"});
        peer.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"protocol_version": "1", "plugin": plugin}})).await;
    };
    let (outcome, ()) = tokio::join!(kit.runtime.attach("far", transport), introduced);
    assert!(matches!(outcome, Err(AttachError::Refused { .. })), "{outcome:?}");
    assert_eq!(kit.runtime.runners()[0].status, RunnerStatus::Disconnected);
}
