//! Spans as JSON of the OpenTelemetry protocol (OTLP 1.x over HTTP). No IO.

use super::trace::hex;
use super::{Attribute, Kind, Span};
use crate::settings::Telemetry as Settings;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The body of one export.
pub(super) fn body(settings: &Settings, spans: &[Span]) -> Value {
    let resource = [
        ("service.name", Attribute::Text(settings.service_name.clone())),
        ("service.version", Attribute::Text(env!("CARGO_PKG_VERSION").to_owned())),
    ];
    let spans: Vec<Value> = spans.iter().map(span).collect();
    let scope = json!({"name": "greenroom", "version": env!("CARGO_PKG_VERSION")});
    json!({"resourceSpans": [{
        "resource": {"attributes": attributes(&resource)},
        "scopeSpans": [{"scope": scope, "spans": spans}],
    }]})
}

fn span(span: &Span) -> Value {
    let mut value = json!({
        "traceId": hex(&span.trace.id),
        "spanId": hex(&span.id.0),
        "name": span.name,
        "kind": match span.kind { Kind::Internal => 1, Kind::Client => 3 },
        "startTimeUnixNano": nanos(span.started, Duration::ZERO),
        "endTimeUnixNano": nanos(span.started, span.took),
        "attributes": attributes(&span.attributes),
    });
    if let Some(parent) = span.parent {
        value["parentSpanId"] = hex(&parent.0).into();
    }
    if let Some(code) = &span.error {
        value["status"] = json!({"code": 2, "message": code});
    }
    value
}

/// 64-bit numbers are text in this format.
fn nanos(at: SystemTime, after: Duration) -> String {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default() + after;
    since.as_nanos().to_string()
}

fn attributes(attributes: &[(&'static str, Attribute)]) -> Vec<Value> {
    attributes.iter().map(|(key, value)| json!({"key": key, "value": attribute(value)})).collect()
}

fn attribute(value: &Attribute) -> Value {
    match value {
        Attribute::Text(text) => json!({"stringValue": text}),
        Attribute::Number(number) => json!({"intValue": number.to_string()}),
        Attribute::Texts(texts) => {
            let values: Vec<Value> =
                texts.iter().map(|text| json!({"stringValue": text})).collect();
            json!({"arrayValue": {"values": values}})
        }
    }
}
