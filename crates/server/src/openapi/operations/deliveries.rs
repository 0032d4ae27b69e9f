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
            "Deliveries to surfaces, newest first\nA page may be short although `has_more` is true where few \
             deliveries fit.",
        )
        .takes(&["workspace_id", "delivery_status", "surface", "run_id", "cursor", "limit"])
        .answers("200", page_of("Delivery")),
        Operation::get(
            "/v1/deliveries/{id}",
            "get_delivery",
            "deliveries",
            "One delivery\nWith `payload`, what is sent.",
        )
        .takes(&["delivery_id_in_path", "workspace_id"])
        .answers("200", delivery("The delivery."))
        .refuses(&["404"]),
        Operation::post(
            "/v1/deliveries/{id}/retry",
            "retry_delivery",
            "deliveries",
            "Send a delivery again\nTakes the token of an admin, and a delivery that is `failed` or `unknown`; \
             otherwise the answer is 409. It is pending again, before later deliveries of its target, with the \
             same id and fresh time for retries. One that is `unknown` may arrive a second time.",
        )
        .takes(&["delivery_id_in_path", "workspace_id"])
        .answers("200", delivery("The delivery as it is now."))
        .refuses(&["404", "409"]),
        Operation::post(
            "/v1/deliveries/{id}/discard",
            "discard_delivery",
            "deliveries",
            "Discard a delivery\nTakes the token of an admin, and a delivery that is `pending`, `failed` or \
             `unknown`; otherwise the answer is 409. Later deliveries of its target go on.",
        )
        .takes(&["delivery_id_in_path", "workspace_id"])
        .answers("200", delivery("The delivery as it is now."))
        .refuses(&["404", "409"]),
    ]
}
