//! Shared limits, and dropped streams.

use crate::kit::*;
use greenroom_models::{ModelError, ModelSettings, Models, ProviderKind, presets};
use std::time::Duration;
use tokio::time::Instant;

fn named(server: &Server, name: &str) -> ModelSettings {
    ModelSettings { name: name.to_owned(), ..settings(server) }
}

#[tokio::test]
async fn models_with_one_address_and_key_share_their_limits() {
    let open = vec![head(), chunk(&delta("hel")), Step::Hold];
    let server = Server::start(vec![open, hello()]).await;
    let mut small = named(&server, "small");
    small.max_concurrent = Some(1);
    let models = Models::new(vec![small, named(&server, "large")]).unwrap();
    // In the order in which they were configured.
    assert_eq!(models.names().collect::<Vec<_>>(), ["small", "large"]);
    let (large, small) = (models.get("large").unwrap(), models.get("small").unwrap());
    let first = large.stream(question(), soon()).await.unwrap();
    let shortly = Instant::now() + Duration::from_millis(50);
    let error = small.stream(question(), shortly).await.err().unwrap();
    assert!(matches!(error, ModelError::RateLimited { .. }), "{error}");
    assert_eq!(server.requests().len(), 1);
    drop(first);
    assert_eq!(ask_once(&small).await, Ok((hello_items(), None)));
}

#[tokio::test]
async fn requests_of_a_minute_are_counted_over_all_models_of_a_key() {
    let server = Server::start(vec![hello()]).await;
    let mut one = named(&server, "one");
    one.requests_per_minute = Some(1);
    let models = Models::new(vec![one, named(&server, "two")]).unwrap();
    assert!(ask_once(&models.get("two").unwrap()).await.is_ok());
    let error = ask_once(&models.get("one").unwrap()).await.unwrap_err();
    assert!(matches!(error, ModelError::RateLimited { retry_after: Some(_), .. }), "{error}");
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn concurrent_requests_reuse_connections() {
    // In one piece: an answer whose end is late loses its connection.
    let written = hello().into_iter().filter_map(|step| match step {
        Step::Write(bytes) => Some(bytes),
        _ => None,
    });
    let answer = Step::Write(written.flatten().collect());
    let server = Server::start(vec![vec![Step::Crowd(100), answer, Step::Stay]]).await;
    let model = model(&server);
    for _ in 0..3 {
        let asking = futures_util::future::join_all((0..100).map(|_| ask_once(&model)));
        for answer in asking.await {
            assert_eq!(answer, Ok((hello_items(), None)));
        }
    }
    assert_eq!(server.requests().len(), 300);
    // A connection is back a moment after its answer, so that a few come too early for theirs.
    assert!((100..150).contains(&server.connections()), "{}", server.connections());
}

#[tokio::test]
async fn dropping_a_stream_cancels_its_request() {
    let server = Server::start(vec![vec![head(), chunk(&delta("hel")), Step::Hold]]).await;
    let stream = model(&server).stream(question(), soon()).await.unwrap();
    drop(stream);
    server.left().await;
}

#[tokio::test]
async fn a_model_without_a_base_url_is_rejected() {
    let mut nowhere = ModelSettings::new("n", ProviderKind::OpenAiChat, "x");
    nowhere.provider_name = "openai-compatible".to_owned();
    let error = Models::new(vec![nowhere]).err().unwrap();
    assert_eq!(error.to_string(), "the model `n` needs a `base_url`");
    assert_eq!(presets::find("groq").unwrap().key_env, Some("GROQ_API_KEY"));
}

#[tokio::test]
async fn the_scripted_model_answers_without_network() {
    let mut settings = ModelSettings::new("demo", ProviderKind::Scripted, "scripted");
    settings.provider_name = "scripted".to_owned();
    let models = Models::new(vec![settings]).unwrap();
    let answer = models.get("demo").unwrap().invoke(question(), soon()).await.unwrap();
    assert!(!answer.text().is_empty());
    assert_eq!(answer.metadata["model"], "demo");
    assert_eq!(answer.metadata["finish_reason"], "stop");
}
