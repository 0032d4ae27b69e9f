//! `testing::run`.

use greenroom_sdk::{Manifest, Plugin, RunCtx, RunFailure, Runner, json, testing};

struct Shout;

impl Runner for Shout {
    fn manifest(&self) -> Manifest {
        Manifest::new("loud")
    }

    async fn run(&self, ctx: RunCtx) -> Result<(), RunFailure> {
        let mark = ctx.config("mark").and_then(|mark| mark.as_str()).unwrap_or("!");
        let text: u32 = ctx.text().parse()?;
        ctx.message(format!("{text}{mark}")).await
    }
}

#[tokio::test]
async fn a_runner_is_tested_without_a_process() {
    let plugin = || Plugin::new("me", "shout").runner(Shout);
    let config = [("mark".to_owned(), json!("?"))].into_iter().collect();
    let results = testing::run(plugin(), "42", config).await.unwrap();
    let seen: Vec<_> = results.iter().map(|result| (result.kind.as_str(), &result.data)).collect();
    let message = json!({ "message": { "role": "assistant", "content": "42?" } });
    let end = json!({ "finish_reason": "stop" });
    let expected = [
        ("message.completed", message.as_object().unwrap()),
        ("run.completed", end.as_object().unwrap()),
    ];
    assert_eq!(seen, expected);

    let results = testing::run(plugin(), "many", Default::default()).await.unwrap();
    assert_eq!(results[0].data["code"], "runner.error");
    assert_eq!(results[0].data["message"], "invalid digit found in string");
}

#[tokio::test]
async fn an_invalid_name_or_a_duplicate_runner_is_rejected() {
    let bad = Plugin::new("me", "not/a name").runner(Shout);
    assert!(testing::run(bad, "1", Default::default()).await.is_err());
    let twice = Plugin::new("me", "shout").runner(Shout).runner(Shout);
    let error = testing::run(twice, "1", Default::default()).await.unwrap_err();
    assert_eq!(error.to_string(), "duplicate runner `plugin:me/shout/loud`");
}
