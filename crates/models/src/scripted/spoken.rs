//! Dates and times in natural language, in English and Chinese: `tomorrow`, `下午三点半`, `2026-01-31`.
//!
//! Invariant: the default is today at nine in the morning.

use super::day::date;
use std::time::{Duration, SystemTime};

const DAY: Duration = Duration::from_secs(86_400);
/// Words for days; a longer word precedes the words that it contains.
const DAYS: [(&str, i32); 15] = [
    ("day after tomorrow", 2),
    ("day before yesterday", -2),
    ("tomorrow", 1),
    ("yesterday", -1),
    ("大后天", 3),
    ("后天", 2),
    ("明天", 1),
    ("明日", 1),
    ("明早", 1),
    ("明晚", 1),
    ("昨天", -1),
    ("大前天", -3),
    ("前天", -2),
    ("today", 0),
    ("今天", 0),
];
const AFTERNOON: [&str; 8] = ["pm", "p.m.", "afternoon", "evening", "下午", "晚", "傍晚", "夜"];

/// The date that a text mentions, as `2026-01-31`.
pub(super) fn day(text: &str, now: SystemTime) -> String {
    if let Some(written) = written_date(text) {
        return written.to_owned();
    }
    let text = text.to_lowercase();
    let days = DAYS.iter().find(|(word, _)| text.contains(word)).map_or(0, |(_, days)| *days);
    let away = DAY * days.unsigned_abs();
    let moved = if days < 0 { now.checked_sub(away) } else { now.checked_add(away) };
    date(moved.unwrap_or(now))
}

/// The first ISO date in a text.
fn written_date(text: &str) -> Option<&str> {
    let is_date = |bytes: &[u8]| {
        let fits = |(at, byte): (usize, &u8)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        };
        bytes.iter().enumerate().all(fits)
    };
    let is_digit = |at: Option<usize>| {
        at.and_then(|at| text.as_bytes().get(at)).is_some_and(u8::is_ascii_digit)
    };
    let windows = text.as_bytes().windows(10).enumerate();
    let mut dates = windows.filter(|(_, bytes)| is_date(bytes)).map(|(at, _)| at);
    let at = dates.find(|at| !is_digit(at.checked_sub(1)) && !is_digit(Some(at + 10)))?;
    text.get(at..at + 10)
}

/// The time that a text mentions, as `15:30:00`.
pub(super) fn time(text: &str) -> String {
    let (hour, minute) = clock(text);
    format!("{hour:02}:{minute:02}:00")
}

/// One hour later, on the same day.
pub(super) fn hour_later(text: &str) -> String {
    match clock(text) {
        (23, _) => "23:59:00".to_owned(),
        (hour, minute) => format!("{:02}:{minute:02}:00", hour + 1),
    }
}

fn clock(text: &str) -> (u32, u32) {
    let text = text.to_lowercase();
    let Some(from) = text.find(|c: char| c.is_ascii_digit() || chinese_digit(c).is_some()) else {
        return if text.contains("noon") && !text.contains("afternoon") { (12, 0) } else { (9, 0) };
    };
    let (hour, rest) = number(&text[from..]);
    let minute = match rest.trim_start_matches([':', '\u{ff1a}', '点', '时']) {
        rest if rest.starts_with('半') => 30,
        rest if rest.starts_with("一刻") => 15,
        rest if rest.starts_with("三刻") => 45,
        rest => number(rest).0,
    };
    let is_late = AFTERNOON.iter().any(|word| text.contains(word))
        || (text.contains("中午") && (1..=2).contains(&hour));
    let hour = match hour {
        12 if text.contains("am") || text.contains("凌晨") => 0,
        1..=11 if is_late => hour + 12,
        hour => hour,
    };
    (hour.min(23), minute.min(59))
}

/// The number at the start of a text, and the rest: `12…`, `十二…`.
fn number(text: &str) -> (u32, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    if end > 0 {
        return (text[..end].parse().unwrap_or(u32::MAX), &text[end..]);
    }
    let end = text.find(|c: char| chinese_digit(c).is_none()).unwrap_or(text.len());
    let mut value = 0;
    for digit in text[..end].chars().filter_map(chinese_digit) {
        value = match digit {
            10 if value == 0 => 10,
            10 => value * 10,
            digit => value + digit,
        };
    }
    (value, &text[end..])
}

fn chinese_digit(c: char) -> Option<u32> {
    let at = "零一二三四五六七八九十".chars().position(|digit| digit == c);
    let at = if c == '两' { Some(2) } else { at };
    at.and_then(|at| u32::try_from(at).ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    #[test]
    fn dates_are_parsed_in_both_languages() {
        let now = UNIX_EPOCH + DAY * 10;
        for (text, day_of_january) in [
            ("what is on today", 11),
            ("今天我有什么日程", 11),
            ("明天有什么安排", 12),
            ("Tomorrow at 3pm", 12),
            ("后天下午", 13),
            ("the day after tomorrow", 13),
            ("昨天呢", 10),
            ("前天", 9),
            ("no day at all", 11),
        ] {
            assert_eq!(day(text, now), format!("1970-01-{day_of_january:02}"), "{text}");
        }
        for text in ["on 2026-12-01 at 9", "2026-12-01下午三点", "明天? 不, 2026-12-01"] {
            assert_eq!(day(text, now), "2026-12-01", "{text}");
        }
        assert_eq!(day("order 12026-12-011", now), "1970-01-11");
    }

    #[test]
    fn times_are_parsed_in_both_languages() {
        for (text, start, end) in [
            ("下午三点", "15:00:00", "16:00:00"),
            ("上午十点半", "10:30:00", "11:30:00"),
            ("晚上11点", "23:00:00", "23:59:00"),
            ("十二点一刻", "12:15:00", "13:15:00"),
            ("中午一点", "13:00:00", "14:00:00"),
            ("凌晨12点", "00:00:00", "01:00:00"),
            ("二十点零五分", "20:05:00", "21:05:00"),
            ("14:45", "14:45:00", "15:45:00"),
            ("9:05", "09:05:00", "10:05:00"),
            ("3pm", "15:00:00", "16:00:00"),
            ("3:30 PM", "15:30:00", "16:30:00"),
            ("12 am", "00:00:00", "01:00:00"),
            ("noon", "12:00:00", "13:00:00"),
            ("99:99", "23:59:00", "23:59:00"),
            ("sometime", "09:00:00", "10:00:00"),
        ] {
            assert_eq!((time(text).as_str(), hour_later(text).as_str()), (start, end), "{text}");
        }
    }
}
