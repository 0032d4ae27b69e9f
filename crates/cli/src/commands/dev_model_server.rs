//! `greenroom dev model-server`: scripted models over HTTP, for clients and tests that need a provider.
//!
//! Invariant: a fault in a script is a fault of the connection; headers are not recorded, so keys are not either.

use crate::failure::{Exit, Failure, Outcome};
use crate::output;
use anyhow::Context;
use bytes::Bytes;
use futures_util::TryStreamExt;
use greenroom_models::scripted::Script;
use greenroom_models::serve::{Call, Cut, Reply, respond};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::TaskTracker;

const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serve scripted models over HTTP, in the wires of OpenAI, Anthropic, Gemini and Ollama
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Prints its address, then serves until it is stopped. Accepts any key.

Examples:
  greenroom dev model-server
  greenroom dev model-server --listen 127.0.0.1:8080 --script demo.toml
  OPENAI_BASE_URL=http://127.0.0.1:8080/v1 OPENAI_API_KEY=any my-program")]
pub struct Args {
    /// Address to listen on; port 0 picks a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Script with the answers [default: the built-in rules]
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// File to append requests to, one JSON object per line
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

struct Server {
    script: Arc<Script>,
    log: Option<Mutex<File>>,
}

type Body = UnsyncBoxBody<Bytes, Cut>;

pub async fn run(args: Args) -> Outcome {
    let script = match &args.script {
        Some(path) => Script::load(path).map_err(|error| {
            Failure::from(anyhow::Error::new(error))
                .exit(Exit::Usage)
                .hint("docs/guides/scripted-models.md has the format")
        })?,
        None => Script::built_in(),
    };
    let log = match &args.log {
        Some(path) => {
            let opened = OpenOptions::new().create(true).append(true).open(path);
            Some(Mutex::new(opened.with_context(|| format!("cannot open `{}`", path.display()))?))
        }
        None => None,
    };
    let listener = TcpListener::bind(args.listen)
        .await
        .with_context(|| format!("cannot listen on {}", args.listen))?;
    output::print(&format!("http://{}\n", listener.local_addr()?))?;
    serve(listener, Arc::new(Server { script: Arc::new(script), log })).await
}

/// Serves until the process is stopped.
async fn serve(listener: TcpListener, server: Arc<Server>) -> Outcome {
    let connections = TaskTracker::new();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(connection(stream, Arc::clone(&server)));
            }
            Err(error) => {
                output::note(&format!("warning: cannot accept a connection: {error}"));
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, server: Arc<Server>) {
    // Chunks are small and latency matters; failing to set the option only delays them.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| answer(Arc::clone(&server), request));
    // An error is a disconnect, by the script or by the client.
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn answer(server: Arc<Server>, request: Request<Incoming>) -> Result<Response<Body>, Cut> {
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, BODY_BYTES_MAX).collect().await else {
        let text = json!({"error": {"message": "the body is too large or incomplete"}}).to_string();
        return Ok(whole(413, None, text.into()));
    };
    let body = body.to_bytes();
    let call = Call {
        method: head.method.as_str(),
        path: head.uri.path(),
        query: head.uri.query().unwrap_or_default(),
        body: &body,
    };
    server.note(&call);
    match respond(&server.script, call, SystemTime::now()).await {
        Reply::Whole { status, retry_after, body } => Ok(whole(status, retry_after, body)),
        Reply::Stream { content_type, pieces } => {
            let body = StreamBody::new(pieces.map_ok(Frame::data)).boxed_unsync();
            let mut response = Response::new(body);
            response.headers_mut().insert(CONTENT_TYPE, header(content_type));
            Ok(response)
        }
        Reply::Cut => Err(Cut),
        Reply::Silence => std::future::pending().await,
    }
}

fn whole(status: u16, retry_after: Option<Duration>, body: Bytes) -> Response<Body> {
    let body = Full::new(body).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, header("application/json"));
    if let Some(time) = retry_after {
        headers.insert(RETRY_AFTER, time.as_secs().into());
    }
    response
}

fn header(text: &'static str) -> hyper::header::HeaderValue {
    hyper::header::HeaderValue::from_static(text)
}

impl Server {
    fn note(&self, call: &Call<'_>) {
        let Some(log) = &self.log else { return };
        let body: Value = serde_json::from_slice(call.body)
            .unwrap_or_else(|_| String::from_utf8_lossy(call.body).into_owned().into());
        let line = json!({
            "method": call.method, "path": call.path, "query": call.query, "body": body,
        });
        // One write: every write to a file is a system call.
        let line = format!("{line}\n");
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = log.write_all(line.as_bytes()) {
            output::note(&format!("warning: cannot log a request: {error}"));
        }
    }
}
