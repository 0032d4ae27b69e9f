//! What a process may say about itself, and what is made of it.

use crate::kit::{Kit, WAIT, eventually, wire};
use greenroom_runtime::{RunnerSpec, RunnerState, RunnerStatus};

/// The state once the first start has failed.
async fn failed(kit: &Kit, spec: RunnerSpec) -> RunnerState {
    kit.runtime.apply(vec![spec]).await;
    eventually("a failed start", || Some(kit.state()).filter(|state| state.last_error.is_some()))
        .await
}

fn with_env(kit: &Kit, key: &str, value: &str) -> RunnerSpec {
    let mut spec = kit.spec();
    spec.env.insert(key.into(), value.into());
    spec
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_is_described_by_its_process_and_named_by_the_configuration() {
    let kit = Kit::wire().await;
    let found = kit.runtime.descriptor(&wire()).unwrap();
    assert_eq!(
        (&*found.runner, &*found.plugin, found.plugin_version.as_str()),
        ("wire", "test/wire", "1.2.3")
    );
    let state = kit.state();
    assert_eq!(state.status, RunnerStatus::Ready);
    assert_eq!(state.isolation.as_deref(), Some(&*found.isolation));
    assert_eq!(
        (state.plugin.as_deref(), state.restarts, state.warnings.len()),
        (Some("test/wire"), 0, 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_manifest_hides_only_itself() {
    let kit = Kit::new();
    let manifests = r#"[
        {"id":"plugin:test/wire/main","name":"main","label":{"en_US":"good"},"context":{"ownership":"host","max_inline_events":3},"permissions":{"secrets":["read"]}},
        {"id":"plugin:test/wire/shape","name":"shape"},
        {"id":"plugin:test/wire/newer","name":"newer","label":{"en_US":"x"},"protocol_version":"2"},
        {"id":"plugin:else/wire/foreign","name":"foreign","label":{"en_US":"x"}},
        {"id":"plugin:test/wire/greedy","name":"greedy","label":{"en_US":"x"},"permissions":{"models":["steal"]}},
        {"id":"plugin:test/wire/main","name":"main","label":{"en_US":"twice"}},
        17
    ]"#;
    kit.runtime.apply(vec![with_env(&kit, "MANIFESTS", manifests)]).await;
    kit.ready().await;
    let state = kit.state();
    let offered: Vec<&str> =
        state.descriptors.iter().map(|found| found.manifest.id.as_str()).collect();
    assert_eq!(offered, ["plugin:test/wire/main"]);
    let told = |word: &str| state.warnings.iter().filter(|warning| warning.contains(word)).count();
    assert_eq!(state.warnings.len(), 8, "{:#?}", state.warnings);
    for word in [
        "ownership",
        "do not exist: secrets",
        "wire/shape",
        "protocol version `2`",
        "wire/foreign",
        "steal",
        "twice",
    ] {
        assert_eq!(told(word), 1, "{word}: {:#?}", state.warnings);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_not_the_pinned_plugin_is_refused() {
    let kit = Kit::new();
    let pinned = RunnerSpec { plugin: Some("acme/wire".into()), ..kit.spec() };
    let state = failed(&kit, pinned).await;
    let error = state.last_error.unwrap();
    assert_eq!(
        error,
        "runner `wire` declares itself `test/wire`, the configuration says `acme/wire`"
    );
    assert_eq!(kit.runtime.descriptor(&wire()), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_runners_cannot_be_the_same_plugin() {
    let kit = Kit::wire().await;
    let second = RunnerSpec { name: "second".into(), dir: kit.path("other"), ..kit.spec() };
    kit.runtime.apply(vec![kit.spec(), second]).await;
    let error = eventually("the refusal", || {
        kit.runtime.runners().into_iter().find(|runner| runner.name == "second")?.last_error
    })
    .await;
    assert_eq!(
        error,
        "runner `second` declares itself `test/wire`, which is runner `wire`: if it is, write \
         `plugin = \"test/wire\"` under `[runners.second]`"
    );
    assert_eq!(&*kit.runtime.descriptor(&wire()).unwrap().runner, "wire");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_protocol_version_is_refused() {
    let kit = Kit::new();
    let state = failed(&kit, with_env(&kit, "PROTOCOL", "2")).await;
    assert!(
        state.last_error.unwrap().ends_with("speaks protocol version `2`, the host speaks `1`")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_prints_on_stdout_is_told_so() {
    let kit = Kit::new();
    let state = failed(&kit, with_env(&kit, "MODE", "chatty")).await;
    let error = state.last_error.unwrap();
    assert!(error.contains("not a JSON-RPC message: \"hello, I am starting\""), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_does_not_exist_is_named() {
    let kit = Kit::new();
    let missing = RunnerSpec { command: vec!["no-such-program".into()], ..kit.spec() };
    let state = failed(&kit, missing).await;
    assert_eq!(
        state.last_error.unwrap(),
        "runner `wire` cannot be started: `no-such-program` was not found: check `command`"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_no_runner_can_offer_fails_immediately() {
    let kit = Kit::wire().await;
    let unknown = greenroom_protocol::RunnerId::parse("plugin:test/wire/unknown").unwrap();
    let asked = std::time::Instant::now();
    let error = kit.runtime.ready(&unknown, WAIT).await.unwrap_err();
    assert_eq!(error.message, "runner `wire` does not offer `plugin:test/wire/unknown`");
    let foreign = greenroom_protocol::RunnerId::parse("plugin:acme/none/main").unwrap();
    let error = kit.runtime.ready(&foreign, WAIT).await.unwrap_err();
    assert_eq!(error.message, "no configured runner offers `plugin:acme/none/main`");
    assert!(asked.elapsed() < WAIT / 10);
}
