//! A real PostgreSQL for tests.
//!
//! Invariant: the server is the child of a shell that waits on a pipe from here, so it ends with the test even if the
//! test is killed.

use postgres::error::SqlState;
use postgres::{Client, Error, NoTls};
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The URL of a server that tests share instead of starting one each.
pub const SERVER_VARIABLE: &str = "GREENROOM_TEST_POSTGRES";

const START_PATIENCE: Duration = Duration::from_secs(60);
const POLL_PAUSE: Duration = Duration::from_millis(20);
const DEADLOCK_TRIES: u32 = 10;

/// Starts the server, forwards one signal and ends the server when the pipe closes.
const KEEPER: &str =
    r#""$@" & server=$!; read -r signal; kill -s "${signal:-QUIT}" "$server"; wait "$server""#;

/// A new empty database, on the shared server or on one started for it.
pub struct Database {
    pub url: String,
    server: Owner,
}

enum Owner {
    Shared { url: String },
    Own { _server: Server },
}

impl Database {
    pub fn fresh() -> Database {
        #[expect(clippy::disallowed_methods, reason = "the test kit's one setting")]
        match std::env::var(SERVER_VARIABLE) {
            Ok(url) => Database { url: create_database(&url), server: Owner::Shared { url } },
            Err(_) => {
                let server = Server::start();
                Database { url: server.fresh_database(), server: Owner::Own { _server: server } }
            }
        }
    }
}

/// Otherwise the databases of a thousand tests would fill the disk.
impl Drop for Database {
    fn drop(&mut self) {
        let Owner::Shared { url } = &self.server else { return };
        let server = url.clone();
        let Some((_, name)) = self.url.rsplit_once('/') else { return };
        let drop_it = format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)");
        // The client blocks on its own runtime, which is forbidden on a test's runtime threads.
        let dropped = std::thread::spawn(move || {
            Client::connect(&server, NoTls).and_then(|mut client| client.batch_execute(&drop_it))
        });
        if let Ok(Err(error)) = dropped.join() {
            eprintln!("cannot drop a test database: {error}");
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Rolls back open transactions, ends sessions and shuts down cleanly.
    Fast,
    /// As after a crash: the next start recovers from the log.
    Immediate,
}

/// A server for one test.
pub struct Server {
    programs: PathBuf,
    folder: TempDir,
    port: u16,
    keeper: Mutex<Option<Child>>,
}

impl Server {
    pub fn start() -> Server {
        let programs = find_programs();
        let folder = make_folder();
        initialise(&programs, folder.path());
        // Chosen last: another test may get the same one before the server listens.
        let port = free_port();
        let server = Server { programs, folder, port, keeper: Mutex::new(None) };
        server.launch();
        server
    }

    /// The server's maintenance database.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL of a new, empty database.
    pub fn fresh_database(&self) -> String {
        create_database(&self.url())
    }

    pub fn restart(&self, stop: Stop) {
        self.stop(stop);
        self.launch();
    }

    /// Stops the server and waits for its exit.
    pub fn stop(&self, stop: Stop) {
        let Some(mut keeper) = self.keeper().take() else { return };
        let signal: &[u8] = match stop {
            Stop::Fast => b"INT\n",
            Stop::Immediate => b"QUIT\n",
        };
        let mut pipe = keeper.stdin.take().expect("the keeper has a pipe");
        pipe.write_all(signal).expect("the keeper reads its pipe");
        keeper.wait().expect("the keeper can be waited for");
    }

    /// Starts the server and waits until it responds.
    pub fn launch(&self) {
        let folder = self.folder.path();
        let log = std::fs::File::create(folder.join("log")).expect("a log can be written");
        let mut command = as_server_user("sh");
        command.args(["-c", KEEPER, "keeper"]).arg(self.programs.join("postgres"));
        command.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
        command.args(["-p", &self.port.to_string(), "-F", "-c", "listen_addresses=127.0.0.1"]);
        command.args(["-c", "max_connections=300"]).current_dir(folder);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(log);
        let keeper = command.spawn().expect("a shell can be started");
        *self.keeper() = Some(keeper);
        let deadline = Instant::now() + START_PATIENCE;
        while let Err(error) = Client::connect(&self.url(), NoTls) {
            let log = || std::fs::read_to_string(folder.join("log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "no PostgreSQL: {error}\n{}", log());
            std::thread::sleep(POLL_PAUSE);
        }
    }

    fn keeper(&self) -> std::sync::MutexGuard<'_, Option<Child>> {
        self.keeper.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop(Stop::Immediate);
    }
}

/// The newest of Debian's versions, else from `PATH`.
fn find_programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let number = |path: &PathBuf| path.file_name()?.to_str()?.parse::<u32>().ok();
    let newest = versions.map(|entry| entry.path()).filter(|path| number(path).is_some());
    if let Some(version) = newest.max_by_key(number) {
        return version.join("bin");
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .find(|folder| folder.join("initdb").exists())
        .expect("PostgreSQL's `initdb` is in /usr/lib/postgresql/*/bin or on the PATH")
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port can be bound");
    listener.local_addr().expect("a bound port has an address").port()
}

/// A folder owned by the server's user.
fn make_folder() -> TempDir {
    let folder = tempfile::Builder::new().prefix("greenroom-postgres-").tempdir();
    let folder = folder.expect("a temporary folder can be made");
    if is_root() {
        std::os::unix::fs::chown(folder.path(), Some(user_id("postgres")), None)
            .expect("root may give a folder away");
    }
    folder
}

fn initialise(programs: &Path, folder: &Path) {
    let mut command = as_server_user(programs.join("initdb"));
    command.arg("-D").arg(folder.join("data")).current_dir(folder);
    command.args(["-A", "trust", "-U", "postgres", "--no-sync", "--encoding=UTF8"]);
    let output = command.arg("--locale=C.UTF-8").output().expect("`initdb` can be started");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "`initdb` failed: {said}");
}

/// PostgreSQL does not run as root.
#[expect(clippy::disallowed_methods, reason = "a test's server is started by the test kit")]
fn as_server_user(program: impl AsRef<std::ffi::OsStr>) -> Command {
    if !is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("runuser");
    command.args(["-u", "postgres", "--"]).arg(program);
    command
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

fn user_id(name: &str) -> u32 {
    let users = std::fs::read_to_string("/etc/passwd").expect("users can be listed");
    let fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let mut ids = fields.filter(|user| user.first() == Some(&name)).filter_map(|user| {
        let id: &str = user.get(2)?;
        id.parse().ok()
    });
    ids.next().unwrap_or_else(|| panic!("unknown user `{name}`"))
}

/// Executes a SQL script in one transaction; blocks. A deadlock with a host that writes changes nothing, and the script
/// is executed again.
pub fn execute(url: &str, script: &str) {
    let mut client = Client::connect(url, NoTls)
        .unwrap_or_else(|error| panic!("no PostgreSQL at {url}: {error}"));
    let is_deadlock = |error: &Error| error.code() == Some(&SqlState::T_R_DEADLOCK_DETECTED);
    for tries_left in (0..DEADLOCK_TRIES).rev() {
        match client.batch_execute(script) {
            Ok(()) => return,
            Err(error) if is_deadlock(&error) && tries_left > 0 => {}
            Err(error) => panic!("{error:?}"),
        }
    }
}

/// The first column of a query as text; blocks.
pub fn column(url: &str, query: &str) -> Vec<String> {
    let mut client = Client::connect(url, NoTls)
        .unwrap_or_else(|error| panic!("no PostgreSQL at {url}: {error}"));
    let rows = client.query(query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}"));
    rows.iter().map(|row| row.get(0)).collect()
}

/// Creates a database and returns its URL.
fn create_database(server: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let moment = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_nanos());
    let name = format!("test_{}_{moment}_{count}", std::process::id());
    let mut client = Client::connect(server, NoTls)
        .unwrap_or_else(|error| panic!("no PostgreSQL at {server}: {error}"));
    client.batch_execute(&format!("CREATE DATABASE {name}")).expect("a database can be created");
    let (base, _) = server.rsplit_once('/').expect("a server's URL ends in a database");
    format!("{base}/{name}")
}
