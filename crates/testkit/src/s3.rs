//! A real S3-compatible server on its own folder; it checks signatures.
//!
//! Invariant: it runs on its own thread and ends with its handle; its data is removed with it.

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

    /// Whether connections are closed without a response from now on.
    pub fn set_silent(&self, silent: bool) {
        self.silent.store(silent, Ordering::SeqCst);
    }

    /// The objects of the bucket as files, without the server's metadata.
    pub fn objects(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        collect(&self.folder.path().join(BUCKET), &mut files);
        files.sort();
        files
    }

    /// Files of uploads that were neither completed nor aborted.
    pub fn parts(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        collect(self.folder.path(), &mut files);
        let is_part = |path: &PathBuf| {
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            name.is_some_and(|name| name.contains(".upload_id-"))
        };
        files.retain(is_part);
        files
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&entry.path(), files),
            _ => files.push(entry.path()),
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
                // One request per connection, so that the next request notices a silent server.
                let mut builder = hyper::server::conn::http1::Builder::new();
                let served =
                    builder.keep_alive(false).serve_connection(TokioIo::new(socket), service);
                let _ = served.await;
            });
        }
    });
}
