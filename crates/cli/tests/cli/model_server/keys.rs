//! A key in the environment is all it takes: the built-in agent uses that provider.

use super::Server;
use greenroom_protocol::RunStatus;
use greenroom_testkit::host::{Started, TestHost};
use serde_json::json;

const PROGRAM: &str = env!("CARGO_BIN_EXE_greenroom");

#[tokio::test]
async fn with_a_key_in_the_environment_the_built_in_agent_asks_that_provider() {
    let server = Server::start("[[rule]]\nanswer = \"I am the provider.\"\n");
    let path = format!("{}/v1", server.url);
    for (key, at, url, body) in [
        ("OPENAI_API_KEY", "OPENAI_BASE_URL", &path, "gpt-"),
        ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", &server.url, "claude-"),
    ] {
        let mut host = TestHost::prepare(PROGRAM, "");
        host.set_env(key, "sk-not-to-be-logged");
        host.set_env(at, url);
        host.start_again().await;
        let sent = json!({"event_type": "message.received", "conversation_id": "c1",
            "input": {"text": "Who are you?"}});
        let run_id = host.api().send_event(&sent).await.run_id.unwrap();
        assert_eq!(host.api().ended_run(&run_id).await.status, RunStatus::Completed);
        let history = host.api().history("c1").await;
        assert_eq!(history.last().unwrap().text.as_deref(), Some("I am the provider."));
        let asked = server.log().lines().last().unwrap().to_owned();
        assert!(asked.contains(body), "{asked}");
        assert!(!host.log().contains("sk-not-to-be-logged"));
        assert!(host.stop().await.success());
    }
}

#[tokio::test]
async fn an_address_that_is_none_is_told_before_the_start() {
    let mut host = TestHost::prepare(PROGRAM, "");
    host.set_env("OPENAI_API_KEY", "sk-1");
    host.set_env("OPENAI_BASE_URL", "gateway");
    assert!(matches!(host.try_start().await, Started::Died(_)));
    assert!(host.log().contains("OPENAI_BASE_URL"), "{}", host.log());
}
