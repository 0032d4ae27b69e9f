//! MCP servers by their addresses: which may be called, and what the check says to the others.

use crate::mcp::{names, resources, script, use_tool};
use crate::play;
use crate::programs::{greenroom, prepared};
use crate::stage::{PATIENCE, Stage};
use greenroom_testkit::wait::wait_for;
use serde_json::json;
use std::process::{Command, Stdio};

/// The server `everything` over HTTP, which dies with its test.
struct Remote(std::process::Child);

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_this_machine_is_reached_over_http_only_where_that_is_allowed() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    #[expect(clippy::disallowed_methods, reason = "the test starts the server that it calls")]
    let server = Command::new("node")
        .arg(script("everything"))
        .arg("streamableHttp")
        .env("PORT", port.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _server = Remote(server.unwrap());
    wait_for("the server", PATIENCE, async || {
        tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok()
    })
    .await;
    // A name that leads here, a watched address that must not be called, and one that may.
    let watched = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    watched.set_nonblocking(true).unwrap();
    let secret = watched.local_addr().unwrap().port();
    let config = format!(
        r#"
[tools.hidden]
url = "http://localhost:{secret}/mcp"
[tools.open]
url = "http://127.0.0.1:{port}/mcp"
allow_private = true
[agents.clerk]
runner = "plugin:test/puppet/main"
events = []
grant = {{ tools = ["hidden.*", "open.*"] }}
"#
    );
    let stage = Stage::with(prepared(&config)).await;
    let steps =
        vec![json!(["tell", "resources"]), use_tool("echo", "open.echo", json!({"message": "hi"}))];
    let run = play(&stage, "ann", "c1", steps).await;
    assert_eq!(stage.told("echo").await["result"]["result"]["content"][0]["text"], "Echo: hi");
    let tools = names(&resources(&stage, &run).await["tools"]);
    assert!(tools.iter().all(|name| name.starts_with("open.")), "{tools:?}");
    wait_for("a word in the log", PATIENCE, async || {
        let log = stage.host.log();
        let told =
            |line: &str| line.contains("server=hidden") && line.contains("no public address");
        log.lines().any(told).then_some(())
    })
    .await;
    assert!(watched.accept().is_err(), "nobody has called");
}

#[test]
fn the_check_knows_servers_by_name_and_addresses_that_are_refused() {
    let host = prepared("");
    std::fs::create_dir(host.folder().join("puppet")).unwrap();
    let agent = |tools: &str| {
        format!(
            "[agents.a]\nrunner = \"plugin:test/puppet/main\"\nevents = []\ngrant = {{ tools = [{tools}] }}\n"
        )
    };
    let server = "[tools.files]\ncommand = [\"node\"]\n";
    for (more, expected) in [
        (server.to_owned() + &agent("\"fils.*\""), "did you mean `files.*`?"),
        (server.to_owned() + &agent("\"files\""), "there is no tool `files`"),
        ("[tools.near]\nurl = \"http://127.0.0.1:9/mcp\"\n".to_owned(), "tools.near"),
        (
            "[tools.both]\nurl = \"https://example.com\"\ncommand = [\"x\"]\n".to_owned(),
            "either `command` or `url`",
        ),
        (server.replace("files", "puppet"), "`tools.puppet` and `runners.puppet`"),
        (server.replace("files", "skill"), "`skill` is a name of built-in tools"),
        (server.to_owned() + "risk = { write_file = \"huge\" }\n", "huge"),
    ] {
        host.configure(&crate::stage::config("", &more));
        let (code, _, stderr) = greenroom(&host, &["check"]);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains(expected) && stderr.contains("greenroom.toml:"), "{stderr}");
    }
    host.configure(&crate::stage::config("", &(server.to_owned() + &agent("\"files.read_file\""))));
    let (code, _, stderr) = greenroom(&host, &["check"]);
    assert_eq!(code, 0, "{stderr}");
}
