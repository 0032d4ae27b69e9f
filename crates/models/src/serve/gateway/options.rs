//! The options of a client's request, as options of the host's form.
//!
//! Invariant: only options that mean the same for every provider are passed on; what a client's own provider
//! alone understands is left out, so that no other provider rejects the request for it.

use super::Wire;
use crate::{ModelSettings, ProviderKind};
use greenroom_protocol::Object;
use serde_json::{Value, json};

/// Thinking budgets that count as low and as medium effort.
const LOW_BUDGET_MAX: i64 = 2048;
const MEDIUM_BUDGET_MAX: i64 = 8192;

pub(super) fn neutral(wire: Wire, raw: &Object, target: &ModelSettings) -> Object {
    let mut options = match wire {
        Wire::Anthropic => anthropic(raw),
        Wire::Gemini => gemini(raw),
        Wire::OpenAiChat | Wire::OpenAiResponses | Wire::Ollama => openai(raw),
    };
    let format = raw.get("response_format").filter(|format| is_format(format));
    put(&mut options, "response_format", format.cloned());
    if let Some(reasoning) = reasoning(wire, raw).filter(|_| passes_reasoning(wire, target)) {
        put(&mut options, "reasoning", fitting(reasoning, target));
    }
    // Its models accept one of the two; a client of its own knows that.
    if target.provider == ProviderKind::Anthropic
        && wire != Wire::Anthropic
        && options.contains_key("temperature")
    {
        options.remove("top_p");
    }
    options
}

fn openai(raw: &Object) -> Object {
    let mut options = Object::new();
    let limits = ["max_completion_tokens", "max_output_tokens", "max_tokens"];
    put(&mut options, "max_tokens", limits.iter().find_map(|name| number(raw, name)));
    for name in ["temperature", "top_p", "seed"] {
        put(&mut options, name, number(raw, name));
    }
    put(&mut options, "stop", raw.get("stop").filter(|stop| is_stop(stop)).cloned());
    let parallel = raw.get("parallel_tool_calls").filter(|value| value.is_boolean());
    put(&mut options, "parallel_tool_calls", parallel.cloned());
    let key = raw.get("prompt_cache_key").and_then(Value::as_str);
    let key = key.filter(|key| (1..=64).contains(&key.len()));
    put(&mut options, "cache_key", key.map(Value::from));
    let choice = raw.get("tool_choice").and_then(|choice| match choice.as_str() {
        Some("auto" | "none" | "required") => Some(choice.clone()),
        Some(_) => None,
        None => {
            let name = choice.get("name").or_else(|| choice.get("function")?.get("name"));
            name.map(|name| json!({"name": name}))
        }
    });
    put(&mut options, "tool_choice", choice);
    options
}

fn anthropic(raw: &Object) -> Object {
    let mut options = Object::new();
    for name in ["max_tokens", "temperature", "top_p"] {
        put(&mut options, name, number(raw, name));
    }
    put(&mut options, "stop", raw.get("stop_sequences").filter(|stop| is_stop(stop)).cloned());
    let Some(choice) = raw.get("tool_choice") else { return options };
    let serial = choice.get("disable_parallel_tool_use") == Some(&Value::Bool(true));
    put(&mut options, "parallel_tool_calls", serial.then_some(Value::Bool(false)));
    let choice = match choice.get("type").and_then(Value::as_str) {
        Some("auto") => Some("auto".into()),
        Some("any") => Some("required".into()),
        Some("none") => Some("none".into()),
        Some("tool") => choice.get("name").map(|name| json!({"name": name})),
        _ => None,
    };
    put(&mut options, "tool_choice", choice);
    options
}

fn gemini(raw: &Object) -> Object {
    let mut options = Object::new();
    for (theirs, ours) in [
        ("maxOutputTokens", "max_tokens"),
        ("temperature", "temperature"),
        ("topP", "top_p"),
        ("seed", "seed"),
    ] {
        put(&mut options, ours, number(raw, theirs));
    }
    put(&mut options, "stop", raw.get("stopSequences").filter(|stop| is_stop(stop)).cloned());
    let config = raw.get("toolConfig").or(raw.get("tool_config"));
    let calling = config.and_then(|config| {
        config.get("functionCallingConfig").or(config.get("function_calling_config"))
    });
    let choice = calling.and_then(|calling| {
        let names = calling.get("allowedFunctionNames").and_then(Value::as_array);
        match (calling.get("mode").and_then(Value::as_str)?, names.map(Vec::as_slice)) {
            ("ANY", Some([name])) => Some(json!({"name": name})),
            ("ANY", _) => Some("required".into()),
            ("NONE", _) => Some("none".into()),
            ("AUTO", _) => Some("auto".into()),
            _ => None,
        }
    });
    put(&mut options, "tool_choice", choice);
    options
}

/// What a client asks for: an effort, or a budget in tokens.
enum Asked {
    Effort(&'static str),
    Budget(i64),
}

fn reasoning(wire: Wire, raw: &Object) -> Option<Asked> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).and_then(effort);
    match wire {
        Wire::Anthropic => {
            let thinking = raw.get("thinking")?;
            let asked = text(raw.get("output_config").and_then(|config| config.get("effort")));
            match thinking.get("type").and_then(Value::as_str)? {
                "enabled" => thinking.get("budget_tokens")?.as_i64().map(Asked::Budget),
                "adaptive" => Some(Asked::Effort(asked.unwrap_or("high"))),
                "disabled" => Some(Asked::Effort("none")),
                _ => None,
            }
        }
        Wire::Gemini => {
            let config = raw.get("thinkingConfig").or(raw.get("thinking_config"))?;
            let level = config.get("thinkingLevel").and_then(Value::as_str);
            let level = level.map(str::to_lowercase);
            let budget = config.get("thinkingBudget").and_then(Value::as_i64);
            match (level.as_deref().and_then(effort), budget) {
                (Some(level), _) => Some(Asked::Effort(level)),
                // -1: as much as the model likes.
                (None, Some(budget)) if budget >= 0 => Some(Asked::Budget(budget)),
                _ => None,
            }
        }
        _ => {
            let nested = raw.get("reasoning").and_then(|reasoning| reasoning.get("effort"));
            text(raw.get("reasoning_effort").or(nested)).map(Asked::Effort)
        }
    }
}

fn effort(word: &str) -> Option<&'static str> {
    Some(match word {
        "none" => "none",
        "minimal" => "minimal",
        "low" => "low",
        "medium" => "medium",
        "high" | "xhigh" | "max" => "high",
        _ => return None,
    })
}

/// A model without reasoning rejects the wish for it. A client of the model's own wire knows its model; for
/// others, the configuration of the model says that it reasons.
fn passes_reasoning(wire: Wire, target: &ModelSettings) -> bool {
    let is_own = match target.provider {
        ProviderKind::Anthropic => wire == Wire::Anthropic,
        ProviderKind::Gemini => wire == Wire::Gemini,
        ProviderKind::OpenAiChat | ProviderKind::OpenAiResponses => {
            matches!(wire, Wire::OpenAiChat | Wire::OpenAiResponses)
        }
        ProviderKind::Ollama => false,
        ProviderKind::Scripted => true,
    };
    is_own || target.options.contains_key("reasoning")
}

/// A budget where the provider has budgets, else an effort.
fn fitting(asked: Asked, target: &ModelSettings) -> Option<Value> {
    let has_budgets = matches!(
        target.provider,
        ProviderKind::Anthropic | ProviderKind::Gemini | ProviderKind::Scripted
    );
    Some(match asked {
        Asked::Effort(effort) => effort.into(),
        Asked::Budget(..=0) => "none".into(),
        Asked::Budget(budget) if has_budgets => json!({"budget_tokens": budget}),
        Asked::Budget(..=LOW_BUDGET_MAX) => "low".into(),
        Asked::Budget(..=MEDIUM_BUDGET_MAX) => "medium".into(),
        Asked::Budget(_) => "high".into(),
    })
}

/// JSON with or without a schema; `text` is the default of every model.
fn is_format(format: &Value) -> bool {
    match format.get("type").and_then(Value::as_str) {
        Some("json_schema") => {
            let inner = format.get("json_schema").unwrap_or(format);
            inner.get("schema").is_some_and(Value::is_object)
        }
        Some("json" | "json_object") => true,
        _ => false,
    }
}

fn is_stop(stop: &Value) -> bool {
    let texts = |list: &Vec<Value>| !list.is_empty() && list.iter().all(Value::is_string);
    stop.is_string() || stop.as_array().is_some_and(texts)
}

fn number(raw: &Object, name: &str) -> Option<Value> {
    raw.get(name).filter(|value| value.is_number()).cloned()
}

fn put(options: &mut Object, name: &str, value: Option<Value>) {
    if let Some(value) = value {
        options.insert(name.to_owned(), value);
    }
}
