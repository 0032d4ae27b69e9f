//! A real S3-compatible server on a folder of its own; it checks signatures.
//!
//! Invariant: it runs on a thread of its own and ends with its handle; what it keeps is gone with it.

use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

pub const BUCKET: &str = "artifacts";
pub const ACCESS_KEY_ID: &str = "AKIDGREENROOM";
pub const SECRET_ACCESS_KEY: &str = "the-secret-of-the-test-bucket";

pub struct S3Server {
    address: SocketAddr,
    folder: TempDir,
    silent: Arc<AtomicBool>,
    _stop: oneshot::Sender<()>,
}

impl S3Server {
    pub fn start() -> S3Server {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        std::fs::create_dir(folder.path().join(BUCKET)).expect("a bucket can be made");
        let files = s3s_fs::FileSystem::new(folder.path()).expect("the folder can be served");
        let mut builder = S3ServiceBuilder::new(files);
        builder.set_auth(SimpleAuth::from_single(ACCESS_KEY_ID, SECRET_ACCESS_KEY));
        let service = builder.build();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port can be bound");
        listener.set_nonblocking(true).expect("a socket can be set up");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (stop, stopped) = oneshot::channel();
        let silent = Arc::new(AtomicBool::new(false));
        let quiet = Arc::clone(&silent);
        std::thread::spawn(move || serve(listener, service, stopped, quiet));
        S3Server { address, folder, silent, _stop: stop }
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// From now on connections are closed without an answer, or answered again.
    pub fn set_silent(&self, silent: bool) {
        self.silent.store(silent, Ordering::SeqCst);
    }

    /// The objects of the bucket as files, the server's own notes left out.
    pub fn objects(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect(&self.folder.path().join(BUCKET), &mut found);
        found.sort();
        found
    }

    /// Files that hold parts of uploads which were neither completed nor taken back.
    pub fn parts(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect(self.folder.path(), &mut found);
        let is_part = |path: &PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            name.is_some_and(|name| name.contains(".upload_id-"))
        };
        found.retain(is_part);
        found
    }
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&entry.path(), found),
            _ => found.push(entry.path()),
        }
    }
}

fn serve(
    listener: std::net::TcpListener,
    service: S3Service,
    mut stopped: oneshot::Receiver<()>,
    silent: Arc<AtomicBool>,
) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(async {
        let listener = TcpListener::from_std(listener).expect("a socket can be listened at");
        let mut connections = JoinSet::new();
        loop {
            let socket = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = &mut stopped => return,
            };
            let Ok((socket, _)) = socket else { continue };
            if silent.load(Ordering::SeqCst) {
                continue;
            }
            let service = service.clone();
            connections.spawn(async move {
                // A request at a time, so that a silent server is noticed by the next one.
                let mut builder = hyper::server::conn::http1::Builder::new();
                let served =
                    builder.keep_alive(false).serve_connection(TokioIo::new(socket), service);
                let _ = served.await;
            });
        }
    });
}
