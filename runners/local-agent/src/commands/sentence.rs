//! Results of the built-in methods as sentences.
//!
//! Invariant: contains only what the result contains; a result of another shape has no sentence.

use crate::texts::Texts;
use greenroom_sdk::Value;

pub(crate) fn from_result(result: &Value, texts: Texts) -> Option<String> {
    let word = |key: &str| result.get(key).and_then(Value::as_str);
    let data = result.get("data")?;
    match (word("module")?, word("method")?) {
        ("calendar", "read") => data.get("items").and_then(|items| events(items, data, texts)),
        ("calendar", _) => event(data, texts),
        ("contacts", "read") => none(data, texts.pick("No contacts found.", "没有找到联系人。")),
        ("memory", "read") => facts(data, texts),
        ("memory", "update") => remembered(data, texts),
        _ => None,
    }
}

/// An event that was created, updated, deleted, shared or answered.
fn event(data: &Value, texts: Texts) -> Option<String> {
    let outcome = data.get("outcome").and_then(Value::as_str)?;
    let title = data.get("title").and_then(Value::as_str)?;
    let when = match (when(data, texts), texts) {
        (Some(when), Texts::English) => format!(", {when}"),
        (Some(when), Texts::Chinese) => format!("，{when}"),
        (None, _) => String::new(),
    };
    let id = data.get("id").and_then(Value::as_str).unwrap_or_default();
    let list = |key: &str, field: Option<&str>| {
        let items = data.get(key).and_then(Value::as_array).into_iter().flatten();
        let item = items.filter_map(|item| field.map_or(Some(item), |field| item.get(field)));
        let words: Vec<&str> = item.filter_map(Value::as_str).collect();
        words.join(texts.pick(", ", "、"))
    };
    let (changed, people) = (list("changed", None), list("invited", Some("actor_id")));
    Some(match (outcome, texts) {
        ("created", Texts::English) => format!("Created “{title}”{when}. Its id is `{id}`."),
        ("created", Texts::Chinese) => format!("已创建“{title}”{when}。编号：`{id}`。"),
        ("updated", Texts::English) => format!("Updated “{title}”{when}. Changed: {changed}."),
        ("updated", Texts::Chinese) => format!("已更新“{title}”{when}。修改了：{changed}。"),
        ("deleted", Texts::English) => format!("Deleted “{title}”{when}."),
        ("deleted", Texts::Chinese) => format!("已删除“{title}”{when}。"),
        ("shared", Texts::English) => format!("Invited {people} to “{title}”{when}."),
        ("shared", Texts::Chinese) => format!("已邀请 {people} 参加“{title}”{when}。"),
        ("accepted", Texts::English) => format!("Accepted the invitation to “{title}”{when}."),
        ("accepted", Texts::Chinese) => format!("已接受“{title}”的邀请{when}。"),
        ("rejected", Texts::English) => format!("Declined the invitation to “{title}”{when}."),
        ("rejected", Texts::Chinese) => format!("已拒绝“{title}”的邀请{when}。"),
        _ => return None,
    })
}

/// The events of a time range, one per line.
fn events(items: &Value, data: &Value, texts: Texts) -> Option<String> {
    let items = items.as_array()?;
    let word = |item: &Value, key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
    let day = word(data, "date").unwrap_or_default();
    if items.is_empty() {
        return Some(match (texts, day.is_empty()) {
            (Texts::English, false) => format!("No events on {day}."),
            (Texts::Chinese, false) => format!("{day} 没有日程。"),
            (texts, true) => texts.pick("No events found.", "没有找到日程。").to_owned(),
        });
    }
    let comma = texts.pick(", ", "，");
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        let parts = [Some(word(item, "title")?), when(item, texts), word(item, "location")];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        lines.push(format!("- {} [{}]", parts.join(comma), word(item, "id")?));
    }
    if data.get("has_more") == Some(&Value::Bool(true)) {
        lines.push(texts.pick("More events exist.", "还有更多。").to_owned());
    }
    Some(lines.join("\n"))
}

/// Remembered facts, one per line.
fn facts(data: &Value, texts: Texts) -> Option<String> {
    let items = data.get("items")?.as_array()?;
    let lines: Option<Vec<String>> = items.iter().map(fact).collect();
    let lines = lines?.into_iter().map(|line| format!("- {line}")).collect::<Vec<_>>();
    match lines.is_empty() {
        true => none(data, texts.pick("Nothing is remembered about this.", "没有相关的记忆。")),
        false => Some(lines.join("\n")),
    }
}

/// Facts that were remembered and forgotten.
fn remembered(data: &Value, texts: Texts) -> Option<String> {
    let list = |key: &str| data.get(key).and_then(Value::as_array).into_iter().flatten();
    let text = |item: &Value| item.as_str().map(str::to_owned);
    let set: Option<Vec<String>> = list("set").map(fact).collect();
    let parts = [
        (texts.pick("Remembered", "已记住"), set?),
        (texts.pick("Forgot", "已忘记"), list("deleted").filter_map(text).collect()),
        (texts.pick("Not found", "没有找到"), list("missing").filter_map(text).collect()),
        (texts.pick("Not done", "未执行"), list("not_tried").filter_map(text).collect()),
    ];
    let mut lines: Vec<String> = Vec::new();
    for (word, items) in parts.iter().filter(|(_, items)| !items.is_empty()) {
        let items = items.join(texts.pick(", ", "、"));
        lines.push(match texts {
            Texts::English => format!("{word}: {items}."),
            Texts::Chinese => format!("{word}：{items}。"),
        });
    }
    if let Some(failed) = data.get("failed") {
        let word = |key: &str| failed.get(key).and_then(Value::as_str).unwrap_or_default();
        let failure = texts.pick("Failed: ", "失败：");
        lines.push(format!("{failure}{} – {}", word("key"), word("message")));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// `key = value`.
fn fact(item: &Value) -> Option<String> {
    let value = match item.get("value")? {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    Some(format!("{} = {value}", item.get("key")?.as_str()?))
}

/// A sentence for an empty list.
fn none(data: &Value, sentence: &str) -> Option<String> {
    (data.get("count")?.as_u64()? == 0).then(|| sentence.to_owned())
}

/// E.g. `Tue 2026-04-21 19:00–20:00 (UTC+08:00)`, in the event's own time zone.
fn when(item: &Value, texts: Texts) -> Option<String> {
    let time = |key: &str| item.get(key).and_then(Value::as_str);
    let start = time("start_at")?;
    let (day, from) = (start.get(..10)?, start.get(11..16)?);
    let until = match time("end_at").and_then(|end| Some((end.get(..10)?, end.get(11..16)?))) {
        Some((end_day, end)) if end_day == day => format!("–{end}"),
        Some((end_day, end)) => format!(" – {end_day} {end}"),
        None => String::new(),
    };
    let zone = match start.get(start.rfind(['Z', '+', '-'])?..)? {
        "Z" | "+00:00" => "UTC".to_owned(),
        offset => format!("UTC{offset}"),
    };
    Some(match texts {
        Texts::English => {
            let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
            format!("{} {day} {from}{until} ({zone})", days[weekday(day)?])
        }
        Texts::Chinese => {
            let days = ["周日", "周一", "周二", "周三", "周四", "周五", "周六"];
            format!("{day} {} {from}{until}（{zone}）", days[weekday(day)?])
        }
    })
}

/// The day of the week of `YYYY-MM-DD`, 0 for Sunday (Sakamoto's method).
fn weekday(day: &str) -> Option<usize> {
    const SHIFTS: [usize; 12] = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4];
    let number = |range| day.get(range).and_then(|text: &str| text.parse::<usize>().ok());
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let shift = *SHIFTS.get(month.checked_sub(1)?)?;
    let year = if month < 3 { year.checked_sub(1)? } else { year };
    Some((year + year / 4 - year / 100 + year / 400 + shift + day) % 7)
}

#[cfg(test)]
mod tests {
    use super::*;
    use greenroom_sdk::json;

    fn both(module: &str, method: &str, data: Value) -> [String; 2] {
        let result = json!({"module": module, "method": method, "data": data});
        [Texts::English, Texts::Chinese].map(|texts| from_result(&result, texts).unwrap())
    }

    #[test]
    fn the_outcome_of_an_event_is_a_sentence() {
        let event = |outcome: &str| {
            json!({"id": "rec_1", "title": "dinner", "outcome": outcome, "changed": ["title"],
            "start_at": "2026-04-21T19:00:00+08:00", "end_at": "2026-04-21T20:00:00+08:00",
            "invited": [{"actor_id": "bob", "status": "pending"}, {"actor_id": "eve"}]})
        };
        let (english, chinese) =
            ("Tue 2026-04-21 19:00–20:00 (UTC+08:00)", "2026-04-21 周二 19:00–20:00（UTC+08:00）");
        for (method, outcome, en, zh) in [
            ("delete", "deleted", "Deleted “dinner”, WHEN.", "已删除“dinner”，WHEN。"),
            (
                "create",
                "created",
                "Created “dinner”, WHEN. Its id is `rec_1`.",
                "已创建“dinner”，WHEN。编号：`rec_1`。",
            ),
            (
                "update",
                "updated",
                "Updated “dinner”, WHEN. Changed: title.",
                "已更新“dinner”，WHEN。修改了：title。",
            ),
            (
                "share",
                "shared",
                "Invited bob, eve to “dinner”, WHEN.",
                "已邀请 bob、eve 参加“dinner”，WHEN。",
            ),
        ] {
            let expected = [en.replace("WHEN", english), zh.replace("WHEN", chinese)];
            assert_eq!(both("calendar", method, event(outcome)), expected);
        }
    }

    #[test]
    fn lists_and_facts_are_lines() {
        let none = json!({"mode": "day", "date": "2026-04-21", "count": 0, "items": []});
        assert_eq!(
            both("calendar", "read", none),
            ["No events on 2026-04-21.", "2026-04-21 没有日程。"]
        );
        let one = json!({"count": 1, "items": [{"id": "r", "title": "x", "location": "B2",
            "start_at": "2026-02-28T23:00:00Z", "end_at": "2026-03-01T01:00:00Z"}]});
        let lines = both("calendar", "read", one);
        assert_eq!(lines[0], "- x, Sat 2026-02-28 23:00 – 2026-03-01 01:00 (UTC), B2 [r]");
        let update = json!({"outcome": "updated", "count": 2, "missing": ["age"],
            "set": [{"key": "tea", "value": "green"}], "deleted": ["name"]});
        let english = "Remembered: tea = green.\nForgot: name.\nNot found: age.";
        let chinese = "已记住：tea = green。\n已忘记：name。\n没有找到：age。";
        assert_eq!(both("memory", "update", update), [english, chinese]);
    }

    #[test]
    fn results_of_other_shapes_have_no_sentence() {
        for other in [
            json!({"sum": 5}),
            json!({"module": "yard", "method": "dig", "data": {"outcome": "deleted", "title": "x"}}),
            json!({"module": "calendar", "method": "delete", "data": {"outcome": "lost"}}),
            json!({"module": "contacts", "method": "read", "data": {"count": 1, "items": [{}]}}),
        ] {
            assert_eq!(from_result(&other, Texts::English), None, "{other}");
        }
    }
}
