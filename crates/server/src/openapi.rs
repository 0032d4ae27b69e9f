//! The description of the HTTP interface, OpenAPI 3.1.

use crate::answer::{Answer, ok};
use serde_json::json;

pub(crate) async fn document() -> Answer {
    ok(
        json!({"openapi": "3.1.0", "info": {"title": "Greenroom", "version": env!("CARGO_PKG_VERSION")}, "paths": {}}),
    )
}
