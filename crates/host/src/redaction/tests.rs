//! Secrets do not pass, in no form and however they are cut; everything else does.

use super::*;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::json;

const SECRET: &str = "p/4s+s\"wörd-7781~x";
const HEX: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn redactor(secrets: &[&str]) -> Redactor {
    let redactor = Redactor::new();
    let secrets: Vec<String> = secrets.iter().map(|secret| (*secret).to_owned()).collect();
    redactor.set_secrets(&secrets);
    redactor
}

fn streamed(redactor: &Redactor, pieces: &[&str]) -> String {
    let mut stream = redactor.stream();
    let mut out: String = pieces.iter().map(|piece| stream.push(piece).into_owned()).collect();
    out.push_str(&stream.flush());
    assert!(!stream.is_holding());
    out
}

/// The whole text and every way to cut it in two and into single characters.
fn assert_becomes(redactor: &Redactor, text: &str, expected: &str) {
    assert_eq!(redactor.text(text), expected);
    assert_eq!(redactor.bytes(text.as_bytes()), expected.as_bytes());
    for (at, _) in text.char_indices() {
        let (one, other) = text.split_at(at);
        assert_agree(&streamed(redactor, &[one, other]), expected);
    }
    let characters: Vec<String> = text.chars().map(String::from).collect();
    let characters: Vec<&str> = characters.iter().map(String::as_str).collect();
    assert_agree(&streamed(redactor, &characters), expected);
}

fn assert_agree(out: &str, expected: &str) {
    assert!(agree(out, expected), "{out} / {expected}");
}

/// The same, but for beginnings of secrets that are too short to tell anything.
fn agree(mut out: &str, mut expected: &str) -> bool {
    loop {
        if let Some(rest) = expected.strip_prefix(MARK) {
            let after_mark = |shown| out.get(shown..)?.strip_prefix(MARK);
            return (0..=3)
                .filter_map(after_mark)
                .any(|out| agree(out, rest) || agree(out, expected));
        }
        let (mut one, mut other) = (out.chars(), expected.chars());
        match (one.next(), other.next()) {
            (None, None) => return true,
            (one, other) if one != other => return false,
            _ => (out, expected) = (one.as_str(), other.as_str()),
        }
    }
}

#[test]
fn a_secret_is_found_wherever_it_stands() {
    let redactor = redactor(&[SECRET]);
    assert_becomes(&redactor, SECRET, "[redacted]");
    assert_becomes(&redactor, &format!("a {SECRET} b {SECRET}"), "a [redacted] b [redacted]");
    assert_becomes(&redactor, &format!("{SECRET}{SECRET}"), "[redacted]");
    assert_becomes(&redactor, &format!("p/4s{SECRET}p/4"), "p/4s[redacted]p/4");
    assert_becomes(&redactor, "nothing here, p/4s+", "nothing here, p/4s+");
}

#[test]
fn a_secret_is_found_in_every_form() {
    let redactor = redactor(&[SECRET]);
    let json = "p/4s+s\\\"wörd-7781~x";
    assert_becomes(&redactor, &format!("{{\"k\":\"{json}\"}}"), "{\"k\":\"[redacted]\"}");
    assert_becomes(&redactor, "p/4s+s\\\"w\\u00f6rd-7781~x!", "[redacted]!");
    assert_becomes(&redactor, "p/4s+s\\\\\\\"wörd-7781~x!", "[redacted]!");
    assert_becomes(&redactor, "?k=p%2F4s%2Bs%22w%C3%B6rd-7781~x&b", "?k=[redacted]&b");
    assert_becomes(&redactor, "?k=p%2f4s%2bs%22w%c3%b6rd-7781~x&b", "?k=[redacted]&b");
    let all: String = SECRET.bytes().map(|byte| format!("%{byte:02X}")).collect();
    assert_becomes(&redactor, &all, "[redacted]");
}

#[test]
fn a_secret_is_found_in_base64_whatever_stands_around_it() {
    let redactor = redactor(&[SECRET]);
    for before in ["", "a", "ab", "user:", "user::"] {
        for after in ["", "z", "zz", "zzz"] {
            let text = format!("{before}{SECRET}{after}");
            for encoded in [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                let clean = redactor.text(&encoded);
                assert!(clean.contains(MARK), "{text} as {encoded}: {clean}");
                // At most the characters that mix the secret with its neighbours are left.
                let left = clean.replace(MARK, "").len();
                assert!(left <= (before.len() + after.len()) * 4 / 3 + 6, "{encoded}: {clean}");
            }
        }
    }
}

#[test]
fn secrets_that_overlap_go_together() {
    let redactor = redactor(&["abcdefgh", "efghijkl", "cdefghij-long"]);
    assert_becomes(&redactor, "x abcdefghijkl y", "x [redacted] y");
    assert_becomes(&redactor, "x abcdefghij-long y", "x [redacted] y");
    assert_becomes(&redactor, "abcdefgefghijklm", "abcdefg[redacted]m");
}

#[test]
fn short_values_are_words_and_long_ones_are_found_line_by_line() {
    let redactor = redactor(&["short", "  ", "", "first line of a key\nand its second line\n--\n"]);
    assert_becomes(&redactor, "short text", "short text");
    assert_becomes(&redactor, "log: first line of a key", "log: [redacted]");
    assert_becomes(&redactor, "and its second line!", "[redacted]!");
    assert_becomes(&redactor, "first line of a key\nand its second line\n--", "[redacted]");
    assert_becomes(&redactor, "-- --", "-- --");
}

#[test]
fn of_an_address_the_password_or_the_path_is_secret() {
    let url = "postgres://me:pass%20w0rd-1@db.example/greenroom";
    let redactor = redactor(&[url, "https://hooks.example/services/T0/B0/XYZ12345"]);
    assert_becomes(&redactor, url, "postgres://me:[redacted]@db.example/greenroom");
    assert_becomes(&redactor, "it is `pass w0rd-1`", "it is `[redacted]`");
    assert_becomes(&redactor, "talk to postgres://", "talk to postgres://");
    assert_becomes(&redactor, "https://hooks.example/", "https://hooks.example/");
    assert_becomes(&redactor, "/services/T0/B0/XYZ12345", "/[redacted]");
}

#[test]
fn run_tokens_are_known_by_their_shape() {
    let redactor = Redactor::new();
    let token = format!("grt_{HEX}");
    assert_becomes(&redactor, &format!("x{token} y"), "xgrt_[redacted] y");
    assert_becomes(&redactor, "grt_ is how they begin", "grt_ is how they begin");
    for before in ["", "a", "ab", "run:"] {
        let encoded = STANDARD.encode(format!("{before}{token}"));
        let clean = redactor.text(&encoded).into_owned();
        let left = clean.strip_suffix(MARK).or_else(|| clean.split(MARK).next());
        assert!(left.is_some_and(|left| left.len() <= 14), "{encoded}: {clean}");
        assert_becomes(&redactor, &encoded, &clean);
    }
    let all: String = token.bytes().map(|byte| format!("%{byte:02x}")).collect();
    assert_becomes(&redactor, &all, "%67%72%74%5f[redacted]");
}

#[test]
fn keys_of_well_known_shape_lose_all_but_their_beginning() {
    let redactor = Redactor::new();
    let key = "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8";
    for (text, expected) in [
        (format!("key sk-{key}, ok"), "key sk-[redacted], ok".to_owned()),
        (format!("ghp_{key}"), "ghp_[redacted]".to_owned()),
        ("AKIAIOSFODNN7EXAMPLE".to_owned(), "AKIA[redacted]".to_owned()),
        (format!("Authorization: Bearer {key}"), "Authorization: Bearer [redacted]".to_owned()),
        (format!("Bearer sk-{key}"), "Bearer sk-[redacted]".to_owned()),
        (
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P"
                .to_owned(),
            "eyJhbGciOiJIUzI1NiJ9.eyJ[redacted]".to_owned(),
        ),
        (
            format!(
                "-----BEGIN RSA PRIVATE KEY-----\n{key}\n{key}=\n-----END RSA PRIVATE KEY-----\n"
            ),
            "-----BEGIN RSA PRIVATE KEY-----[redacted]-----END RSA PRIVATE KEY-----\n".to_owned(),
        ),
    ] {
        assert_becomes(&redactor, &text, &expected);
    }
}

#[test]
fn ordinary_texts_pass() {
    let redactor = redactor(&[SECRET]);
    for text in [
        "risk-assessment-and-management-2024-final",
        "a task-force-for-something-important, sk-short",
        "Bearer of good news from the mountain",
        "the bearer understanding-without-any-number",
        "BEGIN PRIVATE KEY",
        "数据库连接信息，以及密钥的位置",
        "{\"eyJ\": \".eyJ\"}",
        "sk-",
    ] {
        assert_becomes(&redactor, text, text);
        assert!(matches!(redactor.text(text), Cow::Borrowed(_)));
    }
}

#[test]
fn texts_flow_although_they_end_as_a_secret_begins() {
    let redactor = redactor(&["s3cret-value"]);
    let mut stream = redactor.stream();
    for piece in ["words", "s", "c", "cz", "%", "czN"] {
        assert!(matches!(stream.push(piece), Cow::Borrowed(_)), "{piece}");
    }
    assert_eq!(stream.push(" s3"), " ");
    assert_eq!(stream.push("cr czNj"), "s3cr ");
}

#[test]
fn an_interrupted_secret_does_not_pass_in_parts() {
    let redactor = redactor(&["0secret-0secret-0secret"]);
    for cut in 1..22 {
        let (one, other) = "0secret-0secret-0secret".split_at(cut);
        let mut stream = redactor.stream();
        let mut out = format!("{}{}", stream.push(one), stream.flush());
        assert_eq!(out, if cut < 6 { one } else { MARK }, "cut at {cut}");
        out.push_str(&stream.push(other));
        out.push_str(&stream.flush());
        assert_eq!(out, if cut < 6 { format!("{one}{MARK}") } else { MARK.to_owned() });
    }
    let mut stream = redactor.stream();
    let out = [
        stream.push("grt_0123").into_owned(),
        stream.flush(),
        stream.push("456789abcdef0123456789abcdef, done").into_owned(),
    ];
    assert_eq!(out, ["grt_", MARK, ", done"]);
}

#[test]
fn a_quote_that_was_cut_shows_no_beginning_of_a_secret() {
    let redactor = redactor(&[SECRET]);
    assert_eq!(redactor.quote("it said p/4s+s\"wö"), "it said [redacted]");
    assert_eq!(redactor.quote(&format!("{SECRET} it said")), "[redacted] it said");
    assert_eq!(redactor.text("it said p/4s+s\"wö"), "it said p/4s+s\"wö");
}

#[test]
fn a_secret_that_becomes_known_is_found_in_streams_that_are_under_way() {
    let redactor = Redactor::new();
    let mut stream = redactor.stream();
    assert_eq!(stream.push("the new-s"), "the new-s");
    redactor.set_secrets(&["new-secret".to_owned()]);
    stream.refresh();
    assert_eq!(stream.push("new-sec"), "");
    stream.refresh();
    assert_eq!(stream.push("ret."), "[redacted].");
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

#[test]
fn json_is_cleaned_in_what_it_means() {
    let redactor = redactor(&["s3cret-value", "1234567890123"]);
    assert!(redactor.json(&raw(r#"{"a":"b\n","n":12345678901}"#)).is_none());
    for (json, expected) in [
        (r#"{"a":"x s3cret-value y"}"#, json!({"a": "x [redacted] y"})),
        (r#"{"a":["\u0073\u0033cret-value"]}"#, json!({"a": ["[redacted]"]})),
        (r#"{"s3cret-value":{"b":1}}"#, json!({"[redacted]": {"b": 1}})),
        (r#"{"n":1234567890123,"m":1}"#, json!({"n": "[redacted]", "m": 1})),
    ] {
        let clean = redactor.json(&raw(json)).unwrap();
        assert_eq!(serde_json::from_str::<Value>(clean.get()).unwrap(), expected);
        let mut value: Value = serde_json::from_str(json).unwrap();
        redactor.value(&mut value);
        assert_eq!(value, expected);
    }
}

#[test]
fn a_blob_in_base64_stays_base64() {
    let redactor = redactor(&["s3cret-value"]);
    for before in ["", "1", "22"] {
        let blob = STANDARD.encode(format!("{before}-s3cret-value-\0\u{1}"));
        let clean = redactor.json(&raw(&json!({ "value": blob }).to_string())).unwrap();
        let clean: Value = serde_json::from_str(clean.get()).unwrap();
        let bytes = STANDARD.decode(clean["value"].as_str().unwrap()).unwrap();
        assert_eq!(bytes, format!("{before}-[redacted]-\0\u{1}").into_bytes());
    }
    let clean = redactor.json(&raw(r#"{"value":"s3cret-value"}"#)).unwrap();
    assert_eq!(clean.get(), r#"{"value":"[redacted]"}"#);
}

#[test]
fn json_that_is_too_deep_to_read_is_cleaned_as_text() {
    let redactor = redactor(&["s3cret-value"]);
    let deep = format!("{}\"s3cret-value\"{}", "[".repeat(1000), "]".repeat(1000));
    let clean = redactor.json(&raw(&deep)).unwrap();
    assert!(clean.get().contains("\"[redacted]\""));
    let hidden = redactor.json(&raw(&deep.replace("s3cret", "\\u00733cret")));
    assert!(hidden.is_none_or(|clean| !clean.get().contains("s3cret-value")));
}

#[test]
fn the_hosts_own_secrets_are_found_without_those_of_others() {
    let redactor = redactor(&["s3cret-value"]).exact();
    let text = format!("grt_{HEX} and s3cret-value and sk-a1B2c3D4e5F6g7H8i9J0k1L2m3N4");
    let expected = "grt_[redacted] and [redacted] and sk-a1B2c3D4e5F6g7H8i9J0k1L2m3N4";
    assert_becomes(&redactor, &text, expected);
}

#[test]
fn debug_tells_nothing() {
    let redactor = redactor(&[SECRET]);
    assert_eq!(format!("{redactor:?}"), "Redactor(…)");
    assert!(!format!("{:?}", redactor.stream()).contains(SECRET));
}

fn naive(text: &str, secrets: &[String]) -> bool {
    secrets.iter().any(|secret| text.contains(secret.trim()))
}

proptest! {
    /// Secrets over a small alphabet overlap themselves and each other in every way.
    #[test]
    fn whatever_is_split_over_pieces_the_output_never_holds_a_secret(
        secrets in prop::collection::vec("[abä]{8,12}", 1..4),
        parts in prop::collection::vec((0..6_usize, "[abä c]{0,6}"), 0..12),
        cuts in prop::collection::vec(0..100_usize, 0..20),
        flushes in prop::collection::vec(any::<bool>(), 20),
    ) {
        let redactor = redactor(&secrets.iter().map(String::as_str).collect::<Vec<_>>());
        let text: String = parts
            .iter()
            .map(|(n, filler)| format!("{}{filler}", secrets.get(*n).map_or("", |s| s.as_str())))
            .collect();
        let pieces = cut(&text, &cuts);
        let whole = streamed(&redactor, &pieces);
        prop_assert!(!naive(&whole, &secrets), "{whole}");
        let mut stream = redactor.stream();
        let mut out = String::new();
        for (piece, flush) in pieces.iter().zip(flushes.iter().cycle()) {
            out.push_str(&stream.push(piece));
            if *flush {
                out.push_str(&stream.flush());
            }
        }
        out.push_str(&stream.flush());
        prop_assert!(!naive(&out, &secrets), "{out}");
        let clean = redactor.text(&text);
        prop_assert_eq!(&*clean == text.as_str(), !naive(&text, &secrets));
        prop_assert!(!naive(&clean, &secrets));
    }

    #[test]
    fn pieces_give_what_the_whole_gives(
        text in "(s3cret-value|grt_[0-9a-f]{0,70}|sk-[a-z0-9]{0,30}|[ -~]{0,12}|s3cret|[\u{4e00}-\u{4e0f}])*",
        cuts in prop::collection::vec(0..200_usize, 0..20),
    ) {
        let redactor = redactor(&["s3cret-value"]);
        let whole = redactor.text(&text).into_owned();
        // At its very end an interrupted text may lose more than a complete one.
        let text = format!("{text}\n");
        assert_agree(&streamed(&redactor, &cut(&text, &cuts)), &format!("{whole}\n"));
    }

    #[test]
    fn texts_without_secrets_come_out_unchanged(
        text in "[a-z0-9 .,{}\":\\\\\u{4e00}-\u{4eff}]{0,200}",
        cuts in prop::collection::vec(0..200_usize, 0..20),
    ) {
        let redactor = redactor(&["S3cret-value", "Another-One-Here"]);
        prop_assert_eq!(redactor.text(&text), text.as_str());
        prop_assert_eq!(streamed(&redactor, &cut(&text, &cuts)), text);
    }

    #[test]
    fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let redactor = redactor(&[SECRET]);
        prop_assert!(matches!(redactor.bytes(&bytes), Cow::Borrowed(_)));
    }
}

fn cut<'a>(text: &'a str, cuts: &[usize]) -> Vec<&'a str> {
    let mut cuts: Vec<usize> =
        cuts.iter().map(|cut| text.floor_char_boundary(cut % (text.len() + 1))).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}
