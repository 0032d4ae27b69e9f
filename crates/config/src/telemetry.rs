//! `[telemetry]`: where traces are sent.
//!
//! Invariant: without the section nothing is sent.

use super::Secret;
use super::reader::Reader;
use super::surface::web_address;
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telemetry {
    /// The collector's address for OTLP over HTTP, without `/v1/traces`.
    pub url: String,
    /// Sent with every export, for example a key.
    pub headers: BTreeMap<String, Secret>,
    /// The name under which the collector shows this host.
    pub service_name: String,
}

impl Telemetry {
    pub(super) fn read(mut reader: Reader<'_>) -> Option<Self> {
        let url = reader.require("otlp").and_then(|value| web_address(&value));
        let name = reader.get("service_name").and_then(|v| v.filled_text().map(str::to_owned));
        let headers = reader.get("headers").and_then(|value| value.headers());
        reader.finish();
        Some(Self {
            url: url?,
            headers: headers.unwrap_or_default(),
            service_name: name.unwrap_or_else(|| "greenroom".to_owned()),
        })
    }
}
