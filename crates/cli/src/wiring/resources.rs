//! Models and tools of the configuration, or the defaults without one.
//!
//! Invariant: without any key the scripted model is used, which identifies itself; nothing is called at startup.

use crate::failure::{Exit, Failure};
use greenroom_config::env;
use greenroom_config::{self as config, Config, Loaded, McpReach, Problem, ToolSource};
use greenroom_host::resources::ResourceSettings;
use greenroom_models::presets::{self, Preset};
use greenroom_models::{Model, ModelError, ModelSettings, ProviderKind, Secret};
use greenroom_runtime::{ChildSpec, Network};
use greenroom_tools::manifest::Modules;
use greenroom_tools::skills::Skills;
use greenroom_tools::{
    CliProgram, McpSettings, McpTransport, OAuthGrant, OAuthSettings, ToolSettings, ToolsError,
};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// The folder of sign-ins at MCP servers, in the data folder.
const SIGN_INS: &str = "sign-ins";
/// Source names of built-in tools.
const RESERVED: [&str; 2] = ["skill", "project_cli"];

/// The default model of each provider.
const USUAL_MODELS: [(&str, &str); 10] = [
    ("openai", "gpt-5-mini"),
    ("anthropic", "claude-sonnet-4-5"),
    ("gemini", "gemini-2.5-flash"),
    ("deepseek", "deepseek-chat"),
    ("openrouter", "openrouter/auto"),
    ("moonshot", "kimi-k2-0905-preview"),
    ("qwen", "qwen-plus"),
    ("mistral", "mistral-large-latest"),
    ("groq", "llama-3.3-70b-versatile"),
    ("xai", "grok-4"),
];

/// The models and tools of the host.
pub(crate) fn resources(
    config: &Config,
    program: &str,
    data: &Path,
    address: SocketAddr,
) -> ResourceSettings {
    let cli = CliProgram {
        command: [program, "tool"].map(str::to_owned).to_vec(),
        url: format!("http://{}", reachable(address)),
        address: Some(reachable(address)),
    };
    let mut tools = ToolSettings { cli, ..tools(&config.tools) };
    let secrets = super::secret_files(config);
    for server in &mut tools.mcp {
        match &mut server.transport {
            McpTransport::Stdio(spec) => {
                // What its own table names is given to it.
                let others = secrets.iter().filter(|file| !spec.paths.contains(file)).cloned();
                let others: Vec<PathBuf> = others.collect();
                spec.hidden.extend(others);
            }
            McpTransport::Http { oauth, .. } => {
                oauth.file = Some(data.join(SIGN_INS).join(format!("{}.json", server.name)));
            }
        }
    }
    tools.hidden.extend(secrets);
    ResourceSettings { models: models(config), tools, search_model: config.search_model.clone() }
}

/// The configured models, or the default model.
pub(crate) fn models(config: &Config) -> Vec<ModelSettings> {
    match config.models.is_empty() {
        true => vec![default_model(&env::get)],
        false => config.models.iter().filter_map(model).collect(),
    }
}

/// `None` for an unknown provider, which the configuration refuses.
fn model(model: &config::Model) -> Option<ModelSettings> {
    let preset = presets::find(&model.provider)?;
    let secret = |value: &config::Secret| Secret::new(value.expose());
    Some(ModelSettings {
        name: model.name.clone(),
        provider: preset.kind,
        provider_name: model.provider.clone(),
        model: model.model.clone(),
        base_url: model.base_url.clone(),
        api_key: model.api_key.as_ref().map(secret),
        headers: model.headers.iter().map(|(name, value)| (name.clone(), secret(value))).collect(),
        proxy: model.proxy.clone(),
        allow_private: model.allow_private.unwrap_or(preset.local),
        timeout: model.timeout,
        idle_timeout: model.idle_timeout,
        retries: model.retries,
        max_concurrent: model.max_concurrent,
        requests_per_minute: model.requests_per_minute,
        options: model.options.clone(),
        price: model.price,
        context_window: model.context_window,
        max_output_tokens: model.max_output_tokens,
        tool_calling: model.tool_calling,
        kind: model.kind,
        script: model.script.clone(),
    })
}

/// Fails if the model of `GREENROOM_MODEL` cannot be used, instead of using another.
pub(super) fn check_environment(config: &Config) -> Result<(), Failure> {
    if !config.models.is_empty() {
        return Ok(());
    }
    check_model_variable()?;
    let model = default_model(&env::get);
    let variable = presets::find(&model.provider_name).and_then(base_url_variable);
    match (Model::new(model), variable) {
        (Err(error), Some(name)) => {
            let hint = format!("`{name}` must be an address such as `https://gateway.example/v1`");
            let message = format!("cannot use the model of the environment: {error}");
            Err(Failure::new(message).hint(hint).exit(Exit::Usage))
        }
        _ => Ok(()),
    }
}

fn check_model_variable() -> Result<(), Failure> {
    let Some(wanted) = env::get(env::MODEL) else { return Ok(()) };
    let problem = match wanted.split_once('/').map(|(provider, _)| presets::find(provider)) {
        None => "it is not of the form `provider/model`".to_owned(),
        Some(None) => format!("its provider is not one of {}", presets::NAMES.join(", ")),
        Some(Some(preset)) => match preset.key_env {
            Some(name) if env::get(name).is_none_or(|key| key.trim().is_empty()) => {
                format!("`{name}` is not set")
            }
            _ => return Ok(()),
        },
    };
    let message = format!("cannot use the model of `{}`: {problem}", env::MODEL);
    let hint = "write e.g. `anthropic/claude-sonnet-4-5`, or leave it out";
    Err(Failure::new(message).hint(hint).exit(Exit::Usage))
}

/// The model of the first provider whose key is in the environment, else the scripted one.
fn default_model(env: &dyn Fn(&str) -> Option<String>) -> ModelSettings {
    let wanted = env(env::MODEL);
    let wanted = wanted.as_deref().and_then(|text| text.split_once('/'));
    let known = |provider: &str, model: &str| {
        let preset = presets::find(provider)?;
        let key = match preset.key_env {
            Some(name) => Some(env(name).filter(|key| !key.trim().is_empty())?),
            None => None,
        };
        let base_url = base_url_variable(preset).and_then(|name| env(&name));
        let base_url = base_url.filter(|url| !url.trim().is_empty());
        let settings = ModelSettings::new(config::DEFAULT_MODEL, preset.kind, model);
        Some(ModelSettings {
            provider_name: preset.name.to_owned(),
            api_key: key.map(|key| Secret::new(key.trim())),
            // An address in the environment is trusted.
            allow_private: preset.local || base_url.is_some(),
            base_url: base_url.map(|url| versioned(preset, url.trim())),
            ..settings
        })
    };
    let model = wanted.and_then(|(provider, model)| known(provider, model));
    let model = model.or_else(|| USUAL_MODELS.iter().find_map(|(name, model)| known(name, model)));
    model.unwrap_or_else(|| ModelSettings {
        provider_name: "scripted".to_owned(),
        ..ModelSettings::new(config::DEFAULT_MODEL, ProviderKind::Scripted, "scripted")
    })
}

/// The variable for the address of a provider, as used by its own clients.
fn base_url_variable(preset: &Preset) -> Option<String> {
    Some(format!("{}_BASE_URL", preset.key_env?.strip_suffix("_API_KEY")?))
}

/// Addresses for clients of Anthropic omit the version.
fn versioned(preset: &Preset, url: &str) -> String {
    let url = url.trim_end_matches('/');
    let bare = url.split_once("://").is_some_and(|(_, rest)| !rest.contains('/'));
    match preset.kind {
        ProviderKind::Anthropic if bare => format!("{url}/v1"),
        _ => url.to_owned(),
    }
}

/// Checks models and tools before the host runs: scripts, manifests and skills load, and grants refer to existing
/// ones.
pub(super) fn check(loaded: &Loaded) -> Result<(), Failure> {
    let config = &loaded.config;
    let wrong = config.models.iter().filter_map(model).filter_map(|model| {
        Some(mistake(loaded, &model.name, &model, &Model::new(model.clone()).err()?))
    });
    let wrong: Vec<Problem> = wrong.collect();
    if !wrong.is_empty() {
        return Err(usage(loaded.invalid(wrong)));
    }
    let (modules, skills) = check_tools(loaded)?;
    let methods: Vec<String> = modules.all().map(|(name, ..)| name).collect();
    // A module is explained by a skill of its name.
    let skills: Vec<String> = skills.names().into_iter().chain(modules.names()).collect();
    for (name, agent) in &config.agents {
        if let Some((message, hint)) =
            agent.grant.tools.iter().find_map(|tool| no_tool(config, tool))
        {
            let key = ["agents", name, "grant", "tools"];
            return Err(usage(loaded.invalid_at(&key, message, Some(hint))));
        }
        let method = missing(&agent.grant.modules, &methods).map(|name| ("method", name));
        let skill = missing(&agent.grant.skills, &skills).map(|name| ("skill", name));
        if let Some((what, missing)) = method.or(skill) {
            let message = format!("there is no {what} `{missing}`");
            let key = if what == "skill" { "skills" } else { "modules" };
            let known = if what == "skill" { skills } else { methods };
            let hint = format!("available: {}", quoted(&known));
            let key = ["agents", name, "grant", key];
            return Err(usage(loaded.invalid_at(&key, message, Some(hint))));
        }
    }
    Ok(())
}

/// A module or skill that is granted as a tool; both have their own keys.
fn no_tool(config: &Config, granted: &str) -> Option<(String, String)> {
    let source = granted.split('.').next().unwrap_or_default();
    let (what, key) = match config.tools.get(source)? {
        ToolSource::Module { .. } => ("a module", "modules"),
        ToolSource::Skills { .. } => ("a folder of skills", "skills"),
        ToolSource::Mcp(_) => return None,
    };
    let message = format!("there is no tool `{granted}`: `tools.{source}` is {what}");
    Some((message, format!("grant it with `{key} = […]`")))
}

/// The methods of the project CLI, including those of configured modules.
pub(crate) fn modules(config: &Config) -> Result<Modules, Failure> {
    let checked = greenroom_tools::check(&tools(&config.tools));
    checked.map(|(modules, _)| modules).map_err(|error| anyhow::Error::new(error).into())
}

/// A mistake in a model, at the key that caused it.
fn mistake(loaded: &Loaded, name: &str, model: &ModelSettings, error: &ModelError) -> Problem {
    let key = [("script", model.script.is_some()), ("base_url", model.base_url.is_some())];
    let key = key.into_iter().find(|(_, given)| *given).map(|(key, _)| key);
    let key: Vec<&str> = ["models", name].into_iter().chain(key).collect();
    let allowed = Model::new(ModelSettings { allow_private: true, ..model.clone() });
    let hint = allowed.is_ok().then(|| {
        format!("add `allow_private = true` to `[models.{name}]` if the address is intended")
    });
    loaded.problem_at(&key, error.to_string(), hint)
}

/// Checks each source alone, so that a mistake points at it; then all together.
fn check_tools(loaded: &Loaded) -> Result<(Modules, Skills), Failure> {
    let failure = |name: &str, error: &ToolsError| {
        // The position in the file names the source; the causes say which file, and why.
        let causes =
            std::iter::successors(std::error::Error::source(error), |cause| cause.source());
        let causes: Vec<String> = causes.map(ToString::to_string).collect();
        let message = if causes.is_empty() { error.to_string() } else { causes.join(": ") };
        let hint = message
            .contains("address is private")
            .then(|| format!("add `allow_private = true` to `[tools.{name}]` if this is intended"));
        usage(loaded.invalid_at(&["tools", name], message, hint))
    };
    let config = &loaded.config;
    for (name, source) in &config.tools {
        let alone = BTreeMap::from([(name.clone(), source.clone())]);
        greenroom_tools::check(&tools(&alone)).map_err(|error| failure(name, &error))?;
        let is_server = matches!(source, ToolSource::Mcp(_));
        if is_server && (config.runners.contains_key(name) || RESERVED.contains(&name.as_str())) {
            let message = format!(
                "`tools.{name}` and `runners.{name}` would both name their tools `{name}.…`"
            );
            let message = match RESERVED.contains(&name.as_str()) {
                true => format!("`{name}` is a name of built-in tools"),
                false => message,
            };
            let hint = "give it another name".to_owned();
            return Err(usage(loaded.invalid_at(&["tools", name], message, Some(hint))));
        }
    }
    let last = config.tools.keys().next_back().map_or("", String::as_str);
    greenroom_tools::check(&tools(&config.tools)).map_err(|error| failure(last, &error))
}

/// The first granted name that does not exist; `module.*` must match at least one.
fn missing<'a>(granted: &'a [String], known: &[String]) -> Option<&'a String> {
    granted.iter().find(|name| match name.strip_suffix('*') {
        Some(prefix) => !known.iter().any(|known| known.starts_with(prefix)),
        None => !known.contains(name),
    })
}

fn quoted(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

fn usage(invalid: config::Invalid) -> Failure {
    Failure::from(anyhow::Error::new(invalid)).exit(Exit::Usage)
}

/// The sources of tools, without the settings of a running host.
fn tools(sources: &BTreeMap<String, ToolSource>) -> ToolSettings {
    let mut tools = ToolSettings::default();
    for (name, source) in sources {
        match source {
            ToolSource::Module { manifest, configuration } => {
                tools.modules.push(manifest.clone());
                tools.hidden = vec![configuration.clone()];
            }
            ToolSource::Skills { dir } => tools.skills.push(dir.clone()),
            ToolSource::Mcp(server) => {
                let transport = transport(name, &server.reach);
                tools.mcp.push(McpSettings {
                    allow: server.allow.clone(),
                    risk: server.risk.clone(),
                    timeout: server.timeout,
                    ..McpSettings::new(name, transport)
                });
            }
        }
    }
    tools
}

fn transport(name: &str, reach: &McpReach) -> McpTransport {
    match reach {
        McpReach::Url { url, headers, allow_private, oauth } => McpTransport::Http {
            url: url.clone(),
            headers: exposed(headers),
            allow_private: *allow_private,
            oauth: Box::new(OAuthSettings {
                client_id: oauth.client_id.clone(),
                client_secret: oauth.client_secret.clone(),
                issuer: oauth.issuer.clone(),
                client_metadata_url: oauth.client_metadata_url.clone(),
                scopes: oauth.scopes.clone(),
                grant: match oauth.grant {
                    config::OAuthGrant::AuthorizationCode => OAuthGrant::AuthorizationCode,
                    config::OAuthGrant::ClientCredentials => OAuthGrant::ClientCredentials,
                },
                file: None,
            }),
        },
        McpReach::Command(process) => McpTransport::Stdio(Box::new(ChildSpec {
            name: name.to_owned(),
            command: std::iter::once(&process.program).chain(&process.args).cloned().collect(),
            dir: process.dir.clone(),
            owns_dir: process.owns_dir,
            env: exposed(&process.env),
            sandbox: super::sandbox(process.sandbox),
            paths: process.paths.clone(),
            absent_paths: absent(&process.paths),
            hidden: vec![process.configuration.clone()],
            processes: u32::try_from(process.processes).unwrap_or(u32::MAX),
            threads: process.threads,
            memory_mb: process.memory_mb,
            disk_mb: process.disk_mb,
            files: process.files,
            // A server has no credential for the host.
            network: Network::of(&process.network_access(), None),
        })),
    }
}

/// The paths that do not exist.
pub(super) fn absent(paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().filter(|path| !path.exists()).cloned().collect()
}

fn exposed(values: &BTreeMap<String, config::Secret>) -> BTreeMap<String, String> {
    values.iter().map(|(key, value)| (key.clone(), value.expose().to_owned())).collect()
}

/// An address that a process on this machine can call.
pub(super) fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    SocketAddr::new(ip, address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_key_that_is_set_decides_and_without_one_the_model_is_scripted() {
        let none = default_model(&|_| None);
        assert_eq!((none.name.as_str(), none.provider), ("default", ProviderKind::Scripted));
        let key = |name: &str| (name == "ANTHROPIC_API_KEY").then(|| "k".to_owned());
        assert_eq!(default_model(&key).provider, ProviderKind::Anthropic);
        let both = |name: &str| match name {
            "ANTHROPIC_API_KEY" | "OPENAI_API_KEY" => Some("k".to_owned()),
            "GREENROOM_MODEL" => Some("anthropic/claude-opus-4-5".to_owned()),
            _ => None,
        };
        assert_eq!(default_model(&both).model, "claude-opus-4-5");
        let empty = |name: &str| (name == "OPENAI_API_KEY").then(String::new);
        assert_eq!(default_model(&empty).provider, ProviderKind::Scripted);
    }

    #[test]
    fn a_provider_may_be_elsewhere() {
        let address = |key: &'static str, at: &'static str, url: &'static str| {
            let model = default_model(&|name: &str| match name {
                name if name == key => Some("k".to_owned()),
                name if name == at => Some(url.to_owned()),
                _ => None,
            });
            (model.base_url, model.allow_private)
        };
        let (openai, anthropic) = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY");
        let at = |url: &str| (Some(url.to_owned()), true);
        let gateway = address(openai, "OPENAI_BASE_URL", "http://10.0.0.7:4000/v1");
        assert_eq!(gateway, at("http://10.0.0.7:4000/v1"));
        let bare = address(anthropic, "ANTHROPIC_BASE_URL", "http://10.0.0.7:4000/");
        assert_eq!(bare, at("http://10.0.0.7:4000/v1"));
        assert_eq!(address(openai, "OPENAI_BASE_URL", " "), (None, false));
        assert_eq!(address(openai, "ANTHROPIC_BASE_URL", "http://10.0.0.7"), (None, false));
    }

    #[test]
    fn a_host_that_listens_everywhere_is_called_on_this_machine() {
        let everywhere: SocketAddr = "0.0.0.0:8700".parse().unwrap();
        assert_eq!(reachable(everywhere).to_string(), "127.0.0.1:8700");
    }
}
