//! Faults of scripts, as our own client meets them on a real connection.

use super::*;
use greenroom_models::ModelError;
use greenroom_protocol::api::models::ModelStreamItem;

const SCRIPT: &str = r#"
    [[rule]]
    when.text = "refuse"
    answer = [{ error = 400, message = "not like this" }]
    [[rule]]
    when.text = "limit"
    answer = [{ error = 429, message = "slow down", retry_after_s = 2 }]
    [[rule]]
    when.text = "twice"
    times = 2
    answer = [{ error = 503, message = "not yet", retry_after_s = 0 }]
    [[rule]]
    when.text = "reset"
    times = 1
    answer = [{ cut = true }]
    [[rule]]
    when.text = "middle"
    answer = [{ text = "so far" }, { cut = true }]
    [[rule]]
    when.text = "quiet"
    answer = [{ text = "so far" }, { silence = true }]
    [[rule]]
    when.text = "mute"
    answer = [{ silence = true }]
    [[rule]]
    when.text = "broken"
    answer = [{ text = "so far" }, { garbage = "<html>oops" }]
    [[rule]]
    when.text = "error"
    answer = [{ text = "so far" }, { error = 500, message = "oops" }]
    [[rule]]
    when.text = "call"
    answer = [{ call = "x", args_text = '{"a": ' }]
    [[rule]]
    answer = "fine"
"#;

/// What came before the end, and the end.
async fn ask(
    server: &Server,
    kind: ProviderKind,
    text: &str,
    retries: u32,
) -> (String, Result<(), ModelError>) {
    let model = server.model(kind, retries);
    let mut said = String::new();
    let mut stream = match model.stream(asks(text), soon()).await {
        Ok(stream) => stream,
        Err(error) => return (said, Err(error)),
    };
    while let Some(item) = stream.next().await {
        match item {
            Ok(ModelStreamItem::TextDelta { text }) => said.push_str(&text),
            Ok(_) => {}
            Err(error) => return (said, Err(error)),
        }
    }
    (said, Ok(()))
}

#[tokio::test]
async fn a_refusal_has_its_status_and_its_message_in_every_wire() {
    let server = Server::start(SCRIPT);
    for kind in KINDS {
        let (_, end) = ask(&server, kind, "refuse", 0).await;
        assert!(
            matches!(&end, Err(ModelError::Rejected { status: 400, message }) if message.contains("not like this")),
            "{kind:?} {end:?}"
        );
        let (_, end) = ask(&server, kind, "limit", 0).await;
        assert!(
            matches!(&end, Err(ModelError::RateLimited { retry_after: Some(after), .. }) if after.as_secs() == 2),
            "{kind:?} {end:?}"
        );
    }
}

#[tokio::test]
async fn what_is_refused_before_it_begins_is_tried_again() {
    for kind in KINDS {
        let server = Server::start(SCRIPT);
        assert_eq!(ask(&server, kind, "twice", 2).await, ("fine".to_owned(), Ok(())), "{kind:?}");
        assert_eq!(ask(&server, kind, "reset", 2).await, ("fine".to_owned(), Ok(())), "{kind:?}");
        assert_eq!(server.log().lines().count(), 3 + 2, "{kind:?}");
    }
}

#[tokio::test]
async fn what_breaks_in_the_middle_is_an_error_and_is_never_asked_again() {
    let server = Server::start(SCRIPT);
    let mut asked = 0;
    for kind in KINDS {
        for fault in ["middle", "quiet", "broken", "error"] {
            let (said, end) = ask(&server, kind, fault, 2).await;
            assert_eq!(said, "so far", "{kind:?} {fault}");
            assert!(end.is_err(), "{kind:?} {fault}");
            asked += 1;
        }
        let (_, end) = ask(&server, kind, "mute", 0).await;
        assert!(matches!(end, Err(ModelError::IdleTimeout(_))), "{kind:?} {end:?}");
        asked += 1;
    }
    assert_eq!(server.log().lines().count(), asked);
}

#[tokio::test]
async fn broken_arguments_are_told_and_not_executed() {
    let server = Server::start(SCRIPT);
    for kind in KINDS {
        let model = server.model(kind, 0);
        let mut request = asks("call");
        request.tools = vec![tool("x")];
        let answer = model.invoke(request, soon()).await.unwrap();
        let call = answer.segments.iter().find_map(|segment| segment.get("tool_call")).unwrap();
        assert_eq!(call["args"], serde_json::Value::Null, "{kind:?}");
        assert!(call["args_error"].is_string(), "{kind:?} {call}");
    }
}

#[test]
fn a_wrong_script_is_told_with_its_line() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("wrong.toml"), "[[rule]]\nanswr = 'x'\n").unwrap();
    let told = crate::told(dir.path(), &["dev", "model-server", "--script", "wrong.toml"]);
    insta::assert_snapshot!(told, @r"
    exit 2
    --- stdout
    --- stderr
    error: `wrong.toml`, line 2: unknown field `answr`, expected one of `name`, `when`, `times`, `answer`
    hint: docs/guides/scripted-models.md has the format
    ");
}
