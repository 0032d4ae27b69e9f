//! Configured modules, run as the host runs them.
//!
//! Invariant: a method is confined as on the host and has no credential, so it cannot read records.

use crate::client::{DEFAULT_DATA, HostArgs, Place};
use crate::failure::Failure;
use crate::{output, wiring};
use greenroom_config::env;
use greenroom_config::{self as config, Config};
use greenroom_runtime::{ChildSpec, Children, Network};
use greenroom_tools::manifest::{Handover, ModuleMethod, Modules};
use greenroom_tools::project_cli::CliResult;
use greenroom_tools::{MethodCall, Status, run_method};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tokio::time::Instant;

/// The configured modules; none if the configuration is invalid.
pub(super) fn modules(named: Option<&Path>) -> Result<Modules, Failure> {
    let Some(path) = config::find_file(named) else { return Ok(Modules::default()) };
    let read = wiring::load_file(&path).map_err(Failure::from);
    match read.and_then(|loaded| wiring::modules(&loaded.config)) {
        Ok(modules) => Ok(modules),
        // A file that was given explicitly must be valid.
        Err(failure) if named.is_some() => Err(failure),
        Err(_) => {
            let path = path.display();
            output::note(&format!(
                "warning: the modules of `{path}` are ignored: it is invalid, see `greenroom check`"
            ));
            Ok(Modules::default())
        }
    }
}

/// Runs a method to its end.
pub(super) async fn run(
    method: &ModuleMethod,
    input: &Value,
    host: &HostArgs,
) -> Result<CliResult, Failure> {
    if let Err(failure) = method.check(input) {
        return Ok(CliResult::Failed(failure));
    }
    let program = std::env::current_exe()?.to_string_lossy().into_owned();
    let data = host.data.clone().unwrap_or_else(|| PathBuf::from(DEFAULT_DATA));
    let folder = std::env::temp_dir().join(format!("greenroom-tool-{}", uuid::Uuid::now_v7()));
    std::fs::create_dir(&folder)?;
    let settings = greenroom_runtime::Settings {
        run_dir: folder.clone(),
        ..wiring::runtime(&Config::default(), &program, &std::path::absolute(data)?)
    };
    let call = MethodCall {
        program: program_of(method, host),
        module: &method.module,
        method: &method.method,
        input,
        first_line: (method.handover == Handover::Stdin).then_some(""),
        deadline: Instant::now() + method.timeout,
    };
    let output = run_method(&Children::new(settings), call).await;
    // The system clears the temporary folder.
    let _ = std::fs::remove_dir_all(&folder);
    Ok(match (output.status, output.error) {
        (Status::Failure, Some(failure)) => CliResult::Failed(failure),
        _ => CliResult::Done {
            module: method.module.clone(),
            method: method.method.clone(),
            data: output.result.get("data").cloned().unwrap_or_default(),
        },
    })
}

fn program_of(method: &ModuleMethod, host: &HostArgs) -> ChildSpec {
    let running = Place::find(host, &env::get).and_then(|place| place.locate()).ok();
    let address = running.as_ref().and_then(|host| host.url.socket_addrs(|| None).ok()?.pop());
    let mut variables = BTreeMap::from([(env::METHODS.to_owned(), method.name())]);
    variables.extend(running.map(|host| (env::URL.to_owned(), host.url.to_string())));
    ChildSpec {
        name: method.module.clone(),
        command: method.command.clone(),
        dir: method.dir.clone(),
        env: variables,
        paths: method.paths.clone(),
        network: Network::of(&method.network, address),
        ..ChildSpec::default()
    }
}
