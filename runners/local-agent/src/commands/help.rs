//! Help texts of commands.

use super::arguments::Problem;
use super::catalogue::{Callable, Catalogue};
use super::schema::{Field, Schema};
use crate::texts::Texts;
use greenroom_sdk::Value;

/// With more tools, the list contains names only.
const DETAILED_MAX: usize = 60;
const ABOUT_CHARS_MAX: usize = 120;

/// The agent's own commands: syntax, English, Chinese.
const OWN: [(&str, &str, &str); 5] = [
    (
        "/help [NAME]",
        "list commands and tools, or show how to call one",
        "列出可用命令，或说明某个工具的用法，也可写作 /帮助",
    ),
    ("/tools [WORDS]", "the tools you can call", "列出可以调用的工具，也可写作 /工具"),
    (
        "/model [NAME]",
        "show or change the model of this conversation",
        "查看或更换本会话的模型，也可写作 /模型",
    ),
    ("/reset", "start the conversation over", "重新开始会话，也可写作 /重置"),
    ("/cancel", "cancel the current answer", "停止正在进行的回答，也可写作 /取消"),
];

/// Commands, then tools with their arguments.
pub(crate) fn all(catalogue: &Catalogue, texts: Texts) -> String {
    let mut lines = vec![texts.pick("Commands:", "命令：").to_owned()];
    lines.extend(OWN.iter().map(|(typed, en, zh)| format!("{typed} — {}", texts.pick(en, zh))));
    lines.push(String::new());
    lines.extend(tools(catalogue, "", texts));
    lines.push(String::new());
    let how = texts.pick(
        "Arguments are key=value pairs, one JSON object, or plain text for the first argument; \
         quote values with spaces. Text that starts with `//` is not a command.",
        "参数写成 key=value、一个 JSON 对象，或直接写文本（填入首要参数）；引号可保留空格。以 `//` 开头的文本不是命令。",
    );
    lines.push(how.to_owned());
    lines.join("\n")
}

/// Tools whose name or description contains the words.
pub(crate) fn tools(catalogue: &Catalogue, words: &str, texts: Texts) -> Vec<String> {
    let words = words.to_lowercase();
    let contains = |one: &&Callable| words.split_whitespace().all(|word| one.contains(word));
    let matches: Vec<&Callable> = catalogue.listed().filter(contains).collect();
    if matches.is_empty() {
        let none = texts.pick("No matching tools.", "没有匹配的工具。");
        return vec![none.to_owned()];
    }
    let mut lines = vec![texts.pick("Tools:", "工具：").to_owned()];
    let line = |one: &&Callable| match matches.len() <= DETAILED_MAX {
        true => format!("{}{}", usage(one, texts), dash(&first_sentence(one.about(texts)))),
        false => format!("/{}", one.name),
    };
    lines.extend(matches.iter().map(line));
    lines
}

/// One tool: syntax and arguments.
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
        let listed = format!("{}={}", field.name, shape(&callable.schema, &field, texts));
        usage += &match field.is_required {
            true => format!(" {listed}"),
            false => format!(" [{listed}]"),
        };
    }
    usage
}

fn shape(schema: &Schema, field: &Field<'_>, texts: Texts) -> String {
    let choices = schema.choices(field.schema);
    if !choices.is_empty() {
        let listed =
            |value: &&Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        return choices.iter().map(listed).collect::<Vec<_>>().join("|");
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

/// A name that matches several tools.
pub(crate) fn ambiguous(name: &str, several: &[&Callable], texts: Texts) -> String {
    let names: Vec<String> = several.iter().map(|one| format!("/{}", one.name)).collect();
    let names = names.join(texts.pick(", ", "、"));
    match texts {
        Texts::English => format!("`/{name}` is ambiguous: {names}"),
        Texts::Chinese => format!("`/{name}` 有多个匹配：{names}"),
    }
}

pub(crate) fn problem(problem: &Problem, texts: Texts) -> String {
    match (problem, texts) {
        (Problem::NotJson(error), Texts::English) => {
            format!("text that starts with `{{` must be one JSON object: {error}")
        }
        (Problem::NotJson(error), Texts::Chinese) => {
            format!("以 `{{` 开头的必须是一个 JSON 对象：{error}")
        }
        (Problem::UnexpectedText(text), Texts::English) => {
            format!("no argument accepts the text `{text}`")
        }
        (Problem::UnexpectedText(text), Texts::Chinese) => format!("没有参数可以接收文本 `{text}`"),
        (Problem::Scattered, Texts::English) => {
            "there is text in several places: put it in quotes".to_owned()
        }
        (Problem::Scattered, Texts::Chinese) => "文本分散在多处：请用引号括起来".to_owned(),
        (Problem::Duplicate(key), Texts::English) => format!("`{key}` is given twice"),
        (Problem::Duplicate(key), Texts::Chinese) => format!("`{key}` 重复"),
        (Problem::NotAnObject(key), Texts::English) => {
            format!("`{key}` does not lead into an object")
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

/// The error of a call with all missing arguments: a tool may report only the first.
pub(crate) fn with_missing(why: String, missing: &[&str], texts: Texts) -> String {
    let is_mentioned =
        |name: &&str| why.contains(&format!("`{name}`")) || why.contains(&format!("\"{name}\""));
    if missing.iter().all(is_mentioned) {
        return why;
    }
    let quoted: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
    match texts {
        Texts::English => format!("{why}; missing: {}", quoted.join(", ")),
        Texts::Chinese => format!("{why}；缺少：{}", quoted.join("、")),
    }
}

/// A call that was not allowed or that the host could not execute: other arguments would not help.
pub(crate) fn rejected(callable: &Callable, why: &str, texts: Texts) -> String {
    let name = &callable.name;
    match texts {
        Texts::English => format!("`/{name}` failed: {why}"),
        Texts::Chinese => format!("`/{name}` 失败：{why}"),
    }
}

/// A failed call: the reason and the syntax.
pub(crate) fn failed(callable: &Callable, why: &str, texts: Texts) -> String {
    let rejected = rejected(callable, why, texts);
    format!("{rejected}\n\n{}\n{}", texts.pick("Usage:", "用法："), one(callable, texts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_missing_arguments_are_listed_unless_mentioned() {
        let joined =
            |why: &str, missing: &[&str], texts| with_missing(why.to_owned(), missing, texts);
        let first = "missing field `title` (X)";
        let all = "missing field `title` (X); missing: `title`, `start_at`";
        assert_eq!(joined(first, &["title", "start_at"], Texts::English), all);
        let all = "missing field `title` (X)；缺少：`title`、`start_at`";
        assert_eq!(joined(first, &["title", "start_at"], Texts::Chinese), all);
        assert_eq!(joined(first, &["title"], Texts::English), first);
        let property = "\"title\" is a required property";
        assert_eq!(joined(property, &["title"], Texts::English), property);
        assert_eq!(joined("the pen is empty", &[], Texts::English), "the pen is empty");
    }
}
