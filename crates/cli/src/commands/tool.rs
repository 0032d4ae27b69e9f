//! `greenroom tool`: calls a method of the project CLI or of a configured module, for the host and for people.
//!
//! Invariant: standard output carries the structured result only; with a credential in the environment, only that
//! credential decides whose data is used.

mod own;

use crate::client::{HostArgs, Place};
use crate::failure::{Exit, Failure, Outcome};
use crate::output;
use greenroom_config::env;
use greenroom_protocol::Object;
use greenroom_tools::ToolFailure;
use greenroom_tools::manifest::{ModuleMethod, Modules};
use greenroom_tools::project_cli::{
    CliResult, HttpRecords, MethodSet, MethodSpec, OnBehalf, close_matches, find, route, specs,
};
use serde_json::{Value, json};
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

/// Timeout of a call to the host.
const RECORDS_TIMEOUT: Duration = Duration::from_secs(20);

/// Largest input of a method.
const INPUT_BYTES_MAX: u64 = 1024 * 1024;

/// Call or list methods of the project CLI
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without a method, lists all methods; `greenroom tool calendar` shows their inputs.
The host runs the same command for agents, with a credential in its environment.
Modules of your own are configured as `[tools.NAME]` with `kind = \"module\"`; by hand they run confined as on
the host, but without a credential for records.

Exit codes:
  0  done
  1  the method failed; the reason is in the result
  2  wrong arguments
  3  no host answers

Examples:
  greenroom tool
  greenroom tool calendar
  greenroom tool calendar read --input '{\"mode\":\"event\",\"event_id\":\"rec_1\"}'
  greenroom tool memory update --actor ann --input '{\"set\":{\"likes\":\"tea\"}}' --json
  greenroom tool calendar create --input - < event.json")]
pub struct Args {
    /// Module, e.g. `calendar`
    module: Option<String>,
    /// Method of the module, e.g. `read`
    #[arg(requires = "module")]
    method: Option<String>,
    /// Input of the method as JSON, or `-` for standard input
    #[arg(long, value_name = "JSON", requires = "method")]
    input: Option<String>,
    /// Configuration file with modules of your own [default: `GREENROOM_CONFIG`, else ./greenroom.toml if it
    /// exists]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Actor whose data is used
    #[arg(long, value_name = "ID", default_value = "cli")]
    actor: String,
    /// Source whose actor it is [default: api]
    #[arg(long, value_name = "SOURCE")]
    source: Option<String>,
    /// Token whose actor it is: `NAME` of `[tokens.NAME]`, for a sender without `actors = "any"`
    #[arg(long, value_name = "NAME")]
    sender: Option<String>,
    /// Workspace of the data
    #[arg(long, value_name = "ID")]
    workspace: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    host: HostArgs,
}

pub async fn run(args: Args) -> Outcome {
    match (&args.module, &args.method) {
        (Some(module), Some(method)) => call(&args, module, method).await,
        (module, _) => list(module.as_deref(), &own::modules(args.config.as_deref())?, args.json),
    }
}

async fn call(args: &Args, module: &str, method: &str) -> Outcome {
    if let Some(credential) = env::get(env::CREDENTIAL) {
        let result = as_child(module, method, credential).await;
        output::print_json(&result)?;
        return Ok(exit(&result));
    }
    let input = match args.input.as_deref() {
        None => Value::Object(Object::new()),
        Some("-") => parsed(&read_stdin()?)?,
        Some(text) => parsed(text)?,
    };
    let result = match find(module, method) {
        Some(_) => built_in(args, module, method, &input).await?,
        None => {
            let modules = own::modules(args.config.as_deref())?;
            match modules.find(module, method) {
                Some(method) => own::run(method, &input, &args.host).await?,
                None => return Err(unknown_method(module, method, &modules)),
            }
        }
    };
    match &result {
        result if args.json => output::print_json(result)?,
        CliResult::Done { data, .. } => output::print_pretty(&data)?,
        CliResult::Failed(failure) => output::note(&describe(failure)),
    }
    Ok(exit(&result))
}

/// Calls a method on the records of the host, for the given actor.
async fn built_in(
    args: &Args,
    module: &str,
    method: &str,
    input: &Value,
) -> Result<CliResult, Failure> {
    let named = [("source", &args.source), ("sender", &args.sender)];
    let named = named.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    for (name, value) in named.chain([("actor", &args.actor)]) {
        if value.is_empty() || value.chars().any(char::is_control) {
            let message = format!("`--{name}` is not an id: {value:?}");
            return Err(Failure::new(message).hint("an id is not empty and has one line"));
        }
    }
    let place = Place::find(&args.host, &env::get)?;
    let host = place.locate()?;
    let on_behalf = OnBehalf {
        actor: args.actor.clone(),
        source: args.source.clone(),
        token: args.sender.clone(),
        workspace: args.workspace.clone(),
    };
    let token = host.token.expose().to_owned();
    let records = HttpRecords::new(host.url.as_str(), token, Some(on_behalf));
    let http = reqwest::Client::builder()
        .timeout(RECORDS_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy();
    let records = records.map_err(anyhow::Error::new)?.by(place.http(http)?);
    Ok(route(module, method, input, &MethodSet::all(), &records).await)
}

/// The form in which the host starts it: input on stdin, everything else in the environment.
async fn as_child(module: &str, method: &str, credential: String) -> CliResult {
    let failed = |code: &str, message: &str| CliResult::Failed(ToolFailure::new(code, message));
    let Some(url) = env::get(env::URL) else {
        return failed("UNAVAILABLE", "the environment has no address of the host");
    };
    // An empty list allows nothing.
    let allowed = MethodSet::from_list(&env::get(env::METHODS).unwrap_or_default());
    let input = match read_stdin().map(|text| serde_json::from_str(&text)) {
        Ok(Ok(input)) => input,
        Ok(Err(_)) | Err(_) => {
            return failed("INVALID_ACTION_INPUT", "the input is not JSON or too long");
        }
    };
    match HttpRecords::new(&url, credential, None) {
        Ok(records) => route(module, method, &input, &allowed, &records).await,
        Err(error) => failed("UNAVAILABLE", &error.to_string()),
    }
}

fn exit(result: &CliResult) -> Exit {
    if result.is_ok() { Exit::Ok } else { Exit::Failure }
}

fn read_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    let read = std::io::stdin().lock().take(INPUT_BYTES_MAX + 1).read_to_string(&mut text)?;
    match read as u64 > INPUT_BYTES_MAX {
        true => Err(Failure::new(format!("the input is larger than {INPUT_BYTES_MAX} bytes"))
            .exit(Exit::Usage)),
        false => Ok(text),
    }
}

fn parsed(text: &str) -> Result<Value, Failure> {
    serde_json::from_str(text).map_err(|error| {
        Failure::from(anyhow::Error::new(error).context("the input is not JSON"))
            .exit(Exit::Usage)
            .hint("write e.g. `--input '{\"mode\":\"event\",\"event_id\":\"…\"}'`")
    })
}

/// An error message with the expected inputs of the method.
fn describe(failure: &ToolFailure) -> String {
    let mut text = format!("error: {} ({})", output::plain(&failure.message), failure.code);
    if let Some(Value::Object(contract)) = failure.details.get("input_schema") {
        text.push_str("\nhint: the inputs are");
        for (field, takes) in contract {
            let takes = takes.as_str().map_or_else(|| takes.to_string(), str::to_owned);
            text.push_str(&format!("\n  {field}: {takes}"));
        }
    }
    text
}

fn list(module: Option<&str>, own: &Modules, json: bool) -> Outcome {
    let is_asked = |name: &str| module.is_none_or(|module| name == module);
    let built_in: Vec<&MethodSpec> = specs().iter().filter(|spec| is_asked(spec.module)).collect();
    let manifests = own.manifests().filter(|manifest| is_asked(&manifest.module));
    let own_methods: Vec<&ModuleMethod> =
        manifests.flat_map(|manifest| manifest.methods.values()).collect();
    if let (Some(module), true) = (module, built_in.is_empty() && own_methods.is_empty()) {
        return Err(unknown(module, own));
    }
    if json {
        let items = built_in.iter().map(|spec| described(spec));
        let items: Vec<Value> =
            items.chain(own_methods.iter().map(|own| own_described(own))).collect();
        output::print_json(&json!({"items": items}))?;
        return Ok(Exit::Ok);
    }
    if module.is_some() {
        for spec in built_in {
            output::print(&contract(spec))?;
        }
        for method in own_methods {
            output::print(&own_contract(method))?;
        }
        return Ok(Exit::Ok);
    }
    let row = |spec: &&MethodSpec| {
        [spec.module, spec.method, spec.risk.as_str(), spec.about].map(str::to_owned).to_vec()
    };
    let own_row = |own: &&ModuleMethod| {
        let ModuleMethod { module, method, risk, description, .. } = own;
        [module.as_str(), method.as_str(), risk.as_str(), description.as_str()]
            .map(str::to_owned)
            .to_vec()
    };
    let head = ["MODULE", "METHOD", "RISK", "ABOUT"].map(str::to_owned).to_vec();
    let rows = built_in.iter().map(row).chain(own_methods.iter().map(own_row));
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    output::print(&output::table(&rows))?;
    output::note("hint: `greenroom tool MODULE` shows the inputs of its methods");
    Ok(Exit::Ok)
}

fn described(spec: &MethodSpec) -> Value {
    json!({
        "module": spec.module,
        "method": spec.method,
        "risk": spec.risk,
        "about": spec.about,
        "input_schema": spec.contract(),
    })
}

fn contract(spec: &MethodSpec) -> String {
    let mut text =
        format!("{} {}: {} ({})\n", spec.module, spec.method, spec.about, spec.risk.as_str());
    for (field, takes) in spec.fields {
        text.push_str(&format!("  {field}: {takes}\n"));
    }
    text
}

fn own_described(method: &ModuleMethod) -> Value {
    json!({
        "module": method.module,
        "method": method.method,
        "risk": method.risk,
        "about": method.description,
        "input_schema": method.input.source(),
    })
}

/// Like that of a built-in method, with the fields of its JSON Schema.
fn own_contract(method: &ModuleMethod) -> String {
    let ModuleMethod { module, method: name, description, risk, input, .. } = method;
    format!("{module} {name}: {description} ({})\n  {}\n", risk.as_str(), input.source())
}

fn unknown_method(module: &str, method: &str, own: &Modules) -> Failure {
    let methods: Vec<String> = own.all().map(|(name, ..)| name).collect();
    let prefix = format!("{module}.");
    if !methods.iter().any(|name| name.starts_with(&prefix)) {
        return unknown(module, own);
    }
    let failure = Failure::new(format!("there is no method `{module} {method}`")).exit(Exit::Usage);
    match close_matches(&format!("{module}.{method}"), &methods).first() {
        Some(near) => failure.hint(format!("did you mean `{}`?", near.replacen('.', " ", 1))),
        None => failure.hint(format!("`greenroom tool {module}` lists them")),
    }
}

fn unknown(module: &str, own: &Modules) -> Failure {
    let mut modules: Vec<String> = specs().iter().map(|spec| spec.module.to_owned()).collect();
    modules.dedup();
    modules.extend(own.manifests().map(|manifest| manifest.module.clone()));
    let failure = Failure::new(format!("there is no module `{module}`")).exit(Exit::Usage);
    let dotted = module.split_once('.').filter(|(module, method)| find(module, method).is_some());
    match (dotted, close_matches(module, &modules).first()) {
        (Some((module, method)), _) => {
            failure.hint(format!("write `greenroom tool {module} {method}`"))
        }
        (None, Some(near)) => failure.hint(format!("did you mean `{near}`?")),
        (None, None) => failure.hint("`greenroom tool` lists them"),
    }
}
