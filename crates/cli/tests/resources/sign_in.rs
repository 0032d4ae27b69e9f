//! Sign-ins at MCP servers over HTTP: by the command and by the browser, and servers that lead them astray.

use crate::mcp::use_tool;
use crate::play;
use crate::programs::{greenroom, prepared, program, python};
use crate::stage::{PATIENCE, Stage};
use greenroom_testkit::api::Failure;
use greenroom_testkit::http::Request;
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

/// A server behind OAuth, which ends with its test.
struct Guarded {
    process: Child,
    port: u16,
}

impl Guarded {
    fn start(vice: &str) -> Self {
        #[expect(clippy::disallowed_methods, reason = "the test starts the server that it calls")]
        let process = Command::new(python())
            .args([program("guarded.py").to_str().unwrap(), vice])
            .stdout(Stdio::piped())
            .spawn();
        let mut process = process.unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { process, port: line.trim().parse().unwrap() }
    }

    async fn stage(&self) -> Stage {
        let config = format!(
            r#"
[tools.vault]
url = "http://127.0.0.1:{}/mcp"
allow_private = true
risk = "read"
[agents.clerk]
runner = "plugin:test/puppet/main"
events = []
grant = {{ tools = ["vault.*"] }}
"#,
            self.port
        );
        let stage = Stage::with(prepared(&config)).await;
        status(&stage, "sign_in_required").await;
        stage
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

async fn status(stage: &Stage, wanted: &str) -> Value {
    wait_for(wanted, PATIENCE, async || {
        let servers = stage.api.get("/v1/tool-servers").await;
        let vault = servers["items"].as_array().unwrap().iter().find(|one| one["name"] == "vault");
        vault.filter(|vault| vault["status"] == wanted).cloned()
    })
    .await
}

async fn post(stage: &Stage, path: &str, body: Value) -> (u16, Value) {
    match stage.api.json(Request::post(path, body.to_string())).await {
        Ok(answer) => answer,
        Err(Failure::Refused { status, body }) => (status, body),
        Err(failure) => panic!("{failure:?}"),
    }
}

async fn begin(stage: &Stage, redirect_uri: &str) -> (u16, Value) {
    post(stage, "/v1/tool-servers/vault/sign-in", json!({"redirect_uri": redirect_uri})).await
}

/// Opens an address as a browser does; returns where it is redirected to.
async fn browse(guarded: &Guarded, url: &str) -> String {
    let path = url.split_once(&format!("127.0.0.1:{}", guarded.port)).unwrap().1;
    let address = ([127, 0, 0, 1], guarded.port).into();
    let answer = greenroom_testkit::http::send(address, &Request::get(path)).await.unwrap();
    answer.header("location").unwrap().to_owned()
}

fn query(url: &str) -> Value {
    let pairs = url.split_once('?').unwrap().1.split('&');
    let decoded = |text: &str| text.replace("%3A", ":").replace("%2F", "/");
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap());
    Value::Object(pairs.map(|(name, value)| (name.to_owned(), decoded(value).into())).collect())
}

const REDIRECT: &str = "http://127.0.0.1:9/callback";
const FINISH: &str = "/v1/tool-servers/vault/sign-in/finish";

async fn signed_in(guarded: &Guarded, stage: &Stage) {
    let (code, begun) = begin(stage, REDIRECT).await;
    assert_eq!(code, 200, "{begun}");
    let back = browse(guarded, begun["url"].as_str().unwrap()).await;
    let (code, done) = post(stage, FINISH, query(&back)).await;
    assert_eq!((code, &done["sign_in"]), (200, &json!("done")), "{done}");
    status(stage, "ready").await;
}

async fn whoami(stage: &Stage, name: &str) -> Value {
    play(stage, "ann", "c1", vec![use_tool(name, "vault.whoami", json!({}))]).await;
    stage.told(name).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_signs_in_once_and_the_tokens_stay_secret() {
    let guarded = Guarded::start("none");
    let mut stage = guarded.stage().await;
    let data = stage.host.data();
    let data = data.to_str().unwrap();
    let (_, told, _) = greenroom(&stage.host, &["doctor", "--data", data]);
    assert!(told.contains("sign in with `greenroom sign-in vault`"), "{told}");
    signed_in(&guarded, &stage).await;
    let said = whoami(&stage, "first").await;
    // The server repeats the token, and the answer is redacted.
    let text = said["result"]["result"]["content"][0]["text"].as_str().unwrap_or_default();
    assert!(text.starts_with("token [redacted], "), "{said}");
    let file = stage.host.data().join("sign-ins/vault.json");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let kept = std::fs::read_to_string(&file).unwrap();
    assert!(kept.contains("the-access-token-0") && kept.contains("the-client-secret"));
    // A restart needs no second sign-in.
    assert!(stage.host.stop().await.success());
    stage.host.start_again().await;
    status(&stage, "ready").await;
    let log = stage.host.log();
    for secret in ["the-access-token", "the-refresh-token", "the-client-secret", "the-code"] {
        assert!(!log.contains(secret), "{secret} is in the log");
    }
    let (code, _, _) = greenroom(&stage.host, &["sign-out", "vault", "--data", data]);
    assert_eq!(code, 0);
    assert!(!file.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_renewed_before_it_expires() {
    let guarded = Guarded::start("short");
    let stage = guarded.stage().await;
    signed_in(&guarded, &stage).await;
    // Its first token lasts one second longer than the host lets a token come to its end.
    for attempt in 0.. {
        let said = whoami(&stage, &format!("try-{attempt}")).await.to_string();
        if said.contains(", 1 refreshes") {
            return;
        }
        assert!(attempt < 1000 && said.contains(", 0 refreshes"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirect_completes_only_its_own_sign_in() {
    let guarded = Guarded::start("none");
    let stage = guarded.stage().await;
    for wrong in [
        "https://evil.example/callback",
        "http://127.0.0.1:9/other",
        "http://localhost:9/callback",
        "x",
    ] {
        assert_eq!(begin(&stage, wrong).await.0, 400, "{wrong}");
    }
    let (_, begun) = begin(&stage, REDIRECT).await;
    let back = query(&browse(&guarded, begun["url"].as_str().unwrap()).await);
    let mut forged = back.clone();
    forged["state"] = "A".repeat(43).into();
    assert_eq!(post(&stage, FINISH, forged).await.0, 404);
    // It was begun for a program, and does not end at the host.
    let at_host =
        format!("/oauth/callback?code=the-code&state={}", back["state"].as_str().unwrap());
    assert_eq!(stage.api.send(Request::get(at_host)).await.unwrap().status, 400);
    assert_eq!(post(&stage, FINISH, back.clone()).await.0, 200);
    assert_eq!(post(&stage, FINISH, back).await.0, 404, "a state is used once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_ends_at_the_host() {
    let guarded = Guarded::start("none");
    let stage = guarded.stage().await;
    let text = std::fs::read_to_string(stage.host.data().join("host.json")).unwrap();
    let host: Value = serde_json::from_str(&text).unwrap();
    let own = format!("{}/oauth/callback", host["url"].as_str().unwrap().trim_end_matches('/'));
    let (code, begun) = begin(&stage, &own).await;
    assert_eq!(code, 200, "{begun}");
    let back = browse(&guarded, begun["url"].as_str().unwrap()).await;
    let path = back.split_once("/oauth").unwrap().1;
    let page = stage.api.send(Request::get(format!("/oauth{path}"))).await.unwrap();
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy").unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'"), "{policy}");
    status(&stage, "ready").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_metadata_and_answers_are_refused_with_a_reason() {
    let cases = [
        ("leads-away", "169.254.169.254"),
        ("other-resource", "metadata of another server"),
        ("huge", "more than 262144 bytes"),
    ];
    for (vice, reason) in cases {
        let guarded = Guarded::start(vice);
        let stage = guarded.stage().await;
        let (code, refused) = begin(&stage, REDIRECT).await;
        assert_eq!(code, 502, "{vice}: {refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(reason), "{refused}");
    }
    for (vice, status, reason) in
        [("junk", 502, "no JSON object"), ("other-issuer", 400, "another issuer")]
    {
        let guarded = Guarded::start(vice);
        let stage = guarded.stage().await;
        let (_, begun) = begin(&stage, REDIRECT).await;
        let back = query(&browse(&guarded, begun["url"].as_str().unwrap()).await);
        let (code, refused) = post(&stage, FINISH, back).await;
        assert_eq!(code, status, "{vice}: {refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(reason), "{refused}");
        assert!(!stage.host.data().join("sign-ins/vault.json").exists());
    }
}
