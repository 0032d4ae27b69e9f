//! What operators see of tools, what they are warned of, and what keeps tools from taking the whole machine.

use crate::programs::{greenroom, method, module, prepared, python};
use crate::stage::{PATIENCE, Stage, config, event};
use crate::{call, play};
use greenroom_testkit::wait::wait_for;
use serde_json::{Value, json};

const LAB: &str = r#"
[tools.lab]
kind = "module"
manifest = "lab/module.toml"
[agents.clerk]
runner = "plugin:test/puppet/main"
events = []
deadline_s = 60
grant = { modules = ["lab.*"], risk = { destructive = "always" } }
"#;

async fn begin(stage: &Stage, conversation: &str, steps: Value) -> String {
    let mut event = event("clerk", conversation, &steps.to_string());
    event["actor"]["actor_id"] = "ann".into();
    stage.send(&event).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_whose_turn_does_not_come_in_time_is_never_started() {
    let host = prepared("");
    host.configure(&config("cancel_grace_s = 1\ntool_processes = 1", LAB));
    let slow = "timeout_s = 4\nrisk = \"write\"";
    let hurried = "timeout_s = 1\nrisk = \"destructive\"";
    module(
        &host,
        "lab",
        &(method("slow", slow) + &method("remove", hurried) + &method("bare", "")),
    );
    let stage = Stage::with(host).await;
    let mut first = call("first", "lab", "slow", json!({}));
    first[0] = "start_call".into();
    let run_id = begin(&stage, "c1", json!([first, ["gate", "go"], ["end"]])).await;
    let begun = stage.host.folder().join("lab/out/pids");
    wait_for("the first method", PATIENCE, async || begun.exists().then_some(())).await;
    let steps =
        vec![call("second", "lab", "remove", json!({})), call("third", "lab", "bare", json!({}))];
    play(&stage, "ann", "c2", steps).await;
    let error = async |name: &str| {
        let error = stage.told(name).await["result"]["error"].clone();
        (error["code"].clone(), error["message"].clone())
    };
    let waited = "the method waited for its turn until its time was up, and was not started";
    assert_eq!(error("second").await, (json!("TIMEOUT"), json!(waited)));
    let late = "the method did not end in time";
    assert_eq!(error("first").await, (json!("TIMEOUT"), json!(late)));
    stage.pass("go");
    stage.api.ended_run(&run_id).await;
    // Whoever has time enough finds room once the first is over.
    assert_eq!(stage.told("third").await["result"]["result"]["data"], json!([1, 2]));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_confines_the_programs_of_modules_is_said_by_the_api_and_by_doctor() {
    let host = prepared(LAB);
    module(&host, "lab", &method("bare", ""));
    let stage = Stage::with(host).await;
    let page = stage.api.get("/v1/tool-servers").await;
    let items = page["items"].as_array().unwrap();
    let names: Vec<&Value> = items.iter().map(|item| &item["name"]).collect();
    assert_eq!(names, ["project_cli", "lab"]);
    let place = std::fs::read(stage.host.data().join("host.json")).unwrap();
    let place: Value = serde_json::from_slice(&place).unwrap();
    let (_, port) = place["url"].as_str().unwrap().rsplit_once(':').unwrap();
    for item in items {
        assert_eq!((&item["kind"], &item["status"]), (&json!("module"), &json!("ready")), "{item}");
        assert_eq!(item["warnings"], json!([]), "{item}");
        let isolation = item["isolation"].as_str().unwrap();
        let (_, user) = isolation.rsplit_once("+uid:").unwrap();
        let user: u32 = user.parse().unwrap();
        match rustix::process::getuid() {
            root if root.is_root() => assert!(user >= 0x7100_0000, "{isolation}"),
            own => assert_eq!(user, own.as_raw(), "{isolation}"),
        }
        assert!(isolation.contains(&format!("+seccomp+netns:{port}+")), "{isolation}");
    }
    let data = stage.host.data().to_str().unwrap().to_owned();
    let (_, stdout, _) = greenroom(&stage.host, &["doctor", "--data", &data]);
    for item in items {
        let (name, isolation) =
            (item["name"].as_str().unwrap(), item["isolation"].as_str().unwrap());
        let line = stdout.lines().find(|line| line.contains(&format!("tools {name} "))).unwrap();
        assert!(line.starts_with("ok") && line.contains(isolation), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_is_neither_well_nor_ill() {
    let more = format!(
        "[tools.late]\ncommand = [\"{}\", \"-c\", \"import time; time.sleep(1000)\"]\n",
        python()
    );
    let stage = Stage::with(prepared(&more)).await;
    let data = stage.host.data().to_str().unwrap().to_owned();
    let (_, stdout, _) = greenroom(&stage.host, &["doctor", "--data", &data]);
    let line = stdout.lines().find(|line| line.contains("tools late")).unwrap();
    assert!(line.starts_with("starting "), "{stdout}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_floods_its_stderr_fills_no_log_and_what_was_dropped_is_counted() {
    let flood = "import sys; [sys.stderr.write('x' * 1000 + chr(10)) for _ in range(3000)]";
    let more = format!("[tools.noisy]\ncommand = [\"{}\", \"-c\", \"{flood}\"]\n", python());
    let stage = Stage::with(prepared(&more)).await;
    wait_for("what was dropped", PATIENCE, async || {
        let log = stage.host.log();
        assert!(log.len() < 1_500_000, "{}", log.len());
        let dropped = log.split("dropped_bytes=").skip(1).map(|rest| {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse::<u64>().unwrap()
        });
        (dropped.sum::<u64>() > 2_000_000).then_some(())
    })
    .await;
}

#[test]
fn the_check_warns_of_programs_scripts_and_paths_that_are_not_there() {
    let host = prepared("");
    for name in ["puppet", "lab"] {
        std::fs::create_dir_all(host.folder().join(name)).unwrap();
    }
    let manifest = |command: &str, paths: &str| {
        let head = format!(
            "module = \"lab\"\ndescription = \"x\"\ncommand = [{command}]\npaths = [{paths}]\n"
        );
        std::fs::write(host.folder().join("lab/module.toml"), head + &method("a", "")).unwrap();
    };
    let folder = std::fs::canonicalize(host.folder()).unwrap();
    let folder = folder.display();
    let lab = "[tools.lab]\nkind = \"module\"\nmanifest = \"lab/module.toml\"\n";
    let server = |more: &str| format!("[tools.files]\n{more}\n");
    for (command, paths, more, expected) in [
        (
            "\"no-such-program\"",
            "",
            lab.to_owned(),
            "tools `lab`: program `no-such-program` does not exist".to_owned(),
        ),
        (
            "\"sh\", \"lab.sh\"",
            "",
            lab.to_owned(),
            format!("tools `lab`: file `{folder}/lab/lab.sh` does not exist"),
        ),
        (
            "\"sh\"",
            "\"nowhere\"",
            lab.to_owned(),
            format!("tools `lab`: `{folder}/lab/nowhere` in `paths` does not exist"),
        ),
        (
            "\"sh\"",
            "",
            server("command = [\"no-such-server\"]"),
            "tools `files`: program `no-such-server` does not exist".to_owned(),
        ),
        (
            "\"sh\"",
            "",
            server("command = [\"sh\"]\ndir = \"gone\""),
            format!("tools `files`: folder `{folder}/gone` does not exist"),
        ),
        (
            "\"sh\"",
            "",
            server("command = [\"sh\"]\npaths = [\"gone\"]"),
            format!("tools `files`: `{folder}/gone` in `paths` does not exist"),
        ),
    ] {
        manifest(command, paths);
        host.configure(&config("", &more));
        let (code, _, stderr) = greenroom(&host, &["check"]);
        assert_eq!(code, 0, "{stderr}");
        let expected = format!("warning: {expected}\n  --> ");
        assert!(stderr.contains(&expected), "no `{expected}` in: {stderr}");
    }
    manifest("\"sh\"", "");
    host.configure(&config("", lab));
    let (_, _, stderr) = greenroom(&host, &["check"]);
    assert!(!stderr.contains("tools `lab`"), "{stderr}");
}
