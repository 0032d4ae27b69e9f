//! A runner stays the plugin it was, over reloads and restarts of the host.

use crate::kit::{Kit, eventually, wire};
use greenroom_runtime::{Limits, RunnerSpec, RunnerStatus};
use std::time::Duration;

/// The runner that calls itself something else.
fn as_plugin(kit: &Kit, spec: RunnerSpec, name: &str) -> RunnerSpec {
    let mut spec = RunnerSpec { dir: kit.path("wire"), ..spec };
    let plugin = format!(r#"{{"author":"test","name":"{name}","version":"1"}}"#);
    spec.env.insert("PLUGIN".into(), plugin);
    spec
}

fn named(kit: &Kit, name: &str) -> RunnerSpec {
    RunnerSpec { name: name.into(), ..kit.spec() }
}

async fn refused(kit: &Kit, name: &str) -> String {
    eventually("the refusal", || {
        kit.runtime.runners().into_iter().find(|runner| runner.name == name)?.last_error
    })
    .await
}

async fn restarted(kit: Kit) -> Kit {
    kit.runtime.shutdown(Duration::ZERO).await;
    Kit::over(kit.folder, Limits::default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_cannot_become_another_plugin_over_a_reload() {
    let kit = Kit::wire().await;
    kit.runtime.apply(vec![as_plugin(&kit, kit.spec(), "other")]).await;
    assert_eq!(
        refused(&kit, "wire").await,
        "runner `wire` declares itself `test/other`, and was `test/wire` before: if it is, write \
         `plugin = \"test/other\"` under `[runners.wire]`"
    );
    // The configuration decides.
    let pinned = RunnerSpec { plugin: Some("test/other".into()), ..kit.spec() };
    kit.runtime.apply(vec![as_plugin(&kit, pinned, "other")]).await;
    eventually("the pinned one", || {
        Some(kit.state()).filter(|state| state.status == RunnerStatus::Ready)
    })
    .await;
    assert_eq!(kit.state().plugin.as_deref(), Some("test/other"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runner_cannot_take_anothers_plugin_while_that_one_restarts() {
    let kit = Kit::wire().await;
    let mut late = kit.spec();
    late.env.insert("MODE".into(), "crash_at_start".into());
    kit.runtime.apply(vec![late, named(&kit, "evil")]).await;
    let error = refused(&kit, "evil").await;
    assert!(error.contains("declares itself `test/wire`, which is runner `wire`"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_later_host_remembers_who_is_who() {
    use std::os::unix::fs::PermissionsExt;
    let kit = restarted(Kit::wire().await).await;
    let file = kit.path("data/runner-pins.json");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let mut late = kit.spec();
    late.env.insert("MODE".into(), "crash_at_start".into());
    kit.runtime.apply(vec![late, named(&kit, "evil")]).await;
    let error = refused(&kit, "evil").await;
    assert!(error.contains("declares itself `test/wire`, which is runner `wire`"), "{error}");
    let kit = restarted(kit).await;
    kit.runtime.apply(vec![as_plugin(&kit, kit.spec(), "other")]).await;
    let error = refused(&kit, "wire").await;
    assert!(error.contains("and was `test/wire` before"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_is_gone_leaves_its_plugin_to_others() {
    let kit = Kit::wire().await;
    kit.runtime.apply(vec![named(&kit, "renamed")]).await;
    kit.ready().await;
    assert_eq!(&*kit.runtime.descriptor(&wire()).unwrap().runner, "renamed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pin_takes_the_plugin_from_an_earlier_runner() {
    let kit = Kit::new();
    kit.runtime.apply(vec![named(&kit, "evil")]).await;
    kit.ready().await;
    let pinned = RunnerSpec { plugin: Some("test/wire".into()), ..kit.spec() };
    kit.runtime.apply(vec![named(&kit, "evil"), pinned]).await;
    let error = refused(&kit, "evil").await;
    assert!(error.contains("declares itself `test/wire`, which is runner `wire`"), "{error}");
    kit.ready().await;
    assert_eq!(&*kit.runtime.descriptor(&wire()).unwrap().runner, "wire");
}
