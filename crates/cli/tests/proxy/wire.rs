//! A runner's end of the native wire, held by the test.
//!
//! Invariant: nothing is sent that the test did not say. Every refusal is read strictly: whatever is not of the
//! one shape that CONTRACT §3 gives it is a panic.

use crate::stage::{PATIENCE, manifests};
use greenroom_protocol::AgentAPIError;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

/// What the host asks for and the test has not looked at yet.
const REQUESTS_MAX: usize = 1024;

pub(crate) type Reply = Result<Value, AgentAPIError>;

pub(crate) struct Wire {
    writer: tokio::sync::Mutex<OwnedWriteHalf>,
    shared: Arc<Shared>,
    requests: tokio::sync::Mutex<mpsc::Receiver<Value>>,
    numbers: AtomicI64,
    /// Ends with the wire.
    _reading: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    /// Who waits for an answer, by the text of the id.
    waiting: Mutex<HashMap<String, oneshot::Sender<Value>>>,
    /// Everything the host told without asking.
    told: Mutex<Vec<Value>>,
    /// Takes the lines of answers whose id is a text with this letter first, as they are.
    tap: OnceLock<mpsc::Sender<String>>,
}

/// What the ids of calls begin with whose answers are tapped.
pub(crate) const TAPPED: char = '~';

/// A run as its runner got it.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub id: String,
    pub context: Value,
    request: Value,
}

/// A question about runners that is not answered yet.
pub(crate) struct HalfShaken(Value);

/// A call that is under way.
pub(crate) struct Pending {
    answer: oneshot::Receiver<Value>,
}

impl Wire {
    pub(crate) fn over(stream: UnixStream) -> Self {
        let (reader, writer) = stream.into_split();
        let shared = Arc::new(Shared::default());
        let (sender, requests) = mpsc::channel(REQUESTS_MAX);
        let mut reading = JoinSet::new();
        reading.spawn(read(reader, Arc::clone(&shared), sender));
        Self {
            writer: tokio::sync::Mutex::new(writer),
            shared,
            requests: tokio::sync::Mutex::new(requests),
            numbers: AtomicI64::new(1),
            _reading: reading,
        }
    }

    /// Says who one is and what one offers.
    pub(crate) async fn shake_hands(&self, plugin: &str) {
        let half = self.introduce(plugin).await;
        self.list_runners(half, plugin).await;
    }

    /// The same with runners of one's own.
    pub(crate) async fn offer(&self, plugin: &str, runners: Value) {
        let half = self.introduce(plugin).await;
        self.answer(&half.0, json!({"runners": runners})).await;
    }

    /// The first half: the host has heard who this says it is, and waits for what it offers.
    pub(crate) async fn introduce(&self, plugin: &str) -> HalfShaken {
        let asked = self.asked("initialize").await;
        let (author, name) = plugin.split_once('/').unwrap();
        let plugin = json!({"author": author, "name": name, "version": "1"});
        self.answer(&asked, json!({"protocol_version": "1", "plugin": plugin})).await;
        HalfShaken(self.asked("list_agent_runners").await)
    }

    /// The second half.
    pub(crate) async fn list_runners(&self, half: HalfShaken, plugin: &str) {
        self.answer(&half.0, json!({"runners": manifests(plugin)})).await;
    }

    pub(crate) async fn next_run(&self) -> Run {
        let asked = self.asked("run_agent").await;
        let context = asked["params"]["context"].clone();
        let id = context["run_id"].as_str().unwrap().to_owned();
        Run { id, context, request: asked }
    }

    /// The next request of this method; others are answered with nothing.
    async fn asked(&self, method: &str) -> Value {
        let mut requests = self.requests.lock().await;
        loop {
            let next = tokio::time::timeout(PATIENCE, requests.recv()).await;
            let next = next.unwrap_or_else(|_| panic!("the host did not ask `{method}`"));
            let next = next.unwrap_or_else(|| panic!("the wire was cut before `{method}`"));
            if next["method"] == method {
                return next;
            }
            self.answer(&next, json!({})).await;
        }
    }

    /// Whether the wire was cut by the host.
    pub(crate) async fn is_cut(&self) -> bool {
        let mut requests = self.requests.lock().await;
        loop {
            match tokio::time::timeout(PATIENCE, requests.recv()).await {
                Ok(Some(request)) => self.answer(&request, json!({})).await,
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
    }

    async fn answer(&self, request: &Value, result: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    /// Calls and waits.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Reply {
        let id = self.numbers.fetch_add(1, Ordering::Relaxed);
        self.call_as(json!(id), method, params).await.reply().await
    }

    /// Calls for a run.
    pub(crate) async fn call_for(&self, run_id: &str, method: &str, params: Value) -> Reply {
        self.call(method, with_run(params, run_id)).await
    }

    /// Calls under an id of one's own.
    pub(crate) async fn call_as(&self, id: Value, method: &str, params: Value) -> Pending {
        let (sender, answer) = oneshot::channel();
        self.shared.waiting().insert(id.to_string(), sender);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        Pending { answer }
    }

    /// Calls many times in one breath: the host has all of them before it answers one.
    pub(crate) async fn call_together(&self, calls: Vec<(&str, Value)>) -> Vec<Pending> {
        let (mut lines, mut pending) = (String::new(), Vec::new());
        for (method, params) in calls {
            let id = json!(self.numbers.fetch_add(1, Ordering::Relaxed));
            let (sender, answer) = oneshot::channel();
            self.shared.waiting().insert(id.to_string(), sender);
            let call = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            lines += &format!("{call}\n");
            pending.push(Pending { answer });
        }
        self.write(lines.as_bytes()).await;
        pending
    }

    pub(crate) async fn result(&self, run: &Run, kind: &str, data: Value) {
        let params = json!({"run_id": run.id, "type": kind, "data": data});
        self.send(&json!({"jsonrpc": "2.0", "method": "run.result", "params": params})).await;
    }

    /// The run's terminal, without the answer to `run_agent`.
    pub(crate) async fn complete(&self, run: &Run) {
        self.result(run, "run.completed", json!({"finish_reason": "stop"})).await;
    }

    /// The answer to `run_agent`: from here on the runner has let go too.
    pub(crate) async fn let_go(&self, run: &Run) {
        self.answer(&run.request, json!({})).await;
    }

    pub(crate) async fn finish(&self, run: &Run) {
        self.complete(run).await;
        self.let_go(run).await;
    }

    async fn send(&self, message: &Value) {
        self.write(format!("{message}\n").as_bytes()).await;
    }

    pub(crate) async fn write(&self, bytes: &[u8]) {
        let mut writer = self.writer.lock().await;
        // A wire that was cut is noticed where something is awaited from it.
        let _ = writer.write_all(bytes).await;
    }

    /// From now on answers to tapped calls come here.
    pub(crate) fn tap(&self, lines_max: usize) -> mpsc::Receiver<String> {
        let (sender, lines) = mpsc::channel(lines_max);
        self.shared.tap.set(sender).expect("a wire is tapped once");
        lines
    }

    /// What the host told by this notification, in order.
    pub(crate) fn told(&self, method: &str) -> Vec<Value> {
        let told = self.shared.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.iter().filter(|message| message["method"] == method).cloned().collect()
    }

    /// Answers that nobody waited for.
    pub(crate) fn stray(&self) -> Vec<Value> {
        let told = self.shared.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.iter().filter(|message| message["method"].is_null()).cloned().collect()
    }
}

impl Pending {
    pub(crate) async fn reply(self) -> Reply {
        let answer = tokio::time::timeout(PATIENCE, self.answer).await;
        let answer = answer.expect("the host answers in time").expect("the wire was not cut");
        reply_in(&answer)
    }
}

/// Reads an answer; a refusal that is not of the contract's shape is a panic.
pub(crate) fn reply_in(answer: &Value) -> Reply {
    let Some(error) = answer.get("error") else {
        let result = answer.get("result");
        return Ok(result.unwrap_or_else(|| panic!("neither result nor error: {answer}")).clone());
    };
    assert_eq!(error["code"], -32000, "{answer}");
    assert!(answer.get("result").is_none() && error["message"].is_string(), "{answer}");
    let mut fields: Vec<&str> =
        error["data"].as_object().unwrap().keys().map(String::as_str).collect();
    fields.sort_unstable();
    assert_eq!(fields, ["code", "details", "message", "retryable"], "{answer}");
    let data: AgentAPIError = serde_json::from_value(error["data"].clone()).unwrap();
    assert!(!data.message.is_empty(), "{answer}");
    Err(data)
}

pub(crate) fn with_run(mut params: Value, run_id: &str) -> Value {
    params["run_id"] = run_id.into();
    params
}

async fn read(reader: OwnedReadHalf, shared: Arc<Shared>, requests: mpsc::Sender<Value>) {
    let mut lines = BufReader::with_capacity(1 << 20, reader).lines();
    let tapped = format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{TAPPED}");
    while let Ok(Some(line)) = lines.next_line().await {
        if line.starts_with(&tapped)
            && let Some(tap) = shared.tap.get()
        {
            // Whoever taps may have seen enough.
            let _ = tap.send(line).await;
            continue;
        }
        let message: Value = serde_json::from_str(&line).unwrap();
        let is_answer = message["method"].is_null();
        if is_answer && let Some(waiting) = shared.waiting().remove(&message["id"].to_string()) {
            // Whoever asked may have given up.
            let _ = waiting.send(message);
        } else if !is_answer && message.get("id").is_some() {
            if requests.send(message).await.is_err() {
                return;
            }
        } else {
            shared.told.lock().unwrap_or_else(PoisonError::into_inner).push(message);
        }
    }
}

impl Shared {
    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<String, oneshot::Sender<Value>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
