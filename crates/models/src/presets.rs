//! Known providers: wire, base URL and the usual environment variable of the key.
//!
//! Invariant: names are unique; a configured `base_url` overrides the preset.

use crate::{ModelError, ModelSettings, ProviderKind};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    pub name: &'static str,
    pub kind: ProviderKind,
    /// `None` if the user must configure it.
    pub base_url: Option<&'static str>,
    /// The environment variable that usually contains the key; `None` if none is needed.
    pub key_env: Option<&'static str>,
    /// Runs on the user's own machine: private addresses are allowed unless a `base_url` is configured.
    pub local: bool,
}

/// All names, in the order of the documentation.
pub const NAMES: [&str; PRESETS.len()] = {
    let mut names = [""; PRESETS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = PRESETS[at].name;
        at += 1;
    }
    names
};

pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

use ProviderKind::{Anthropic, Gemini, Ollama, OpenAiChat, OpenAiResponses, Scripted};

const PRESETS: [Preset; 25] = [
    hosted("openai", OpenAiChat, "https://api.openai.com/v1", "OPENAI_API_KEY"),
    hosted("openai-responses", OpenAiResponses, "https://api.openai.com/v1", "OPENAI_API_KEY"),
    hosted("anthropic", Anthropic, "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    hosted("gemini", Gemini, "https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY"),
    local("ollama", Ollama, "http://localhost:11434"),
    hosted("groq", OpenAiChat, "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    hosted("deepseek", OpenAiChat, "https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    hosted("xai", OpenAiChat, "https://api.x.ai/v1", "XAI_API_KEY"),
    hosted("mistral", OpenAiChat, "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    hosted("together", OpenAiChat, "https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    hosted("fireworks", OpenAiChat, "https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    hosted("openrouter", OpenAiChat, "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    hosted("moonshot", OpenAiChat, "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY"),
    hosted("zhipu", OpenAiChat, "https://open.bigmodel.cn/api/paas/v4", "ZHIPUAI_API_KEY"),
    hosted(
        "qwen",
        OpenAiChat,
        "https://dashscope.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY",
    ),
    hosted("siliconflow", OpenAiChat, "https://api.siliconflow.cn/v1", "SILICONFLOW_API_KEY"),
    hosted("minimax", OpenAiChat, "https://api.minimax.io/v1", "MINIMAX_API_KEY"),
    hosted("cohere", OpenAiChat, "https://api.cohere.ai/compatibility/v1", "CO_API_KEY"),
    hosted("nebius", OpenAiChat, "https://api.studio.nebius.com/v1", "NEBIUS_API_KEY"),
    hosted("perplexity", OpenAiChat, "https://api.perplexity.ai", "PERPLEXITY_API_KEY"),
    local("lmstudio", OpenAiChat, "http://localhost:1234/v1"),
    local("vllm", OpenAiChat, "http://localhost:8000/v1"),
    Preset {
        name: "azure",
        kind: OpenAiChat,
        base_url: None,
        key_env: Some("AZURE_OPENAI_API_KEY"),
        local: false,
    },
    Preset {
        name: "openai-compatible",
        kind: OpenAiChat,
        base_url: None,
        key_env: None,
        local: false,
    },
    Preset { name: "scripted", kind: Scripted, base_url: None, key_env: None, local: true },
];

const fn hosted(
    name: &'static str,
    kind: ProviderKind,
    base_url: &'static str,
    key_env: &'static str,
) -> Preset {
    Preset { name, kind, base_url: Some(base_url), key_env: Some(key_env), local: false }
}

const fn local(name: &'static str, kind: ProviderKind, base_url: &'static str) -> Preset {
    Preset { name, kind, base_url: Some(base_url), key_env: None, local: true }
}

/// Azure's deployments API needs a version in every URL.
const AZURE_API_VERSION: &str = "2024-10-21";

/// The URL prefix of a model's requests.
pub(crate) fn base_url(settings: &ModelSettings) -> Result<String, ModelError> {
    let by_kind = || PRESETS.iter().find(|preset| preset.kind == settings.provider);
    let known = find(&settings.provider_name)
        .or_else(|| by_kind().filter(|_| settings.provider_name.is_empty()))
        .and_then(|preset| preset.base_url);
    let Some(base) = settings.base_url.as_deref().or(known) else {
        let text = format!("the model `{}` needs a `base_url`", settings.name);
        return Err(ModelError::InvalidRequest(text));
    };
    let (path, query) = base.split_once('?').unwrap_or((base, ""));
    let mut path = path.trim_end_matches('/').to_owned();
    match settings.provider {
        // These providers' own clients take a base URL without the version.
        ProviderKind::Anthropic if !path.ends_with("/v1") => path.push_str("/v1"),
        ProviderKind::Gemini if !path.contains("/v1") => path.push_str("/v1beta"),
        _ => {}
    }
    if settings.provider_name == "azure" && !path.ends_with("/openai/v1") {
        if !path.contains("/deployments/") {
            path = format!("{path}/openai/deployments/{}", settings.model);
        }
        if query.is_empty() {
            return Ok(format!("{path}?api-version={AZURE_API_VERSION}"));
        }
    }
    Ok(match query {
        "" => path,
        query => format!("{path}?{query}"),
    })
}

/// Appends a path to a base URL, before its query.
pub(crate) fn join(base: &str, path: &str) -> String {
    match (base.split_once('?'), path.split_once('?')) {
        (None, _) => format!("{base}{path}"),
        (Some((base, query)), None) => format!("{base}{path}?{query}"),
        (Some((base, query)), Some((path, more))) => format!("{base}{path}?{query}&{more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(provider: &str, base_url: Option<&str>) -> ModelSettings {
        let preset = find(provider).unwrap();
        let mut settings = ModelSettings::new("m", preset.kind, "some-model");
        settings.provider_name = provider.to_owned();
        settings.base_url = base_url.map(str::to_owned);
        settings
    }

    #[test]
    fn names_are_unique() {
        let mut names = NAMES.to_vec();
        assert!(names.iter().all(|name| find(name).is_some_and(|preset| preset.name == *name)));
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), NAMES.len());
        assert_eq!(find("nobody"), None);
    }

    #[test]
    fn urls_are_joined_with_version_and_query() {
        for (provider, base, expected) in [
            ("groq", None, "https://api.groq.com/openai/v1/x"),
            ("openai", Some("http://127.0.0.1:1/v1/"), "http://127.0.0.1:1/v1/x"),
            ("openai", Some("https://h/v1?key=1"), "https://h/v1/x?key=1"),
            ("anthropic", Some("https://h"), "https://h/v1/x"),
            ("gemini", Some("https://h/"), "https://h/v1beta/x"),
            (
                "azure",
                Some("https://r.openai.azure.com"),
                "https://r.openai.azure.com/openai/deployments/some-model/x?api-version=2024-10-21",
            ),
            (
                "azure",
                Some("https://r/openai/deployments/d?api-version=7"),
                "https://r/openai/deployments/d/x?api-version=7",
            ),
            ("azure", Some("https://r/openai/v1"), "https://r/openai/v1/x"),
        ] {
            let base = base_url(&settings(provider, base)).unwrap();
            assert_eq!(join(&base, "/x"), expected);
        }
        assert_eq!(join("https://h?a=1", "/m:go?alt=sse"), "https://h/m:go?a=1&alt=sse");
        let error = base_url(&settings("openai-compatible", None)).unwrap_err();
        assert_eq!(error.to_string(), "the model `m` needs a `base_url`");
    }
}
