//! Operations on deliveries.

use super::Operation;
use crate::openapi::parts::{by_ref, json_body, page_of};
use serde_json::Value;

pub(super) fn all() -> Vec<Operation> {
    let delivery = |about: &str| -> Value { json_body(about, by_ref("schemas", "Delivery")) };
    vec![
        Operation::get(
            "/v1/deliveries",
            "list_deliveries",
            "deliveries",
            "Deliveries to surfaces, newest first\nA page may be short although `has_more` is true when few \
             deliveries match.",
        )
        .takes(&["workspace_id", "delivery_status", "surface", "run_id", "cursor", "limit"])
        .answers("200", page_of("Delivery")),
        Operation::get(
            "/v1/deliveries/{id}",
            "get_delivery",
            "deliveries",
            "One delivery\nWith its `payload`.",
        )
        .takes(&["delivery_id_in_path", "workspace_id"])
        .answers("200", delivery("The delivery."))
        .refuses(&["404"]),
        Operation::post(
            "/v1/deliveries/{id}/retry",
            "retry_delivery",
            "deliveries",
            "Send a delivery again\nFor admins. The delivery must be `failed` or `unknown`, else 409. It becomes \
             `pending`, before later deliveries of its target, with the same id and a new retry period. One \
             that is `unknown` may arrive twice.",
        )
        .takes(&["delivery_id_in_path", "workspace_id"])
        .answers("200", delivery("The delivery as it is now."))
        .refuses(&["404", "409"]),
        Operation::post(
            "/v1/deliveries/{id}/discard",
            "discard_delivery",
            "deliveries",
            "Discard a delivery\nFor admins. The delivery must be `pending`, `failed` or `unknown`, else 409. Later \
             deliveries of its target continue.",
        )
        .takes(&["delivery_id_in_path", "workspace_id"])
        .answers("200", delivery("The delivery as it is now."))
        .refuses(&["404", "409"]),
    ]
}
