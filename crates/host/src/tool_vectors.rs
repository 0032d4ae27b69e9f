//! Embeddings of tools, so that `tools.search` also ranks by meaning (`[tool_search]`).
//!
//! Invariant: a search waits `QUERY_PATIENCE` for a model at most, and ranks by words alone unless every tool
//! that it may find has a vector. The same text has the same vector while it is cached, so the same search gives
//! the same order.

use crate::host::Shared;
use crate::proxy::{Size, Spending};
use crate::resources::Resources;
use greenroom_models::Model;
use greenroom_protocol::AgentAPIError;
use greenroom_protocol::api::Method;
use greenroom_protocol::api::models::ModelEmbedParams;
use greenroom_tools::Entry;
use greenroom_tools::search::{ToolIndex, Vectors};
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, timeout};

/// How long a search waits for the vector of its query.
const QUERY_PATIENCE: Duration = Duration::from_millis(500);
/// How long a model may take for it, for the benefit of the next search.
const QUERY_TIME: Duration = Duration::from_secs(10);
const TOOLS_TIME: Duration = Duration::from_secs(120);
/// Queries embedded at the same time.
const QUERIES_AT_ONCE: usize = 4;
/// Queries whose vectors are cached.
const QUERIES_KEPT: usize = 1024;
/// A longer query is cut.
const QUERY_BYTES_MAX: usize = 8 * 1024;
/// Tools per request.
const TOGETHER: usize = 64;
/// Pause after a model has failed.
const PAUSE: Duration = Duration::from_secs(30);

type Key = [u8; 32];
type Vector = Arc<[f32]>;

/// Vectors by model and text. Survives a reload: keys hold the model.
#[derive(Debug)]
pub(crate) struct ToolVectors {
    known: Mutex<Known>,
    /// A search lacked some vectors.
    missed: Notify,
    asking: Arc<Semaphore>,
}

#[derive(Debug, Default)]
struct Known {
    tools: HashMap<Key, Vector>,
    queries: HashMap<Key, Vector>,
    /// The queries, oldest first.
    ages: VecDeque<Key>,
    paused_until: Option<Instant>,
}

impl Default for ToolVectors {
    fn default() -> Self {
        let asking = Arc::new(Semaphore::new(QUERIES_AT_ONCE));
        Self { known: Mutex::default(), missed: Notify::new(), asking }
    }
}

impl ToolVectors {
    /// There may be tools without a vector.
    pub(crate) fn look_again(&self) {
        self.missed.notify_one();
    }

    fn query(&self, key: &Key) -> Option<Vector> {
        self.lock().queries.get(key).cloned()
    }

    fn keep_query(&self, key: Key, vector: Vector) {
        let mut known = self.lock();
        if known.queries.insert(key, vector).is_none() {
            known.ages.push_back(key);
        }
        if known.ages.len() > QUERIES_KEPT
            && let Some(oldest) = known.ages.pop_front()
        {
            known.queries.remove(&oldest);
        }
    }

    /// Logs the failure of a model and pauses it.
    fn pause(&self, model: &Model, error: &AgentAPIError) {
        let (name, place) = (&model.settings().name, model.address());
        tracing::warn!(model = name, place, %error, "cannot embed, tools are searched by words alone for now");
        self.lock().paused_until = Some(Instant::now() + PAUSE);
    }

    fn is_paused(&self) -> bool {
        self.lock().paused_until.is_some_and(|until| Instant::now() < until)
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The vectors of a query and of all tools that it may find, if they are ready in time.
pub(crate) async fn find(
    shared: &Arc<Shared>,
    resources: &Resources,
    query: &str,
    allowed: &BTreeSet<String>,
) -> Option<Vectors> {
    let model = resources.search_model()?;
    let tools = resources.tools.entries().into_iter().filter(|it| allowed.contains(&it.tool.name));
    let keys: Vec<(String, Key)> =
        tools.map(|entry| (entry.tool.name.clone(), key_of(&model, &entry))).collect();
    let vectors = {
        let known = shared.tool_vectors.lock();
        let found =
            keys.into_iter().map(|(name, key)| Some((name, known.tools.get(&key)?.clone())));
        found.collect::<Option<HashMap<String, Vector>>>()
    };
    let Some(tools) = vectors else {
        shared.tool_vectors.look_again();
        return None;
    };
    let query = &query[..query.floor_char_boundary(QUERY_BYTES_MAX)];
    Some(Vectors { query: of_query(shared, &model, query).await?, tools })
}

async fn of_query(shared: &Arc<Shared>, model: &Arc<Model>, query: &str) -> Option<Vector> {
    let key = key(model, query);
    let vectors = &shared.tool_vectors;
    if let Some(vector) = vectors.query(&key) {
        return Some(vector);
    }
    if query.trim().is_empty() || vectors.is_paused() {
        return None;
    }
    let turn = Arc::clone(&vectors.asking).try_acquire_owned().ok()?;
    let (asking, model, text) = (Arc::clone(shared), Arc::clone(model), query.to_owned());
    // Not cancelled with the search: the next one uses the vector.
    let made = shared.tasks.spawn("vector of a query", async move {
        let _turn = turn;
        match embed(&asking, &model, vec![text], QUERY_TIME).await {
            Ok(made) => {
                let vector: Vector = made.into_iter().next()?.into();
                asking.tool_vectors.keep_query(key, Arc::clone(&vector));
                Some(vector)
            }
            Err(error) => {
                asking.tool_vectors.pause(&model, &error);
                None
            }
        }
    });
    timeout(QUERY_PATIENCE, made).await.ok()?.ok()?
}

/// Embeds tools without a vector, until the host stops.
pub(crate) async fn keep(shared: Arc<Shared>) {
    let stopping = shared.tasks.stopping().clone();
    loop {
        let made = async {
            if let Err(pause) = make(&shared).await {
                tokio::time::sleep(pause).await;
                shared.tool_vectors.look_again();
            }
            shared.tool_vectors.missed.notified().await;
        };
        tokio::select! {
            () = made => {}
            () = stopping.cancelled() => return,
        }
    }
}

/// Embeds what is missing; an error says how long to wait before the next attempt.
async fn make(shared: &Arc<Shared>) -> Result<(), Duration> {
    let resources = shared.resources.load_full();
    let Some(model) = resources.search_model() else { return Ok(()) };
    let mut texts: HashMap<Key, String> = HashMap::new();
    for entry in resources.tools.entries() {
        texts.insert(key_of(&model, &entry), ToolIndex::vector_text(&entry.tool));
    }
    let wanted: HashSet<Key> = texts.keys().copied().collect();
    {
        let mut known = shared.tool_vectors.lock();
        known.tools.retain(|key, _| wanted.contains(key));
        texts.retain(|key, _| !known.tools.contains_key(key));
    }
    let (keys, texts): (Vec<Key>, Vec<String>) = texts.into_iter().unzip();
    for (keys, texts) in keys.chunks(TOGETHER).zip(texts.chunks(TOGETHER)) {
        match embed(shared, &model, texts.to_vec(), TOOLS_TIME).await {
            Ok(made) => {
                let made = made.into_iter().map(Vector::from);
                shared.tool_vectors.lock().tools.extend(keys.iter().copied().zip(made));
            }
            Err(error) => {
                shared.tool_vectors.pause(&model, &error);
                return Err(PAUSE);
            }
        }
    }
    Ok(())
}

/// One vector per text. No run is charged for it.
async fn embed(
    shared: &Arc<Shared>,
    model: &Arc<Model>,
    inputs: Vec<String>,
    time: Duration,
) -> Result<Vec<Vec<f32>>, AgentAPIError> {
    let size = Size::of_input(inputs.iter().map(String::len).sum());
    let method = Method::ToolsSearch.as_str();
    let mut spending = Spending::of_host(shared, model, method, size).await?;
    let params = ModelEmbedParams { model_id: model.settings().name.clone(), inputs };
    match model.embed(&params, Instant::now() + time).await {
        Ok((vectors, usage)) => {
            spending.counted(usage).await?;
            Ok(vectors)
        }
        Err(error) => {
            let error = error.to_api();
            spending.failed(&error).await;
            Err(error)
        }
    }
}

fn key_of(model: &Model, entry: &Entry) -> Key {
    key(model, &ToolIndex::vector_text(&entry.tool))
}

/// A text and the model that embeds it.
fn key(model: &Model, text: &str) -> Key {
    let settings = model.settings();
    let base = settings.base_url.as_deref().unwrap_or_default();
    let mut hash = Sha256::new();
    for part in [&settings.provider_name, base, &settings.model, text] {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}
