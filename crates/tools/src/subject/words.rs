//! A subject as one line of text, in every language.
//!
//! Invariant: the same facts in every language; times have their UTC offset.

use crate::Risk;
use crate::ui::Language;
use greenroom_protocol::api::platform::{ApprovalSubject, SubjectField, SubjectRecord};
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// E.g. `“dinner”, Tue 2026-04-21 19:00–20:00 (UTC+08:00)`. Times are in `zone`, else as they were written.
pub fn line(subject: &ApprovalSubject, language: Language, zone: Option<&TimeZone>) -> String {
    let Separators { item, .. } = separators(language);
    let records = subject.records.iter().map(|one| record(one, language, zone));
    let records = records.collect::<Vec<_>>().join(item);
    let fields = subject.fields.iter().map(|one| field(one, language, zone));
    let fields = fields.collect::<Vec<_>>().join(item);
    let mut line = match (records.is_empty(), fields.is_empty()) {
        (false, false) => format!("{records} — {fields}"),
        _ => records + &fields,
    };
    if subject.left_out > 0 {
        line += &match language {
            Language::English => format!("; and {} more", subject.left_out),
            Language::Chinese => format!("；还有 {} 项", subject.left_out),
        };
    }
    line
}

/// The warning for a call of this risk.
pub fn warning(risk: Risk, language: Language) -> &'static str {
    let (english, chinese) = match risk {
        Risk::Read => ("This only reads data.", "此操作只读取数据。"),
        Risk::Write => ("This changes data.", "此操作会修改数据。"),
        Risk::Destructive => ("This cannot be undone.", "此操作无法撤销。"),
        Risk::External => {
            ("This reaches people or systems outside the host.", "此操作会影响外部的人或系统。")
        }
    };
    match language {
        Language::English => english,
        Language::Chinese => chinese,
    }
}

struct Separators {
    item: &'static str,
    part: &'static str,
    colon: &'static str,
}

fn separators(language: Language) -> Separators {
    match language {
        Language::English => Separators { item: "; ", part: ", ", colon: ": " },
        Language::Chinese => Separators { item: "；", part: "，", colon: "：" },
    }
}

fn record(record: &SubjectRecord, language: Language, zone: Option<&TimeZone>) -> String {
    let Separators { part, colon, .. } = separators(language);
    let Some(title) = &record.title else {
        return match language {
            Language::English => format!("no record with the id {}", record.id),
            Language::Chinese => format!("没有编号为 {} 的记录", record.id),
        };
    };
    let mut text = format!("“{title}”");
    if let Some(detail) = &record.detail {
        text += &format!("{colon}{detail}");
    }
    if let Some(when) = when(record, language, zone) {
        text += &format!("{part}{when}");
    }
    text
}

fn field(field: &SubjectField, language: Language, zone: Option<&TimeZone>) -> String {
    let colon = separators(language).colon;
    let value = |text: &str| match moment(text, zone) {
        Some(at) => format!("{}{}", day_and_time(&at, language), offset(&at, language)),
        None => text.to_owned(),
    };
    let name = name(&field.name, language);
    match &field.before {
        Some(before) => format!("{name}{colon}{} → {}", value(before), value(&field.value)),
        None => format!("{name}{colon}{}", value(&field.value)),
    }
}

/// Inputs of the built-in methods have Chinese names; others are shown unchanged.
fn name(name: &str, language: Language) -> &str {
    match (language, name) {
        (Language::English, "start_at") => "start",
        (Language::English, "end_at") => "end",
        (Language::Chinese, "title") => "标题",
        (Language::Chinese, "start_at") => "开始",
        (Language::Chinese, "end_at") => "结束",
        (Language::Chinese, "timezone") => "时区",
        (Language::Chinese, "location") => "地点",
        (Language::Chinese, "notes") => "备注",
        (Language::Chinese, "with") => "邀请",
        _ => name,
    }
}

fn when(record: &SubjectRecord, language: Language, zone: Option<&TimeZone>) -> Option<String> {
    let start = moment(record.start_at.as_deref()?, zone)?;
    let end = record.end_at.as_deref().and_then(|end| moment(end, zone));
    let until = end.map(|end| match end.date() == start.date() {
        true => format!("–{}", end.strftime("%H:%M")),
        false => format!(" – {}", day_and_time(&end, language)),
    });
    let until = until.unwrap_or_default();
    Some(format!("{}{until}{}", day_and_time(&start, language), offset(&start, language)))
}

fn day_and_time(at: &Zoned, language: Language) -> String {
    match language {
        Language::English => at.strftime("%a %Y-%m-%d %H:%M").to_string(),
        Language::Chinese => {
            let day = ["一", "二", "三", "四", "五", "六", "日"];
            let number = usize::from(at.weekday().to_monday_zero_offset().unsigned_abs());
            let day = day.get(number).copied().unwrap_or_default();
            format!("{} 周{day} {}", at.strftime("%Y-%m-%d"), at.strftime("%H:%M"))
        }
    }
}

fn offset(at: &Zoned, language: Language) -> String {
    let offset = match at.offset().seconds() {
        0 => "UTC".to_owned(),
        _ => format!("UTC{}", at.strftime("%:z")),
    };
    match language {
        Language::English => format!(" ({offset})"),
        Language::Chinese => format!("（{offset}）"),
    }
}

/// A text that is a time; in the zone of the reader, else with its own offset.
fn moment(text: &str, zone: Option<&TimeZone>) -> Option<Zoned> {
    static PARSER: DateTimeParser = DateTimeParser::new();
    let at: Timestamp = text.parse().ok()?;
    let own = || PARSER.parse_pieces(text).ok()?.to_numeric_offset();
    let zone = zone.cloned().or_else(|| own().map(TimeZone::fixed));
    Some(at.to_zoned(zone.unwrap_or(TimeZone::UTC)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(subject: serde_json::Value, language: Language) -> String {
        line(&serde_json::from_value(subject).unwrap(), language, None)
    }

    #[test]
    fn a_record_is_shown_with_its_title_and_time() {
        let dinner = json!({"records": [{"id": "rec_1", "title": "dinner",
            "start_at": "2026-04-21T19:00:00+08:00", "end_at": "2026-04-21T20:00:00+08:00"}]});
        let english = "“dinner”, Tue 2026-04-21 19:00–20:00 (UTC+08:00)";
        assert_eq!(shown(dinner.clone(), Language::English), english);
        let chinese = "“dinner”，2026-04-21 周二 19:00–20:00（UTC+08:00）";
        assert_eq!(shown(dinner.clone(), Language::Chinese), chinese);
        let subject = serde_json::from_value(dinner).unwrap();
        let utc = line(&subject, Language::English, Some(&TimeZone::UTC));
        assert_eq!(utc, "“dinner”, Tue 2026-04-21 11:00–12:00 (UTC)");
    }

    #[test]
    fn changes_and_missing_records_are_shown() {
        let change = json!({"records": [{"id": "r", "title": "dinner"}], "left_out": 2, "fields": [
            {"name": "title", "value": "supper", "before": "dinner"},
            {"name": "start_at", "value": "2026-04-21T18:30:00Z"}]});
        let english =
            "“dinner” — title: dinner → supper; start: Tue 2026-04-21 18:30 (UTC); and 2 more";
        assert_eq!(shown(change.clone(), Language::English), english);
        let chinese =
            "“dinner” — 标题：dinner → supper；开始：2026-04-21 周二 18:30（UTC）；还有 2 项";
        assert_eq!(shown(change, Language::Chinese), chinese);
        let gone =
            json!({"records": [{"id": "rec_9"}, {"id": "tea", "title": "tea", "detail": "green"}]});
        let english = "no record with the id rec_9; “tea”: green";
        assert_eq!(shown(gone, Language::English), english);
    }

    #[test]
    fn the_web_warns_with_the_same_words() {
        let pages = [
            (Language::English, include_str!("../../../../web/src/i18n/en/approvals.ts")),
            (Language::Chinese, include_str!("../../../../web/src/i18n/zh/approvals.ts")),
        ];
        for (language, page) in pages {
            for risk in [Risk::Read, Risk::Write, Risk::Destructive, Risk::External] {
                let line = format!("risk_{}: \"{}\"", risk.as_str(), warning(risk, language));
                assert!(page.contains(&line), "{line}");
            }
        }
    }
}
