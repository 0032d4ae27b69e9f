//! What there is to type, told to people.

use super::arguments::Problem;
use super::catalogue::{Callable, Catalogue};
use super::schema::{Field, Schema};
use crate::texts::Texts;
use greenroom_sdk::Value;

/// With more tools than these, a list holds names alone.
const DETAILED_MAX: usize = 60;
const ABOUT_CHARS_MAX: usize = 120;

/// Commands of the agent's own: what is typed, in English, in Chinese.
const OWN: [(&str, &str, &str); 5] = [
    (
        "/help [NAME]",
        "what there is, or how to call one tool",
        "列出可用命令，或说明某个工具的用法，也可写作 /帮助",
    ),
    ("/tools [WORDS]", "the tools you can call", "列出可以调用的工具，也可写作 /工具"),
    (
        "/model [NAME]",
        "the model of this conversation, or another one",
        "查看或更换本会话的模型，也可写作 /模型",
    ),
    ("/reset", "begin the conversation anew", "重新开始会话，也可写作 /重置"),
    ("/cancel", "end the answer that is under way", "停止正在进行的回答，也可写作 /取消"),
];

/// Everything: commands, then tools with their arguments.
pub(crate) fn all(catalogue: &Catalogue, texts: Texts) -> String {
    let mut lines = vec![texts.pick("Commands:", "命令：").to_owned()];
    lines.extend(OWN.iter().map(|(typed, en, zh)| format!("{typed} — {}", texts.pick(en, zh))));
    lines.push(String::new());
    lines.extend(tools(catalogue, "", texts));
    lines.push(String::new());
    let how = texts.pick(
        "Arguments are key=value, one JSON object, or plain text for the first of them; \
         quotes keep blanks together. `//` begins a text that is no command.",
        "参数写成 key=value、一个 JSON 对象，或直接写文本（填入首要参数）；引号可保留空格。以 `//` 开头的文本不是命令。",
    );
    lines.push(how.to_owned());
    lines.join("\n")
}

/// The tools whose name or description holds the words.
pub(crate) fn tools(catalogue: &Catalogue, words: &str, texts: Texts) -> Vec<String> {
    let words = words.to_lowercase();
    let holds = |one: &&Callable| words.split_whitespace().all(|word| one.holds(word));
    let found: Vec<&Callable> = catalogue.shown().filter(holds).collect();
    if found.is_empty() {
        let none = texts.pick("There are no such tools.", "没有这样的工具。");
        return vec![none.to_owned()];
    }
    let mut lines = vec![texts.pick("Tools:", "工具：").to_owned()];
    let line = |one: &&Callable| match found.len() <= DETAILED_MAX {
        true => format!("{}{}", usage(one, texts), dash(&first_sentence(one.about(texts)))),
        false => format!("/{}", one.name),
    };
    lines.extend(found.iter().map(line));
    lines
}

/// One tool: how to call it, and what each argument is.
pub(crate) fn one(callable: &Callable, texts: Texts) -> String {
    let mut lines = vec![usage(callable, texts)];
    let about = callable.about(texts);
    if !about.is_empty() {
        lines.push(about.to_owned());
    }
    lines.extend(callable.schema.fields().iter().map(|field| {
        let about = field.schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let optional = match field.is_required {
            true => "",
            false => texts.pick(" (optional)", "（可选）"),
        };
        let shape = shape(&callable.schema, field, texts);
        format!("  {}={shape}{optional}{}", field.name, dash(about))
    }));
    lines.join("\n")
}

/// `/name required=… [optional=…]`
fn usage(callable: &Callable, texts: Texts) -> String {
    let mut usage = format!("/{}", callable.name);
    for field in callable.schema.fields() {
        let shown = format!("{}={}", field.name, shape(&callable.schema, &field, texts));
        usage += &match field.is_required {
            true => format!(" {shown}"),
            false => format!(" [{shown}]"),
        };
    }
    usage
}

fn shape(schema: &Schema, field: &Field<'_>, texts: Texts) -> String {
    let choices = schema.choices(field.schema);
    if !choices.is_empty() {
        let shown =
            |value: &&Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        return choices.iter().map(shown).collect::<Vec<_>>().join("|");
    }
    let kind = schema.kinds(field.schema).into_iter().find(|kind| *kind != "null");
    match kind.unwrap_or_default() {
        "integer" | "number" => texts.pick("<number>", "<数字>"),
        "boolean" => "true|false",
        "array" => texts.pick("<item,item>", "<项,项>"),
        "object" => "<json>",
        "string" => texts.pick("<text>", "<文本>"),
        _ => texts.pick("<value>", "<值>"),
    }
    .to_owned()
}

fn dash(text: &str) -> String {
    match text.is_empty() {
        true => String::new(),
        false => format!(" — {text}"),
    }
}

fn first_sentence(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let end = line.find(". ").map_or(line.len(), |at| at + 1);
    match line[..end].char_indices().nth(ABOUT_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line[..end].to_owned(),
    }
}

/// A name that could mean several tools.
pub(crate) fn which(name: &str, several: &[&Callable], texts: Texts) -> String {
    let names: Vec<String> = several.iter().map(|one| format!("/{}", one.name)).collect();
    let names = names.join(texts.pick(", ", "、"));
    match texts {
        Texts::English => format!("`/{name}` could be: {names}"),
        Texts::Chinese => format!("`/{name}` 可能是：{names}"),
    }
}

pub(crate) fn problem(problem: &Problem, texts: Texts) -> String {
    match (problem, texts) {
        (Problem::NotJson(error), Texts::English) => {
            format!("what begins with `{{` must be one JSON object: {error}")
        }
        (Problem::NotJson(error), Texts::Chinese) => {
            format!("以 `{{` 开头的必须是一个 JSON 对象：{error}")
        }
        (Problem::NoPlace(text), Texts::English) => format!("no argument takes the text `{text}`"),
        (Problem::NoPlace(text), Texts::Chinese) => format!("没有参数可以接收文本 `{text}`"),
        (Problem::Scattered, Texts::English) => {
            "there is text in several places: put it in quotes".to_owned()
        }
        (Problem::Scattered, Texts::Chinese) => "文本分散在多处：请用引号括起来".to_owned(),
        (Problem::Twice(key), Texts::English) => format!("`{key}` is given twice"),
        (Problem::Twice(key), Texts::Chinese) => format!("`{key}` 给了两次"),
        (Problem::NotAnObject(key), Texts::English) => {
            format!("`{key}` leads into something that is no object")
        }
        (Problem::NotAnObject(key), Texts::Chinese) => format!("`{key}` 指向的不是对象"),
        (Problem::TooLong, Texts::English) => {
            "the arguments are too long: write them as one JSON object".to_owned()
        }
        (Problem::TooLong, Texts::Chinese) => "参数太长：请写成一个 JSON 对象".to_owned(),
        (Problem::Unclosed(text), Texts::English) => format!("a quote is not closed: `{text}`"),
        (Problem::Unclosed(text), Texts::Chinese) => format!("引号没有闭合：`{text}`"),
    }
}

/// Why a call failed, with all the arguments that it lacks: a tool may tell the first alone.
pub(crate) fn with_missing(why: String, missing: &[&str], texts: Texts) -> String {
    let told =
        |name: &&str| why.contains(&format!("`{name}`")) || why.contains(&format!("\"{name}\""));
    if missing.iter().all(told) {
        return why;
    }
    let quoted: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
    match texts {
        Texts::English => format!("{why}; missing: {}", quoted.join(", ")),
        Texts::Chinese => format!("{why}；缺少：{}", quoted.join("、")),
    }
}

/// A command that was not allowed, or that the host could not carry out: calling it otherwise changes nothing.
pub(crate) fn refused(callable: &Callable, why: &str, texts: Texts) -> String {
    let name = &callable.name;
    match texts {
        Texts::English => format!("`/{name}` failed: {why}"),
        Texts::Chinese => format!("`/{name}` 失败：{why}"),
    }
}

/// A command that failed: why, and how it is called.
pub(crate) fn failed(callable: &Callable, why: &str, texts: Texts) -> String {
    let refused = refused(callable, why, texts);
    format!("{refused}\n\n{}\n{}", texts.pick("How to call it:", "用法："), one(callable, texts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_missing_arguments_are_told_unless_they_were() {
        let told =
            |why: &str, missing: &[&str], texts| with_missing(why.to_owned(), missing, texts);
        let first = "missing field `title` (X)";
        let all = "missing field `title` (X); missing: `title`, `start_at`";
        assert_eq!(told(first, &["title", "start_at"], Texts::English), all);
        let all = "missing field `title` (X)；缺少：`title`、`start_at`";
        assert_eq!(told(first, &["title", "start_at"], Texts::Chinese), all);
        assert_eq!(told(first, &["title"], Texts::English), first);
        let property = "\"title\" is a required property";
        assert_eq!(told(property, &["title"], Texts::English), property);
        assert_eq!(told("the pen is empty", &[], Texts::English), "the pen is empty");
    }
}
