//! The way of one session to the host: an address on loopback with a secret, inside the runner's own network.
//!
//! Invariant: a session outlives its runs. A request is forwarded to the run that is in progress, with that run's
//! token, which the harness never sees; between runs every request is refused.

use crate::wall::WayOut;
use greenroom_sdk::{CancellationToken, Value, json};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::DropGuard;
use tokio_util::task::TaskTracker;

/// Connections of one harness at the same time.
const CONNECTIONS_MAX: usize = 64;
/// The path of the host's tools.
const MCP: &str = "/mcp";
/// The headers in which providers take a key.
const KEYS: [&str; 2] = ["x-api-key", "x-goog-api-key"];

type Body = BoxBody<Bytes, hyper::Error>;

/// Until it is dropped.
pub(crate) struct Gateway {
    address: SocketAddr,
    shared: Arc<Shared>,
    end: CancellationToken,
}

struct Shared {
    host: SocketAddr,
    /// The wire of the harness's model requests.
    provider: Option<&'static str>,
    secret: String,
    run: Mutex<Option<Access>>,
}

/// What a request needs at the host.
#[derive(Clone)]
struct Access {
    run_id: String,
    token: String,
}

impl Gateway {
    pub(crate) async fn open(
        host: SocketAddr,
        provider: Option<&'static str>,
        secret: String,
        tasks: &TaskTracker,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { host, provider, secret, run: Mutex::default() });
        let end = CancellationToken::new();
        tasks.spawn(listen(listener, Arc::clone(&shared), end.clone(), tasks.clone()));
        Ok(Self { address, shared, end })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The root of the model API.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn secret(&self) -> &str {
        &self.shared.secret
    }

    /// The host's tools, as a server for `session/new`.
    pub(crate) fn mcp_server(&self) -> Value {
        let headers =
            [json!({"name": "Authorization", "value": format!("Bearer {}", self.secret())})];
        let url = format!("{}{MCP}", self.base_url());
        json!({"type": "http", "name": "greenroom", "url": url, "headers": headers})
    }

    /// Requests are this run's from now on.
    pub(crate) fn begin_run(&self, run_id: &str, token: &str) {
        *self.shared.lock() = Some(Access { run_id: run_id.to_owned(), token: token.to_owned() });
    }

    pub(crate) fn end_run(&self) {
        *self.shared.lock() = None;
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.end_run();
        self.end.cancel();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<Access>> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a request has the session's secret, as a key of any provider.
    fn knows(&self, request: &Request<Incoming>) -> bool {
        let header = |name: &str| request.headers().get(name)?.to_str().ok();
        let bearer = header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let in_query = request
            .uri()
            .query()
            .and_then(|query| query.split('&').find_map(|pair| pair.strip_prefix("key=")));
        let keys = KEYS.iter().filter_map(|name| header(name)).chain(bearer).chain(in_query);
        keys.into_iter().any(|key| key == self.secret)
    }

    /// Where a path leads at the host.
    fn target(&self, run_id: &str, uri: &Uri) -> Option<String> {
        let path = uri.path();
        let query = uri.query().map(|query| {
            query.split('&').filter(|pair| !pair.starts_with("key=")).collect::<Vec<_>>().join("&")
        });
        let query = query.filter(|query| !query.is_empty());
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        if path == MCP {
            return Some(format!("/mcp/runs/{run_id}{query}"));
        }
        let has_steps = path.split('/').any(|part| matches!(part, "." | ".."));
        self.provider
            .filter(|_| !has_steps)
            .map(|provider| format!("/models/runs/{run_id}/{provider}{path}{query}"))
    }
}

/// Serves what leads out of the network of a session: its gateway, and servers that it may reach.
pub(crate) fn lead_out(
    ways: Vec<WayOut>,
    gateway: Option<&Gateway>,
    tasks: &TaskTracker,
) -> io::Result<DropGuard> {
    let end = CancellationToken::new();
    for (address, listener) in ways {
        listener.set_nonblocking(true)?;
        let listener = TcpListener::from_std(listener)?;
        match gateway.filter(|gateway| gateway.address == address) {
            Some(gateway) => {
                let shared = Arc::clone(&gateway.shared);
                tasks.spawn(listen(listener, shared, end.clone(), tasks.clone()));
            }
            None => drop(tasks.spawn(relay(listener, address, end.clone(), tasks.clone()))),
        }
    }
    Ok(end.drop_guard())
}

/// Leads connections to a server.
async fn relay(listener: TcpListener, to: SocketAddr, end: CancellationToken, tasks: TaskTracker) {
    let room = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = end.cancelled() => return,
        };
        let Ok((mut client, _)) = accepted else { continue };
        let end = end.clone();
        tasks.spawn(async move {
            let forwarded = async {
                client.set_nodelay(true)?;
                let mut server = connect(to).await?;
                tokio::io::copy_bidirectional(&mut client, &mut server).await
            };
            tokio::select! {
                // Both sides see it closed.
                _ = forwarded => {}
                () = end.cancelled() => {}
            }
            drop(permit);
        });
    }
}

/// What is written goes out at once: the other side's next message often waits for it.
async fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn listen(
    listener: TcpListener,
    shared: Arc<Shared>,
    end: CancellationToken,
    tasks: TaskTracker,
) {
    let room = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = Arc::clone(&room).acquire_owned().await else { return };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = end.cancelled() => return,
        };
        let Ok((stream, _)) = accepted else { continue };
        if stream.set_nodelay(true).is_err() {
            continue;
        }
        let (shared, end) = (Arc::clone(&shared), end.clone());
        let inner = tasks.clone();
        tasks.spawn(async move {
            let service = service_fn(|request| serve(&shared, request, &inner));
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                // A broken connection is the harness's matter.
                _ = connection => {}
                () = end.cancelled() => {}
            }
            drop(permit);
        });
    }
}

async fn serve(
    shared: &Shared,
    request: Request<Incoming>,
    tasks: &TaskTracker,
) -> Result<Response<Body>, Infallible> {
    if !shared.knows(&request) {
        return Ok(refusal(StatusCode::UNAUTHORIZED, "the key of this session is missing"));
    }
    let Some(access) = shared.lock().clone() else {
        return Ok(refusal(StatusCode::FORBIDDEN, "no run of this session is in progress"));
    };
    let Some(target) = shared.target(&access.run_id, request.uri()) else {
        return Ok(refusal(StatusCode::NOT_FOUND, "there is no such path"));
    };
    let forwarded = forward(shared.host, request, &target, &access.token, tasks).await;
    Ok(forwarded.unwrap_or_else(|problem| {
        eprintln!("cannot forward a request to the host: {problem}");
        refusal(StatusCode::BAD_GATEWAY, "the host does not answer")
    }))
}

async fn forward(
    host: SocketAddr,
    mut request: Request<Incoming>,
    target: &str,
    token: &str,
    tasks: &TaskTracker,
) -> Result<Response<Body>, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    *request.uri_mut() =
        target.parse().map_err(|error: hyper::http::uri::InvalidUri| text(&error))?;
    set_credential(request.headers_mut(), host, token)?;
    let stream = connect(host).await.map_err(|error| text(&error))?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| text(&error))?;
    tasks.spawn(async move {
        let _ = connection.await;
    });
    let response = sender.send_request(request).await.map_err(|error| text(&error))?;
    Ok(response.map(BodyExt::boxed))
}

/// The run's token in place of the session's secret.
fn set_credential(headers: &mut HeaderMap, host: SocketAddr, token: &str) -> Result<(), String> {
    for name in KEYS {
        headers.remove(name);
    }
    let value = |text: String| HeaderValue::from_str(&text).map_err(|error| error.to_string());
    let mut bearer = value(format!("Bearer {token}"))?;
    bearer.set_sensitive(true);
    headers.insert(AUTHORIZATION, bearer);
    headers.insert(HOST, value(host.to_string())?);
    Ok(())
}

fn refusal(status: StatusCode, message: &str) -> Response<Body> {
    let error = json!({"error": {"message": message, "type": "invalid_request_error"}});
    let body = Full::new(Bytes::from(error.to_string())).map_err(|never| match never {});
    let mut response = Response::new(body.boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    async fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    #[tokio::test]
    async fn requests_are_forwarded_with_the_token_of_the_run_in_progress_only() {
        let tasks = TaskTracker::new();
        let host = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = host.local_addr().unwrap();
        let gateway = Gateway::open(at, Some("openai"), "sec".to_owned(), &tasks).await.unwrap();
        let get = |path: &str, key: &str| {
            format!("GET {path} HTTP/1.1\r\nhost: x\r\n{key}\r\nconnection: close\r\n\r\n")
        };
        let with_key = get("/v1/models?key=sec&a=1", "x-api-key: sec");
        assert!(ask(gateway.address, &get("/mcp", "x-a: b")).await.starts_with("HTTP/1.1 401"));
        assert!(ask(gateway.address, &with_key).await.starts_with("HTTP/1.1 403"));
        gateway.begin_run("run_1", "tok");
        let served = tasks.spawn(async move {
            let (mut stream, _) = host.accept().await.unwrap();
            let mut bytes = vec![0; 4096];
            let count = stream.read(&mut bytes).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await.unwrap();
            String::from_utf8_lossy(&bytes[..count]).into_owned()
        });
        assert!(ask(gateway.address, &with_key).await.ends_with("hi"));
        let seen = served.await.unwrap();
        assert!(seen.starts_with("GET /models/runs/run_1/openai/v1/models?a=1 HTTP/1.1"), "{seen}");
        assert!(seen.contains("authorization: Bearer tok") && !seen.contains("sec"), "{seen}");
        gateway.end_run();
        assert!(ask(gateway.address, &with_key).await.starts_with("HTTP/1.1 403"));
    }
}
