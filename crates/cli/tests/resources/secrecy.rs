//! The credential of a method: good for its call alone, and found nowhere else (seed 004 §11).
//!
//! Invariant: what must not be found is written down by the program that tells it, with encoders of its own.

use crate::programs::{
    ancestors, arguments, descendants, method, module, prepared, program, python,
};
use crate::stage::{PATIENCE, Stage, TOKEN, event, outcome};
use crate::{call, data, play};
use greenroom_protocol::RunStatus;
use greenroom_testkit::http::{self, Request};
use greenroom_testkit::wait::wait_for;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const CONFIG: &str = r#"
[runners.elsewhere]
token = { file = "token" }
[tools.leak]
kind = "module"
manifest = "leak/module.toml"
[agents.clerk]
runner = "plugin:test/puppet/main"
events = []
deadline_s = 60
grant = { modules = ["leak.*", "memory.read"] }
"#;

const WAYS: [&str; 6] = ["result", "large", "error", "crash", "complain", "garbage"];

async fn stage() -> Stage {
    let host = prepared(CONFIG);
    let methods = WAYS.iter().chain(&["hold", "look"]).map(|name| method(name, ""));
    module(&host, "leak", &methods.collect::<String>());
    Stage::with(host).await
}

fn out(stage: &Stage) -> PathBuf {
    stage.host.folder().join("leak/out")
}

fn assert_clean(what: &str, bytes: &[u8], forbidden: &[String]) {
    for form in forbidden {
        let place = bytes.windows(form.len()).position(|window| window == form.as_bytes());
        if let Some(place) = place {
            let around = &bytes[place.saturating_sub(200)..(place + 200).min(bytes.len())];
            panic!("{what} tells `{form}`: …{}…", String::from_utf8_lossy(around));
        }
    }
}

fn assert_clean_files(folder: &Path, forbidden: &[String]) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries
        .map(|path| {
            if path.is_dir() {
                return assert_clean_files(&path, forbidden);
            }
            let bytes = std::fs::read(&path).unwrap_or_default();
            assert_clean(&path.display().to_string(), &bytes, forbidden);
            1
        })
        .sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_that_its_method_tells_everywhere_is_found_nowhere() {
    let mut stage = stage().await;
    let mut steps: Vec<Value> = WAYS.iter().map(|way| call(way, "leak", way, json!({}))).collect();
    steps.push(json!(["end"]));
    let sent = event("clerk", "c1", &Value::Array(steps).to_string());
    let request =
        Request::post("/v1/events", sent.to_string()).header("accept", "text/event-stream");
    let stream = stage.api.send(request).await.unwrap().body().await.unwrap();
    let run = stage.api.runs().await.remove(0);
    assert_eq!(outcome(&run), (RunStatus::Completed, ""), "{run:?}");
    let forms = std::fs::read_to_string(out(&stage).join("forbidden")).unwrap();
    let forbidden: Vec<String> =
        forms.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(forbidden.len(), WAYS.len() * 10);

    // Each of them did tell: what is left is what stood around it.
    let told = stage.told("result").await;
    assert_eq!(told["result"]["metadata"]["status"], "success");
    assert!(told["result"]["content"].as_str().unwrap().contains("GREENROOM_CREDENTIAL"));
    assert!(told.to_string().contains("[redacted]"), "{told}");
    assert_eq!(stage.told("large").await["result"]["result"]["truncated"], true);
    assert!(stage.told("error").await["result"]["error"]["message"].is_string());
    for (way, code) in
        [("crash", "METHOD_CRASHED"), ("complain", "METHOD_CRASHED"), ("garbage", "INVALID_OUTPUT")]
    {
        assert_eq!(stage.told(way).await["result"]["error"]["code"], code);
    }
    for way in WAYS {
        assert_clean(way, stage.told(way).await.to_string().as_bytes(), &forbidden);
    }
    assert_clean("the stream", &stream, &forbidden);
    for target in [
        "/v1/runs".to_owned(),
        format!("/v1/runs/{}", run.run_id),
        format!("/v1/runs/{}/results?limit=200", run.run_id),
        "/v1/conversations/c1/history?limit=200".to_owned(),
        "/v1/events?limit=200".to_owned(),
        "/v1/audit?limit=200".to_owned(),
        "/v1/approvals".to_owned(),
        "/v1/runners".to_owned(),
    ] {
        let page = stage.api.get(&target).await;
        assert_clean(&target, page.to_string().as_bytes(), &forbidden);
    }
    wait_for("the crashes in the log", PATIENCE, async || {
        (stage.host.log().matches("a method crashed").count() == 2).then_some(())
    })
    .await;
    assert_clean("the log", stage.host.log().as_bytes(), &forbidden);
    stage.host.kill();
    assert!(assert_clean_files(&stage.host.data(), &forbidden) > 3);
}

/// What the host answers to an operation on records, with this as the caller's token.
async fn asked(stage: &Stage, credential: &str, op: Value) -> (u16, Value) {
    let file = std::fs::read_to_string(stage.host.data().join("host.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    let address: SocketAddr = file["address"].as_str().unwrap().parse().unwrap();
    let request = Request::post("/v1/tool-runtime/records", op.to_string())
        .header("authorization", format!("Bearer {credential}"))
        .header("x-greenroom-actor", "eve");
    let answer = http::send(address, &request).await.unwrap();
    let status = answer.status;
    (status, serde_json::from_slice(&answer.body().await.unwrap()).unwrap())
}

/// Starts a call that waits, and gives its run and its credential.
async fn held(stage: &Stage, name: &str) -> (String, String) {
    let _ = std::fs::remove_file(out(stage).join("credential"));
    let steps = json!([call(name, "leak", "hold", json!({})), ["end"]]);
    let run_id = stage.send(&event("clerk", name, &steps.to_string())).await;
    let file = out(stage).join("credential");
    let credential = wait_for("a credential", PATIENCE, async || {
        std::fs::read_to_string(&file).ok().filter(|text| !text.is_empty())
    })
    .await;
    (run_id, credential)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_is_good_for_its_call_its_actor_and_its_module_alone() {
    let stage = stage().await;
    let list = || json!({"op": "list", "module": "leak"});
    let (run_id, credential) = held(&stage, "one").await;
    let put = json!({"op": "put", "module": "leak", "id": "r1", "body": {"n": 1}});
    let (status, kept) = asked(&stage, &credential, put).await;
    assert_eq!(status, 200, "{kept}");
    // Whom it acts for is the actor of the event, whatever the caller claims.
    assert_eq!(kept["record"]["owner"], "u1");
    for module in ["calendar", "memory", "contacts", "other"] {
        let (status, refused) =
            asked(&stage, &credential, json!({"op": "list", "module": module})).await;
        assert_eq!((status, &refused["error"]["code"]), (403, &json!("unauthorized")), "{module}");
    }
    let last = if credential.ends_with('0') { "1" } else { "0" };
    let altered = format!("{}{last}", &credential[..credential.len() - 1]);
    for wrong in [&altered, &credential.to_uppercase(), &credential[..20], ""] {
        assert_eq!(asked(&stage, wrong, list()).await.0, 401, "{wrong}");
    }
    // It opens no other door.
    let request = Request::get("/v1/runs").header("authorization", format!("Bearer {credential}"));
    let file = std::fs::read_to_string(stage.host.data().join("host.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    let address = file["address"].as_str().unwrap().parse().unwrap();
    assert_eq!(http::send(address, &request).await.unwrap().status, 401);

    std::fs::write(out(&stage).join("go"), "").unwrap();
    assert_eq!(stage.api.ended_run(&run_id).await.status, RunStatus::Completed);
    assert_eq!(asked(&stage, &credential, list()).await.0, 401, "its call is over");
    std::fs::remove_file(out(&stage).join("go")).unwrap();

    let (run_id, credential) = held(&stage, "two").await;
    assert_eq!(asked(&stage, &credential, list()).await.0, 200);
    stage.cancel(&run_id).await;
    assert_eq!(asked(&stage, &credential, list()).await.0, 401, "its run is over");
    // The process does not outlive the call that was called off.
    wait_for("the end of the method", PATIENCE, async || {
        let held = |(_, words): &(u32, Vec<String>)| words.contains(&"hold".to_owned());
        (!descendants(&stage).iter().any(held)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_secret_is_kept_in_a_record() {
    let mut stage = stage().await;
    let (run_id, credential) = held(&stage, "one").await;
    let note = |id: &str| {
        json!({"op": "put", "module": "leak", "id": id,
        "body": {"note": format!("it is {credential}"), "deep": [{"token": TOKEN}], "n": 1}})
    };
    let (status, kept) = asked(&stage, &credential, note("r1")).await;
    assert_eq!(status, 200, "{kept}");
    let body = &kept["record"]["body"];
    assert_eq!((&body["n"], &body["deep"]), (&json!(1), &json!([{"token": "[redacted]"}])));
    assert!(!body.to_string().contains(&credential), "{body}");
    // A name cannot be kept otherwise than it is.
    let (status, refused) = asked(&stage, &credential, note(&credential)).await;
    assert_eq!((status, &refused["error"]["code"]), (400, &json!("invalid_argument")));
    std::fs::write(out(&stage).join("go"), "").unwrap();
    stage.api.ended_run(&run_id).await;
    stage.host.kill();
    let forbidden = [credential, TOKEN.to_owned()];
    assert!(assert_clean_files(&stage.host.data(), &forbidden) > 3);
}

fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // It may have ended by itself.
    let _ = kill_process(pid, signal);
}

/// Whether a stopped process of ours has come past the first thing it does: it has an event queue by then, or
/// its descriptors are kept from us.
fn is_under_way(pid: u32) -> bool {
    let Ok(descriptors) = std::fs::read_dir(format!("/proc/{pid}/fd")) else {
        return Path::new(&format!("/proc/{pid}/stat")).exists();
    };
    let mut links = descriptors.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    links.any(|link| link.to_string_lossy().contains("eventpoll"))
}

/// Stops a built-in method in the middle of its work.
async fn stopped(stage: &Stage) -> u32 {
    wait_for("a method at work", PATIENCE, async || {
        let words = ["tool", "memory", "read"];
        let all = descendants(stage);
        let (pid, _) = all
            .iter()
            .find(|(_, arguments)| arguments.get(1..) == Some(&words.map(str::to_owned)[..]))?;
        signal(*pid, Signal::STOP);
        if is_under_way(*pid) && arguments(*pid).is_some_and(|words| !words.is_empty()) {
            return Some(*pid);
        }
        signal(*pid, Signal::CONT);
        None
    })
    .await
}

/// What a process of the same user, without any privilege, reads of others.
#[expect(clippy::disallowed_methods, reason = "the test starts the process that looks")]
fn probed(pids: &[u32], user: u32) -> Vec<Value> {
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    let script = std::fs::read_to_string(program("probe.py")).unwrap();
    let mut command = match rustix::process::getuid().is_root() {
        true => {
            let mut command = Command::new("setpriv");
            command.arg(format!("--reuid={user}")).arg(format!("--regid={user}"));
            command.args(["--clear-groups", "--bounding-set=-all", "--inh-caps=-all", python()]);
            command
        }
        false => Command::new(python()),
    };
    let output = command.args(["-c", &script]).args(&pids).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn user_of(pid: u32) -> u32 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_reads_the_credential_of_a_built_in_method_out_of_its_process() {
    let stage = stage().await;
    let steps: Vec<Value> =
        (0..200).map(|n| call(&format!("r{n}"), "memory", "read", json!({}))).collect();
    let steps = Value::Array(steps).to_string();
    let run_id = stage.send(&event("clerk", "c1", &steps)).await;
    let pid = stopped(&stage).await;
    // A process of the same user that nothing confines.
    let user = user_of(pid);
    let seen = probed(&[pid], user).remove(0);
    for name in ["environ", "mem", "maps"] {
        assert_eq!(seen[name], "PermissionError", "{name} of user {user}");
    }
    let words = seen["cmdline"].as_str().unwrap();
    assert!(words.ends_with("\0tool\0memory\0read\0"), "{words:?}");
    // Those between it and the host carried the credential on.
    let host = stage.host.pid();
    let between: Vec<u32> = ancestors(pid).into_iter().take_while(|pid| *pid != host).collect();
    assert!(!between.is_empty());
    for pid in between {
        let seen = probed(&[pid], user_of(pid)).remove(0);
        assert_eq!(seen["mem"], "PermissionError", "{:?}", arguments(pid));
        assert!(!seen.to_string().contains("grt_"), "{seen}");
    }
    // Another method of the same run.
    let look = vec![call("look", "leak", "look", json!({"pid": pid}))];
    play(&stage, "ann", "c2", look).await;
    let seen = data(&stage, "look").await;
    for name in ["environ", "cmdline", "mem", "maps", "fd/0"] {
        assert_eq!(seen[name], "PermissionError", "{name}");
    }
    signal(pid, Signal::CONT);
    stage.cancel(&run_id).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_of_ones_own_is_closed_to_other_tools_and_tells_nothing_in_its_arguments() {
    let stage = stage().await;
    let (_, credential) = held(&stage, "one").await;
    let is_held = |words: &Vec<String>| words.last().is_some_and(|word| word == "hold");
    let all = descendants(&stage);
    let (pid, _) = all.iter().find(|(_, words)| is_held(words)).unwrap();
    for (pid, words) in &all {
        assert!(!words.concat().contains("grt_"), "{pid}: {words:?}");
        assert!(!words.concat().contains(&credential), "{pid}");
    }
    let look = vec![call("look", "leak", "look", json!({"pid": pid}))];
    play(&stage, "ann", "c2", look).await;
    let seen = data(&stage, "look").await;
    for name in ["environ", "cmdline", "mem", "maps", "fd/0"] {
        assert_eq!(seen[name], "PermissionError", "{name}");
    }
    // It can look at all: at itself.
    let own = std::fs::metadata(format!("/proc/{pid}")).unwrap().uid();
    assert_eq!(own, user_of(*pid));
    std::fs::write(out(&stage).join("go"), "").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_on_standard_input_is_nowhere_in_proc() {
    for (handover, is_told) in [("env", true), ("stdin", false)] {
        let host = prepared(CONFIG);
        let methods = format!("credential = \"{handover}\"\n{}", method("hold", ""));
        module(&host, "leak", &methods);
        let stage = Stage::with(host).await;
        let (_, credential) = held(&stage, "one").await;
        let is_held = |words: &Vec<String>| words.last().is_some_and(|word| word == "hold");
        let all = descendants(&stage);
        let (pid, _) = all.iter().find(|(_, words)| is_held(words)).unwrap();
        // A process of the same user that nothing confines may read it all.
        let seen = probed(&[*pid], user_of(*pid)).remove(0);
        let environ = seen["environ"].as_str().unwrap();
        assert!(environ.contains("GREENROOM_URL="), "{handover}: {seen}");
        assert_eq!(environ.contains(&credential), is_told, "{handover}");
        assert!(!seen["cmdline"].as_str().unwrap().contains(&credential), "{handover}");
        // It is good all the same.
        let list = json!({"op": "list", "module": "leak"});
        assert_eq!(asked(&stage, &credential, list).await.0, 200, "{handover}");
        std::fs::write(out(&stage).join("go"), "").unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_outside_the_whitelist_is_refused_by_the_router_too() {
    let stage = stage().await;
    let (_, credential) = held(&stage, "one").await;
    let file = std::fs::read_to_string(stage.host.data().join("host.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    let url = file["url"].as_str().unwrap();
    // As the host would start it, but for another method than was granted.
    let tried = |methods: Option<&str>, words: [&str; 2]| {
        #[expect(clippy::disallowed_methods, reason = "these tests are about the program itself")]
        let mut command = Command::new(crate::PROGRAM);
        command.env_clear().env("GREENROOM_URL", url).env("GREENROOM_CREDENTIAL", &credential);
        command.envs(methods.map(|methods| ("GREENROOM_METHODS", methods)));
        command.arg("tool").args(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"{}").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(!String::from_utf8_lossy(&output.stderr).contains(&credential));
        assert!(!said.to_string().contains(&credential));
        said["error"]["code"].clone()
    };
    assert_eq!(tried(Some("calendar.read"), ["memory", "read"]), "METHOD_NOT_ALLOWED");
    assert_eq!(tried(Some("leak.hold"), ["leak", "hold"]), "METHOD_NOT_ALLOWED");
    assert_eq!(tried(Some(""), ["memory", "read"]), "METHOD_NOT_ALLOWED");
    assert_eq!(tried(None, ["memory", "read"]), "METHOD_NOT_ALLOWED");
    // Past the router it is the host that refuses: the credential was given for another method.
    assert_eq!(tried(Some("memory.read"), ["memory", "read"]), "UNAUTHORIZED");
    std::fs::write(out(&stage).join("go"), "").unwrap();
}
