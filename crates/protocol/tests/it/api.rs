//! Method names, and errors of invalid parameters.

use greenroom_protocol::api::artifacts::{ArtifactCreateParams, ReadRangeParams};
use greenroom_protocol::api::history::{HistoryPageParams, HistorySearchParams};
use greenroom_protocol::api::state::{StateGetParams, StateSetParams};
use greenroom_protocol::api::storage::StorageGetParams;
use greenroom_protocol::api::{Method, Moment, Params, parse};
use greenroom_protocol::{AgentAPIError, ErrorCode};
use std::collections::BTreeSet;

fn refused<P: Params>(json: &str) -> String {
    match parse::<P>(json) {
        Ok(_) => panic!("{json} was taken"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn there_are_32_methods_and_each_is_found_by_its_name() {
    let names: BTreeSet<&str> = Method::ALL.iter().map(|method| method.as_str()).collect();
    assert_eq!((Method::ALL.len(), names.len()), (32, 32));
    for method in Method::ALL {
        assert_eq!(Method::parse(method.as_str()), Some(*method));
    }
    for unknown in ["", "state", "state.", "State.get", "state.get ", "run.result"] {
        assert_eq!(Method::parse(unknown), None, "{unknown}");
    }
}

#[test]
fn run_id_and_unknown_fields_are_ignored() {
    let json = r#"{"run_id":"r1","scope":"actor","key":"k","mood":{"fine":true}}"#;
    let read = parse::<StateGetParams>(json).map(|params| params.key);
    assert_eq!(read, Ok("k".to_owned()));
}

#[test]
fn an_error_names_the_field_and_an_unknown_scope_or_area() {
    let error = refused::<StateGetParams>(r#"{"scope":"global","key":"k"}"#);
    assert!(error.starts_with("`scope`: unknown variant `global`, expected one of"), "{error}");
    let error = refused::<StorageGetParams>(r#"{"area":"/etc","key":"k"}"#);
    assert!(error.starts_with("`area`: unknown variant `/etc`, expected one of"), "{error}");
    let error = refused::<HistoryPageParams>(r#"{"limit":"many"}"#);
    assert_eq!(error, "`limit`: invalid type: string \"many\", expected an integer");
    let error = refused::<HistorySearchParams>(r#"{"query":"q","filters":{"roles":["king"]}}"#);
    assert!(error.starts_with("`filters.roles[0]`: unknown variant `king`"), "{error}");
    let error = refused::<HistorySearchParams>(r#"{"query":"q","filters":{"after":"noon"}}"#);
    assert_eq!(error, "`filters.after`: not a time in RFC 3339 or Unix seconds");
    assert_eq!(refused::<StateGetParams>(r#"{"scope":"actor"}"#), "missing field `key`");
    assert_eq!(
        refused::<StateGetParams>(r#"{"scope":"actor","key":""}"#),
        "`key` must have 1 to 256 bytes"
    );
}

#[test]
fn an_error_is_bounded() {
    let scope = "域".repeat(10_000);
    let error = refused::<StateGetParams>(&format!(r#"{{"scope":"{scope}","key":"k"}}"#));
    assert!(error.chars().count() <= 301 && error.ends_with('…'), "{error}");
}

#[test]
fn wrong_parameters_are_an_invalid_argument() {
    let invalid = parse::<StateGetParams>("[]").expect_err("a list is no parameters");
    let error = AgentAPIError::from(invalid);
    assert_eq!((error.code, error.retryable), (ErrorCode::InvalidArgument, false));
    assert_eq!(error.message, "invalid type: sequence, expected an object");
}

#[test]
fn limits_below_their_range_are_errors_and_above_it_are_capped() {
    let limit = |number: &str| {
        parse::<HistoryPageParams>(&format!(r#"{{"limit":{number}}}"#)).map(|p| p.limit).ok()
    };
    assert_eq!(limit("1"), Some(1));
    assert_eq!(limit("200"), Some(200));
    assert_eq!(limit("7.0"), Some(7));
    assert_eq!(limit("null"), Some(50));
    for absurd in ["201", "4294967295", "4294967296", "9223372036854775807"] {
        assert_eq!(limit(absurd), Some(200), "{absurd}");
    }
    for wrong in ["0", "-1", "1.5", "1e30", "9223372036854775808", "true", "[]"] {
        assert_eq!(limit(wrong), None, "{wrong}");
    }
}

#[test]
fn offsets_and_lifetimes_have_a_range() {
    let offset = |number: &str| {
        let json = format!(r#"{{"artifact_id":"a","offset":{number}}}"#);
        parse::<ReadRangeParams>(&json).map(|params| params.offset).ok()
    };
    assert_eq!(offset("9223372036854775807"), Some(9_223_372_036_854_775_807));
    assert_eq!(offset("-1"), None);
    let ttl = |number: &str| {
        let json = format!(r#"{{"scope":"actor","key":"k","value":1,"ttl_s":{number}}}"#);
        parse::<StateSetParams>(&json).map(|params| params.ttl_s).ok()
    };
    assert_eq!(ttl("null"), Some(None));
    assert_eq!(ttl("3153600000"), Some(Some(3_153_600_000)));
    assert_eq!((ttl("0"), ttl("-5"), ttl("3153600001")), (None, None, None));
}

#[test]
fn a_value_may_be_null_but_not_missing_and_not_too_deep() {
    let set = |value: &str| {
        parse::<StateSetParams>(&format!(r#"{{"scope":"actor","key":"k","value":{value}}}"#))
    };
    assert!(set("null").is_ok());
    assert_eq!(
        refused::<StateSetParams>(r#"{"scope":"actor","key":"k"}"#),
        "missing field `value`"
    );
    assert!(set(&format!("{}{}", "[".repeat(99), "]".repeat(99))).is_ok());
    assert!(set(&format!("{}{}", "[".repeat(100), "]".repeat(100))).is_err());
    assert!(set(&format!("{}{}", "[".repeat(100_000), "]".repeat(100_000))).is_err());
    assert!(set(r#""\ud800""#).is_err());
}

#[test]
fn names_and_keys_that_are_paths_are_rejected() {
    let key = |key: &str| {
        let json = serde_json::json!({ "area": "plugin", "key": key }).to_string();
        parse::<StorageGetParams>(&json).is_ok()
    };
    for good in ["a", "a/b/c.json", "键", "..a", "a..b", "%2e%2e", "a b", "~"] {
        assert!(key(good), "{good}");
    }
    for bad in ["", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/.", "a\\b", "a\0", "a\nb"] {
        assert!(!key(bad), "{bad}");
    }
    assert!(key(&"k".repeat(512)) && !key(&"k".repeat(513)));
    let name = |name: &str| {
        let json = serde_json::json!({ "name": name, "content_base64": "" }).to_string();
        parse::<ArtifactCreateParams>(&json).is_ok()
    };
    for good in ["a.txt", "报告 1.pdf", ".profile", "v1..v2.diff"] {
        assert!(name(good), "{good}");
    }
    for bad in ["", ".", "..", "../a", "a/b", "/etc/passwd", "a\\b", "C:\\a", "a\0.txt", "a\r\nb"] {
        assert!(!name(bad), "{bad}");
    }
    assert!(name(&"n".repeat(255)) && !name(&"n".repeat(256)));
}

#[test]
fn a_time_is_parsed_from_text_and_from_seconds() {
    let read = |json: &str| serde_json::from_str::<Moment>(json).map(|moment| moment.unix_ms).ok();
    assert_eq!(read("1700000000"), Some(1_700_000_000_000));
    assert_eq!(read("1700000000.25"), Some(1_700_000_000_250));
    assert_eq!(read("-1"), Some(-1000));
    assert_eq!(read(r#""2023-11-14T22:13:20Z""#), Some(1_700_000_000_000));
    assert_eq!(read(r#""2023-11-15T06:13:20.5+08:00""#), Some(1_700_000_000_500));
    for wrong in [r#""2023-11-14""#, r#""""#, "1e30", "-1e12", "true", "[1]", "null"] {
        assert_eq!(read(wrong), None, "{wrong}");
    }
}
