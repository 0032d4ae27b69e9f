//! What a plugin may write, line by line, and what is left of it.

use super::*;
use crate::connection::{Connection, ConnectionId, Parts};
use crate::outbox::Outbox;
use crate::proxy::{Proxy, ProxyCall, ProxyFuture};
use crate::quote::Cleaner;
use crate::reader::Reader;
use crate::run::{RunEnd, RunEvent, RunHandle};
use crate::spec::Limits;
use crate::tasks::Tasks;
use crate::wires::{self, Codec};
use greenroom_protocol::Object;
use std::path::Path;

/// Answers with the parameters of the call; a stream gets one item and never ends.
struct Echo;

impl Proxy for Echo {
    fn call(&self, call: ProxyCall) -> ProxyFuture<'_> {
        Box::pin(async move {
            if call.method != "models.stream" {
                return to_raw_value(&json!({"result": {"called": call.params}}))
                    .map_err(malformed);
            }
            let item = to_raw_value(&json!({"type": "text_delta", "text": "a"})).unwrap();
            call.sink.send(&item).await.unwrap();
            std::future::pending().await
        })
    }

    fn refused(&self, _: &ProxyCall, _: &AgentAPIError) {}
}

struct Wire {
    reader: Reader,
    connection: Arc<Connection>,
}

impl Wire {
    fn new(calls_in_flight_max: usize) -> Self {
        let session = Session::new(Path::new("python3"), "0.1.0", Object::new()).unwrap();
        let limits = Limits { calls_in_flight_max, ..Limits::default() };
        let outbox = Outbox::new(limits.queue_bytes_max, None);
        let parts = Parts {
            id: ConnectionId(1),
            runner: "plugin".into(),
            isolation: "off".into(),
            limits,
            cleaner: Cleaner::default(),
            proxy: Arc::new(Echo),
            tasks: Tasks::default(),
            codec: Codec::Langbot(Arc::new(session)),
        };
        let connection = Connection::new(parts, outbox);
        Self { reader: Reader::new(connection.clone()), connection }
    }

    /// A run under way; the numbers of runs are counted from 1.
    async fn run(&mut self, id: &str) -> RunHandle {
        let request = serde_json::from_value(json!({
            "runner_id": "plugin:test/plugin/main", "runner_name": "main",
            "context": {
                "run_id": id,
                "trigger": {"type": "message.received", "source": "api"},
                "event": {"event_id": "e", "event_type": "message.received", "source": "api"},
                "input": {"text": ""},
                "delivery": {"surface": "api"},
                "resources": {},
                "context": {"inline_policy": {"mode": "current_event"}, "available_apis": {}},
                "state": {},
                "runtime": {"trace_id": "t"}
            }
        }));
        let run = self.connection.start_run(&request.unwrap()).await.unwrap();
        assert_eq!(self.answer().await["action"], "run_runner");
        run
    }

    fn is_assembling(&self) -> bool {
        matches!(&self.reader.decoder, wires::Decoder::Langbot(decoder) if decoder.assembly.is_some())
    }

    fn write(&mut self, line: &str) {
        self.reader.take_frame(line.as_bytes());
    }

    async fn answer(&mut self) -> Value {
        serde_json::from_slice(&self.connection.outbox.next().await.unwrap()).unwrap()
    }

    async fn ask(&mut self, number: i64, action: &str, data: Value) -> Value {
        self.write(&json!({"seq_id": number, "action": action, "data": data}).to_string());
        self.answer().await
    }

    /// The parameters with which the host gets a call of a tool.
    async fn called(&mut self, run_id: &str) -> Value {
        let data = json!({"run_id": run_id, "tool_name": "add", "parameters": {}});
        let mut answer = self.ask(5, "call_tool", data).await;
        let called = answer["data"]["result"]["called"].take();
        assert_eq!(called["run_id"], run_id, "{answer}");
        called
    }

    async fn stream(&mut self, number: i64) -> Value {
        let data = json!({"run_id": "r1", "llm_model_uuid": "m", "messages": []});
        self.write(
            &json!({"seq_id": number, "action": "invoke_llm_stream", "data": data,
                "stream_flow_control": 1})
            .to_string(),
        );
        self.answer().await
    }

    /// Whether the stream of this call is known, and has this many items.
    async fn acknowledge(&mut self, stream: i64, index: u64) -> Value {
        let data = json!({"seq_id": stream, "index": index});
        self.ask(900, "__stream_ack", data).await["data"]["accepted"].clone()
    }
}

async fn end(run: &mut RunHandle) -> RunEnd {
    loop {
        if let RunEvent::End(end) = run.next().await {
            return end;
        }
    }
}

#[tokio::test]
async fn a_tool_is_called_under_an_id_that_only_a_run_under_way_keeps() {
    let mut wire = Wire::new(8);
    let run = wire.run("r1").await;
    assert!(wire.called("r1").await.get("tool_call_id").is_some());
    assert_eq!(wire.called("other").await.get("tool_call_id"), None);
    // The host lets go of the run, and the plugin goes on.
    drop(run);
    assert_eq!(wire.answer().await["action"], "__cancel_action");
    assert_eq!(wire.called("r1").await.get("tool_call_id"), None);
}

#[tokio::test]
async fn a_stream_that_is_refused_leaves_nothing_and_harms_no_other() {
    let mut wire = Wire::new(1);
    let _run = wire.run("r1").await;
    assert_eq!(wire.stream(5).await["stream_index"], 1);
    let refused = wire.stream(5).await;
    assert_eq!(refused["data"]["error"]["code"], "invalid_argument", "{refused}");
    assert_eq!(wire.acknowledge(5, 1).await, true);
    let refused = wire.stream(6).await;
    assert_eq!(refused["data"]["error"]["code"], "rate_limited", "{refused}");
    assert_eq!(wire.acknowledge(6, 0).await, false);
}

#[tokio::test]
async fn a_stream_that_is_given_up_before_it_began_leaves_nothing() {
    let mut wire = Wire::new(8);
    let _run = wire.run("r1").await;
    // One thread: its task does not run in between.
    let data = json!({"run_id": "r1", "llm_model_uuid": "m", "messages": []});
    wire.write(&json!({"seq_id": 5, "action": "invoke_llm_stream", "data": data}).to_string());
    let given_up = wire.ask(6, "__cancel_action", json!({"seq_id": 5})).await;
    assert_eq!(given_up["data"]["cancelled"], true);
    tokio::task::yield_now().await;
    assert_eq!(wire.acknowledge(5, 0).await, false);
}

const START: &str = r#"{"type": "chunk_start", "total_size": 90}"#;
const PIECE: &str = r#"{"type": "chunk_data", "data": "{\"seq_id\"", "offset": 0}"#;

#[tokio::test]
async fn a_long_message_that_is_left_unfinished_is_forgotten_by_the_next_one() {
    let mut wire = Wire::new(8);
    let mut run = wire.run("r1").await;
    for _ in 0..2 {
        wire.write(START);
        wire.write(PIECE);
    }
    // Text that is nobody's message is still nobody's.
    wire.write(r#"{"level": "info"}"#);
    assert!(wire.is_assembling());
    wire.write(r#"{"seq_id": 1, "code": 0, "data": {}, "chunk_status": "end"}"#);
    assert!(!wire.is_assembling());
    assert_eq!(end(&mut run).await, RunEnd::Finished);
    assert_eq!(wire.connection.reason(), None);
}

#[tokio::test]
async fn pieces_that_go_on_after_another_message_are_no_protocol() {
    let mut wire = Wire::new(8);
    let mut run = wire.run("r1").await;
    wire.write(START);
    let alive = wire.ask(7, "__ping", json!({})).await;
    assert_eq!(alive["data"]["alive"], true);
    wire.write(PIECE);
    // A run that goes on would be waited for in vain.
    assert!(wire.connection.reason().is_some());
    assert!(matches!(end(&mut run).await, RunEnd::ProtocolError { .. }));
}

#[tokio::test]
async fn a_broken_piece_is_no_protocol_with_and_without_spaces() {
    for line in [
        r#"{"type":"chunk_start","total_size":-1}"#,
        r#"{"type": "chunk_start", "total_size": "many"}"#,
        r#"{ "type" : "chunk_data", "data": "xx"#,
        r#"{"action": "__ping", "seq_id": "one"}"#,
    ] {
        let mut wire = Wire::new(8);
        let mut run = wire.run("r1").await;
        wire.write(r#"{"type": "log", "code": "chunk_start"}"#);
        assert_eq!(wire.connection.reason(), None);
        wire.write(line);
        assert!(wire.connection.reason().is_some(), "{line}");
        assert!(matches!(end(&mut run).await, RunEnd::ProtocolError { .. }), "{line}");
    }
}

#[test]
fn a_broken_message_is_told_from_other_text() {
    for line in [
        &br#"{"seq_id":1,"code":0,"data":{"a"#[..],
        br#"{ "code" : 0, "seq_id" : "x" }"#,
        br#"{"type":"chunk_start","total_size":-1}"#,
        br#"{"type": "chunk_data", "data": "xxx"#,
        br#"{"offset":0,"type":"chunk_data","data":"xxx"#,
    ] {
        assert!(is_message(line), "{}", String::from_utf8_lossy(line));
    }
    for line in [
        &br#"{"level":"info","data":{"seq_id":1,"type":"chunk_start"}"#[..],
        br#"{"type":"log","text":"chunk_start"#,
        br#"{'seq_id': 1}"#,
        b"{",
    ] {
        assert!(!is_message(line), "{}", String::from_utf8_lossy(line));
    }
}
