//! `tools.search` by meaning: a model makes vectors of tools and queries, and words do where it does not.

use crate::models::{agent, result, step};
use crate::stage::{PATIENCE, Stage, config, event, runners};
use greenroom_testkit::host::TestHost;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A server of embeddings on the wire of OpenAI: sums lie in one direction, everything else in another.
struct Embedder {
    url: String,
    /// Every text that it was asked about.
    texts: Arc<Mutex<Vec<String>>>,
    /// Opens for queries that are slow.
    gate: watch::Sender<bool>,
}

fn vector(text: &str) -> [f32; 2] {
    let about_sums = ["Adds two numbers", "together"].iter().any(|word| text.contains(word));
    if about_sums { [1.0, 0.1] } else { [-0.1, 1.0] }
}

impl Embedder {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        let texts: Arc<Mutex<Vec<String>>> = Arc::default();
        let gate = watch::channel(false).0;
        let (known, opened) = (Arc::clone(&texts), gate.clone());
        #[expect(clippy::disallowed_methods, reason = "the test is the server")]
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let (known, opened) = (Arc::clone(&known), opened.subscribe());
                tokio::spawn(serve(connection, known, opened));
            }
        });
        Self { url, texts, gate }
    }

    fn times_asked(&self, text: &str) -> usize {
        self.texts.lock().unwrap().iter().filter(|known| *known == text).count()
    }
}

async fn serve(
    connection: TcpStream,
    known: Arc<Mutex<Vec<String>>>,
    mut open: watch::Receiver<bool>,
) {
    let mut connection = BufReader::new(connection);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let before = head.len();
        if connection.read_line(&mut head).await.unwrap() == 0 {
            return;
        }
        if let Some(value) = head[before..].to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    assert!(head.starts_with("POST /v1/embeddings "), "{head}");
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await.unwrap();
    let asked: Value = serde_json::from_slice(&body).unwrap();
    let texts: Vec<String> = serde_json::from_value(asked["input"].clone()).unwrap();
    known.lock().unwrap().extend(texts.iter().cloned());
    if texts.iter().any(|text| text.starts_with("slowly")) {
        open.wait_for(|open| *open).await.unwrap();
    }
    let vectors = texts.iter().enumerate().map(
        |(index, text)| json!({"object": "embedding", "index": index, "embedding": vector(text)}),
    );
    let answer = json!({"object": "list", "data": vectors.collect::<Vec<_>>(),
        "usage": {"prompt_tokens": 5, "total_tokens": 5}})
    .to_string();
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        answer.len()
    );
    // Whoever asked may have gone.
    let _ = connection.write_all((head + &answer).as_bytes()).await;
}

static SEARCHES: AtomicU64 = AtomicU64::new(0);

/// The names that a search finds.
async fn search(stage: &Stage, agent: &str, query: &str) -> Vec<String> {
    let name = format!("search-{}", SEARCHES.fetch_add(1, Ordering::Relaxed));
    let params = json!({"query": query, "top_k": 3});
    let steps = json!([step("tools.search", params, &name), ["end"]]).to_string();
    let run_id = stage.send(&event(agent, &name, &steps)).await;
    stage.api.ended_run(&run_id).await;
    let found = result(stage, &name).await["items"].as_array().unwrap().clone();
    found.iter().map(|tool| tool["tool_name"].as_str().unwrap().to_owned()).collect()
}

async fn found(stage: &Stage, query: &str, names: &[&str]) {
    wait_for(&format!("{names:?} for `{query}`"), PATIENCE, async || {
        (search(stage, "clerk", query).await == names).then_some(())
    })
    .await;
}

fn agents() -> String {
    let clerk = agent("clerk", &[], "").replace("models = []", "tools = [\"forge.*\"]");
    let bare = agent("bare", &[], "").replace("models = []", "tools = [\"forge.text\"]");
    let forge = runners().join("smith.py");
    format!(
        "[runners.forge]\ncommand = [\"python3\", \"{}\"]\ndir = \"other\"\n{clerk}{bare}",
        forge.display()
    )
}

async fn stage(url: &str) -> Stage {
    let search = format!(
        "[models.vectors]\nprovider = \"openai\"\nkind = \"embedding\"\nmodel = \"m\"\nretries = 0\n\
         base_url = \"{url}\"\nallow_private = true\napi_key = {{ file = \"key\" }}\n\
         [tool_search]\nmodel = \"vectors\"\n"
    );
    let config = config("cancel_grace_s = 1", &(search + &agents()));
    let host = TestHost::prepare(crate::PROGRAM, &config);
    std::fs::write(host.folder().join("key"), "a-key-of-a-test").unwrap();
    Stage::with(host).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_found_by_its_meaning_the_same_every_time() {
    let embedder = Embedder::start().await;
    let stage = stage(&embedder.url).await;
    let query = "how much is it together";
    found(&stage, query, &["forge.add"]).await;
    for _ in 0..3 {
        assert_eq!(search(&stage, "clerk", query).await, ["forge.add"]);
    }
    // A query is made a vector of once, and so is a tool.
    assert_eq!(embedder.times_asked(query), 1);
    assert_eq!(embedder.times_asked("forge.add: Adds two numbers"), 1);
    // Words and nearness together: what is named comes first, what is near comes next.
    assert_eq!(search(&stage, "clerk", "large together").await[..2], ["forge.large", "forge.add"]);
    // What is not granted is not found.
    assert_eq!(search(&stage, "bare", query).await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_does_not_wait_for_a_slow_model() {
    let embedder = Embedder::start().await;
    let stage = stage(&embedder.url).await;
    found(&stage, "put together", &["forge.add"]).await;
    let began = Instant::now();
    let query = "slowly: all of it together";
    assert_eq!(search(&stage, "clerk", query).await, Vec::<String>::new());
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(embedder.times_asked(query), 1);
    // What comes later serves the next search.
    embedder.gate.send_replace(true);
    found(&stage, query, &["forge.add"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_its_model_a_search_finds_by_words() {
    let stage = stage("http://127.0.0.1:1/v1").await;
    found(&stage, "adds numbers", &["forge.add"]).await;
    assert_eq!(search(&stage, "clerk", "how much is it together").await, Vec::<String>::new());
}
